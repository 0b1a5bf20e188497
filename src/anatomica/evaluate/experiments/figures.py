"""Figures of the experiments: bars with intervals, curves of sweeps, and pictures of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.files import write_figure
from anatomica.measurement.placing import measure_in, structure_map
from anatomica.report.render import Camera, render
from anatomica.report.wires import ACHIEVED_COLOUR, TARGET_COLOUR, box_wire, focus, moment_wires, show

COLOURS = plt.get_cmap("tab10").colors  # type: ignore[attr-defined]
MANY = plt.get_cmap("tab20").colors  # type: ignore[attr-defined]


def bars(
    path: Path,
    columns: Mapping[tuple[str, str], Mapping[str, Interval]],
    titles: Mapping[str, str],
    log: bool = True,
) -> None:
    """One axis per measure; groups of bars by the first key, colours by the second."""
    groups = list(dict.fromkeys(group for group, _ in columns))
    kinds = list(dict.fromkeys(kind for _, kind in columns))
    figure, axes = plt.subplots(1, len(titles), figsize=(4.6 * len(titles), 3.8), layout="constrained")
    width = 0.8 / max(1, len(kinds))
    colours = COLOURS if len(kinds) <= len(COLOURS) else MANY
    for axis, (key, title) in zip(np.atleast_1d(axes), titles.items(), strict=True):
        for k, kind in enumerate(kinds):
            there = [
                (g, columns[(group, kind)][key])
                for g, group in enumerate(groups)
                if key in columns.get((group, kind), {})
            ]
            if not there:
                continue
            x = [g + (k - (len(kinds) - 1) / 2) * width for g, _ in there]
            y = [i.value for _, i in there]
            error = [
                [max(0.0, i.value - i.low) for _, i in there],
                [max(0.0, i.high - i.value) for _, i in there],
            ]
            colour = colours[k % len(colours)]
            axis.bar(x, y, width, yerr=error, label=kind, color=colour, error_kw={"lw": 1})
        axis.set_xticks(range(len(groups)), groups, rotation=20, ha="right", fontsize=8)
        axis.set_title(title, fontsize=10)
        if log:
            axis.set_yscale("log")
    np.atleast_1d(axes)[0].legend(fontsize=7)
    _save(figure, path)


def scatter(
    path: Path,
    points: Sequence[tuple[str, float, Mapping[str, Interval]]],
    xlabel: str,
    measures: Sequence[str],
) -> None:
    """Each row of a table as a point of cost and error."""
    figure, axes = plt.subplots(1, len(measures), figsize=(4.6 * len(measures), 3.8), layout="constrained")
    for axis, key in zip(np.atleast_1d(axes), measures, strict=True):
        for i, (label, x, values) in enumerate(points):
            v = values[key]
            spread = [[max(0.0, v.value - v.low)], [max(0.0, v.high - v.value)]]
            axis.errorbar([x], [v.value], yerr=spread, fmt="o", color=COLOURS[i % 10], label=label)
        axis.set(xlabel=xlabel, title=key, xscale="log")
    np.atleast_1d(axes)[0].legend(fontsize=6)
    _save(figure, path)


def curves(
    path: Path,
    table: Mapping[tuple[str, str, float], Mapping[str, Interval]],
    xlabel: str,
    measures: Sequence[str],
    legend: str,
) -> None:
    """One row of axes per task, one column per measure, one curve with its interval per setting."""
    tasks = list(dict.fromkeys(t for t, _, _ in table))
    kinds = list(dict.fromkeys(k for _, k, _ in table))
    if not tasks:
        return
    figure, axes = plt.subplots(
        len(tasks),
        len(measures),
        figsize=(3.6 * len(measures), 2.8 * len(tasks)),
        squeeze=False,
        layout="constrained",
    )
    for row, name in enumerate(tasks):
        for column, key in enumerate(measures):
            axis: Axes = axes[row, column]
            for i, kind in enumerate(kinds):
                here = sorted((x, v[key]) for (t, k, x), v in table.items() if (t, k) == (name, kind))
                if here:
                    x = [p for p, _ in here]
                    axis.plot(x, [v.value for _, v in here], "o-", ms=3, color=COLOURS[i % 10], label=kind)
                    low, high = [v.low for _, v in here], [v.high for _, v in here]
                    axis.fill_between(x, low, high, color=COLOURS[i % 10], alpha=0.15)
            axis.set_xscale("log")
            places = sorted({x for t, _, x in table if t == name})
            axis.set_xticks(places, [f"{x:g}" for x in places])
            axis.set_xticks([], minor=True)
            if key == "FMD":  # too strong a weight multiplies it by hundreds
                axis.set_yscale("log")
            axis.set_title(f"{name}: {key}", fontsize=8)
            axis.set_xlabel(xlabel, fontsize=8)
    axes[0, 0].legend(fontsize=7, title=legend, title_fontsize=7)
    _save(figure, path)


def gallery(runner: Runner, done: Sequence[Finished], path: Path, size: int = 260) -> None:
    """The first sample of every cell, one row per task: domains black, targets red, achieved green."""
    if not done:
        return
    tasks = list(dict.fromkeys(f.cell.task for f in done))
    kinds = list(dict.fromkeys(f.cell.method.title for f in done))
    figure, axes = plt.subplots(
        len(tasks),
        len(kinds),
        figsize=(2.6 * len(kinds), 2.8 * len(tasks)),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat:
        axis.axis("off")
    for f in done:
        axis = axes[tasks.index(f.cell.task), kinds.index(f.cell.method.title)]
        _sample_picture(axis, runner, f, size)
        axis.set_title(f"{f.cell.task}\n{f.cell.method.title}", fontsize=7)
    _save(figure, path)


def _sample_picture(axis: Axes, runner: Runner, done: Finished, size: int) -> None:
    name = done.cell.spec.anatomy
    made = runner.lab.label_map(name, torch.from_numpy(runner.load(done.keys[0]).labels))
    if not made.present():
        return
    target = runner.target(done.cell, 0)
    frame = Frame.of(made, anatomy(name))
    wires, structures = [], set()
    for r in target.resolved:
        structures |= set(r.constraint.structure)
        if r.constraint.domain.family != "global":
            wires += [
                box_wire(r.domains, k, frame) for k in range(r.domains.count) if bool(r.domains.valid[k])
            ]
        if target.reference is not None:
            for label_map, colour in ((target.reference, TARGET_COLOUR), (made, ACHIEVED_COLOUR)):
                S = structure_map(label_map)(r.constraint.structure)
                wires += moment_wires(r.domains, measure_in(S, r.domains), frame, colour)
    ghost = [t for t in made.table.tissues if t not in structures]
    show(axis, render(focus(made), Camera(30.0, 12.0), size, ghost=ghost), wires)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_figure(path, figure, dpi=100)
    plt.close(figure)
