"""From distance fields to a label map: crop centre, order of the tissues, and a tidy raster."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from anatomica.data.phantoms.shapes import Array, Cloud
from anatomica.data.phantoms.warp import Warp
from anatomica.labels import LabelTable

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
    cloud = Cloud.of(scout.grid(edge_mm, SCOUT_GRID))
    parts = fields(cloud)
    depth = -np.minimum.reduce([cloud.to_grid(parts[name]) for name in names])
    inside = np.argwhere(depth > 0)
    position = ((inside + 0.5) / SCOUT_GRID - 0.5) * edge_mm
    margin = np.minimum(depth[depth > 0], edge_mm / SCOUT_GRID)[:, None]
    return ((position - margin).min(0) + (position + margin).max(0)) / 2


def paint(cloud: Cloud, fields: Fields, table: LabelTable) -> Array:
    """The label array: where fields overlap, the one that comes first has the voxel."""
    array = np.zeros(cloud.points.shape[:2], dtype=np.uint8)
    for name, field in fields.items():
        array[(field < 0) & (array == 0)] = table.id_of(name)
    return cloud.to_grid(array)


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
