"""Table "geometric control tasks": fidelity and quality of four cardiac tasks by every approach."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.stats import ks_2samp

from anatomica.anatomy.catalogue import anatomy
from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import bars, gallery
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import (
    EXPLICIT,
    GRADIENT_L,
    GRADIENT_V,
    IMPLICIT,
    NEWTON_L,
    UNCONDITIONAL,
    Cell,
    Profile,
    at_scale,
)
from anatomica.evaluate.experiments.quality import qualities
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.tables import (
    conditions,
    markdown,
    samples_path,
    shown,
    smallest,
    write_results,
)
from anatomica.evaluate.metrics.bootstrap import Interval, mean_interval
from anatomica.evaluate.metrics.fidelity import SCALES
from anatomica.evaluate.metrics.quality import Quality
from anatomica.spec.tasks import GEOMETRIC, task

NAME = "geometric"
METHODS = (UNCONDITIONAL, EXPLICIT, IMPLICIT, GRADIENT_L, GRADIENT_V, NEWTON_L)
MEASURES = ("mass", "centroid", "covariance")
BASELINES = ("explicit", "implicit")


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    n = lab.model("cardiac").n
    return [
        Cell(
            name,
            method,
            # Gauss-Newton chooses its own grids, and ends on the one that is measured.
            task(name) if method is NEWTON_L else at_scale(task(name), n),
            task(name),
            profile.slow if method.slow else profile.samples,
        )
        for name in GEOMETRIC
        for method in METHODS
    ]


def fidelities(done: Finished) -> dict[str, Interval]:
    """Mass x 1e5, centroid x 1e4, covariance x 1e5, as the paper prints them."""
    return {
        key: mean_interval(done.values("fidelity", key) * float(getattr(SCALES, key))) for key in MEASURES
    }


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found, floors = qualities(runner, done)
    rows, summary = [], {}
    for name in GEOMETRIC:
        here = [(f, q) for f, q in zip(done, found, strict=True) if f.cell.task == name]
        errors = [fidelities(f) for f, _ in here]
        best = {key: smallest([e[key].value for e in errors]) for key in MEASURES}
        for (f, q), e in zip(here, errors, strict=True):
            known = paper.GEOMETRIC[name].get(f.cell.method.key, (None,) * 5)
            rows.append(
                [
                    name,
                    f.cell.method.title,
                    str(len(f.keys)),
                    *(shown(e[k], known[j], best=e[k].value == best[k]) for j, k in enumerate(MEASURES)),
                    shown(q.fmd, known[3]),
                    shown(q.nna, known[4]),
                ]
            )
            summary[f.cell.name] = {k: list(v) for k, v in e.items()} | {"quality": q.as_json()}
    text = "# Geometric control\n\n" + markdown(
        ("Task", "Approach", "n", "Mass", "Cent.", "Cov.", "FMD", "1-NNA"), rows
    )
    text += "\n" + floor_lines(floors) + "\n" + verdict(done, found) + "\n" + conditions(runner, done)
    text += "\n" + trained(runner, done) + others(done) + "\n" + absences(done)
    text += "\nFidelity is the mean L1 error on the label map, x 1e5, 1e4, 1e5 (lower is better). "
    text += "The targets are those of held-out patients, one per sample.\n"
    text += f"\n![fidelity]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary)
    bars(
        out / f"{NAME}.png",
        {(f.cell.task, f.cell.method.title): fidelities(f) for f in done},
        {"mass": "mass x 1e5", "centroid": "centroid x 1e4", "covariance": "covariance x 1e5"},
    )
    gallery(runner, done, samples_path(runner, NAME, "png"))


def trained(runner: Runner, done: Sequence[Finished]) -> str:
    """How long each baseline was trained."""
    told = []
    for cell in (f.cell for f in done):
        if cell.method.conditioning is None:
            continue
        baseline = runner.lab.baseline(cell.task, cell.method.conditioning, cell.spec.anatomy)
        assert baseline is not None
        steps, minutes = (baseline.about["budget"][key] for key in ("steps", "minutes"))
        amount = f"{steps} steps" if steps is not None else f"{minutes:g} minutes"
        start = "from scratch" if baseline.about["from_scratch"] else "from the unconditional weights"
        batch = baseline.about["training"]["batch"]
        told.append(f"{cell.task} {cell.method.conditioning} {amount} of {batch} {start}")
    return f"Baselines were trained: {'; '.join(told)}.\n\n" if told else ""


def floor_lines(floors: dict[tuple[str, int], Quality]) -> str:
    """Real against real, for the counts of the table."""
    return "".join(
        f"Real-against-real floor, {anatomy}, n = {count}: FMD {shown(q.fmd)}, 1-NNA {shown(q.nna)}.\n\n"
        for (anatomy, count), q in floors.items()
    )


def verdict(done: Sequence[Finished], found: Sequence[Quality]) -> str:
    """The two claims that the table is for, counted."""
    won = total = 0
    for name in GEOMETRIC:
        here = {f.cell.method.key: fidelities(f) for f in done if f.cell.task == name}
        ours = [v for k, v in here.items() if k.startswith("anatomica")]
        theirs = [v for k, v in here.items() if k in BASELINES]
        if ours and len(theirs) == len(BASELINES):
            for key in MEASURES:
                total += 1
                won += min(x[key].value for x in ours) < min(x[key].value for x in theirs)
    lines = ""
    if total:
        lines += f"The best approach is Anatomica in {won} of {total} fidelity cells (paper: 7 of 12).\n\n"
    within = guided = 0
    for name in GEOMETRIC:
        here = {f.cell.method.key: q for f, q in zip(done, found, strict=True) if f.cell.task == name}
        if "unconditional" in here:
            for key, q in here.items():
                if key.startswith("anatomica"):
                    guided += 1
                    within += q.nna.value <= here["unconditional"].nna.high
    if guided:
        lines += (
            f"1-NNA of {within} of {guided} guided cells is not above the unconditional samples' interval.\n"
        )
    return lines


def others(done: Sequence[Finished]) -> str:
    """Do tissues that nothing was asked of keep their volumes? Guided against unconditional samples.

    Both have the same seeds, so the change is a mean of pairs, and a KS test's p would mean nothing.
    """
    free = {f.cell.task: f for f in done if f.cell.method is UNCONDITIONAL}
    rows = []
    for f in done:
        if f.cell.method.guidance is None or f.cell.task not in free:
            continue
        asked = {name for c in f.cell.measured.constraints for name in c.structure}
        names = [t for t in anatomy(f.cell.spec.anatomy).table.tissues if t not in asked]
        pairs = {t: (_volumes(f, t), _volumes(free[f.cell.task], t)[: len(f.keys)]) for t in names}
        distance = {t: float(ks_2samp(a, b).statistic) for t, (a, b) in pairs.items()}  # type: ignore[attr-defined]
        change = {t: mean_interval(100 * (a - b) / b.mean()) for t, (a, b) in pairs.items()}
        far = max(names, key=lambda t: distance[t])
        most = max(names, key=lambda t: abs(change[t].value))
        told = f"{distance[far]:.2f} ({far})", f"{shown(change[most])} ({most})"
        rows.append([f.cell.task, f.cell.method.title, str(len(f.keys)), str(len(names)), *told])
    if not rows:
        return ""
    header = ("Task", "Approach", "n", "other tissues", "largest KS distance", "largest change, %")
    return "Volumes of tissues that nothing was asked of, against unconditional samples:\n\n" + markdown(
        header, rows
    )


def _volumes(done: Finished, tissue: str) -> Float[np.ndarray, " m"]:
    return np.array([n["volumes_ml"].get(tissue, 0.0) for n in done.numbers], dtype=float)


def absences(done: Sequence[Finished]) -> str:
    """Which share of the substructures is missing from the samples of each cell."""
    shares = [(f.cell.name, float(np.mean(f.values("fidelity", "absent")))) for f in done]
    told = ", ".join(f"{name} {share:.1%}" for name, share in shares if share)
    return f"Substructures that are not there, without a centroid: {told or 'none'}.\n"


def speeds(done: Sequence[Finished]) -> list[tuple[float, float]]:
    """Processor seconds per sample of each cell, and its speed.

    Speed is samples per second relative to Anatomica-V's, which is the paper's measure (relative to the
    slowest if that was not run).
    """
    seconds = [float(np.mean(f.values("seconds"))) for f in done]
    of_v = [s for f, s in zip(done, seconds, strict=True) if f.cell.method.key == GRADIENT_V.key]
    base = max(of_v or seconds, default=0.0)
    return [(s, base / s) for s in seconds]
