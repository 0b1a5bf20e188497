"""Spinal phantoms: the part of a vertebral column that a 128 mm cube shows, one label a vertebra.

Neighbours touch at their facet joints and nowhere else: outside the joints a gap wider than a 64^3 grid's
voxel is kept between any two bones. So k consecutive vertebrae are one piece with 2k - 1 loops: k canals and,
between each two neighbours, the ring through their left and right joints.
"""

from __future__ import annotations

from dataclasses import replace

import cc3d
import numpy as np
from scipy.spatial import KDTree

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.data.phantoms import Phantom, Truth
from anatomica.data.phantoms.bones import canal_y_mm
from anatomica.data.phantoms.column import Column, grow
from anatomica.data.phantoms.compose import compose
from anatomica.data.phantoms.levels import INDEX
from anatomica.data.phantoms.normals import SPINAL as PUBLISHED
from anatomica.data.phantoms.paint import draw_pathology
from anatomica.data.phantoms.spine_truth import known
from anatomica.data.phantoms.warp import Warp, random_warp

__all__ = ["PATHOLOGIES", "PUBLISHED", "build"]

PATHOLOGIES: dict[str, float] = {
    "scoliosis": 0.08,
    "hyperkyphosis": 0.05,
    "compression-fracture": 0.08,
    "narrow-discs": 0.05,
}

Array = np.ndarray
FRAME = ANATOMIES["spinal"]
HALF_MM = FRAME.edge_mm / 2
GAP_MM = 2.5
"""Kept between two bones outside their joints; more than the 2 mm voxel of a 64^3 grid."""
MARGIN_MM = 4.0
"""Around a vertebra's box: room for the deformation and for the gap's rule."""
CRUMB_ML = 0.12
"""Smaller pieces of a bone are what the gap's rule leaves over, at any resolution."""
SLIVER_GRID, SLIVER_VOXELS, SLIVER_THICK = 64, 48, 3
"""Fewer voxels of this grid, or fewer along an axis, and a piece of a bone is not shown at any resolution:
the window cut it so thin that a finer and a coarser grid would not show the same.
"""
PREFERRED = 0.33
CENTRES = (INDEX["C2"] - 0.5, INDEX["L5"] + 0.5)
"""Windows: see _in_window. 4,000 patients then show each vertebra at least 200 times whole or nearly so."""
_SALT = 1003  # keeps the anatomies' populations independent of each other at equal seeds


def build(seed: int, n: int, pathology: str | None) -> Phantom:
    """The spinal patient `seed` on an n^3 grid."""
    rng = np.random.default_rng([_SALT, seed])
    pathology = draw_pathology(rng, PATHOLOGIES, pathology)
    column = grow(rng, pathology)
    warp = random_warp(rng, 2.5, [(52.0, 2.0), (22.0, 0.75), (11.0, 0.3)], reach_mm=90.0)
    column = _in_window(rng, column, pathology)
    array = _draw(column, warp, n)
    label_map = LabelMap(array, cube_affine(FRAME.edge_mm, n), FRAME.table)
    return Phantom(label_map, _truth(seed, pathology, column, warp))


def _in_window(rng: np.random.Generator, column: Column, pathology: str | None) -> Column:
    """Move the column so that the cube's centre is the origin.

    The centre is at a level drawn evenly from C2 to L5, in PREFERRED of the patients one at which T6 to T10,
    the paper's task, are seen whole.
    """
    favour, spread = rng.random() < PREFERRED, rng.uniform(-0.5, 0.5)
    level, near = rng.uniform(*CENTRES), rng.uniform(-1.5, 1.5)
    if pathology == "compression-fracture":
        # Only where the finding is seen may the patient carry its name.
        favour, level = False, column.parameters["fractured_level"] - 1 + near
    elif pathology == "scoliosis":
        favour, level = False, column.parameters["apex_level"] - 1 + near
    elif pathology == "hyperkyphosis":
        favour, level = False, INDEX["T7"] + 3.0 * near
    centres = column.centres_mm
    if favour:
        top, bottom = (_ring_mm(column, INDEX[x])[:, 2] for x in ("T6", "T10"))
        room = max(FRAME.edge_mm - 6.0 - (top.max() - bottom.min()), 0.0)
        z = (top.max() + bottom.min()) / 2 + spread * room
    else:
        z = float(np.interp(level, np.arange(len(centres)), centres[:, 2]))
    seen = np.flatnonzero(np.abs(centres[:, 2] - z) < HALF_MM)
    rings = np.concatenate([_ring_mm(column, int(i)) for i in seen])
    backs = [centres[i, 1] + (column.frames[i] @ column.bones[i].box()[0])[1] for i in seen]
    y = (rings[:, 1].max() + min(backs)) / 2
    # Scanned people do not lie dead centre.
    origin = np.array([centres[seen, 0].mean() + rng.normal(0, 2.0), y + rng.normal(0, 2.0), z])
    return replace(column, centres_mm=centres - origin, joints_mm=column.joints_mm - origin)


def _ring_mm(column: Column, i: int, tall: float = 1.0) -> Array:
    """Corner points of a vertebra's body and arch, without the processes' tips, (m, 3).

    Of the body only its middle, `tall` of its height.
    """
    level = column.levels[i]
    w, d, h = level.width_mm / 2, level.depth_mm / 2, tall * level.height_mm / 2
    side, back = level.canal_width_mm / 2 + 5.0, canal_y_mm(level) - level.canal_depth_mm / 2 - 6.0
    corners = [(x, y, z) for x in (-w, w) for y in (-d, d) for z in (-h, h)]
    corners += [(x, back, z) for x in (-side, side) for z in (-h, 0.6 * h)]
    return np.array(corners) @ column.frames[i].T + column.centres_mm[i]


def _draw(column: Column, warp: Warp, n: int) -> Array:
    """The bones on an n^3 grid, without the slivers that the window cuts off."""
    array = _raster(column, warp, n)
    plan = array if n == SLIVER_GRID else _raster(column, warp, SLIVER_GRID)
    _drop_slivers(array, plan)
    return array


def _raster(column: Column, warp: Warp, n: int) -> Array:
    """Each voxel goes to the bone it is deepest in, unless a second bone is closer than the gap allows."""
    grid = warp.grid(FRAME.edge_mm, n)
    best = np.full((n, n, n), 40.0, dtype=np.float32)
    second = best.copy()
    joint = best.copy()
    owner = np.zeros((n, n, n), dtype=np.uint8)
    for i, bone in enumerate(column.bones):
        box = _box(column, warp, i, n)
        if box is None:
            continue
        frame = column.frames[i].astype(np.float32)
        points = grid[box]
        local = (points.reshape(-1, 3) - column.centres_mm[i].astype(np.float32)) @ frame
        field, pad = (x.reshape(points.shape[:3]) for x in bone.distance(local))
        np.minimum(joint[box], pad, out=joint[box])
        closer = field < best[box]
        second[box] = np.where(closer, best[box], np.minimum(second[box], field))
        best[box][closer] = field[closer]
        owner[box][closer] = i + 1
    gap = GAP_MM * np.clip(joint / 0.6, 0, 1)
    array = np.where((best < 0) & (second - best >= gap), owner, np.uint8(0))
    crumb = CRUMB_ML * 1000 / (FRAME.edge_mm / n) ** 3
    _sweep(array, crumb)
    compose(array, best, owner, joint < 0.8)
    return array


def _box(column: Column, warp: Warp, i: int, n: int) -> tuple[slice, slice, slice] | None:
    """The voxels that can see bone i, or None."""
    bone = column.bones[i]
    low, high = bone.box()
    low, high = low - MARGIN_MM, high + MARGIN_MM
    corners = np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), -1).reshape(-1, 3)
    model = corners @ column.frames[i].T + column.centres_mm[i]
    seen = model @ warp.rotation.T
    first = np.floor((seen.min(0) + HALF_MM) / FRAME.edge_mm * n).astype(int)
    last = np.ceil((seen.max(0) + HALF_MM) / FRAME.edge_mm * n).astype(int)
    first, last = np.clip(first, 0, n), np.clip(last, 0, n)
    if (last <= first).any():
        return None
    x, y, z = (slice(int(a), int(b)) for a, b in zip(first, last, strict=True))
    return x, y, z


def _sweep(array: Array, crumb_voxels: float) -> None:
    """Drop crumbs: pieces of a bone too small to be a part of it that the window cuts."""
    pieces, sizes, _ = _pieces(array)
    array[(sizes < crumb_voxels)[pieces]] = 0


def _drop_slivers(array: Array, plan: Array) -> None:
    """Drop what the plan, the same bones on the sliver grid, shows as slivers.

    Pieces part and meet elsewhere on another grid, so each voxel asks its bone's nearest one in the plan.
    """
    pieces, sizes, thick = _pieces(plan)
    sliver = ((sizes < SLIVER_VOXELS) | (thick < SLIVER_THICK))[pieces]
    for id in np.intersect1d(array, plan[sliver]):
        here, there = np.argwhere(array == id), np.argwhere(plan == id)
        _, nearest = KDTree((there + 0.5) / len(plan)).query((here + 0.5) / len(array))
        gone = here[sliver[tuple(there[nearest].T)]]
        array[tuple(gone.T)] = 0
    for id in np.setdiff1d(array, plan):
        array[array == id] = 0


def _pieces(array: Array) -> tuple[Array, Array, Array]:
    """The number of each voxel's connected piece of one label; a piece's voxels, and its least extent."""
    pieces = np.asarray(cc3d.connected_components(array, connectivity=6))
    found = cc3d.statistics(pieces, no_slice_conversion=True)
    boxes = np.asarray(found["bounding_boxes"], dtype=int)  # first and last voxel, axis by axis
    return pieces, found["voxel_counts"], (boxes[:, 1::2] - boxes[:, ::2] + 1).min(1)


def _truth(seed: int, pathology: str | None, column: Column, warp: Warp) -> Truth:
    """Sizes and curve of the patient, centres of what is seen, and the topology of what is seen whole."""
    names = [level.name for level in column.levels]
    near = np.flatnonzero(np.abs(column.centres_mm[:, 2]) < HALF_MM + 10.0)
    # A body that the window trims by a tenth of its height still closes its ring.
    rings = np.stack([_ring_mm(column, int(i), 0.8) for i in near])
    rings = np.abs(warp.to_cube(rings.reshape(-1, 3)).reshape(rings.shape))
    whole = near[rings.max((1, 2)) < HALF_MM - 1.0].tolist()
    seen = near[rings.mean(1).max(1) < HALF_MM].tolist()
    found = known(column, warp, seen, whole)
    placed = {name: np.round(point, 3).tolist() for name, point in found.points_mm.items()}
    radii = [(column.levels[i].canal_width_mm + column.levels[i].canal_depth_mm) / 4 for i in seen]
    parameters = dict(column.parameters)
    for i in whole:
        level = column.levels[i]
        parameters[f"{level.name}_width_mm"] = float(level.width_mm)
        parameters[f"{level.name}_depth_mm"] = float(level.depth_mm)
    parameters |= {name: round(value, 4) for name, value in found.numbers.items()}
    return Truth(
        anatomy="spinal",
        seed=seed,
        pathology=pathology,
        parameters=parameters,
        landmarks_mm=placed,
        centrelines_mm={"canal": [placed[f"{names[i]} canal"] for i in seen]},
        radii_mm={"canal": [float(r) for r in radii]},
        directions={name: np.round(unit, 5).tolist() for name, unit in found.directions.items()},
        betti=_betti([names[i] for i in whole]),
    )


def _betti(whole: list[str]) -> dict[str, list[int]]:
    """One ring each; for the run of whole vertebrae and for T6 to T10, two rings for each but the last."""
    stated = {name: [1, 1, 0] for name in whole}
    for run in (whole, [f"T{k}" for k in range(6, 11)]):
        if len(run) > 1 and set(run) <= set(whole):
            stated["+".join(run)] = [1, 2 * len(run) - 1, 0]
    return stated
