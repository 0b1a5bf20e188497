"""The floor of a task: how far a true patient is from its own targets on another grid, in tolerances.

A phantom is the same patient at any resolution. Its 64^3 label map gives the targets, as a user's file would;
its 128^3 label map is held against them. No sample can be asked to be nearer than that: default tolerances
are not below the 95th percentile. Counts that hold at 64^3 are counted again at 128^3, with the border moved
by several calibres.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy, anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.guidance.sub_voxel import conditions
from anatomica.measurement.certificate import all_met, certificate
from anatomica.measurement.homology import betti_numbers
from anatomica.measurement.placing import resolve
from anatomica.measurement.rounding import volume_floor_percent
from anatomica.spec.quantities import MASS_PERCENT
from anatomica.spec.tasks import TASKS, task

FIRST = 800_000
"""Patients from this number on are in no training set and are no test targets."""
N = 64
WITHIN = 95
CALIBRES = (0.2, 0.5, 1.0)
"""Calibres of counts, in voxels of the output; 1 is the default of a spec."""
TRIES = 40
"""Phantoms that are looked at for each patient with the wanted counts."""


def run(
    out: Path, patients: int = 12, only: str | None = None, tell: Tell = lambda _: None
) -> dict[str, Any]:
    """Measure every geometric task, tell its line, write out/floor.json and out/floor.md."""
    found: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for name in [only] if only else TASKS:
        if _geometric(name):
            row = found[name] = floor_of(name, patients)
        else:
            row = counts[name] = count_floor_of(name, patients)
        tell(f"{name}: " + ", ".join(f"{q} {x:.3g}" for q, x in row.items()))
    result = {"patients": patients, "first_seed": FIRST, "percentile": WITHIN, "floors": found}
    result["counts"] = counts
    result["volumes"] = {} if only else {name: volume_floor_of(name, patients) for name in ANATOMIES}
    return write_bench(out, "floor", result, _markdown(result), {})


def _geometric(name: str) -> bool:
    return all(c.target.betti is None for c in task(name).constraints)


def floor_of(name: str, patients: int) -> dict[str, float]:
    """The 95th percentile of each quantity's error in tolerances, the share of checks that are met, and that
    of patients of whom all are: no method that does not fit the grid can be asked for more."""
    spec, errors, met, whole = task(name), defaultdict(list), [], []
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
        checks = certificate(cube, resolved, about)
        for check in checks:
            errors[check.quantity].append(check.in_tolerances)
            met.append(check.met)
        whole.append(all_met(checks))
    floors = {quantity: float(np.percentile(values, WITHIN)) for quantity, values in errors.items()}
    shares = {"met": float(np.mean(met)), "patients": float(np.mean(whole))}
    return {key: round(x, 3) for key, x in (floors | shares).items()}


def count_floor_of(name: str, patients: int) -> dict[str, float]:
    """Of patients that have the task's Betti numbers at 64^3 the share that keeps them at 128^3, with the
    border moved by each of `CALIBRES`; `own` is the task's calibre."""
    spec = task(name)
    about, asked = anatomy(spec.anatomy), spec.constraints[0]
    prior = asked.target.betti
    assert prior is not None
    wanted, channels = tuple(prior.numbers), [about.table.names.index(t) for t in asked.structure]
    voxel = about.edge_mm / N
    calibres = {f"{share:g}": share * voxel for share in CALIBRES}
    calibres["own"] = voxel if asked.calibre_mm is None else asked.calibre_mm
    kept: dict[str, list[bool]] = defaultdict(list)
    for seed in range(FIRST, FIRST + TRIES * patients):
        if len(kept["own"]) == patients:
            break
        if tuple(betti_numbers(_structure(about, seed, N, channels))) != wanted:
            continue
        fine = _structure(about, seed, 2 * N, channels)
        for key, calibre in calibres.items():
            found = conditions(fine, (about.edge_mm / (2 * N),) * 3, calibre / 2)
            kept[key].append(all(tuple(betti) == wanted for _, betti in found))
    if not kept["own"]:
        raise AnatomicaError(f"none of {TRIES * patients} phantoms has the counts of {name}")
    return {key: round(float(np.mean(kept[key])), 3) for key in calibres}


def volume_floor_of(name: str, patients: int) -> dict[str, float]:
    """How many volumes of tissues, counted at 64^3, lie within the default tolerance of those at 128^3, and
    how many within 2 %."""
    about, off, within = anatomy(name), [], []
    for seed in range(FIRST, FIRST + patients):
        coarse, fine = (_volumes(about, seed, n) for n in (N, 2 * N))
        for counted, true in zip(coarse.tolist(), (fine / 8).tolist(), strict=True):
            if counted and true:
                off.append(100 * abs(counted / true - 1))
                within.append(max(MASS_PERCENT, volume_floor_percent(true)))
    inside = np.array(off) <= np.array(within)
    fixed = np.array(off) <= MASS_PERCENT
    return {"volumes": len(off), "default": round(inside.mean(), 3), "fixed": round(fixed.mean(), 3)}


def _volumes(about: Anatomy, seed: int, n: int) -> Int64[np.ndarray, " tissues"]:
    index = about.table.index[phantom(about.name, seed, n).label_map.array]
    return np.bincount(index.ravel(), minlength=len(about.table.names))[1:]


def _structure(about: Anatomy, seed: int, n: int, channels: list[int]) -> Bool[np.ndarray, "n n n"]:
    return np.isin(about.table.index[phantom(about.name, seed, n).label_map.array], channels)


def _markdown(result: dict[str, Any]) -> str:
    lines = [
        f"What a true patient achieves: {result['patients']} phantoms per task at {2 * N}^3 against their "
        f"own {N}^3 targets, {WITHIN}th percentile of the error in tolerances, and the share of checks met "
        "and of patients of whom all checks are.",
        "",
        "| task | volume | centroid | shape | spread | checks met | patients met |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, row in result["floors"].items():
        cells = (f"{row[q]:.2f}" for q in ("volume", "centroid", "shape", "spread"))
        lines.append(f"| {name} | {' | '.join(cells)} | {row['met']:.0%} | {row['patients']:.0%} |")
    if result["counts"]:
        lines += [
            "",
            f"Counts: {result['patients']} phantoms per task that have them at {N}^3, the share that keeps "
            f"them at {2 * N}^3 when the border moves both ways by half a calibre (in voxels of {N}^3).",
            "",
            f"| task | {' | '.join(f'{share:g}' for share in CALIBRES)} | the task's own |",
            f"|---|{'---:|' * (len(CALIBRES) + 1)}",
        ]
        lines += [
            f"| {name} | {' | '.join(f'{share:.0%}' for share in row.values())} |"
            for name, row in result["counts"].items()
        ]
    for name, row in result["volumes"].items():
        lines += [
            "",
            f"Volumes of tissues, {name}: {row['default']:.1%} of {row['volumes']} counted at {N}^3 lie "
            f"within the default tolerance of those at {2 * N}^3, {row['fixed']:.1%} within 2 %.",
        ]
    return "\n".join(lines) + "\n"
