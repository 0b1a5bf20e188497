"""Implicit shapes in mm: negative inside, positive outside, close to the true distance near the surface.

A `Shape` is a distance function with the box outside of which it need not be asked. A `Cloud` holds the
sample points of a cube in blocks of 16 mm with each block's own bounding box, so that a shape is evaluated
only on the blocks it can reach; that is where the speed comes from. Everything is a function of position in
mm, never of the grid, so a patient is the same at any resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import CubicSpline

Array = np.ndarray

FAR_MM = 40.0
"""Value of a field where no shape has been evaluated."""
MARGIN_MM = 12.0
"""How far beyond its surface a shape is evaluated; offsets, gaps and blends must stay below it."""
BLOCK_COUNT = 16
"""Blocks along an edge of the cube."""


@dataclass(frozen=True)
class Shape:
    """A signed distance (mm) of points (..., 3), and the box (mm) that holds the shape's surface."""

    distance: Callable[[Array], Array]
    low: Array
    high: Array


@dataclass(frozen=True)
class Cloud:
    """The cube's sample points in blocks: points (blocks, k, 3) and each block's bounding box."""

    points: Array
    low: Array
    high: Array
    voxel_mm: float

    @classmethod
    def of(cls, grid: Array, voxel_mm: float) -> Cloud:
        """From an (n, n, n, 3) array of points; n is a multiple of BLOCK_COUNT."""
        n = grid.shape[0]
        if n % BLOCK_COUNT:
            raise ValueError(f"the grid's edge must be a multiple of {BLOCK_COUNT}, not {n}")
        b = n // BLOCK_COUNT
        blocks = grid.reshape(BLOCK_COUNT, b, BLOCK_COUNT, b, BLOCK_COUNT, b, 3)
        blocks = np.ascontiguousarray(blocks.transpose(0, 2, 4, 1, 3, 5, 6).reshape(-1, b**3, 3))
        return cls.of_blocks(blocks, voxel_mm)

    @classmethod
    def of_blocks(cls, blocks: Array, voxel_mm: float) -> Cloud:
        """From points that are already in blocks (blocks, k, 3)."""
        return cls(blocks, blocks.min(1), blocks.max(1), voxel_mm)

    def empty(self) -> Array:
        """A field that is far from everything everywhere."""
        return np.full(self.points.shape[:2], FAR_MM, dtype=np.float32)

    def near(self, shape: Shape) -> Array:
        """Indices of the blocks that the shape, grown by MARGIN_MM, can reach."""
        reach = (self.high >= shape.low - MARGIN_MM) & (self.low <= shape.high + MARGIN_MM)
        return np.flatnonzero(reach.all(1))

    def to_grid(self, field: Array) -> Array:
        """A field (blocks, k) as an (n, n, n) array."""
        c, b = BLOCK_COUNT, round(field.shape[1] ** (1 / 3))
        return np.ascontiguousarray(field.reshape(c, c, c, b, b, b).transpose(0, 3, 1, 4, 2, 5)).reshape(
            (b * c,) * 3
        )


def union(cloud: Cloud, shapes: Iterable[Shape], blend_mm: float = 0.0, onto: Array | None = None) -> Array:
    """The field of all shapes together, joined with fillets of about `blend_mm`; `onto` is extended."""
    field = cloud.empty() if onto is None else onto.copy()
    for shape in shapes:
        at = cloud.near(shape)
        if len(at):
            field[at] = smooth_union(field[at], shape.distance(cloud.points[at]), blend_mm)
    return field


def smooth_union(a: Array, b: Array, blend_mm: float) -> Array:
    """Minimum of two distances with a rounded seam (polynomial smooth minimum)."""
    if blend_mm <= 0:
        return np.minimum(a, b)
    h = np.clip(0.5 + 0.5 * (b - a) / np.float32(blend_mm), 0, 1)
    return b + (a - b) * h - np.float32(blend_mm) * h * (1 - h)


def smooth_intersection(a: Array, b: Array, blend_mm: float) -> Array:
    return -smooth_union(-a, -b, blend_mm)


def smooth_difference(a: Array, b: Array, blend_mm: float) -> Array:
    """What of a lies outside b."""
    return -smooth_union(-a, b, blend_mm)


def ellipsoid(centre: ArrayLike, semi_mm: ArrayLike, axes: Array | None = None) -> Shape:
    """Semi-axes `semi_mm` along the rows of `axes` (the coordinate axes if none are given)."""
    c = np.asarray(centre, dtype=np.float32)
    r = np.asarray(semi_mm, dtype=np.float32)
    turn = None if axes is None else np.asarray(axes, dtype=np.float32)
    reach = r if turn is None else np.sqrt(((turn * r[:, None]) ** 2).sum(0))

    def distance(points: Array) -> Array:
        local = points - c if turn is None else (points - c) @ turn.T
        scaled = local / r
        level = np.sqrt(np.einsum("...i,...i", scaled, scaled))
        scaled /= r
        slope = np.sqrt(np.einsum("...i,...i", scaled, scaled))
        return level * (level - 1) / np.maximum(slope, 1e-6)

    return Shape(distance, c - reach, c + reach)


def half_space(points: Array, point: ArrayLike, normal: ArrayLike) -> Array:
    """Distance to the half-space behind a plane: negative on the side the normal points away from."""
    unit = np.asarray(normal, dtype=np.float64)
    unit = (unit / np.linalg.norm(unit)).astype(np.float32)
    return points @ unit - np.float32(np.dot(unit, np.asarray(point, dtype=np.float32)))


def clipped(shape: Shape, point: Array, normal: Array) -> Shape:
    """The part of a shape behind a plane (the side its normal points away from)."""
    return Shape(
        lambda points: np.maximum(shape.distance(points), half_space(points, point, normal)),
        shape.low,
        shape.high,
    )


def plate(
    points: Array, point: Sequence[float] | Array, normal: Sequence[float] | Array, thick_mm: float
) -> Array:
    """Distance to an infinite plate of the given thickness around a plane."""
    return np.abs(half_space(points, point, normal)) - np.float32(thick_mm / 2)


def tube(
    curve: Array,
    radii_mm: ArrayLike,
    minor: ArrayLike | None = None,
    aspect: ArrayLike = 1.0,
    chunk: int = 6,
) -> tuple[Shape, ...]:
    """A tube swept along a sampled curve (m, 3) with rounded ends, as shapes to be joined without a blend.

    `radii_mm` may vary along the curve. With `minor`, a direction (3,) or (m, 3), the section is an ellipse
    whose half-width along it is `aspect` times the radius. It is cut into chunks to keep the boxes small.
    """
    points = np.asarray(curve, dtype=np.float32)
    m = len(points)
    radius = np.broadcast_to(np.asarray(radii_mm, dtype=np.float32), (m,))
    squeeze = np.broadcast_to(np.asarray(aspect, dtype=np.float32), (m,))
    flat = None if minor is None else np.broadcast_to(np.asarray(minor, dtype=np.float32), (m, 3))
    shapes = []
    for start in range(0, m - 1, chunk):
        part = slice(start, min(start + chunk, m - 1) + 1)
        reach = radius[part].max() * max(1.0, float(squeeze[part].max()))
        piece = _swept(points[part], radius[part], None if flat is None else flat[part], squeeze[part])
        shapes.append(Shape(piece, points[part].min(0) - reach, points[part].max(0) + reach))
    return tuple(shapes)


def _swept(curve: Array, radius: Array, minor: Array | None, aspect: Array) -> Callable[[Array], Array]:
    begin, step = curve[:-1], np.diff(curve, axis=0)
    length2 = np.maximum((step**2).sum(1), 1e-6)
    r0, dr = radius[:-1], np.diff(radius)

    def distance(points: Array) -> Array:
        flat_points = points.reshape(-1, 3)
        best = np.full(len(flat_points), FAR_MM, dtype=np.float32)
        for s in range(len(step)):
            away = flat_points - begin[s]
            t = np.clip(away @ (step[s] / length2[s]), 0, 1)
            away -= t[:, None] * step[s]
            if minor is None:
                d = np.sqrt(np.einsum("ij,ij->i", away, away))
                d -= r0[s] + dr[s] * t
            else:
                # Stretch the offset along the minor axis, then undo the stretch of the distance.
                k = aspect[s] + (aspect[s + 1] - aspect[s]) * t
                u = minor[s] / np.linalg.norm(minor[s])
                along = away @ u
                across2 = np.maximum(np.einsum("ij,ij->i", away, away) - along**2, 0)
                level = np.sqrt(across2 + (along / k) ** 2)
                slope = np.sqrt(across2 + (along / k**2) ** 2)
                d = (level - (r0[s] + dr[s] * t)) * level / np.maximum(slope, 1e-6)
            np.minimum(best, d, out=best)
        return best.reshape(points.shape[:-1])

    return distance


def spline(control: ArrayLike, count: int) -> Array:
    """`count` points at equal arc length on the smooth curve through the control points."""
    control = np.asarray(control, dtype=np.float64)
    knots = np.concatenate([[0], np.cumsum(np.sqrt(np.linalg.norm(np.diff(control, axis=0), axis=1)))])
    curve = CubicSpline(knots, control, bc_type="natural")
    fine = curve(np.linspace(0, knots[-1], 20 * count))
    along = arc_length(fine)
    even = np.linspace(0, along[-1], count)
    return np.stack([np.interp(even, along, fine[:, i]) for i in range(fine.shape[1])], axis=1)


def arc_length(curve: Array) -> Array:
    """Distance along a sampled curve from its first point."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])


def tangents(curve: Array) -> Array:
    """Unit tangents of a sampled curve."""
    slope = np.gradient(np.asarray(curve, dtype=np.float64), axis=0)
    return slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-9)


def rotation(degrees_xyz: Sequence[float]) -> Array:
    """Rotation matrix: about x, then y, then z."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(np.radians(degrees_xyz)), np.sin(np.radians(degrees_xyz))
    about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    about_y = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    about_z = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x
