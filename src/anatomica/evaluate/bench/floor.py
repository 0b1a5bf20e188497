"""The floor of a task: how far a true patient is from its own targets on another grid, in tolerances.

A phantom is the same patient at any resolution. Its 64^3 label map gives the targets, as a user's file would;
its 128^3 label map is held against them. No sample can be asked to be nearer than that: default tolerances
are not below the 95th percentile.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.measurement.certificate import certificate
from anatomica.measurement.placing import resolve
from anatomica.spec.tasks import TASKS, task

FIRST = 800_000
"""Patients from this number on are in no training set and are no test targets."""
N = 64
WITHIN = 95


def run(
    out: Path, patients: int = 12, only: str | None = None, tell: Tell = lambda _: None
) -> dict[str, Any]:
    """Measure every geometric task, tell its line, write out/floor.json and out/floor.md."""
    found: dict[str, Any] = {}
    names = [name for name in ([only] if only else TASKS) if _geometric(name)]
    for name in names:
        found[name] = floor_of(name, patients)
        tell(f"{name}: " + ", ".join(f"{q} {x:.3g}" for q, x in found[name].items()))
    result = {"patients": patients, "first_seed": FIRST, "percentile": WITHIN, "floors": found}
    return write_bench(out, "floor", result, _markdown(result), {})


def _geometric(name: str) -> bool:
    return all(c.target.betti is None for c in task(name).constraints)


def floor_of(name: str, patients: int) -> dict[str, float]:
    """The 95th percentile of each quantity's error in tolerances, and the share of checks that are met."""
    spec, errors, met = task(name), defaultdict(list), []
    about = anatomy(spec.anatomy)
    frame, seed, done = Frame.model(about, N), FIRST, 0
    while done < patients:
        coarse, fine = (phantom(spec.anatomy, seed, n).label_map.array for n in (N, 2 * N))
        seed += 1
        resolved = resolve(spec, frame, LabelMap(coarse, frame.affine, about.table))
        if not all(bool(r.domains.valid.any()) for r in resolved):
            continue
        done += 1
        cube = LabelMap(fine, cube_affine(about.edge_mm, 2 * N), about.table)
        for check in certificate(cube, resolved, about):
            errors[check.quantity].append(check.in_tolerances)
            met.append(check.met)
    floors = {quantity: float(np.percentile(values, WITHIN)) for quantity, values in errors.items()}
    return {key: round(x, 3) for key, x in floors.items()} | {"met": round(float(np.mean(met)), 3)}


def _markdown(result: dict[str, Any]) -> str:
    lines = [
        f"What a true patient achieves: {result['patients']} phantoms per task at {2 * N}^3 against their "
        f"own {N}^3 targets, {WITHIN}th percentile of the error in tolerances, and the share of checks met.",
        "",
        "| task | volume | centroid | shape | spread | checks met |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, row in result["floors"].items():
        cells = (f"{row[q]:.2f}" for q in ("volume", "centroid", "shape", "spread"))
        lines.append(f"| {name} | {' | '.join(cells)} | {row['met']:.0%} |")
    return "\n".join(lines) + "\n"
