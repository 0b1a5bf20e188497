"""Table "topological sampling speed": how much coarse decoding saves when homology is in the loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import bars
from anatomica.evaluate.experiments.geometric import speeds
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import precisions
from anatomica.evaluate.experiments.plan import GRADIENT_L, GRADIENT_V, NEWTON_L, Cell, Profile, resampled
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import beside, conditions, markdown, write_results
from anatomica.evaluate.metrics.bootstrap import mean_interval
from anatomica.spec.tasks import task

NAME = "topological-speed"
TASK = "atrial-separation"
SAMPLES = 8
"""Enough for a speed; the precision beside it is only a hint."""


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    spec, n = task(TASK), lab.model("cardiac").n
    count = min(profile.sweep, SAMPLES)
    kinds = [(m, n // part) for m in (GRADIENT_L, NEWTON_L) for part in (8, 4, 2, 1)]
    return [
        Cell(TASK, method, resampled(spec, edge), spec, count, (("resolution", edge),))
        for method, edge in (*kinds, (GRADIENT_V, n))
    ]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    n = runner.lab.model("cardiac").n
    rows, summary = [], {}
    for f, (s, speed) in zip(done, speeds(done), strict=True):
        edge = f.cell.setting("resolution")
        known = None
        if f.cell.method.key != NEWTON_L.key:
            known = paper.TOPOLOGICAL_SPEED.get((f.cell.method.key, 128 * edge // n))
        hits = precisions(f)
        rows.append(
            [
                f.cell.method.title,
                str(edge),
                str(len(f.keys)),
                f"{speed:.2f}" + beside(known),
                f"{s:.1f}",
                " / ".join(f"{hits[b].value:.0f}" for b in hits),
            ]
        )
        summary[f.cell.name] = {"seconds": s, "speed": speed}
    header = ("Approach", "Res.", "n", "Speed", "CPU s per sample", "B0 / B1 / B2 %")
    text = "# Speed of topological control\n\n" + markdown(header, rows)
    text += (
        f"\nTask {TASK}. Speed is samples per processor second relative to Anatomica-V's; the paper's stands "
    )
    text += "beside the resolution that is the same share of the volume. " + conditions(runner, done)
    text += f"\n![speed]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary)
    columns = {
        (str(f.cell.setting("resolution")), f.cell.method.title): {
            "seconds": mean_interval(f.values("seconds"))
        }
        for f in done
    }
    bars(out / f"{NAME}.png", columns, {"seconds": "processor seconds per sample"})
