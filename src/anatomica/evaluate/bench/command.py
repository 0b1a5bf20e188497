"""What a whole `anatomica generate` takes beside its sampling: quiet, and beside a busy process."""

from __future__ import annotations

import json
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
    imports, certificates, repair, files, pictures and the report.
    """
    found: dict[str, list[dict[str, float]]] = {where: [] for where in WHERE}
    for _ in range(rounds):
        for busy, where in enumerate(WHERE):
            with busy_processes(busy):
                found[where].append(_timed(options))
    best = {where: min(rows, key=lambda row: row["command"]) for where, rows in found.items()}
    for row in best.values():
        row["ratio"] = row["command"] / row["sampling"]
    slower = best[WHERE[1]]["sampling"] / best[WHERE[0]]["sampling"]
    return {"options": " ".join(options), **best, "sampling is slower beside it": slower}


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Processes that only burn time."""
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def _timed(options: Sequence[str]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "anatomica", "generate", *options, "--quiet", "--out", folder]
        began = perf_counter()
        subprocess.run(command, check=True)
        seconds = perf_counter() - began
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    return {"command": seconds, "sampling": sum(s["seconds"] for s in report["samples"])}


def command_lines(cost: dict[str, Any]) -> list[str]:
    """The cost as lines of Markdown."""
    lines = [
        f"`anatomica generate {cost['options']}`, the fastest round:",
        "",
        "| where | command s | sampling s | ratio |",
        "|---|---|---|---|",
    ]
    for where in WHERE:
        row = cost[where]
        lines.append(f"| {where} | {row['command']:.1f} | {row['sampling']:.1f} | {row['ratio']:.2f} |")
    return lines
