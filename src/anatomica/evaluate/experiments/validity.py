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
from anatomica.evaluate.experiments.geometric import floor_lines
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import GRADIENT_L, NEWTON_L, UNCONDITIONAL, Cell, Profile, at_scale
from anatomica.evaluate.experiments.quality import qualities
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import conditions, markdown, shown, write_results
from anatomica.evaluate.metrics.bootstrap import Interval, share_interval
from anatomica.evaluate.metrics.quality import Quality
from anatomica.guidance.solver import POLISH, Guidance
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import Target
from anatomica.spec.spec import Constraint, GlobalDomain, Spec
from anatomica.spec.tasks import TASKS, task

NAME = "validity"
OURS = replace(NEWTON_L, key="ours", title="ours", judged=True)
SEVERAL = replace(OURS, key="ours-tries", title="ours, default tries", tries=None, slow=True)
METHODS = (
    replace(UNCONDITIONAL, judged=True),
    replace(OURS, key="polish", title="Uncond. + polish", guidance=Guidance(solver="none", polish=POLISH)),
    replace(
        GRADIENT_L,
        key="gradient",
        title="paper's update + polish",
        guidance=replace(GRADIENT_L.guidance or Guidance(), polish=POLISH),
        judged=True,
        slow=True,
    ),
    replace(OURS, key="ours-no-polish", title="ours without polish", guidance=Guidance(polish=0)),
    OURS,
    SEVERAL,
)
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
    made = []
    for name in (name for name in TASKS if lab.has_model(task(name).anatomy)):
        spec = task(name)
        coarse = at_scale(spec, lab.model(spec.anatomy).n)
        for method in METHODS:
            count = profile.slow if method.slow else profile.samples
            made.append(Cell(name, method, coarse if method.key == "gradient" else spec, spec, count))
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
    found, floors = qualities(runner, tasks)
    quality = {f.cell.name: q for f, q in zip(tasks, found, strict=True)}
    head = ("Approach", "n", *(f"{title} %" for title in VERDICTS.values()))
    text = "# Validity\n\n" + verdict(tasks, simple, quality) + "\n" + _true_patients(out)
    rows = [[f.cell.task, *_shares([f]), *_quality(f, tasks, quality), f"{seconds([f]):.1f}"] for f in tasks]
    text += markdown(("Task", *head, "FMD", "of uncond.", "1-NNA", "s"), rows)
    text += "\n## One tissue, one volume\n\n"
    text += "Each tissue's volume in the whole cube, at five percentiles of the population (5 to 95).\n\n"
    groups = sorted({(f.cell.spec.anatomy, f.cell.method.key) for f in simple})
    alike = [[f for f in simple if (f.cell.spec.anatomy, f.cell.method.key) == group] for group in groups]
    rows = [[a[0].cell.spec.anatomy, *_shares(a), f"{seconds(a):.1f}"] for a in alike]
    text += markdown(("Anatomy", *head, "s"), rows)
    text += (
        "\nMet: every check within tolerance, on the written voxels and sub-voxel on the field. At 2n: the "
        "same latent decoded on a grid twice as fine. Contained: nothing outside a structure's own box. "
        "Plausible: like the training patients. Valid: met and plausible. Every row has the repair of "
        "`generate`, and one draw per sample unless it says otherwise. s: processor seconds per sample.\n\n"
    )
    text += failures(done) + floor_lines(floors) + conditions(runner, done) + f"\n![samples]({NAME}.png)\n"
    summary = {f.cell.name: _summary(f, quality.get(f.cell.name)) for f in done}
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


def share(done: Iterable[Finished], key: str) -> Interval:
    """Percentage of samples of which `key` is true."""
    hits = np.concatenate([f.values(key) for f in done]) > 0.5
    return Interval(*(100 * x for x in share_interval(hits)))


def seconds(done: Iterable[Finished]) -> float:
    return float(np.concatenate([f.values("seconds") for f in done]).mean())


def _shares(done: Sequence[Finished]) -> list[str]:
    count = sum(len(f.keys) for f in done)
    return [done[0].cell.method.title, str(count), *(shown(share(done, key)) for key in VERDICTS)]


def _quality(f: Finished, tasks: Sequence[Finished], quality: dict[str, Quality]) -> list[str]:
    """FMD, FMD over that of the task's unconditional samples, 1-NNA."""
    q, ratio = quality[f.cell.name], fmd_ratio(f, tasks, quality)
    return [shown(q.fmd), "-" if ratio is None else f"{ratio:.2f}", shown(q.nna)]


def fmd_ratio(f: Finished, tasks: Sequence[Finished], quality: dict[str, Quality]) -> float | None:
    for other in tasks:
        if other.cell.task == f.cell.task and other.cell.method.key == UNCONDITIONAL.key:
            return quality[f.cell.name].fmd.value / quality[other.cell.name].fmd.value
    return None


def _summary(f: Finished, q: Quality | None) -> dict[str, Any]:
    found: dict[str, Any] = {key: list(share([f], key)) for key in VERDICTS} | {"seconds": seconds([f])}
    return found if q is None else found | {"quality": q.as_json()}


def verdict(tasks: Sequence[Finished], simple: Sequence[Finished], quality: dict[str, Quality]) -> str:
    """What the table is for, counted; what is missed comes first."""
    ours = [f for f in tasks if f.cell.method.key == OURS.key]
    lines = [
        f"- {f.cell.task}: {shown(share([f], 'valid'))} % valid (below {LEAST_VALID})"
        for f in sorted(ours, key=lambda f: share([f], "valid").value)
        if share([f], "valid").value < LEAST_VALID
    ]
    for f in ours:
        ratio = fmd_ratio(f, tasks, quality)
        if ratio is not None and ratio > MOST_FMD:
            lines.append(f"- {f.cell.task}: FMD {ratio:.2f} times that of unconditional samples")
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
