"""A phantom's shapes before they become voxels: which tissue is at any point of the cube, in RAS mm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import ndimage

from anatomica.anatomy.catalogue import PAPER_GRID, Anatomy
from anatomica.data.phantoms.shapes import Cloud
from anatomica.data.phantoms.warp import Warp

Array = np.ndarray
LATTICE = 112
"""Points along the cube for volumes: of 100 mL they are off by about 0.1 %."""
BLOCK = 64
"""Points that are evaluated together; neighbours in an array should be neighbours in space."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The distance fields of a phantom, in the order in which tissues claim points, and its deformation."""

    about: Anatomy
    warp: Warp
    fields: Callable[[Cloud], Mapping[str, Array]]

    @cached_property
    def shift(self) -> Callable[[Array], Array]:
        return shift_of(self.warp, self.about.edge_mm)

    def model(self, points_mm: Array) -> Array:
        """Points (m, 3) of the cube in the model's frame, before the deformation."""
        return (points_mm + self.warp.centre_mm) @ self.warp.rotation + self.shift(points_mm)

    def cube(self, points: Array) -> Array:
        """Points (m, 3) of the model in the cube: the inverse, by fixed-point iteration."""
        found = points @ self.warp.rotation.T - self.warp.centre_mm
        for _ in range(12):
            found = (points - self.shift(found)) @ self.warp.rotation.T - self.warp.centre_mm
        return found

    def parts(self, points_mm: Array) -> dict[str, Array]:
        """Every tissue's distance at points (..., 3) of the cube."""
        flat = self.model(points_mm.reshape(-1, 3))
        pad = -len(flat) % BLOCK
        blocks = np.concatenate([flat, np.repeat(flat[-1:], pad, axis=0)]).reshape(-1, BLOCK, 3)
        cloud = Cloud.of_blocks(blocks.astype(np.float32), self.about.edge_mm / PAPER_GRID)
        shape = points_mm.shape[:-1]
        return {name: x.ravel()[: len(flat)].reshape(shape) for name, x in self.fields(cloud).items()}

    def depth(self, name: str, points_mm: Array) -> Array:
        """Distance to what is labelled as a tissue at points (..., 3) of the cube."""
        return labelled(self.parts(points_mm), name)

    def volumes_ml(self) -> dict[str, float]:
        """Volumes by counting points of a lattice of its own, which is not that of the voxels."""
        cloud = Cloud.of(self.warp.grid(self.about.edge_mm, LATTICE), self.about.edge_mm / PAPER_GRID)
        parts = self.fields(cloud)
        cell = (self.about.edge_mm / LATTICE) ** 3 / 1000
        return {name: float((labelled(parts, name) < 0).sum() * cell) for name in parts}


def shift_of(warp: Warp, edge_mm: float) -> Callable[[Array], Array]:
    """The deformation without its turn at points (m, 3) of the cube, read from a grid of it: it bends over
    10 mm and more, so interpolation between the paper's voxels is off by a few thousandths of a mm."""
    step = edge_mm / PAPER_GRID
    line = (np.arange(PAPER_GRID) + 0.5) * step - edge_mm / 2
    grid = warp.grid(edge_mm, PAPER_GRID)
    straight = [(line + warp.centre_mm[i])[:, None] * warp.rotation[i] for i in range(3)]
    moved = grid - (straight[0][:, None, None] + straight[1][:, None] + straight[2])
    columns = [np.ascontiguousarray(moved[..., i]) for i in range(3)]

    def shift(points_mm: Array) -> Array:
        at = (points_mm.T + edge_mm / 2) / step - 0.5
        return np.stack([ndimage.map_coordinates(x, at, order=1, mode="nearest") for x in columns], axis=-1)

    return shift


def labelled(parts: Mapping[str, Array], name: str) -> Array:
    """Distance to what is labelled as a tissue: its field, where no tissue before it claims the point."""
    names = list(parts)
    before = [parts[x] for x in names[: names.index(name)]]
    return np.maximum(parts[name], -np.minimum.reduce(before)) if before else parts[name]


@dataclass(frozen=True)
class Cut:
    """A planar section: its area, centroid, and the diameters of the ellipse with its area and elongation."""

    area_mm2: float
    centre_mm: Array
    most_mm: float
    least_mm: float

    @property
    def diameter_mm(self) -> float:
        return float(np.sqrt(4 / np.pi * self.area_mm2))


def cut(
    depth: Callable[[Array], Array], centre_mm: Array, normal: ArrayLike, reach_mm: float, step_mm: float
) -> Cut | None:
    """The piece around a point of a plane's section through what has a negative depth."""
    n = unit(normal)
    u = unit(np.cross(n, np.eye(3)[int(np.abs(n).argmin())]))
    v = np.cross(n, u)
    line = np.arange(-reach_mm, reach_mm + step_mm, step_mm)
    a, b = np.meshgrid(line, line, indexing="ij")
    points = centre_mm + a[..., None] * u + b[..., None] * v
    far = depth(points)
    labels, count = ndimage.label(far < 0)  # type: ignore[misc]
    if not count:
        return None
    inside = np.argwhere(far < 0)
    middle = inside[np.square(inside - (len(line) - 1) / 2).sum(1).argmin()]
    mine = labels == labels[tuple(middle)]
    # A cell at the rim counts by how much of it lies inside.
    around = ndimage.binary_dilation(mine)
    weight = np.where(around, np.clip(0.5 - far / step_mm, 0, 1), 0.0)
    return moments(a, b, weight, step_mm**2, centre_mm, u, v)


def moments(a: Array, b: Array, weight: Array, cell_mm2: float, origin_mm: Array, u: Array, v: Array) -> Cut:
    """A section by its cells' coordinates in the plane and their weights."""
    mass = weight.sum()
    x, y = (weight * a).sum() / mass, (weight * b).sum() / mass
    xx, yy, xy = ((weight * p).sum() / mass for p in ((a - x) ** 2, (b - y) ** 2, (a - x) * (b - y)))
    spread = np.hypot((xx - yy) / 2, xy)
    ratio = np.sqrt(((xx + yy) / 2 + spread) / ((xx + yy) / 2 - spread))
    area = float(mass * cell_mm2)
    wide = np.sqrt(4 / np.pi * area)
    return Cut(area, origin_mm + x * u + y * v, float(wide * np.sqrt(ratio)), float(wide / np.sqrt(ratio)))


class Line:
    """A smooth curve of the truth (m, 3) in the cube's RAS mm, with the distance along it."""

    def __init__(self, points_mm: ArrayLike) -> None:
        rough = np.asarray(points_mm, dtype=float)
        from scipy.interpolate import CubicSpline

        knots = _along(rough)
        fine = np.linspace(0, knots[-1], 16 * len(rough))
        self.points_mm = CubicSpline(knots, rough)(fine)
        self.along_mm = _along(self.points_mm)

    @property
    def length_mm(self) -> float:
        return float(self.along_mm[-1])

    def at(self, mm: float) -> Array:
        return np.array([np.interp(mm, self.along_mm, x) for x in self.points_mm.T])

    def tangent(self, mm: float, over_mm: float = 2.0) -> Array:
        low, high = max(mm - over_mm / 2, 0.0), min(mm + over_mm / 2, self.length_mm)
        return unit(self.at(high) - self.at(low))

    def nearest(self, point_mm: Array) -> float:
        return float(self.along_mm[np.square(self.points_mm - point_mm).sum(1).argmin()])


def _along(points: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def unit(v: ArrayLike) -> Array:
    v = np.asarray(v, dtype=float)
    return v / np.linalg.norm(v)


def degrees(a: Array, b: Array) -> float:
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))
