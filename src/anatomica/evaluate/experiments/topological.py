"""Table "topological control tasks": Betti precision of four anatomies, with and without guidance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import bars, gallery
from anatomica.evaluate.experiments.geometric import floor_lines
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import GRADIENT_L, NEWTON_L, UNCONDITIONAL, Cell, Profile, at_scale
from anatomica.evaluate.experiments.quality import qualities
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import (
    conditions,
    largest,
    markdown,
    samples_path,
    shown,
    write_results,
)
from anatomica.evaluate.metrics.bootstrap import Interval, share_interval
from anatomica.evaluate.metrics.precision import SPECK_VOXELS, correct
from anatomica.spec.tasks import TOPOLOGICAL, task

NAME = "topological"
METHODS = (UNCONDITIONAL, replace(GRADIENT_L, slow=True), NEWTON_L)
NUMBERS = ("B0", "B1", "B2")


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    """The paper's update decodes half of the resolution, as the paper does; Gauss-Newton all of it."""
    made = []
    for name in (name for name in TOPOLOGICAL if lab.has_model(task(name).anatomy)):
        spec = task(name)
        coarse = at_scale(spec, lab.model(spec.anatomy).n)
        for method in METHODS:
            count = profile.slow if method.slow else profile.samples
            made.append(Cell(name, method, spec if method is NEWTON_L else coarse, spec, count))
    return made


def precisions(done: Finished, key: str = "betti") -> dict[str, Interval]:
    """Precision in % of each Betti number the task asks for."""
    prior = done.cell.measured.constraints[0].target.betti
    assert prior is not None
    hits = correct([n[key] for n in done.numbers], prior.numbers)
    return {
        name: Interval(*(100 * x for x in share_interval(hit)))
        for name, hit in zip(NUMBERS, hits, strict=True)
        if hit is not None
    }


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found, floors = qualities(runner, done)
    rows, summary = [], {}
    for name in TOPOLOGICAL:
        here = [(f, q) for f, q in zip(done, found, strict=True) if f.cell.task == name]
        raw, clean = ([precisions(f, key) for f, _ in here] for key in ("betti", "betti_without_specks"))
        best = {b: largest([p[b].value for p in raw]) for b in NUMBERS}
        for i, (f, q) in enumerate(here):
            known = paper.TOPOLOGICAL[name].get(f.cell.method.key, (None,) * 4)
            rows.append(
                [
                    name,
                    f.cell.method.title,
                    str(len(f.keys)),
                    *(
                        shown(raw[i][b], known[j], best=raw[i][b].value == best[b])
                        for j, b in enumerate(NUMBERS)
                    ),
                    " / ".join(f"{clean[i][b].value:.3g}" for b in NUMBERS),
                    shown(q.nna, known[3]),
                ]
            )
            summary[f.cell.name] = {
                "precision": {b: list(v) for b, v in raw[i].items()},
                "precision_without_specks": {b: list(v) for b, v in clean[i].items()},
                "quality": q.as_json(),
            }
    text = "# Topological control\n\n" + markdown(
        ("Task", "Approach", "n", "B0 %", "B1 %", "B2 %", "B0 / B1 / B2 % without specks", "1-NNA"), rows
    )
    text += "\nAnatomica-L with the paper's gradient decodes half of the resolution, as the paper does; "
    text += "Gauss-Newton is steered and polished on the grid that is counted.\n"
    text += f"\nSpecks are components and enclosed pockets of fewer than {SPECK_VOXELS} voxels.\n\n"
    text += floor_lines(floors) + verdict(done) + "\n" + conditions(runner, done)
    text += f"\n![precision]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary)
    bars(
        out / f"{NAME}.png",
        {(f.cell.task, f.cell.method.title): precisions(f) for f in done},
        {b: f"{b} precision, %" for b in NUMBERS},
        log=False,
    )
    gallery(runner, done, samples_path(runner, NAME, "png"))


def verdict(done: Sequence[Finished]) -> str:
    """In how many cells each method's guidance is above unconditional sampling."""
    lines = ""
    for method in METHODS[1:]:
        above = total = 0
        for name in TOPOLOGICAL:
            here = {f.cell.method.key: precisions(f) for f in done if f.cell.task == name}
            if method.key in here and "unconditional" in here:
                for b in NUMBERS:
                    free, ours = here["unconditional"][b].value, here[method.key][b].value
                    total += 1
                    # Nothing is above 100 %: where both are there, control costs nothing.
                    above += ours > free or ours == free == 100
        if total:
            lines += f"{method.title}: above unconditional, or both at 100 %, in {above} of {total} cells "
            lines += "(paper: above in 11 of 12).\n\n"
    return lines
