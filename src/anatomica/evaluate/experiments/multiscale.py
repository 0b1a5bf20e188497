"""Figure "multi-scale geometric control": four anatomies and coordinate systems, small and large domains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments.figures import gallery
from anatomica.evaluate.experiments.geometric import error_table, summary_of
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import values_of
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.quality import grids
from anatomica.evaluate.experiments.rows import OURS, PAPER, ROWS, UNCONDITIONAL, cells_of
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.standing import quality_section, what_rows_had
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.experiments.verdict import cells_won, quality_kept
from anatomica.evaluate.metrics.bootstrap import mean_interval
from anatomica.spec.tasks import TASKS, task

NAME = "multiscale"
WHAT = "one of eight tasks and one of mass, centroid and covariance, by the mean L1 error on the label map"
PICTURES = (UNCONDITIONAL.key, PAPER.key, OURS.key)


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    names = [name for name in TASKS if name.startswith("multiscale-")]
    there = [name for name in names if lab.has_model(task(name).anatomy)]
    return [cell for name in there for cell in cells_of(name, ROWS, profile, sweep=True)]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found = grids(runner, done)
    text = "# Multi-scale control\n\n" + cells_won(done, values_of, WHAT) + quality_kept(done, found)
    text += "\n" + error_table(done, {}) + "\nMass, Cent., Cov.: mean L1 error, x 1e5, 1e4, 1e5.\n\n"
    checks = [(f, mean_interval(100 * f.values("checks_met") / f.values("checks"))) for f in done]
    rows = [[f.cell.task, f.cell.method.title, shown(met)] for f, met in checks]
    text += markdown(("Task", "Approach", "checks met, %"), rows)
    text += "\nA check is one quantity of one domain within its tolerance, on the label map.\n"
    text += quality_section(runner, done, found) + what_rows_had(runner, done) + conditions(runner, done)
    text += f"\n![samples]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary_of(done, found))
    gallery(runner, [f for f in done if f.cell.method.key in PICTURES], out / f"{NAME}.png")
