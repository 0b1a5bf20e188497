"""Figure "geometric guidance and disentangled guidance ablation": the weight, and one moment at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import fidelities
from anatomica.evaluate.experiments.plan import GRADIENT_L, Cell, Profile, at_scale, reweighted
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.sweeps import write_sweep
from anatomica.spec.tasks import GEOMETRIC, task

NAME = "guidance-weight"
WEIGHTS = (0.01, 0.1, 1.0, 10.0)
LOSSES = {
    "full": {},
    "mass only": {"centroid": 0.0, "covariance": 0.0},
    "centroid only": {"mass": 0.0, "covariance": 0.0},
    "covariance only": {"mass": 0.0, "centroid": 0.0},
}


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    n = lab.model("cardiac").n
    return [
        Cell(
            name,
            GRADIENT_L,
            reweighted(at_scale(task(name), n), geometric=weight, **off),
            task(name),
            profile.count(GRADIENT_L, sweep=True),
            (("loss", loss), ("weight", weight)),
        )
        for name in GEOMETRIC
        for loss, off in LOSSES.items()
        for weight in WEIGHTS
    ]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    note = "Fidelity of all moments, whichever guide: mean L1 error x 1e5, 1e4, 1e5. Weight 1 is the task's."
    write_sweep(runner, done, out, NAME, "Guidance weight", note, fidelities, "weight", "loss", with_fmd=True)
