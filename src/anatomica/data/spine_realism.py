"""Spines against real ones: spacing, turns and pedicles by level, of keypoints and of phantoms.

The keypoints are body centres with their level and pedicles without, one row per point: scan, kind (body,
left or right), level, x y z in mm with x to the left, y to the back and z up. Everything here is in RAS.

`spacing` is the distance of two neighbouring body centres. A segment is the line between them; its sagittal
tilt is positive where the lower centre lies in front, its coronal tilt where it lies on the right. The turn
at a vertebra is the tilt of the segment below less that of the segment above: positive sagittal turns are
kyphosis, negative ones lordosis.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.data.phantoms import Truth
from anatomica.data.phantoms.levels import INDEX
from anatomica.errors import AnatomicaError

Array = np.ndarray
NAMES = tuple(INDEX)
PAIRS = tuple(f"{a}-{b}" for a, b in pairwise(NAMES))
KINDS = ("spacing", "sagittal turn", "coronal turn", "interpedicular", "centre to pedicle")
UNITS = dict(zip(KINDS, ("mm", "deg", "deg", "mm", "mm"), strict=True))
LEAST_CASES = 60
"""Levels with fewer real cases are not compared; with fewer in common, neither is a correlation."""
TRIM = 4.0
"""Values further from the median than this many robust SDs are slips of the annotation (a body's point on a
pedicle, a level left out) and are dropped: 0.1 to 3 % of the values of a level.
"""


@dataclass(frozen=True)
class Columns:
    """Body centres and pedicles of many columns, (columns, 24, 3) RAS mm; nan where not seen."""

    bodies_mm: Array
    left_mm: Array
    right_mm: Array

    def __len__(self) -> int:
        return len(self.bodies_mm)


def read_keypoints(path: str | Path) -> Columns:
    """Columns of a keypoint file (CSV, plain or gzip). Patients with a sixth lumbar vertebra are left out."""
    path = Path(path)
    if not path.is_file():
        raise AnatomicaError(f"{path} is not a file; give a CSV file of keypoints")
    scans: dict[str, list[dict[str, str]]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        rows = csv.DictReader(file)
        missing = {"scan", "kind", "level", "x_mm", "y_mm", "z_mm"} - set(rows.fieldnames or ())
        if missing:
            raise AnatomicaError(f"{path} has no column {', '.join(sorted(missing))}; is it a keypoint file?")
        for row in rows:
            scans.setdefault(row["scan"], []).append(row)
    columns = [_column(rows) for rows in scans.values() if not any(r["level"] == "L6" for r in rows)]
    if not columns:
        raise AnatomicaError(f"{path} has no scans; give a CSV file of keypoints")
    bodies, left, right = (np.stack(x) for x in zip(*columns, strict=True))
    return Columns(bodies, left, right)


def _column(rows: list[dict[str, str]]) -> tuple[Array, Array, Array]:
    bodies = np.full((len(NAMES), 3), np.nan)
    pedicles: dict[str, list[Array]] = {"left": [], "right": []}
    for row in rows:
        point = np.array([-float(row["x_mm"]), -float(row["y_mm"]), float(row["z_mm"])])
        if row["kind"] != "body":
            pedicles[row["kind"]].append(point)
        elif row["level"] in INDEX:
            bodies[INDEX[row["level"]]] = point
    return bodies, _assign(bodies, pedicles["left"]), _assign(bodies, pedicles["right"])


def _assign(bodies: Array, pedicles: list[Array]) -> Array:
    """Pedicles by level: those of which a body is the nearest, and which are nearest to that body."""
    placed = np.full_like(bodies, np.nan)
    seen = np.flatnonzero(np.isfinite(bodies[:, 0]))
    if len(pedicles) and len(seen):
        points = np.stack(pedicles)
        away = np.linalg.norm(bodies[seen][:, None] - points, axis=2)
        for row, i in enumerate(seen):
            nearest = int(away[row].argmin())
            if away[:, nearest].argmin() == row:
                placed[i] = points[nearest]
    return placed


def of_phantoms(truths: Iterable[Truth]) -> Columns:
    """Columns of spinal phantoms, from the landmarks in their truths."""
    kinds: dict[str, list[Array]] = {"body": [], "pedicle left": [], "pedicle right": []}
    for truth in truths:
        for kind, kept in kinds.items():
            nowhere = [np.nan] * 3
            kept.append(np.array([truth.landmarks_mm.get(f"{name} {kind}", nowhere) for name in NAMES]))
    if not kinds["body"]:
        raise AnatomicaError("no phantoms to compare; give at least one")
    return Columns(*(np.stack(x) for x in kinds.values()))


def features(columns: Columns) -> dict[str, Array]:
    """Each kind's values by level, (columns, levels); 23 spacings, 22 turns (C2 to L4), 24 pedicles."""
    segments = np.diff(columns.bodies_mm, axis=1)
    sagittal, coronal = tilts_deg(segments)
    to_left, to_right = (
        np.linalg.norm(columns.bodies_mm - side, axis=2) for side in (columns.left_mm, columns.right_mm)
    )
    values = (
        np.linalg.norm(segments, axis=2),
        np.diff(sagittal, axis=1),
        np.diff(coronal, axis=1),
        np.linalg.norm(columns.left_mm - columns.right_mm, axis=2),
        (to_left + to_right) / 2,
    )
    return dict(zip(KINDS, values, strict=True))


def tilts_deg(segments: Array) -> tuple[Array, Array]:
    """Sagittal and coronal tilt of segments (..., 3) that run down the column."""
    down = -segments[..., 2]
    return np.degrees(np.arctan2(segments[..., 1], down)), np.degrees(np.arctan2(segments[..., 0], down))


def labels_of(kind: str) -> tuple[str, ...]:
    """Names of a kind's levels."""
    if kind == "spacing":
        return PAIRS
    return NAMES[1:-1] if kind.endswith("turn") else NAMES


def trimmed(values: Array) -> Array:
    """Values (columns, levels) with what lies beyond TRIM robust SDs of its level's median set to nan."""
    with np.errstate(all="ignore"):
        low, middle, high = np.full((3, values.shape[1]), np.nan)
        for i, level in enumerate(values.T):
            if np.isfinite(level).any():
                low[i], middle[i], high[i] = np.nanpercentile(level, [25, 50, 75])
        return np.where(np.abs(values - middle) <= TRIM * (high - low) / 1.349, values, np.nan)


def moments(values: Array) -> tuple[Array, Array, Array]:
    """Count, mean and SD of each level; nan for the latter two where no value is."""
    seen = np.isfinite(values)
    count = seen.sum(0)
    some = np.maximum(count, 1)
    mean = np.where(seen, values, 0).sum(0) / some
    sd = np.sqrt(np.where(seen, (values - mean) ** 2, 0).sum(0) / some)
    return count, np.where(count > 0, mean, np.nan), np.where(count > 0, sd, np.nan)


def correlations(values: Array, least: int = LEAST_CASES) -> tuple[Array, Array]:
    """Correlation of every two levels and how many columns show both; nan below `least` columns."""
    size = values.shape[1]
    found, count = np.full((size, size), np.nan), np.zeros((size, size), int)
    for i in range(size):
        for j in range(size):
            both = np.isfinite(values[:, i]) & np.isfinite(values[:, j])
            count[i, j] = both.sum()
            if count[i, j] >= least:
                found[i, j] = np.corrcoef(values[both, i], values[both, j])[0, 1]
    return found, count


def against_keypoints(path: str | Path, truths: Iterable[Truth]) -> dict[str, Any]:
    """Spinal phantoms (their truths) against a file of real keypoints, as a JSON value: see `compare`."""
    return {"source": str(path)} | compare(read_keypoints(path), of_phantoms(truths))


def compare(real: Columns, made: Columns) -> dict[str, Any]:
    """Made columns against real ones, as a JSON value.

    `levels` has one entry per kind and level that at least LEAST_CASES real columns show: means, SDs, z (the
    difference of means in real SDs) and ratio (of SDs). `correlations` has, per kind, the mean correlation of
    levels as far apart as `lag`, over the pairs that enough columns of both show.
    """
    seen = {k: np.isfinite(v).sum(0) for k, v in features(real).items()}
    real_kinds, made_kinds = ({k: trimmed(v) for k, v in features(x).items()} for x in (real, made))
    levels: list[dict[str, Any]] = []
    correlated: list[dict[str, Any]] = []
    for kind in KINDS:
        count, mean, sd = moments(real_kinds[kind])
        made_count, made_mean, made_sd = moments(made_kinds[kind])
        for i, name in enumerate(labels_of(kind)):
            if seen[kind][i] < LEAST_CASES or made_count[i] < 2:
                continue
            levels.append(
                {
                    "kind": kind,
                    "level": name,
                    "unit": UNITS[kind],
                    "real_count": int(count[i]),
                    "real_mean": _short(mean[i]),
                    "real_sd": _short(sd[i]),
                    "count": int(made_count[i]),
                    "mean": _short(made_mean[i]),
                    "sd": _short(made_sd[i]),
                    "z": _short((made_mean[i] - mean[i]) / sd[i]),
                    "sd_ratio": _short(made_sd[i] / sd[i]),
                }
            )
        correlated += _by_lag(kind, real_kinds[kind], made_kinds[kind])
    return {
        "real_columns": len(real),
        "phantoms": len(made),
        "least_real_cases": LEAST_CASES,
        "levels": levels,
        "correlations": correlated,
        "scoliosis": {"real": _scoliosis(real), "phantoms": _scoliosis(made)},
        "summary": {kind: _summary([x for x in levels if x["kind"] == kind]) for kind in KINDS},
    }


def _by_lag(kind: str, real: Array, made: Array) -> list[dict[str, Any]]:
    found, mine = correlations(real)[0], correlations(made)[0]
    rows = []
    for lag in range(1, len(found)):
        pair = np.stack([np.diag(found, lag), np.diag(mine, lag)])
        both = pair[:, np.isfinite(pair).all(0)]
        if both.size:
            rows.append(
                {
                    "kind": kind,
                    "lag": lag,
                    "pairs": both.shape[1],
                    "real": _short(both[0].mean()),
                    "phantoms": _short(both[1].mean()),
                }
            )
    return rows


def _scoliosis(columns: Columns) -> dict[str, float]:
    """Coronal curvature: the root mean square of a column's coronal turns from T2 to L4, in degrees.

    Only columns that show at least three of these vertebrae count.
    """
    turns = trimmed(features(columns)["coronal turn"])[:, INDEX["T2"] - 1 :]
    turns = turns[np.isfinite(turns).sum(1) >= 3]
    if not len(turns):
        return {"columns": 0}
    curvature = np.sqrt(np.nanmean(turns**2, axis=1))
    low, middle, high = np.percentile(curvature, [5, 50, 95])
    return {
        "columns": len(turns),
        "median_deg": _short(middle),
        "p5_deg": _short(low),
        "p95_deg": _short(high),
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The worst of one kind's levels."""
    if not rows:
        return {"levels": 0}
    return {
        "levels": len(rows),
        "largest_z": max((x["z"] for x in rows), key=abs),
        "least_sd_ratio": min(x["sd_ratio"] for x in rows),
        "largest_sd_ratio": max(x["sd_ratio"] for x in rows),
    }


def _short(value: float) -> float:
    return round(float(value), 3)


def format_keypoints(result: dict[str, Any]) -> str:
    """The result of `against_keypoints` as a table for the terminal."""
    lines = [f"{result['phantoms']} phantoms against {result['real_columns']} real columns"]
    head = f"{'level':<10}{'real n':>7}{'mean':>8}{'SD':>7}{'phantoms':>10}{'mean':>8}{'SD':>7}"
    head += f"{'z':>7}{'SD ratio':>10}"
    for kind, worst in result["summary"].items():
        if not worst["levels"]:
            continue
        lines += ["", f"{kind}, {UNITS[kind]}", head]
        for x in (x for x in result["levels"] if x["kind"] == kind):
            lines.append(
                f"{x['level']:<10}{x['real_count']:>7}{x['real_mean']:>8.2f}{x['real_sd']:>7.2f}"
                f"{x['count']:>10}{x['mean']:>8.2f}{x['sd']:>7.2f}{x['z']:>7.2f}{x['sd_ratio']:>10.2f}"
            )
        far = [f"{x['real']:.2f}/{x['phantoms']:.2f}" for x in result["correlations"] if x["kind"] == kind]
        lines.append(
            f"correlation with the next, second next, ... level, real/phantoms: {'  '.join(far[:6])}"
        )
    real, made = result["scoliosis"]["real"], result["scoliosis"]["phantoms"]
    if real["columns"] and made["columns"]:
        lines += [
            "",
            "root mean square of coronal turns, median (5th to 95th percentile), degrees: "
            + ", ".join(
                f"{name} {x['median_deg']:.1f} ({x['p5_deg']:.1f} to {x['p95_deg']:.1f})"
                for name, x in (("real", real), ("phantoms", made))
            ),
        ]
    return "\n".join(lines)
