"""Table "geometric control tasks": fidelity and quality of four cardiac tasks by every approach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.stats import ks_2samp

from anatomica.anatomy.catalogue import anatomy
from anatomica.evaluate.experiments import paper
from anatomica.evaluate.experiments.figures import bars, gallery
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measures import MEASURES, fidelities, share, values_of
from anatomica.evaluate.experiments.plan import GRADIENT_V, Cell, Profile
from anatomica.evaluate.experiments.quality import Grids, grids
from anatomica.evaluate.experiments.rows import (
    EXPLICIT,
    IMPLICIT,
    PAPER,
    PAPER_V,
    ROWS,
    UNCONDITIONAL,
    cells_of,
)
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.standing import quality_section, standing_json, what_rows_had
from anatomica.evaluate.experiments.tables import (
    conditions,
    markdown,
    samples_path,
    shown,
    smallest,
    write_results,
)
from anatomica.evaluate.experiments.verdict import beside_paper, cells_won, paper_claim, quality_kept
from anatomica.evaluate.metrics.bootstrap import mean_interval
from anatomica.evaluate.metrics.quality import Quality
from anatomica.spec.tasks import GEOMETRIC

NAME = "geometric"
METHODS = (*ROWS[:2], EXPLICIT, IMPLICIT, PAPER_V, *ROWS[2:])
WHAT = "one of four tasks and one of mass, centroid and covariance, by the mean L1 error on the label map"


def cells(profile: Profile, lab: Lab) -> list[Cell]:
    return [cell for name in GEOMETRIC for cell in cells_of(name, METHODS, profile)]


def write(runner: Runner, done: Sequence[Finished], out: Path) -> None:
    found = grids(runner, done)
    text = "# Geometric control\n\n" + verdict(done)
    text += quality_kept(done, found) + "\n" + error_table(done, paper.GEOMETRIC)
    text += "\nMass, Cent., Cov.: mean L1 error on the label map, x 1e5, 1e4, 1e5 (lower is better). Met: "
    text += "all quantities within tolerance, on the label map and on the field; at 2n on twice the grid.\n"
    text += quality_section(runner, done, found) + others(done) + "\n" + absences(done)
    text += what_rows_had(runner, done) + trained(runner, done) + conditions(runner, done)
    text += f"\n![fidelity]({NAME}.png)\n"
    write_results(runner, done, out, NAME, text, summary_of(done, found))
    bars(
        out / f"{NAME}.png",
        {(f.cell.task, f.cell.method.title): fidelities(f) for f in done},
        {"mass": "mass x 1e5", "centroid": "centroid x 1e4", "covariance": "covariance x 1e5"},
    )
    gallery(runner, done, samples_path(runner, NAME, "png"))


def error_table(done: Sequence[Finished], printed: Mapping[str, Mapping[str, tuple[float, ...]]]) -> str:
    """Errors of moments and the shares that meet all targets, with the paper's numbers beside them."""
    rows = []
    for name in dict.fromkeys(f.cell.task for f in done):
        here = [f for f in done if f.cell.task == name]
        errors = [fidelities(f) for f in here]
        best = {key: smallest([e[key].value for e in errors]) for key in MEASURES}
        for f, e in zip(here, errors, strict=True):
            known = printed.get(name, {}).get(f.cell.method.key, (None,) * len(MEASURES))
            numbers = [shown(e[k], known[j], best=e[k].value == best[k]) for j, k in enumerate(MEASURES)]
            met = [shown(share([f], key)) for key in ("met", "met_2n")]
            rows.append([name, f.cell.method.title, str(len(f.keys)), *numbers, *met])
    return markdown(("Task", "Approach", "n", "Mass", "Cent.", "Cov.", "met %", "met at 2n %"), rows)


def summary_of(done: Sequence[Finished], found: Mapping[str, Grids]) -> dict[str, Any]:
    return {
        f.cell.name: {key: list(v) for key, v in values_of(f)[0].items()}
        | standing_json(f, found[f.cell.name])
        for f in done
    }


def verdict(done: Sequence[Finished]) -> str:
    """What is lost, then what the table counts."""

    def printed(name: str, measure: str) -> float | None:
        return min(paper.GEOMETRIC[name][key][MEASURES.index(measure)] for key in (PAPER.key, PAPER_V.key))

    claim = (
        "with the paper's weights, the better of both decoders where both were drawn: below both baselines "
        "in {won} of {total} cells (the paper's own count: 7 of 12)."
    )
    by_paper = (PAPER.key, PAPER_V.key)
    baselines = (EXPLICIT.key, IMPLICIT.key)
    return (
        cells_won(done, values_of, WHAT)
        + paper_claim(done, values_of, by_paper, baselines, claim)
        + beside_paper(done, values_of, printed)
    )


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


def others(done: Sequence[Finished]) -> str:
    """Do tissues that nothing was asked of keep their volumes? Guided against unconditional samples.

    Both have the same seeds, so the change is a mean of pairs, and a KS test's p would mean nothing.
    """
    free = {f.cell.task: f for f in done if f.cell.method.key == UNCONDITIONAL.key}
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
