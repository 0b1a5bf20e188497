"""Figure "topological guidance and partial decoding ablation": how coarse may topology be decoded?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import precisions
from anatomica.evaluate.experiments.plan import GRADIENT_L, NEWTON_L, Cell, Profile, resampled, reweighted
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.sweeps import write_sweep
from anatomica.spec.tasks import TOPOLOGICAL, task

NAME = "topological-resolution"
WEIGHTS = (0.2, 1.0, 5.0)
PARTS = (4, 2, 1)


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    made = []
    for name in TOPOLOGICAL:
        spec = task(name)
        if not lab.has_model(spec.anatomy):
            continue
        n = lab.model(spec.anatomy).n
        for part in PARTS:
            grid = resampled(spec, n // part)
            made += [
                Cell(
                    name,
                    GRADIENT_L,
                    reweighted(grid, topological=weight),
                    spec,
                    profile.count(GRADIENT_L, sweep=True),
                    (("guidance", f"gradient, weight {weight:g}"), ("resolution", n // part)),
                )
                for weight in WEIGHTS
            ]
            settings = (("guidance", "Gauss-Newton"), ("resolution", n // part))
            made.append(Cell(name, NEWTON_L, grid, spec, profile.count(NEWTON_L, sweep=True), settings))
    return made


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    note = "Precision in % on the label map at the model's resolution; weight 1 is the task's."
    write_sweep(runner, done, out, NAME, "Topological resolution", note, precisions, "resolution", "guidance")
