"""What every worker does, whichever executor runs it: claim a patient, draw it, put it into the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anatomica.cohort.patient import Draw
from anatomica.cohort.plan import Plan, read_plan
from anatomica.cohort.store import LEASE, Store

Open = Callable[[Plan, str], Draw]
"""Opens what draws patients, on a device; a module's function, so that another process can import it."""
State = Literal["drawn", "there", "claimed"]


@dataclass(frozen=True)
class Done:
    """What a worker tells of a patient: its number, its key, and whether it drew it, found it, or left it to
    another process that has claimed it. Volumes stay in the store."""

    index: int
    key: str
    state: State
    outcome: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """What a worker needs to begin: the cohort's folder, how to open what draws, and the device."""

    folder: Path
    opens: Open
    device: str = "cpu"
    lease: float = LEASE


class Worker:
    """Opened once per process; `one` draws one patient."""

    def __init__(self, job: Job) -> None:
        self.plan = read_plan(job.folder)
        self.store = Store(job.folder, job.lease)
        self.draw = job.opens(self.plan, job.device)

    def one(self, index: int) -> Done:
        key = self.plan.key(index)
        if self.store.done(key):
            return Done(index, key, "there")
        claim = self.store.claim(key)
        if claim is None:
            return Done(index, key, "there" if self.store.done(key) else "claimed")
        try:
            start = time.perf_counter()
            patient = self.draw(self.plan, index)
            if not self.store.holds(claim):
                return Done(index, key, "claimed")
            self.store.put(key, patient)
            return Done(index, key, "drawn", patient.record["outcome"], time.perf_counter() - start)
        finally:
            claim.release()
