"""From distance fields to a label map: crop centre, order of the tissues, and a tidy raster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from anatomica.anatomy.catalogue import PAPER_GRID, Anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine, resample
from anatomica.anatomy.labels import LabelTable
from anatomica.data.phantoms.shapes import Array, Cloud
from anatomica.data.phantoms.warp import Warp

Fields = Mapping[str, Array]
SCOUT_GRID = 32


def crop_centre(
    warp: Warp, edge_mm: float, fields: Callable[[Cloud], Fields], names: tuple[str, ...]
) -> Array:
    """Middle of the bounding box of the named tissues, in the frame of the warp with its centre at 0.

    Measured on one coarse grid for all resolutions, so that it is the same patient at each: an inside point
    at depth d vouches for tissue d mm further on.
    """
    scout = warp.centred_at(np.zeros(3))
    # The shapes are asked to be as fine as on the paper's grid; only the points are coarse.
    cloud = Cloud.of(scout.grid(edge_mm, SCOUT_GRID), edge_mm / PAPER_GRID)
    parts = fields(cloud)
    depth = -np.minimum.reduce([cloud.to_grid(parts[name]) for name in names])
    inside = np.argwhere(depth > 0)
    position = ((inside + 0.5) / SCOUT_GRID - 0.5) * edge_mm
    margin = np.minimum(depth[depth > 0], edge_mm / SCOUT_GRID)[:, None]
    return ((position - margin).min(0) + (position + margin).max(0)) / 2


def raster(warp: Warp, anatomy: Anatomy, n: int, fields: Callable[[Cloud], Fields]) -> LabelMap:
    """The label map of an n^3 cube. Where fields overlap, the one that comes first has the voxel.

    On the paper's grid and finer ones a voxel has the label of its centre. A coarser grid is by definition
    the paper's grid resampled, so the same patient agrees at all resolutions, thin vessels too; the paper's
    voxels are looked at near surfaces only, elsewhere they all have the label of the coarse voxel.
    """
    table, voxel_mm = anatomy.table, anatomy.edge_mm / n
    grid = warp.grid(anatomy.edge_mm, n)
    cloud = Cloud.of(grid, voxel_mm)
    parts = fields(cloud)
    array = cloud.to_grid(_labels(cloud, parts, table))
    affine = cube_affine(anatomy.edge_mm, n)
    factor = PAPER_GRID // n
    if factor < 2 or PAPER_GRID % n:
        return LabelMap(array, affine, table)
    nearest = cloud.to_grid(np.minimum.reduce([np.abs(field) for field in parts.values()]))
    at = np.nonzero(nearest < voxel_mm)
    within = Cloud.of_blocks(_subpoints(grid, at, factor), voxel_mm)
    fine = np.repeat(np.repeat(np.repeat(array, factor, 0), factor, 1), factor, 2)
    blocks = fine.reshape(n, factor, n, factor, n, factor).transpose(0, 2, 4, 1, 3, 5)
    blocks[at] = _labels(within, fields(within), table).reshape(-1, factor, factor, factor)
    paper = LabelMap(fine, cube_affine(anatomy.edge_mm, PAPER_GRID), table)
    return resample(paper, (n, n, n), affine)


def _labels(cloud: Cloud, fields: Fields, table: LabelTable) -> Array:
    labels = np.zeros(cloud.points.shape[:2], dtype=np.uint8)
    for name, field in fields.items():
        labels[(field < 0) & (labels == 0)] = table.id_of(name)
    return labels


def _subpoints(grid: Array, at: tuple[Array, ...], factor: int) -> Array:
    """Centres of the factor^3 parts of voxels, (voxels, factor^3, 3); within a voxel the warp is linear."""
    line = (np.arange(factor, dtype=np.float32) + 0.5) / factor - 0.5
    offsets = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1).reshape(-1, 3)
    points = np.repeat(grid[at][:, None], len(offsets), axis=1)
    for axis in range(3):
        before, after = list(at), list(at)
        before[axis] = np.maximum(at[axis] - 1, 0)
        after[axis] = np.minimum(at[axis] + 1, grid.shape[axis] - 1)
        step = (grid[tuple(after)] - grid[tuple(before)]) / (after[axis] - before[axis])[:, None]
        points += offsets[:, axis, None] * step[:, None]
    return points.astype(np.float32)


def in_cube(
    warp: Warp, points: Mapping[str, Array], curves: Mapping[str, Array]
) -> tuple[dict[str, list[float]], dict[str, list[list[float]]]]:
    """Model points and curves in the cube's mm, by name; all of them in one inversion of the warp."""
    stack = np.concatenate([np.stack(list(points.values())), *curves.values()])
    moved = np.round(warp.to_cube(stack), 3).tolist()
    landmarks = dict(zip(points, moved, strict=False))
    lines, start = {}, len(points)
    for name, curve in curves.items():
        lines[name] = moved[start : start + len(curve)]
        start += len(curve)
    return landmarks, lines


def draw_pathology(rng: np.random.Generator, rates: dict[str, float], asked: str | None) -> str | None:
    """The pathology asked for, or one drawn at its rate; always one draw, so asking changes nothing else."""
    share = rng.random()
    if asked is not None:
        return None if asked == "none" else asked
    for name, rate in rates.items():
        if share < rate:
            return name
        share -= rate
    return None
