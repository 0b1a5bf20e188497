"""Sweeps: one number against another for several settings, as a table and as curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from anatomica.evaluate.experiments.figures import curves
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.metrics.quality import frechet


def write_sweep(
    runner: Runner,
    done: Sequence[Finished],
    out: Path,
    name: str,
    title: str,
    note: str,
    measure: Callable[[Finished], dict[str, Interval]],
    along: str,
    lines: str,
    with_fmd: bool = False,
) -> None:
    """Table and figure of a sweep `along` one setting, with a curve for each value of `lines`."""
    values = [measure(f) for f in done]
    if with_fmd:
        for v, f in zip(values, done, strict=True):
            features = np.stack([runner.load(key).features.morphology for key in f.keys])
            v["FMD"] = frechet(features, runner.lab.others(f.cell.spec.anatomy).morphology)
    names = list(values[0]) if values else []
    rows = [
        [
            f.cell.task,
            str(f.cell.setting(lines)),
            f"{f.cell.setting(along):g}",
            str(len(f.keys)),
            *(shown(v[key]) for key in names),
        ]
        for f, v in zip(done, values, strict=True)
    ]
    text = f"# {title}\n\n" + markdown(("Task", lines, along, "n", *names), rows)
    text += f"\n{note}\n\n{conditions(runner, done)}\n![{title.lower()}]({name}.png)\n"
    summary = {f.cell.name: {k: list(i) for k, i in v.items()} for f, v in zip(done, values, strict=True)}
    write_results(runner, done, out, name, text, summary)
    table = {
        (f.cell.task, str(f.cell.setting(lines)), float(f.cell.setting(along))): v
        for f, v in zip(done, values, strict=True)
    }
    curves(out / f"{name}.png", table, along, names, lines)
