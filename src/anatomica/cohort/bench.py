"""Cost of the engine: two workers against one, the driver's share and memory, and 100,000 requests simulated.

Patients are fake: they keep one core busy for a stated time, so that only the engine is measured. The driver
of a cluster is simulated with workers that answer at once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.anatomy.nifti import encode
from anatomica.cohort.engine import carry_out
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.patient import Draw, Patient
from anatomica.cohort.plan import Maker, Plan, make_plan
from anatomica.cohort.spec import parse_spec
from anatomica.cohort.worker import Done, Job
from anatomica.evaluate.bench.writing import Tell, memory, write_bench
from anatomica.machine import peak_memory_mb

BUSY = 0.2
"""Seconds of one core per fake patient; a real one takes ten times as long or more."""
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
    one, two = (throughput(patients, workers) for workers in (1, 2))
    tell(f"patients per second: one worker {one['rate']:.2f}, two {two['rate']:.2f}")
    grown = memory_growth()
    tell(f"driver's peak memory after 100 and 1,000 patients: {memory(grown[0])}, {memory(grown[1])}")
    simulated = driver_alone(many)
    tell(f"driver with instant workers: {simulated['patients_per_second']:.0f} patients per second")
    result = {
        "busy_seconds": BUSY,
        "patients": patients,
        "one_worker": one,
        "two_workers": two,
        "speed_up": two["rate"] / one["rate"],
        "driver_share": two["driver_cpu_seconds"] / (patients * BUSY),
        "memory_mb": list(grown),
        "simulated": simulated,
    }
    return write_bench(out, "cohort", result, _markdown(result), {}, "cohort.bench")


def throughput(patients: int, workers: int) -> dict[str, float]:
    """Patients per second from the first finished one on, when every worker has started."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _plan(patients + 2 * workers).save(folder)
        ends: list[float] = []
        cpu = time.process_time()
        executor = LocalExecutor(Job(folder, open_busy), workers)
        carry_out(folder, executor, lambda _: ends.append(time.perf_counter()))
        cpu = time.process_time() - cpu
        used = ends[workers:]  # the first of each worker is its start
        return {"rate": (len(used) - 1) / (used[-1] - used[0]), "driver_cpu_seconds": cpu}


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
    labels = _label_map(np.random.default_rng(0), 64)
    return {
        "patients": many,
        "plan_seconds": planned,
        "driver_seconds": passed,
        "patients_per_second": many / passed,
        "bytes_of_noise_64": float(len(encode(labels))),
    }


def open_busy(plan: Plan, device: str) -> Draw:
    """Fake patients of `BUSY` seconds of one core."""

    def draw(plan: Plan, index: int) -> Patient:
        end = time.process_time() + BUSY
        while time.process_time() < end:
            np.sort(np.arange(20_000)[::-1])
        return _fake(plan, index)

    return draw


def open_instant(plan: Plan, device: str) -> Draw:
    return _fake


def _fake(plan: Plan, index: int) -> Patient:
    request = plan.request(index)
    record = {"index": index, "key": plan.key(index), "outcome": "kept", "targets": dict(request.targets)}
    return Patient(record, _label_map(np.random.default_rng(request.seed), 16))


def _label_map(rng: np.random.Generator, n: int) -> LabelMap:
    about = anatomy("aortic")
    ids = np.array(about.table.ids, dtype=np.uint8)
    return LabelMap(ids[rng.integers(0, len(ids), (n, n, n))], cube_affine(about.edge_mm, n), about.table)


def _plan(size: int) -> Plan:
    return make_plan(parse_spec(SPEC.format(size=size)), Maker("bench", None, "bench"))


def _markdown(result: dict[str, Any]) -> str:
    simulated, (before, after) = result["simulated"], result["memory_mb"]
    return "\n".join(
        [
            f"Fake patients of {BUSY:g} s of one core each, executor local.",
            "",
            "| | |",
            "|---|---:|",
            f"| patients per second, one worker | {result['one_worker']['rate']:.2f} |",
            f"| patients per second, two workers | {result['two_workers']['rate']:.2f} |",
            f"| two workers against one | {result['speed_up']:.2f} |",
            f"| driver's CPU time, share of the workers' | {result['driver_share']:.1%} |",
            f"| driver's peak memory after 100 patients | {memory(before)} |",
            f"| driver's peak memory after 1,000 more | {memory(after)} |",
            f"| requests of the simulated cluster | {simulated['patients']:.0f} |",
            f"| planning them, seconds | {simulated['plan_seconds']:.1f} |",
            f"| driver with instant workers, patients per second | {simulated['patients_per_second']:.0f} |",
            "",
        ]
    )
