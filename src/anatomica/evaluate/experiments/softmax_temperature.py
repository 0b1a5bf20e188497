"""Figure "topological guidance and softmax temperature ablation": both against precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import precisions
from anatomica.evaluate.experiments.plan import GRADIENT_L, Cell, Profile, changed, resampled, reweighted
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.sweeps import write_sweep
from anatomica.spec.tasks import TOPOLOGICAL, task

NAME = "softmax-temperature"
WEIGHTS = (0.2, 1.0, 5.0)
TEMPERATURES = (1.0, 2.0, 4.0, 8.0)


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    made = []
    for name in TOPOLOGICAL:
        spec = task(name)
        if not lab.has_model(spec.anatomy):
            continue
        # The paper's 64 of 128: half the model's resolution.
        half = resampled(spec, lab.model(spec.anatomy).n // 2)
        made += [
            Cell(
                name,
                GRADIENT_L,
                changed(reweighted(half, topological=weight), temperature=heat),
                spec,
                profile.count(GRADIENT_L, sweep=True),
                (("temperature", heat), ("weight", weight)),
            )
            for heat in TEMPERATURES
            for weight in WEIGHTS
        ]
    return made


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    note = "Precision in %; decoded at half the model's resolution; weight 1 is the task's."
    write_sweep(runner, done, out, NAME, "Softmax temperature", note, precisions, "weight", "temperature")
