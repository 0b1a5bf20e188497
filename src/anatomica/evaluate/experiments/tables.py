"""Markdown tables with intervals, the best in bold, and the paper's number in brackets."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.files import write_json
from anatomica.version import __version__


def shown(
    interval: Interval, paper: float | None = None, digits: int = 3, best: bool = False, scale: float = 1.0
) -> str:
    """`17.5 [16.1, 19.0] (paper 17.5)`; a dash where there is no number."""
    if interval.value != interval.value:
        return "-"
    value, low, high = (_short(x * scale, digits) for x in interval)
    text = f"**{value}**" if best else value
    return f"{text} [{low}, {high}]" + beside(paper)


def beside(paper: float | None) -> str:
    return "" if paper is None else f" (paper {paper:g})"


def _short(x: float, digits: int) -> str:
    return f"{x:.{digits}g}" if abs(x) < 10**digits else f"{x:.0f}"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def smallest(values: Sequence[float]) -> float:
    """The best of a column where less is better, NaNs left out; all that equal it are in bold."""
    return min((v for v in values if v == v), default=float("nan"))


def largest(values: Sequence[float]) -> float:
    return -smallest([-v for v in values])


def conditions(runner: Runner, done: Sequence[Finished]) -> str:
    """The lines under every table: what it was made of."""
    models = sorted({f.cell.spec.anatomy for f in done})
    about = []
    for name in models:
        model = runner.lab.model(name)
        steps = runner.profile.steps or model.sampling.steps
        noise = f" with fresh noise (eta {model.sampling.eta:g})" if model.sampling.eta else ""
        about.append(
            f"{name}: model {model.hash}, {model.n}^3, {steps} {model.sampling.method} steps{noise}, "
            f"{len(runner.lab.held_out(name))} held-out patients"
        )
    source = ", ".join(sorted({runner.lab.source(name) for name in models}))
    return (
        f"Profile `{runner.profile.name}`, data: {source}. "
        + "; ".join(about)
        + ". Intervals are 95 %: by bootstrap, of shares Wilson's. "
        "The paper's numbers are of CT at 128^3 and 128 samples: compare the order of methods, not values.\n"
    )


def write_results(
    runner: Runner, done: Sequence[Finished], out: Path, name: str, text: str, summary: dict[str, Any]
) -> None:
    """results/<name>.json with every sample's numbers and results/<name>.md with the table."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    content = {
        "schema": "anatomica.results/1",
        "experiment": name,
        "version": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "profile": runner.profile.name,
        "steps": runner.profile.steps,
        "models": {f.cell.spec.anatomy: runner.lab.model(f.cell.spec.anatomy).hash for f in done},
        "summary": summary,
        "cells": [
            {
                "task": f.cell.task,
                "method": f.cell.method.key,
                "settings": dict(f.cell.settings),
                "samples": f.numbers,
            }
            for f in done
        ],
    }
    write_json(out / f"{name}.json", json.loads(json.dumps(content, default=str)))
