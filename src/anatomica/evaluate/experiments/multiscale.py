"""Figure "multi-scale geometric control": four anatomies and coordinate systems, small and large domains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments.figures import gallery
from anatomica.evaluate.experiments.geometric import MEASURES, fidelities
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import GRADIENT_L, NEWTON_L, UNCONDITIONAL, Cell, Profile, at_scale
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.metrics.bootstrap import mean_interval
from anatomica.spec.tasks import TASKS, task

NAME = "multiscale"
METHODS = (UNCONDITIONAL, GRADIENT_L, NEWTON_L)


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    made = []
    for name in (name for name in TASKS if name.startswith("multiscale-")):
        spec = task(name)
        if not lab.has_model(spec.anatomy):
            continue
        coarse = at_scale(spec, lab.model(spec.anatomy).n)
        made += [
            Cell(name, method, coarse if method is GRADIENT_L else spec, spec, profile.sweep)
            for method in METHODS
        ]
    return made


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    rows = []
    for f in done:
        errors, met = fidelities(f), mean_interval(100 * f.values("checks_met") / f.values("checks"))
        numbers = (shown(errors[k]) for k in MEASURES)
        rows.append([f.cell.task, f.cell.method.title, str(len(f.keys)), *numbers, shown(met)])
    header = ("Task", "Approach", "n", "Mass", "Cent.", "Cov.", "checks met, %")
    text = "# Multi-scale control\n\n" + markdown(header, rows)
    text += "\nA check is one quantity of one domain within its tolerance. " + conditions(runner, done)
    text += f"\n![samples]({NAME}.png)\n"
    summary = {f.cell.name: {k: list(v) for k, v in fidelities(f).items()} for f in done}
    write_results(runner, done, out, NAME, text, summary)
    gallery(runner, done, out / f"{NAME}.png")
