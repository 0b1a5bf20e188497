"""Cost of the engine: two workers against one, the driver's share and memory, and 100,000 requests simulated.

Patients are fake: they keep one core busy for a stated time, so that only the engine is measured. The driver
of a cluster is simulated with workers that answer at once.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.cohort.drawing import seconds_per_candidate
from anatomica.cohort.engine import carry_out
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.maker import maker_of
from anatomica.cohort.patient import Draw, Patient
from anatomica.cohort.plan import Maker, Plan, make_plan
from anatomica.cohort.spec import EXAMPLE, parse_spec
from anatomica.cohort.summary import read_cohort
from anatomica.cohort.training_phantoms import moments_of_map
from anatomica.cohort.worker import Done, Job, Open, Worker
from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench.writing import Tell, memory, write_bench
from anatomica.machine import peak_memory_mb
from anatomica.measurement.vocabulary.statistics import statistics

BUSY = 0.2
"""Seconds of one core per fake patient; a real one takes ten times as long or more."""
FIRST = 100_000
"""A phantom that no model has seen."""
SPEC = """
name: bench
anatomy: aortic
size: {size}
targets:
  ao.mid_ascending.diameter_mm: {{normal: [42, 5], truncate: [34, 58]}}
  ao.tortuosity: {{uniform: [1.05, 1.35]}}
  correlations: {{[ao.mid_ascending.diameter_mm, ao.tortuosity]: 0.4}}
"""


def run(out: Path, patients: int = 60, many: int = 100_000, tell: Tell = lambda _: None) -> dict[str, Any]:
    """Measure everything, tell a line of each, write out/cohort.json and out/cohort.md."""
    one, two = (throughput(patients, workers, open_busy) for workers in (1, 2))
    tell(f"patients per second: one worker {one['rate']:.2f}, two {two['rate']:.2f}")
    waits = [throughput(patients, workers, open_waiting)["rate"] for workers in (1, 2)]
    tell(f"patients that only wait, per second: one worker {waits[0]:.2f}, two {waits[1]:.2f}")
    grown = memory_growth()
    tell(f"driver's peak memory after 100 and 1,000 patients: {memory(grown[0])}, {memory(grown[1])}")
    simulated = driver_alone(many)
    tell(f"driver with instant workers: {simulated['patients_per_second']:.0f} patients per second")
    kept = storage()
    tell(f"store: {kept['patients_per_second']:.0f} patients per second, {kept['bytes']:.0f} bytes each")
    real = seconds_per_candidate(example := make_plan(parse_spec(EXAMPLE), maker_of(parse_spec(EXAMPLE))))
    tell(f"one candidate of the example: {real:.1f} s")
    result = {
        "busy_seconds": BUSY,
        "patients": patients,
        "one_worker": one,
        "two_workers": two,
        "speed_up": two["rate"] / one["rate"],
        "speed_up_waiting": waits[1] / waits[0],
        "driver_share": two["driver_cpu_seconds"] / (patients * BUSY),
        "memory_mb": list(grown),
        "simulated": simulated,
        "store": kept,
        "candidate_seconds": real,
    }
    weights = {example.spec.anatomy: example.maker.model}
    return write_bench(out, "cohort", result, _markdown(result), weights, "cohort.bench")


def throughput(patients: int, workers: int, opens: Open) -> dict[str, float]:
    """Patients per second from the moment on at which every worker has finished one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _plan(patients + 2 * workers).save(folder)
        ends: list[float] = []
        seen: set[str] = set()

        def done(one: Done) -> None:
            seen.add(one.outcome)  # fake patients say who drew them
            if len(seen) == workers:
                ends.append(time.perf_counter())

        cpu = time.process_time()
        carry_out(folder, LocalExecutor(Job(folder, opens), workers), done)
        cpu = time.process_time() - cpu
        rate = (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 else float("nan")
        return {"rate": rate, "driver_cpu_seconds": cpu}


def memory_growth() -> tuple[float | None, float | None]:
    """Peak memory of this process after 100 patients and after 1,000 more, all drawn by other processes."""
    found = []
    for count in (100, 1000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _plan(count).save(folder)
            carry_out(folder, LocalExecutor(Job(folder, open_instant), 1))
        found.append(peak_memory_mb())
    return found[0], found[1]


class _Instant:
    """An executor whose workers answer at once and store nothing."""

    def __enter__(self) -> _Instant:
        return self

    def __exit__(self, *what: object) -> None: ...

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        return (Done(index, "", "drawn", "kept", 0.0) for index in indices)


def driver_alone(many: int) -> dict[str, float]:
    """Seconds of the driver for a cohort of this size when drawing costs nothing: plan, keys, bookkeeping."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        plan = _plan(many)
        _ = plan.values, plan.strata
        planned = time.perf_counter() - start
        plan.save(folder)
        start = time.perf_counter()
        carry_out(folder, _Instant())
        passed = time.perf_counter() - start
    return {
        "patients": many,
        "plan_seconds": planned,
        "driver_seconds": passed,
        "patients_per_second": many / passed,
        "peak_memory_mb": peak_memory_mb() or 0.0,
    }


def storage(patients: int = 200) -> dict[str, float]:
    """What one worker's store takes per patient: claim, label map of a phantom at 64^3, record, release."""
    label_map = phantom("aortic", FIRST, 64).label_map
    _, found = statistics(label_map, anatomy("aortic"), 64)
    quantities = {x.entry.key: x.value for x in found if x.value is not None}
    moments = moments_of_map(label_map).tolist()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = _plan(patients)
        plan.save(folder)

        def draw(plan: Plan, index: int) -> Patient:
            record = _fake(plan, index).record | {"quantities": quantities, "moments": moments}
            return Patient(record, label_map)

        worker = Worker(Job(folder, lambda plan, device: draw))
        start = time.perf_counter()
        for index in range(patients):
            worker.one(index)
        passed = time.perf_counter() - start
        size = sum(x.stat().st_size for x in (folder / "patients").rglob("*") if x.is_file())
        start = time.perf_counter()
        read_cohort(folder)
        read = time.perf_counter() - start
    return {
        "patients": patients,
        "patients_per_second": patients / passed,
        "bytes": size / patients,
        "read_per_second": patients / read,
    }


def open_busy(plan: Plan, device: str) -> Draw:
    """Fake patients of `BUSY` seconds of one core."""

    def draw(plan: Plan, index: int) -> Patient:
        end = time.process_time() + BUSY
        while time.process_time() < end:
            np.sort(np.arange(20_000)[::-1])
        return _fake(plan, index)

    return draw


def open_waiting(plan: Plan, device: str) -> Draw:
    """Fake patients of `BUSY` seconds that leave the core to others: what the engine could give."""

    def draw(plan: Plan, index: int) -> Patient:
        time.sleep(BUSY)
        return _fake(plan, index)

    return draw


def open_instant(plan: Plan, device: str) -> Draw:
    return _fake


def _fake(plan: Plan, index: int) -> Patient:
    request = plan.request(index)
    outcome, targets = f"kept by {os.getpid()}", dict(request.targets)
    record = {"index": index, "key": plan.key(index), "outcome": outcome, "targets": targets}
    return Patient(record, _label_map(np.random.default_rng(request.seed), 16))


def _label_map(rng: np.random.Generator, n: int) -> LabelMap:
    about = anatomy("aortic")
    ids = np.array(about.table.ids, dtype=np.uint8)
    return LabelMap(ids[rng.integers(0, len(ids), (n, n, n))], cube_affine(about.edge_mm, n), about.table)


def _plan(size: int) -> Plan:
    return make_plan(parse_spec(SPEC.format(size=size)), Maker("bench", "bench"))


def _markdown(result: dict[str, Any]) -> str:
    simulated, store, (before, after) = result["simulated"], result["store"], result["memory_mb"]
    many, cost = simulated["patients"], result["candidate_seconds"]
    rows = {
        "patients per second, one worker": f"{result['one_worker']['rate']:.2f}",
        "patients per second, two workers": f"{result['two_workers']['rate']:.2f}",
        "two workers against one": f"{result['speed_up']:.2f}",
        "the same of patients that only wait": f"{result['speed_up_waiting']:.2f}",
        "driver's CPU time, share of the workers'": f"{result['driver_share']:.1%}",
        "driver's peak memory after 100 patients": memory(before),
        "driver's peak memory after 1,000 more": memory(after),
    }
    plan = {
        "planning the requests, seconds": f"{simulated['plan_seconds']:.1f}",
        "driver with instant workers, patients per second": f"{simulated['patients_per_second']:.0f}",
        "driver's peak memory": memory(simulated["peak_memory_mb"]),
        "store of one worker, patients per second": f"{store['patients_per_second']:.0f}",
        "storage per patient, kB": f"{store['bytes'] / 1000:.1f}",
        f"storage of {many:.0f} patients, GB": f"{many * store['bytes'] / 1e9:.1f}",
        "reading for the report, patients per second": f"{store['read_per_second']:.0f}",
        "one candidate of the example, seconds of one core": f"{cost:.1f}",
        f"{many:.0f} candidates, hours of one core": f"{many * cost / 3600:.0f}",
        "workers that the driver keeps busy": f"{simulated['patients_per_second'] * cost:.0f}",
    }
    lines = [f"Fake patients of {BUSY:g} s of one core each, executor local.", ""]
    lines += _rows(rows)
    lines += ["", f"A cohort of {many:.0f} patients on a cluster, its driver simulated:", ""]
    lines += [*_rows(plan), ""]
    return "\n".join(lines)


def _rows(rows: dict[str, str]) -> list[str]:
    return ["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in rows.items())]
