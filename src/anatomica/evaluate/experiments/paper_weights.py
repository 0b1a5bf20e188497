"""Table "weights of the paper's update", tuned on development patients: what `rows.WEIGHTS` should say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import values_of
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.rows import PAPER, WEIGHTS, weighted
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.spec.tasks import TASKS, task

NAME = "paper-weights"
FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""The sweep of results/guidance-weight.json is worse at 0.01 and breaks anatomies at 10."""


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    if lab.half != "development":
        raise AnatomicaError(f"evaluate {NAME} tunes, which needs --targets development")
    count = max(2, profile.slow // 2)
    return [
        Cell(name, PAPER, weighted(task(name), factor), task(name), count, (("weight", factor),))
        for name in TASKS
        if lab.has_model(task(name).anatomy)
        for factor in FACTORS
    ]


def score(errors: Sequence[float]) -> float:
    """The geometric mean of a row's errors: halving any of them is worth the same."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-9)))))


def errors_of(done: Finished) -> list[float]:
    """Mean errors of mass, centroid and covariance; of counts the percentage that is wrong, half a sample at
    least, so that one which is never wrong does not outweigh the others."""
    values, less = values_of(done)
    half = 50 / len(done.keys)
    return [v.value if less else max(half, 100 - v.value) for v in values.values()]


def chosen(done: Sequence[Finished]) -> dict[str, float]:
    """The factor with the least score of every task; of equal ones that nearest to the paper's."""
    found = {}
    for name in dict.fromkeys(f.cell.task for f in done):
        here = [f for f in done if f.cell.task == name]
        best = min(here, key=lambda f: (score(errors_of(f)), abs(np.log(f.cell.setting("weight")))))
        found[name] = float(best.cell.setting("weight"))
    return found


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    best = chosen(done)
    lines = [
        f"- {name}: {factor:g} is best, `rows.WEIGHTS` has {WEIGHTS.get(name, 1.0):g}"
        for name, factor in best.items()
        if factor != WEIGHTS.get(name, 1.0)
    ]
    rows = []
    for f in done:
        factor, values = f.cell.setting("weight"), values_of(f)[0]
        told = "; ".join(f"{key} {shown(v)}" for key, v in values.items())
        mark = "best" if factor == best[f.cell.task] else ""
        rows.append([f.cell.task, f"{factor:g}", str(len(f.keys)), told, f"{score(errors_of(f)):.3g}", mark])
    text = "# Weights of the paper's update\n\n" + ("\n".join(lines) or "- all weights in use are the best")
    text += "\n\n" + markdown(("Task", "weights x", "n", "errors, or precision in %", "score", ""), rows)
    text += "\nThe least score is best: the geometric mean of the mean errors, or of the shares of wrong "
    text += "counts. Sampler and repair are those of the rows `paper`, without the polish.\n\n"
    text += conditions(runner, done)
    summary = {"chosen": best, "in_use": {name: WEIGHTS.get(name, 1.0) for name in best}}
    write_results(runner, done, out, NAME, text, summary)
