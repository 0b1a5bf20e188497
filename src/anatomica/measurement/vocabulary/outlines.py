"""Outlines of a coronary artery's lumen and outer border, frame by frame, carried on across side branches.

Both are radii over frame and angle. Where a side branch leaves, the radii are not the main vessel's; there
they follow from the frames and angles around by the smoothest surface (Laplace's equation).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage, sparse
from scipy.sparse.linalg import spsolve

Array = np.ndarray
ANGLES = 96
FAR = 1.7
"""Blood farther from the main lumen's middle than this many of the frame's median radii is a branch's."""
FEWEST = 20
"""Voxels of such blood in one piece; fewer are a bulge of the lumen."""
FILLET = 0.45
"""Of a branch's radius: as far around it the main outline already bends into it."""


@dataclass(frozen=True, eq=False)
class Outline:
    """Radii (f, a) in voxels around centres (f, 2), and where they were carried on across a branch."""

    centres: Float[Array, "f 2"]
    radii: Float[Array, "f a"]
    gap: Bool[Array, "f a"]

    def centroids(self) -> Float[Array, "f 2"]:
        """Centroids of the star-shaped frames: of triangles from the centre, two thirds of the way out."""
        edge = _ways() * self.radii[..., None]
        share = self.radii[..., None] ** 2
        return self.centres + (share * edge).sum(1) / np.maximum(share.sum(1), 1e-9) * 2 / 3

    def around(self, centres: Float[Array, "f 2"]) -> Outline:
        """The same outline, seen from other centres."""
        edge = self.centres[:, None] + _ways() * self.radii[..., None] - centres[:, None]
        radii, gap = np.empty_like(self.radii), np.empty_like(self.gap)
        turn = _turns()
        for f in range(len(edge)):
            angle = np.arctan2(edge[f, :, 1], edge[f, :, 0]) % (2 * np.pi)
            order = np.argsort(angle)
            away = np.hypot(edge[f, :, 0], edge[f, :, 1])
            radii[f] = np.interp(turn, angle[order], away[order], period=2 * np.pi)
            inside = self.gap[f][order].astype(float)
            gap[f] = np.interp(turn, angle[order], inside, period=2 * np.pi) > 0.01
        return Outline(centres, radii, gap)

    def bridged(self) -> Outline:
        """With the radii of the gap from the frames and angles around it."""
        return Outline(self.centres, smooth_across(self.radii, self.gap), self.gap)


@dataclass(frozen=True, eq=False)
class Side:
    """A side branch: a half-line in voxels (x, y, frame) from the main lumen outwards, and its two radii."""

    start: Float[Array, "3"]
    way: Float[Array, "3"]
    inner: float
    outer: float

    def near(self, points: Float[Array, "*p 3"], within: float) -> Bool[Array, "*p"]:
        """Whether points lie within a distance of the branch's axis."""
        away = points - self.start
        along = np.maximum(away @ self.way, 0.0)
        return np.linalg.norm(away - along[..., None] * self.way, axis=-1) < within


def outlines(
    lumen: Bool[Array, "n n f"], vessel: Bool[Array, "n n f"], middles: Float[Array, "f 2"]
) -> tuple[Outline, Outline]:
    """The main lumen's outline and the vessel's, from points of the main lumen in every frame, in voxels."""
    away = np.arange(0.25, 0.6 * len(lumen), 0.5)
    points = middles[:, None, None] + away[:, None] * _ways()[:, None]
    index = np.clip(np.round(points).astype(np.intp), 0, len(lumen) - 1)
    frame = np.arange(len(middles))[:, None, None]
    inner, outer = (_first_exit(x[index[..., 0], index[..., 1], frame], away) for x in (lumen, vessel))
    found = branches(lumen, vessel, middles, np.median(inner, axis=1))
    gaps = []
    for radii, wide in ((inner, "inner"), (outer, "outer")):
        here = np.minimum(radii, np.median(radii, axis=1, keepdims=True))
        rim = np.concatenate(
            [middles[:, None] + here[..., None] * _ways(), np.broadcast_to(frame, (*here.shape, 1))], axis=-1
        )
        gap = np.zeros(here.shape, bool)
        for x in found:
            gap |= x.near(rim, getattr(x, wide) + FILLET * x.inner)
        gaps.append(gap)
    whole = Outline(middles, outer, gaps[1]).bridged()
    # Around its own middle an outline is rounder, and easier to carry on.
    whole = whole.around(ndimage.gaussian_filter1d(whole.centroids(), 3.0, axis=0, mode="nearest")).bridged()
    return Outline(middles, inner, gaps[0]).bridged(), whole


def branches(
    lumen: Bool[Array, "n n f"],
    vessel: Bool[Array, "n n f"],
    middles: Float[Array, "f 2"],
    radii: Float[Array, " f"],
) -> list[Side]:
    """Side branches: pieces of blood that lie far from the main lumen, as straight tubes."""
    line = np.arange(len(lumen))
    off = np.hypot(line[:, None, None] - middles[:, 0], line[:, None] - middles[:, 1])
    labels, count = ndimage.label(lumen & (off > FAR * radii))  # type: ignore[misc]
    found = []
    for k in range(1, count + 1):
        at = np.argwhere(labels == k)
        if len(at) < FEWEST:
            continue
        shell = (off[tuple(at.T)] / 2).astype(int)
        shells = [at[shell == i].mean(0) for i in np.unique(shell)]
        if len(shells) < 2:
            continue
        middle = np.mean(shells, axis=0)
        way = np.linalg.svd(np.array(shells) - middle)[2][0]
        way = way if (shells[-1] - shells[0]) @ way > 0 else -way
        across = at - middle - ((at - middle) @ way)[:, None] * way
        inner = float(np.sqrt(2 * np.square(across).sum(1).mean()))
        frame = int(np.clip(round(middle[2]), 0, len(middles) - 1))
        # Back to where the axis is nearest to the main lumen's middle.
        flat = middle[:2] - middles[frame]
        back = float(flat @ way[:2]) / max(float(way[:2] @ way[:2]), 1e-6)
        start = middle - back * way
        found.append(Side(start, way, inner, _outer_radius(vessel, middle, way, inner)))
    return found


def _outer_radius(vessel: Bool[Array, "n n f"], point: Array, way: Array, inner: float) -> float:
    """How far a vessel reaches across a branch's axis, the median over directions."""
    u = np.cross(way, np.eye(3)[int(np.abs(way).argmin())])
    u /= np.linalg.norm(u)
    v = np.cross(way, u)
    turn = np.arange(12) * np.pi / 6
    away = np.arange(0.5 * inner, 4 * inner, 0.25)
    spokes = np.cos(turn)[:, None] * u + np.sin(turn)[:, None] * v
    at = point + away[:, None] * spokes[:, None]
    inside = ndimage.map_coordinates(vessel.astype(np.uint8), at.reshape(-1, 3).T, order=0) > 0
    return float(np.median(_first_exit(inside.reshape(1, len(turn), len(away)), away)))


def _turns() -> Float[Array, " a"]:
    return np.arange(ANGLES) * 2 * np.pi / ANGLES


def _ways() -> Float[Array, "a 2"]:
    return np.stack([np.cos(_turns()), np.sin(_turns())], -1)


def _first_exit(inside: Bool[Array, "f a r"], away: Array) -> Float[Array, "f a"]:
    """Where each ray first leaves a region, in voxels."""
    outside = ~inside
    outside[..., -1] = True
    return away[outside.argmax(-1)]


def smooth_across(values: Float[Array, "f a"], gap: Bool[Array, "f a"]) -> Float[Array, "f a"]:
    """Values of a sheet that is closed over the angle; in the gap each is the mean of its neighbours."""
    if not gap.any() or gap.all():
        return values
    number = np.full(gap.shape, -1)
    number[gap] = np.arange(gap.sum())
    frames, angles = np.nonzero(gap)
    rows, columns, weights = [], [], []
    right, own = np.zeros(len(frames)), np.zeros(len(frames))
    for df, da in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        f, a = frames + df, (angles + da) % ANGLES
        there = (f >= 0) & (f < len(gap))
        own += there
        f = np.clip(f, 0, len(gap) - 1)
        unknown = there & gap[f, a]
        rows.append(np.flatnonzero(unknown))
        columns.append(number[f, a][unknown])
        weights.append(-np.ones(int(unknown.sum())))
        right += np.where(there & ~gap[f, a], values[f, a], 0.0)
    every = np.arange(len(frames))
    matrix = sparse.csc_matrix(
        (
            np.concatenate([*weights, own]),
            (np.concatenate([*rows, every]), np.concatenate([*columns, every])),
        )
    )
    found = values.copy()
    found[gap] = spsolve(matrix, right)
    return found
