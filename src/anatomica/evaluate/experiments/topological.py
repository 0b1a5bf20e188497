"""Table "topological control tasks": Betti precision of four anatomies, by every approach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import bars, gallery
from anatomica.evaluate.experiments.geometric import summary_of
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import NUMBERS, precisions, share, values_of
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.quality import grids
from anatomica.evaluate.experiments.rows import PAPER, ROWS, UNCONDITIONAL, cells_of
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.standing import quality_section, what_rows_had
from anatomica.evaluate.experiments.tables import (
    conditions,
    largest,
    markdown,
    samples_path,
    shown,
    write_results,
)
from anatomica.evaluate.experiments.verdict import beside_paper, cells_won, paper_claim, quality_kept
from anatomica.evaluate.metrics.precision import SPECK_VOXELS
from anatomica.spec.tasks import TOPOLOGICAL, task

NAME = "topological"
WHAT = "one of four tasks and one of B0, B1 and B2, by the share of label maps that have the number asked for"


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    there = [name for name in TOPOLOGICAL if lab.has_model(task(name).anatomy)]
    return [cell for name in there for cell in cells_of(name, ROWS, profile)]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found = grids(runner, done)
    text = (
        "# Topological control\n\n" + verdict(done) + quality_kept(done, found) + "\n" + precision_table(done)
    )
    text += (
        f"\nSpecks are components and enclosed pockets of fewer than {SPECK_VOXELS} voxels. Met: all counts "
    )
    text += "right on the label map, on the field and with its border moved; at 2n on twice the grid.\n"
    text += quality_section(runner, done, found) + what_rows_had(runner, done) + conditions(runner, done)
    text += f"\n![precision]({NAME}.png)\n"
    summary = summary_of(done, found)
    for f in done:
        clean = precisions(f, "betti_without_specks")
        summary[f.cell.name]["precision_without_specks"] = {b: list(v) for b, v in clean.items()}
    write_results(runner, done, out, NAME, text, summary)
    bars(
        out / f"{NAME}.png",
        {(f.cell.task, f.cell.method.title): precisions(f) for f in done},
        {b: f"{b} precision, %" for b in NUMBERS},
        log=False,
    )
    gallery(runner, done, samples_path(runner, NAME, "png"))


def precision_table(done: Sequence[Finished]) -> str:
    rows = []
    for name in dict.fromkeys(f.cell.task for f in done):
        here = [f for f in done if f.cell.task == name]
        best = {b: largest([precisions(f)[b].value for f in here]) for b in NUMBERS}
        for f in here:
            raw, clean = precisions(f), precisions(f, "betti_without_specks")
            known = paper.TOPOLOGICAL[name].get(f.cell.method.key, (None,) * len(NUMBERS))
            numbers = [shown(raw[b], known[j], best=raw[b].value == best[b]) for j, b in enumerate(NUMBERS)]
            without = " / ".join(f"{clean[b].value:.3g}" for b in NUMBERS)
            met = [shown(share([f], key)) for key in ("met", "met_2n")]
            rows.append([name, f.cell.method.title, str(len(f.keys)), *numbers, without, *met])
    header = ("Task", "Approach", "n", "B0 %", "B1 %", "B2 %", "B0 / B1 / B2 % without specks")
    return markdown((*header, "met %", "met at 2n %"), rows)


def verdict(done: Sequence[Finished]) -> str:
    """What is lost, then what the table counts."""

    def printed(name: str, measure: str) -> float | None:
        return paper.TOPOLOGICAL[name][PAPER.key][NUMBERS.index(measure)]

    claim = (
        "with the paper's weights: above unconditional samples in {won} of {total} cells (the paper's own "
        "count: 11 of 12; where both are at 100 % nothing can be above)."
    )
    return (
        cells_won(done, values_of, WHAT)
        + paper_claim(done, values_of, (PAPER.key,), (UNCONDITIONAL.key,), claim)
        + beside_paper(done, values_of, printed)
    )
