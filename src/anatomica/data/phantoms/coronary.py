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
from anatomica.data.phantoms.normals import CORONARY as PUBLISHED
from anatomica.data.phantoms.paint import draw_pathology

__all__ = ["PATHOLOGIES", "PUBLISHED", "build"]

PATHOLOGIES: dict[str, float] = {
    "severe-stenosis": 0.12,
    "heavy-calcification": 0.12,
    "positive-remodelling": 0.10,
    "ectasia": 0.05,
}

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
    step = 2 * np.pi / ANGLES
    lumen_mm2 = 0.5 * (vessel.lumen_mm**2).sum(1) * step
    outer_mm2 = 0.5 * (vessel.outer_mm**2).sum(1) * step
    angle, z_mm = sheet()
    # Area centroid of each frame's lumen, from its polar outline.
    cubed = vessel.lumen_mm**3 * step / 3
    offset = (
        np.stack([(cubed * np.cos(angle)).sum(1), (cubed * np.sin(angle)).sum(1)], -1) / lumen_mm2[:, None]
    )
    line = np.concatenate([vessel.axis_mm + offset, z_mm], 1)[:: (ROWS - 1) // 32]
    radius = np.sqrt(lumen_mm2 / np.pi)[:: (ROWS - 1) // 32]
    landmarks = {}
    for number, deposit in enumerate(vessel.deposits, start=1):
        row = round((deposit.z_mm / EDGE_MM + 0.5) * (ROWS - 1))
        column = round(deposit.angle / step) % ANGLES
        radial = vessel.lumen_mm[row, column] + deposit.cap_mm + 0.55 * deposit.thickness_mm
        out = radial * np.array([np.cos(deposit.angle), np.sin(deposit.angle)])
        landmarks[f"calcium {number}"] = [*(vessel.axis_mm[row] + out).tolist(), deposit.z_mm]
    if vessel.branch is not None:
        landmarks["branch"] = vessel.branch.start_mm.tolist()
    narrowest = int(lumen_mm2.argmin())
    landmarks["narrowest lumen"] = [*(vessel.axis_mm + offset)[narrowest].tolist(), float(z_mm[narrowest, 0])]
    parameters = {
        "mean_lumen_area_mm2": float(lumen_mm2.mean()),
        "minimum_lumen_area_mm2": float(lumen_mm2.min()),
        "mean_eem_area_mm2": float(outer_mm2.mean()),
        "area_stenosis": float(1 - lumen_mm2.min() / np.quantile(lumen_mm2, 0.9)),
        "deposits": float(len(vessel.deposits)),
        "side_branch": float(vessel.branch is not None),
        "largest_calcium_arc_deg": float(
            max((2 * np.degrees(d.half_arc) for d in vessel.deposits), default=0)
        ),
        "largest_calcium_thickness_mm": float(max((d.thickness_mm for d in vessel.deposits), default=0)),
    }
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
        parameters=parameters,
        landmarks_mm=landmarks,
        centrelines_mm={"Lu": line.tolist()},
        radii_mm={"Lu": radius.tolist()},
        betti=betti,
    )
