"""Table "validity": of all tasks, and of one tissue's volume, how many samples are met and anatomical."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.evaluate.experiments.figures import gallery
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import share
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.quality import Grids, grids
from anatomica.evaluate.experiments.rows import OURS, ROWS, cells_of
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.standing import quality_section, standing_json, what_rows_had
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.experiments.verdict import cells_won, quality_kept
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import Target
from anatomica.spec.spec import Constraint, GlobalDomain, Spec
from anatomica.spec.tasks import TASKS, task

NAME = "validity"
SEVERAL = replace(OURS, key="ours-tries", title="ours, default tries", tries=None, slow=True)
METHODS = (*ROWS, SEVERAL)
WHAT = "one task, by the share of valid label maps"
VERDICTS = {
    "met": "met",
    "met_2n": "met at 2n",
    "counts_2n": "counts at 2n",
    "contained": "contained",
    "plausible": "plausible",
    "valid": "valid",
}
PERCENTILES = (5, 25, 50, 75, 95)
LEAST_VALID = 85
"""Percentage of valid samples below which a task is named as missed."""
MOST_FMD = 1.25
"""FMD, in units of the unconditional samples', above which a task is named as missed."""
SIMPLE = "volume"
"""Tasks of simple asks begin with this word."""


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    """The rows of the tables of control, whose samples these share, and every tissue's volume."""
    made = []
    for name in (name for name in TASKS if lab.has_model(task(name).anatomy)):
        made += cells_of(name, METHODS, profile, sweep=name.startswith("multiscale-"))
    return [*made, *simple_cells(lab)]


def simple_cells(lab: Lab) -> list[Cell]:
    """Every tissue's volume at percentiles of the population: one sample each, each with its own seed."""
    made = []
    for anatomy in dict.fromkeys(spec.anatomy for spec in TASKS.values()):
        if lab.has_model(anatomy):
            for spec in simple_asks(lab.model(anatomy)):
                made += [
                    Cell(spec.name, method, spec, spec, 1, first=len(made)) for method in (OURS, SEVERAL)
                ]
    return made


def simple_asks(model: Model) -> list[Spec]:
    """One tissue and one volume, from the 5th to the 95th percentile of the patients that have the tissue."""
    if model.population is None:
        return []
    found = []
    for channel, tissue in enumerate(model.table.tissues, start=1):
        mass = model.population[:, channel, 0].numpy()
        mass = mass[mass > 0]
        for percent in PERCENTILES if len(mass) else ():
            ml = float(np.percentile(mass, percent)) * model.edge_mm**3 / 1000
            whole = GlobalDomain(grid=(model.n, model.n, model.n))
            asked = Constraint(
                name=tissue, structure=[tissue], domain=whole, match=[], target=Target(volume_ml=ml)
            )
            name = f"{SIMPLE}-{tissue}-p{percent}"
            found.append(Spec(name=name, anatomy=model.anatomy, constraints=[asked]))
    return found


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    tasks = [f for f in done if not f.cell.task.startswith(SIMPLE)]
    simple = [f for f in done if f.cell.task.startswith(SIMPLE)]
    found = grids(runner, tasks)
    head = ("Approach", "n", *(f"{title} %" for title in VERDICTS.values()))
    text = "# Validity\n\n" + verdict(tasks, simple, found) + quality_kept(tasks, found)
    text += "\n" + _true_patients(out)
    rows = [[f.cell.task, *_shares([f]), f"{seconds([f]):.1f}"] for f in tasks]
    text += markdown(("Task", *head, "s"), rows)
    text += "\n## One tissue, one volume\n\n"
    text += "Each tissue's volume in the whole cube, at five percentiles of the population (5 to 95).\n\n"
    groups = sorted({(f.cell.spec.anatomy, f.cell.method.key) for f in simple})
    alike = [[f for f in simple if (f.cell.spec.anatomy, f.cell.method.key) == group] for group in groups]
    rows = [[a[0].cell.spec.anatomy, *_shares(a), f"{seconds(a):.1f}"] for a in alike]
    text += markdown(("Anatomy", *head, "s"), rows)
    text += (
        "\nMet: every check within tolerance, on the written voxels and sub-voxel on the field. At 2n: the "
        "same latent decoded on a grid twice as fine. Contained: nothing outside a structure's own box. "
        "Plausible: like the training patients. Valid: met and plausible. s: processor seconds of one.\n\n"
    )
    text += failures(done) + quality_section(runner, tasks, found)
    text += what_rows_had(runner, done) + conditions(runner, done) + f"\n![samples]({NAME}.png)\n"
    summary = {f.cell.name: _summary(f, found.get(f.cell.name)) for f in done}
    write_results(runner, done, out, NAME, text, summary)
    gallery(runner, [f for f in tasks if f.cell.method.key == OURS.key], out / f"{NAME}.png")


def _true_patients(out: Path) -> str:
    """What `anatomica bench floor` has measured of true patients: nobody should meet more than they do."""
    path = out / "floor.json"
    if not path.is_file():
        return ""
    found = json.loads(path.read_text())
    rows = found["floors"] | found["counts"]
    shares = (f"{name} {100 * row.get('patients', row.get('own')):.0f}" for name, row in rows.items())
    return (
        f"Of {found['patients']} true patients of each task, voxelised twice, so many % meet on the finer "
        f"grid all that their coarser label map asks for (`anatomica bench floor`): {', '.join(shares)}.\n\n"
    )


def seconds(done: Iterable[Finished]) -> float:
    return float(np.concatenate([f.values("seconds") for f in done]).mean())


def _shares(done: Sequence[Finished]) -> list[str]:
    count = sum(len(f.keys) for f in done)
    return [done[0].cell.method.title, str(count), *(shown(share(done, key)) for key in VERDICTS)]


def _summary(f: Finished, g: Grids | None) -> dict[str, Any]:
    found: dict[str, Any] = {key: list(share([f], key)) for key in VERDICTS} | {"seconds": seconds([f])}
    return found if g is None else found | standing_json(f, g)


def _valid(f: Finished) -> tuple[dict[str, Interval], bool]:
    return {"valid": share([f], "valid")}, False


def verdict(tasks: Sequence[Finished], simple: Sequence[Finished], found: dict[str, Grids]) -> str:
    """What the table is for, counted; what is missed comes first."""
    ours = [f for f in tasks if f.cell.method.key == OURS.key]
    lines = [
        f"- {f.cell.task}: {shown(share([f], 'valid'))} % valid (below {LEAST_VALID})"
        for f in sorted(ours, key=lambda f: share([f], "valid").value)
        if share([f], "valid").value < LEAST_VALID
    ]
    for f in ours:
        g = found[f.cell.name]
        if g.free is not None and (ratio := g.n.fmd.value / g.free.fmd.value) > MOST_FMD:
            lines.append(f"- {f.cell.task}: FMD {ratio:.2f} times that of unconditional samples")
    lines += cells_won([f for f in tasks if f.cell.method.tries == 1], _valid, WHAT).splitlines()
    several = (("one draw", OURS.key), ("default tries", SEVERAL.key))
    for what, done in (("the tasks", tasks), ("one tissue's volume", simple)):
        for how, key in several:
            mine = [f for f in done if f.cell.method.key == key]
            if mine:
                met, twice, valid = (shown(share(mine, k)) for k in ("met", "met_2n", "valid"))
                lines.append(f"- {what}, {how}: {valid} % valid; met {met} %, at 2n {twice} %")
    return "\n".join(lines) + "\n"


def failures(done: Sequence[Finished]) -> str:
    """Why samples of one draw are not valid, most frequent first."""
    mine = [n for f in done if f.cell.method.key == OURS.key for n in f.numbers]
    why = Counter(f"unmet, {x}" for n in mine for x in n["unmet"])
    why += Counter(f"implausible, {x.split(' (')[0]}" for n in mine for x in n["unusual"])
    shown_first = ", ".join(f"{reason} ({count})" for reason, count in why.most_common(12))
    return f"Why samples of one draw are not valid: {shown_first or 'all are'}.\n\n"
