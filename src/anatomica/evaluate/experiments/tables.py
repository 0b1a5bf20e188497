"""Markdown tables with intervals, the best in bold, and the paper's number in brackets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anatomica.evaluate.experiments.plan import PROFILES
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.provenance import made_by, provenance
from anatomica.files import write_json, write_text


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


HALVES = {
    "test": "Targets are of **test** patients; what is tuned is tuned on development patients, unless this "
    "page says otherwise.",
    "development": "Targets are of **development** patients: for tuning, not for a table.",
}


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
            f"{len(runner.lab.asked(name))} held-out patients for targets ({runner.lab.half}), "
            f"{len(runner.lab.others(name))} others to compare with"
        )
    source = ", ".join(sorted({runner.lab.source(name) for name in models}))
    return (
        f"{HALVES[runner.lab.half]} Where a cell has more samples than there are such patients, they are "
        f"asked again with other seeds. Profile `{runner.profile.name}`, data: {source}. "
        + "; ".join(about)
        + ". Intervals are 95 %: by bootstrap, of shares Wilson's. "
        "The paper's numbers are of CT at 128^3 and 128 samples: compare the order of methods, not values.\n"
    )


def write_results(
    runner: Runner,
    done: Sequence[Finished],
    out: Path,
    name: str,
    text: str,
    summary: dict[str, Any],
    samples: dict[str, Any] | None = None,
) -> None:
    """OUT/<name>.md with the table and OUT/<name>.json with its summary.

    Every sample's numbers, and what `samples` adds to them, go into CACHE/results/<name>-samples.json: they
    are made again by the same command, and too long to be kept under version control.
    """
    weights = {f.cell.spec.anatomy: runner.lab.model(f.cell.spec.anatomy).hash for f in done}
    about = provenance(f"evaluate.experiments.{name.replace('-', '_')}", weights)
    cells = [
        {"task": f.cell.task, "method": f.cell.method.key, "settings": dict(f.cell.settings)} for f in done
    ]
    shared = {
        "schema": "anatomica.results/2",
        "experiment": name,
        "provenance": about,
        "profile": runner.profile.name,
        "steps": runner.profile.steps,
    }
    counted = [
        cell | {"samples": len(f.keys), "met": sum(bool(n.get("met")) for n in f.numbers)}
        for cell, f in zip(cells, done, strict=True)
    ]
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{name}.md", f"{text}\n{one_row(runner, name, done)}\n{made_by(about)}\n")
    _write(out / f"{name}.json", shared | {"summary": summary, "cells": counted})
    whole = [cell | {"samples": f.numbers} for cell, f in zip(cells, done, strict=True)]
    path = samples_path(runner, name, "json")
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, shared | {"cells": whole} | (samples or {}))


def one_row(runner: Runner, name: str, done: Sequence[Finished]) -> str:
    """The command that draws one row of a table again; other rows have other names after --only."""
    if not done:
        return ""
    lab, asked = runner.lab, runner.profile
    usual = PROFILES[asked.name]
    given = {
        "samples": asked.samples if asked.samples != usual.samples else None,
        "steps": asked.steps if asked.steps != usual.steps else None,
        "batch": asked.batch if asked.batch != usual.batch else None,
        "eta": lab.eta,
        "data": lab.data,
        "models": lab.models,
        "targets": lab.half if lab.half != "test" else None,
    }
    options = "".join(f" --{key} {value}" for key, value in given.items() if value is not None)
    cell = done[-1].cell
    chosen = f"--only {cell.task} --only {cell.method.key}"
    tasks = ", ".join(dict.fromkeys(f"`{f.cell.task}`" for f in done))
    methods = ", ".join(dict.fromkeys(f"`{f.cell.method.key}`" for f in done))
    if len(tasks) > MOST_NAMES:
        tasks = f"{tasks[:MOST_NAMES].rpartition(',')[0]}, ..."
    return (
        f"One row again: `anatomica evaluate {name} --profile {asked.name}{options} {chosen} "
        f"--out out/again` (tasks: {tasks}; methods: {methods}). What is in the cache is not drawn again; "
        "`--cache NEW` draws everything anew.\n"
    )


MOST_NAMES = 600
"""Letters of a list of tasks: `validity` has one for every tissue's volume."""


def samples_path(runner: Runner, name: str, kind: str) -> Path:
    """Where numbers (json) and pictures (png) of an experiment's single samples lie."""
    return runner.lab.cache / "results" / f"{name}-samples.{kind}"


def _write(path: Path, content: dict[str, Any]) -> None:
    write_json(path, json.loads(json.dumps(content, default=str)))
