"""What a whole `anatomica generate` takes beside its sampling: quiet, and beside a busy process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

HEARTS = ("--task", "right-ventricle", "--like-phantom", "900000", "--samples", "4")
"""Four guided hearts, asked for the right ventricle of a patient that is in no training set."""
WHERE = ("quiet", "beside one busy process")


def command_cost(options: Sequence[str] = HEARTS, rounds: int = 3) -> dict[str, Any]:
    """Seconds of the command and of its sampling, the fastest of some interleaved rounds.

    Sampling is what the samples' own `seconds` add up to: guided steps, polish and decoding. The rest is
    imports, certificates, repair, files, pictures and the report. Seconds of all cores stand beside those of
    the clock: they hardly depend on what else the machine does, whose load is told.
    """
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    found: dict[str, list[dict[str, float]]] = {where: [] for where in WHERE}
    for _ in range(rounds):
        for busy, where in enumerate(WHERE):
            with busy_processes(busy):
                found[where].append(_timed(options))
    best = {where: min(rows, key=lambda row: row["command"]) for where, rows in found.items()}
    for row in best.values():
        row["ratio"] = row["command"] / row["sampling"]
        row["cpu ratio"] = row["command cpu"] / row["sampling cpu"]
    slower = best[WHERE[1]]["sampling"] / best[WHERE[0]]["sampling"]
    return {"options": " ".join(options), "load before": load, **best, "sampling is slower beside it": slower}


@contextmanager
def busy_processes(count: int) -> Iterator[list[subprocess.Popen]]:
    """Processes that only burn time."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def _timed(options: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "anatomica", "generate", *options, "--quiet", "--out", folder]
        began, used = perf_counter(), _of_children()
        subprocess.run(command, check=True)
        seconds, used = perf_counter() - began, _of_children() - used
        samples = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))["samples"]
    sampling, cpu = (sum(s[key] for s in samples) for key in ("seconds", "cpu_seconds"))
    return {"command": seconds, "sampling": sampling, "command cpu": used, "sampling cpu": cpu}


def _of_children() -> float:
    """Seconds of all cores that ended child processes took."""
    times = os.times()
    return times.children_user + times.children_system


def command_lines(cost: dict[str, Any]) -> list[str]:
    """The cost as lines of Markdown."""
    load = "" if cost["load before"] is None else f", load {cost['load before']} before it"
    lines = [
        f"`anatomica generate {cost['options']}`, the fastest round{load}. Beside a busy process sampling "
        f"takes {cost['sampling is slower beside it']:.2f} times as long (1.5 wanted; and 1.5 for the "
        "command beside its sampling).",
        "",
        "| where | command s | sampling s | ratio | command, s of all cores | sampling | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for where in WHERE:
        row = cost[where]
        lines.append(
            f"| {where} | {row['command']:.1f} | {row['sampling']:.1f} | {row['ratio']:.2f} | "
            f"{row['command cpu']:.1f} | {row['sampling cpu']:.1f} | {row['cpu ratio']:.2f} |"
        )
    return lines
