"""Coronary phantoms: a diseased artery in an OCT pullback, lumen and wall with calcium in it.

The artery is drawn from its unrolled surfaces (see `artery`), which are sampled finely and once, so the grid
the phantom is drawn on does not change the anatomy.
"""

from __future__ import annotations

import numpy as np

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.data.phantoms import Phantom, Truth
from anatomica.data.phantoms.artery import ANGLES, EDGE_MM, ROWS, Vessel, grow, sheet, soft_max
from anatomica.data.phantoms.artery_truth import known
from anatomica.data.phantoms.normals import CORONARY as PUBLISHED
from anatomica.data.phantoms.paint import draw_pathology

__all__ = ["PATHOLOGIES", "PUBLISHED", "build"]

PATHOLOGIES: dict[str, float] = {
    "severe-stenosis": 0.12,
    "heavy-calcification": 0.12,
    "positive-remodelling": 0.10,
    "ectasia": 0.05,
}

POINTS = 128
"""Intervals between the points of the centrelines in the truth, 0.1 mm each."""
_SALT = 1004  # keeps the anatomies' populations independent of each other at equal seeds


def build(seed: int, n: int, pathology: str | None = None) -> Phantom:
    """The coronary phantom of this seed on an n^3 grid; `pathology` forces one of PATHOLOGIES (or 'none')."""
    rng = np.random.default_rng([_SALT, seed])
    chosen = draw_pathology(rng, PATHOLOGIES, pathology)
    vessel = grow(rng, chosen)
    array = _draw(vessel, n)
    label_map = LabelMap(array, cube_affine(EDGE_MM, n), anatomy("coronary").table)
    return Phantom(label_map, _truth(vessel, seed, chosen))


def _draw(vessel: Vessel, n: int) -> np.ndarray:
    """Rasterise: lumen first, then calcium in the wall, then wall, each voxel judged at its centre."""
    voxel = EDGE_MM / n
    centres = ((np.arange(n) + 0.5) * voxel - EDGE_MM / 2).astype(np.float32)
    array = np.zeros((n, n, n), np.uint8)
    rows = (centres / EDGE_MM + 0.5) * (ROWS - 1)
    at = np.minimum(rows.astype(int), ROWS - 2)
    share = (rows - at).astype(np.float32)

    def frames(table: np.ndarray) -> np.ndarray:
        """The table's rows at the grid's heights, (n, ...)."""
        part = share.reshape(-1, *[1] * (table.ndim - 1))
        return ((1 - part) * table[at] + part * table[at + 1]).astype(np.float32)

    axis, lumen, outer = frames(vessel.axis_mm), frames(vessel.lumen_mm), frames(vessel.outer_mm)
    layers = [tuple(frames(t) for t in deposit.layer_mm()) for deposit in vessel.deposits]
    reach = float(outer.max()) + 2 * voxel
    for k, z in enumerate(centres):
        inside = [np.abs(centres - axis[k, i]) < reach for i in (0, 1)]
        if vessel.branch is not None:
            inside = [np.ones(n, bool)] * 2
        box = np.ix_(inside[0], inside[1])
        dx, dy = centres[inside[0], None] - axis[k, 0], centres[None, inside[1]] - axis[k, 1]
        radius = np.hypot(dx, dy)
        column = (np.arctan2(dy, dx) % (2 * np.pi)) * np.float32(ANGLES / (2 * np.pi))
        left = np.minimum(column.astype(np.int32), ANGLES - 1)
        part = column - left
        right = (left + 1) % ANGLES

        def polar(row: np.ndarray, left=left, right=right, part=part) -> np.ndarray:
            return row[left] * (1 - part) + row[right] * part

        depth = radius - polar(lumen[k])
        beyond = radius - polar(outer[k])
        lumen_gap, outer_gap = depth, beyond
        if vessel.branch is not None:
            x, y = np.broadcast_arrays(centres[inside[0], None], centres[None, inside[1]])
            tube = vessel.branch.distance_mm(np.stack([x, y, np.full_like(x, z)], -1))
            lumen_gap = -soft_max(-depth, vessel.branch.radius_mm - tube, 0.25)
            outer_gap = -soft_max(-beyond, vessel.branch.radius_mm + vessel.branch.wall_mm - tube, 0.35)
        plane = np.where(outer_gap < 0, np.uint8(3), np.uint8(0))
        for start, end in layers:
            plane[(depth > polar(start[k])) & (depth < polar(end[k])) & (beyond < 0)] = 2
        plane[lumen_gap < 0] = 1
        array[:, :, k][box] = plane
    return array


def _truth(vessel: Vessel, seed: int, pathology: str | None) -> Truth:
    """What is known of the vessel without looking at voxels."""
    found = known(vessel)
    _, z_mm = sheet()
    each = slice(None, None, (ROWS - 1) // POINTS)
    lines = {
        name: np.concatenate([centre, z_mm], 1)[each]
        for name, centre in (("Lu", found.lumen_centre_mm), ("Ve", found.vessel_centre_mm))
    }
    radii = {
        name: np.sqrt(area / np.pi)[each]
        for name, area in (("Lu", found.lumen_mm2), ("Ve", found.vessel_mm2))
    }
    landmarks = {}
    for number, deposit in enumerate(vessel.deposits, start=1):
        row = round((deposit.z_mm / EDGE_MM + 0.5) * (ROWS - 1))
        column = round(deposit.angle / (2 * np.pi) * ANGLES) % ANGLES
        radial = vessel.lumen_mm[row, column] + deposit.cap_mm + 0.55 * deposit.thickness_mm
        out = radial * np.array([np.cos(deposit.angle), np.sin(deposit.angle)])
        landmarks[f"calcium {number}"] = [*(vessel.axis_mm[row] + out).tolist(), deposit.z_mm]
    if vessel.branch is not None:
        landmarks["branch"] = vessel.branch.start_mm.tolist()
    narrowest = int(found.lumen_mm2.argmin())
    landmarks["narrowest lumen"] = [*found.lumen_centre_mm[narrowest].tolist(), float(z_mm[narrowest, 0])]
    tubes = 1 if vessel.branch is None else 2
    betti = {
        "Lu": [1, 0, 0],
        "Ca": [len(vessel.deposits), 0, 0],
        "Ca+Ve": [1, tubes, 0],
        "Lu+Ca+Ve": [1, 0, 0],
    }
    return Truth(
        anatomy="coronary",
        seed=seed,
        pathology=pathology,
        parameters={name: round(value, 5) for name, value in found.numbers.items()},
        landmarks_mm=landmarks,
        centrelines_mm={name: np.round(line, 4).tolist() for name, line in lines.items()},
        radii_mm={name: np.round(radius, 5).tolist() for name, radius in radii.items()},
        betti=betti,
    )
