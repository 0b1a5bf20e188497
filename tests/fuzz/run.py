"""`make fuzz`: more than ten thousand damaged inputs. Ends with exit code 1 if one was answered wrongly.

    python tests/fuzz/run.py [--share 1.0] [--seed 0] [--only TARGET] [--out results]

Prints for every target how many inputs were refused and answered, wrong answers, tracebacks and hangs, the
slowest, and the peak memory; with --out also writes fuzz.md and fuzz.json there.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from anatomica.evaluate.bench.writing import write_bench
from anatomica.machine import peak_memory_mb
from fuzz.made import Inputs, Wrong, inputs
from fuzz.targets import TARGETS

SECONDS = 20
"""Of this process: more is a hang."""
WAITING = 120
"""Seconds of the clock: a process that waits uses none of its own."""
MEGABYTES = 2048


class Hang(BaseException):
    """No `Exception`, so that nothing on the way takes it for a damaged file."""


@dataclass
class Found:
    """A target with its inputs: what became of them, and the seconds of the slowest."""

    target: str
    kind: str
    inputs: int = 0
    refused: int = 0
    answered: int = 0
    wrong: int = 0
    tracebacks: int = 0
    hangs: int = 0
    slowest_s: float = 0.0
    reasons: dict[int, str] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        return self.wrong + self.tracebacks + self.hangs


@contextmanager
def limits() -> Iterator[None]:
    """A `Hang` in whatever takes longer; only where the system has alarms."""

    def late(*_: object) -> None:
        raise Hang

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    timers = ((signal.SIGALRM, signal.ITIMER_REAL, WAITING), (signal.SIGPROF, signal.ITIMER_PROF, SECONDS))
    before = {number: signal.signal(number, late) for number, _, _ in timers}
    for _, timer, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, timer, _ in timers:
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def fuzz(name: str, count: int, made: Inputs, seed: int = 0) -> Found:
    """Feed a target with `count` damaged inputs; the same seed gives the same inputs."""
    target = TARGETS[name]
    found = Found(name, target.kind)
    for i in range(count):
        began = time.process_time()
        try:
            with limits():
                refused = target.feed(made, random.Random(f"{name} {seed} {i}"))
            found.refused += refused
            found.answered += not refused
        except Hang:
            found.hangs += 1
            found.reasons[i] = f"took more than {SECONDS} s"
        except Wrong as error:
            found.wrong += 1
            found.reasons[i] = str(error)
        except Exception as error:
            found.tracebacks += 1
            found.reasons[i] = "".join(traceback.format_exception(error)[-6:])
        found.inputs += 1
        found.slowest_s = max(found.slowest_s, time.process_time() - began)
    return found


def table(rows: list[Found], peak: float) -> str:
    """Markdown: one row per target, a sum per kind, and the whole."""
    names = ("inputs", "refused", "answered", "wrong", "tracebacks", "hangs")
    lines = [
        "# Damaged and absurd inputs",
        "",
        f"`make fuzz`: an input is a hang after {SECONDS} s of the processor or {WAITING} s of the clock.",
        "",
        "| kind | target | inputs | refused in a sentence | answered rightly | wrong answers | tracebacks "
        "| hangs | slowest s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        numbers = " | ".join(str(getattr(row, name)) for name in names)
        lines.append(f"| {row.kind} | {row.target} | {numbers} | {row.slowest_s:.2f} |")
    for kind in (*dict.fromkeys(row.kind for row in rows), None):
        part = [row for row in rows if kind in (None, row.kind)]
        sums = " | ".join(f"**{sum(getattr(row, name) for row in part)}**" for name in names)
        slowest = max(row.slowest_s for row in part)
        lines.append(f"| **{kind or 'all'}** | | {sums} | {slowest:.2f} |")
    return "\n".join([*lines, "", f"Peak memory {peak:.0f} MB (at most {MEGABYTES} are allowed).", ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the stated number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(TARGETS), action="append", help="only this target")
    parser.add_argument("--out", type=Path, help="folder for fuzz.md and fuzz.json")
    given = parser.parse_args()
    warnings.simplefilter("error")  # a warning is something that nobody checked
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        made = inputs(Path(folder))
        for name, target in TARGETS.items():
            if given.only and name not in given.only:
                continue
            found = fuzz(name, max(1, round(target.inputs * given.share)), made, given.seed)
            rows.append(found)
            numbers = ", ".join(
                f"{value} {key}" for key, value in asdict(found).items() if isinstance(value, int)
            )
            print(f"{name}: {numbers}, slowest {found.slowest_s:.2f} s", flush=True)
            for i, reason in list(found.reasons.items())[:5]:
                print(f"  input {i}: {reason}", flush=True)
    peak = peak_memory_mb() or 0.0
    total, bad = sum(row.inputs for row in rows), sum(row.bad for row in rows)
    print(f"{total} inputs, {bad} bad, peak memory {peak:.0f} MB")
    if given.out is not None:
        result: dict[str, Any] = {"seed": given.seed, "inputs": total, "bad": bad, "peak_memory_mb": peak}
        result["targets"] = [asdict(row) for row in rows]
        write_bench(given.out, "fuzz", result, table(rows, peak), {}, module="cli")
    return 1 if bad or peak > MEGABYTES else 0


if __name__ == "__main__":
    sys.exit(main())
