"""Named quantities of a coronary phantom: integrals over its unrolled surfaces."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.spatial import KDTree

from anatomica.data.phantoms import Truth
from anatomica.data.phantoms import coronary as phantoms
from anatomica.data.phantoms.artery import ANGLES, EDGE_MM, ROWS, Vessel, grow
from anatomica.data.phantoms.paint import draw_pathology
from anatomica.measurement.vocabulary.coronary import REFERENCE, SCORE

Array = np.ndarray
FINER = 2
"""Frames and angles between those of the unrolled surfaces, which are drawn by linear interpolation."""
FRAME_MM = EDGE_MM / 128
"""The least area is that of a frame averaged over three frames this far apart."""


def known(truth: Truth) -> dict[str, float]:
    """Every quantity of the coronary vocabulary that the phantom has."""
    vessel = replayed(truth)
    lumen, outer = (_finer(x) for x in (vessel.lumen_mm, vessel.outer_mm))
    (lumen_mm2, centre), (vessel_mm2, _) = (_area_and_centre(x) for x in (lumen, outer))
    step = EDGE_MM / (len(lumen) - 1)
    wide = round(3 * FRAME_MM / step)
    smooth = ndimage.uniform_filter1d(lumen_mm2, wide, mode="nearest")
    narrowest = int(smooth.argmin())
    near = slice(max(narrowest - wide // 2, 0), narrowest + wide // 2 + 1)
    least = float(lumen_mm2[near].mean())
    reference = float(np.quantile(lumen_mm2, REFERENCE))
    found = {
        "lumen.min_area_mm2": least,
        "lumen.min_area_at_mm": narrowest * step,
        "lumen.mean_diameter_mm": float(2 * np.sqrt(lumen_mm2 / np.pi).mean()),
        "vessel.area_mm2": float(vessel_mm2.mean()),
        "plaque_burden_pct": 100 * (1 - float(lumen_mm2[near].sum() / vessel_mm2[near].sum())),
        "area_stenosis_pct": 100 * (1 - least / reference),
        "wall.thickness_mm": float((np.sqrt(vessel_mm2 / np.pi) - np.sqrt(lumen_mm2 / np.pi)).mean()),
        "calcium.count": float(len(vessel.deposits)),
        "calcium.volume_mm3": 0.0,
        "calcium.score": 0.0,
    }
    return found | (_calcium(vessel, lumen, outer, centre, step) if vessel.deposits else {})


def replayed(truth: Truth) -> Vessel:
    """The phantom's surfaces, drawn again from its seed in the order of `data.phantoms.coronary.build`."""
    rng = np.random.default_rng([phantoms._SALT, truth.seed])
    vessel = grow(rng, draw_pathology(rng, phantoms.PATHOLOGIES, None))
    again = float(vessel.lumen_mm[0, 0]), truth.parameters["deposits"]
    if len(vessel.deposits) != again[1]:
        raise AssertionError("the coronary phantoms are drawn in another order than their truth expects")
    return vessel


def _finer(table: Array) -> Array:
    """A table (ROWS, ANGLES) with linear interpolation between its rows and columns, as it is drawn."""
    rows = np.linspace(0, ROWS - 1, FINER * (ROWS - 1) + 1)
    columns = np.arange(FINER * ANGLES) / FINER
    closed = np.concatenate([table, table[:, :1]], axis=1)
    at = np.meshgrid(rows, columns, indexing="ij")
    return np.asarray(ndimage.map_coordinates(closed, at, order=1, mode="nearest"))


def _angles() -> Array:
    return np.arange(FINER * ANGLES) * (2 * np.pi / (FINER * ANGLES))


def _area_and_centre(radii_mm: Array) -> tuple[Array, Array]:
    """Area (rows,) of each frame's outline and its centroid (rows, 2) from the axis."""
    turn, angle = 2 * np.pi / radii_mm.shape[1], _angles()
    area = 0.5 * (radii_mm**2).sum(1) * turn
    cubed = radii_mm**3 * turn / 3
    centre = np.stack([(cubed * np.cos(angle)).sum(1), (cubed * np.sin(angle)).sum(1)], -1)
    return area, centre / area[:, None]


def _calcium(vessel: Vessel, lumen: Array, outer: Array, centre: Array, step_mm: float) -> dict[str, float]:
    """Volume, arc, thickness, length, depth and score of the calcium."""
    turn = 2 * np.pi / lumen.shape[1]
    volume, thick, longest, to_lumen = 0.0, 0.0, 0.0, np.inf
    arcs = np.zeros(len(lumen))
    for deposit in vessel.deposits:
        start, end = (_finer(x) for x in deposit.layer_mm())
        inner, outside = lumen + np.maximum(start, 0), np.minimum(lumen + end, outer)
        here = outside > inner
        volume += float((0.5 * (outside**2 - inner**2))[here].sum() * turn * step_mm)
        longest = max(longest, float(here.any(1).sum() * step_mm))
        arcs += _swept(np.where(here, (inner + outside) / 2, 1.0), here, centre)
        thick = max(thick, _thickest(inner, outside, here, centre))
        to_lumen = min(to_lumen, _gap(lumen, inner, here, step_mm))
    measures = {
        "max_angle_deg": float(np.degrees(ndimage.uniform_filter1d(arcs, FINER + 1)).max()),
        "max_thickness_mm": thick,
        "length_mm": longest,
    }
    score = sum(points for name, (limit, points) in SCORE.items() if measures[name] > limit)
    return {
        "calcium.volume_mm3": volume,
        **{f"calcium.{name}": value for name, value in measures.items()},
        "calcium.to_lumen_mm": to_lumen,
        "calcium.score": float(score),
    }


def _swept(radius_mm: Array, here: Array, centre: Array) -> Array:
    """The angle that a deposit covers in each frame, seen from the lumen's centre, (rows,) radians."""
    half, angle = np.pi / radius_mm.shape[1], _angles()
    sides = [
        np.arctan2(radius_mm * np.sin(x) - centre[:, 1:], radius_mm * np.cos(x) - centre[:, :1])
        for x in (angle - half, angle + half)
    ]
    return (((sides[1] - sides[0]) % (2 * np.pi)) * here).sum(1)


def _thickest(inner: Array, outside: Array, here: Array, centre: Array) -> float:
    """Largest thickness of a deposit on rays from the lumen's centre."""
    angle, most = _angles(), 0.0
    about = np.where(here, outside - inner, 0.0).max(1)
    for row in np.flatnonzero(about > 0.8 * about.max()):
        at = np.flatnonzero(here[row])
        seen = []
        for radius in (inner[row, at], outside[row, at]):
            x, y = (radius * f(angle[at]) - centre[row, i] for i, f in ((0, np.cos), (1, np.sin)))
            seen.append((np.arctan2(y, x), np.hypot(x, y)))
        (a, begin), (b, end) = seen
        order = np.argsort(a)
        most = max(most, float((end - np.interp(b, a[order], begin[order], period=2 * np.pi)).max()))
    return most


def _gap(lumen: Array, inner: Array, here: Array, step_mm: float) -> float:
    """Least distance between the lumen's border and a deposit's."""
    angle = _angles()
    rows, columns = np.nonzero(here & (inner - lumen < (inner - lumen)[here].min() + 0.1))
    low, high = max(rows.min() - 20, 0), min(rows.max() + 20, len(lumen) - 1)
    r, c = (x.ravel() for x in np.meshgrid(np.arange(low, high + 1), np.arange(len(angle)), indexing="ij"))

    def placed(radius: Array, r: Array, c: Array) -> Array:
        return np.stack([radius[r, c] * np.cos(angle[c]), radius[r, c] * np.sin(angle[c]), r * step_mm], -1)

    return float(KDTree(placed(lumen, r, c)).query(placed(inner, rows, columns))[0].min())
