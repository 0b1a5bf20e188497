"""Carry a plan out: give every unfinished patient to an executor until all are in the store."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anatomica.cohort.executors import Executor
from anatomica.cohort.plan import Plan, read_plan
from anatomica.cohort.store import Store
from anatomica.cohort.worker import Done
from anatomica.errors import AnatomicaError
from anatomica.files import read_json, write_json

RUN = "run.json"
WAIT = 1.0
"""Seconds between two looks at patients that another process has claimed."""


@dataclass(frozen=True)
class State:
    """How far a cohort is: requests, finished ones, and claimed ones that are being drawn."""

    size: int
    finished: int
    claimed: int

    @property
    def complete(self) -> bool:
        return self.finished == self.size


def begin(plan: Plan, folder: Path) -> Plan:
    """Write a plan into its folder, or go on with the same one that is there already.

    A folder that has grown (`anatomica cohort add`) keeps its size.
    """
    if (folder / "plan.json").is_file():
        there = read_plan(folder)
        if there.spec != plan.spec or there.maker != plan.maker:
            what = "spec" if there.spec != plan.spec else "model or code"
            raise AnatomicaError(f"{folder} holds a cohort of another {what}; give another folder")
        return there
    plan.save(folder)
    return plan


def state(folder: Path) -> State:
    """How far the cohort in a folder is."""
    plan, store = read_plan(folder), Store(folder)
    finished = store.finished()
    keys = {plan.key(i) for i in range(plan.size)}
    return State(plan.size, len(keys & finished), len(keys & (store.claimed() - finished)))


def carry_out(
    folder: Path, executor: Executor, done: Callable[[Done], None] = lambda _: None, wait: float = WAIT
) -> State:
    """Draw every patient that is not finished; those that other processes have claimed are waited for.

    The driver keeps no patient in memory: workers tell keys, and the store has everything else.
    """
    plan, store = read_plan(folder), Store(folder)
    store.clear()
    start, drawn, seconds = time.perf_counter(), 0, 0.0
    outcomes: Counter[str] = Counter()
    left = _unfinished(plan, store)
    with executor as running:
        while True:
            elsewhere: deque[int] = deque()
            try:
                for one in running.run(left):
                    if one.state == "claimed":
                        elsewhere.append(one.index)
                        continue
                    if one.state == "drawn":
                        drawn, seconds = drawn + 1, seconds + one.seconds
                        outcomes[one.outcome] += 1
                    done(one)
            finally:
                _note(folder, drawn, seconds, time.perf_counter() - start)
                start, drawn, seconds = time.perf_counter(), 0, 0.0
            if not elsewhere:
                break
            time.sleep(wait)
            left = iter(elsewhere)
    return state(folder)


def _unfinished(plan: Plan, store: Store) -> Iterator[int]:
    """Numbers of the patients that are not finished, as the executor asks for them."""
    finished = store.finished()
    return (i for i in range(plan.size) if plan.key(i) not in finished)


def _note(folder: Path, drawn: int, worked: float, passed: float) -> None:
    """Add this driver's work to run.json: it says what a patient costs, and decides nothing."""
    if not drawn:
        return
    before = run_notes(folder)
    write_json(
        folder / RUN,
        {
            "patients": before["patients"] + drawn,
            "worker_seconds": round(before["worker_seconds"] + worked, 3),
            "driver_seconds": round(before["driver_seconds"] + passed, 3),
        },
    )


def run_notes(folder: Path) -> dict[str, Any]:
    """Patients drawn so far by drivers that ended in order, and the seconds that they took."""
    notes = {"patients": 0, "worker_seconds": 0.0, "driver_seconds": 0.0}
    with suppress(OSError, ValueError):
        found = read_json(folder / RUN)
        if isinstance(found, dict) and all(isinstance(found.get(key), int | float) for key in notes):
            return found
    return notes
