"""Fake patients: drawn in no time, and told by a log how often each was drawn."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.cohort.engine import carry_out
from anatomica.cohort.patient import Draw, Patient
from anatomica.cohort.plan import Maker, Plan, make_plan
from anatomica.cohort.spec import CohortSpec, parse_spec
from anatomica.cohort.worker import Done, Job, Worker

MAKER = Maker("fake", "fake")
SPEC = """
name: fake
anatomy: coronary
size: 40
seed: 3
targets:
  lumen.mean_diameter_mm: {normal: [3, 0.4], truncate: [2, 4]}
  plaque_burden_pct: {uniform: [20, 60]}
  correlations: {[lumen.mean_diameter_mm, plaque_burden_pct]: -0.5}
"""
LOG = "drawn.log"


def spec(**changes: object) -> CohortSpec:
    given = parse_spec(SPEC).model_dump(by_alias=True, exclude_none=True)
    return CohortSpec.model_validate(given | changes)


def planned(folder: Path, **changes: object) -> Plan:
    plan = make_plan(spec(**changes), MAKER)
    plan.save(folder)
    return plan


def fake_patient(plan: Plan, index: int) -> Patient:
    """A cube whose voxels and quantities follow from the request."""
    request = plan.request(index)
    rng = np.random.default_rng(request.seed)
    array = np.zeros((8, 8, 8), dtype=np.uint8)
    array[2:6, 2:6, 2:6] = rng.integers(1, 4, (4, 4, 4))
    about = ANATOMIES["coronary"]
    achieved = {key: value * (1 + 0.001 * rng.standard_normal()) for key, value in request.targets}
    moments = np.abs(rng.standard_normal((len(about.table), 10))) * 0.01 + 0.1
    record = {
        "index": index,
        "key": plan.key(index),
        "outcome": "kept",
        "stratum": request.stratum,
        "targets": dict(request.targets),
        "attempts": [{**request.to_dict(), "outcome": "kept", "drawn": 1, "why": ""}],
        "seed": request.seed,
        "met": True,
        "plausible": True,
        "unusual": [],
        "quantities": achieved,
        "moments": moments.tolist(),
        "nearest_training": 1.0,
    }
    return Patient(record, LabelMap(array, cube_affine(about.edge_mm, 8), about.table))


def logged(folder: Path, line: str) -> None:
    """One whole line, also if many processes write at once."""
    descriptor = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def open_fake(plan: Plan, device: str) -> Draw:
    """`device` is the folder of the log, or `cpu` for none."""

    def draw(plan: Plan, index: int) -> Patient:
        patient = fake_patient(plan, index)
        if device != "cpu":
            logged(Path(device), str(index))
        return patient

    return draw


def open_fatal(plan: Plan, device: str) -> Draw:
    """Patient 5 ends its process."""

    def draw(plan: Plan, index: int) -> Patient:
        if index == 5:
            os._exit(9)
        return fake_patient(plan, index)

    return draw


def open_busy(plan: Plan, device: str) -> Draw:
    """Every patient takes some 0.1 s of one core."""

    def draw(plan: Plan, index: int) -> Patient:
        end = time.process_time() + 0.1
        while time.process_time() < end:
            np.linalg.svd(np.ones((30, 30)))
        return fake_patient(plan, index)

    return draw


def content(folder: Path) -> dict[str, bytes]:
    """Every file of the store."""
    return {x.name: x.read_bytes() for x in (folder / "patients").rglob("*") if x.is_file()}


class InProcess:
    """An executor without processes, for tests of everything else."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __enter__(self) -> InProcess:
        self.worker = Worker(self.job)
        return self

    def __exit__(self, *what: object) -> None: ...

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        for index in indices:
            yield self.worker.one(index)


def undisturbed(folder: Path, **changes: object) -> dict[str, bytes]:
    planned(folder, **changes)
    carry_out(folder, InProcess(Job(folder, open_fake)))
    return content(folder)
