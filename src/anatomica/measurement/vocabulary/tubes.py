"""Tubes: a vessel's centreline with arc length, out to where the vessel ends, and sections along it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy import ndimage

from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.centerline import centerline
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.shapes import Section, section, unit
from anatomica.measurement.vocabulary.subject import Subject

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Tube:
    """A centreline in the cube's mm, evenly spaced, with the distance along it and the local radius."""

    tissues: tuple[str, ...]
    points_mm: Float[Array, "m 3"]
    along_mm: Float[Array, " m"]
    radii_mm: Float[Array, " m"]

    @property
    def length_mm(self) -> float:
        return float(self.along_mm[-1])

    @property
    def inner(self) -> tuple[float, float]:
        """Distances along the tube between which it surely has sections."""
        return 0.06 * self.length_mm, 0.94 * self.length_mm

    def at(self, along_mm: float) -> Array:
        return np.array([np.interp(along_mm, self.along_mm, x) for x in self.points_mm.T])

    def radius(self, along_mm: float) -> float:
        return float(np.interp(along_mm, self.along_mm, self.radii_mm))

    def tangent(self, along_mm: float, over_mm: float | None = None) -> Array:
        """Direction of the flow, as the chord over about a radius."""
        half = (self.radius(along_mm) if over_mm is None else over_mm) / 2
        low, high = max(along_mm - half, 0.0), min(along_mm + half, self.length_mm)
        return unit(self.at(high) - self.at(low))

    def nearest(self, point_mm: Array) -> float:
        """Where along the tube its centreline is nearest to a point."""
        fine = np.linspace(0, self.length_mm, 8 * len(self.along_mm))
        line = np.stack([np.interp(fine, self.along_mm, x) for x in self.points_mm.T], axis=1)
        return float(fine[np.square(line - point_mm).sum(1).argmin()])

    def section(self, s: Subject, along_mm: float) -> Section:
        """The section across the tube at a distance along it."""
        if not 0 <= along_mm <= self.length_mm:
            raise Missing(f"{' + '.join(self.tissues)} ends before that level")
        radius = self.radius(along_mm)
        return section(s, self.tissues, self.at(along_mm), self.tangent(along_mm), radius)

    def areas(self, s: Subject, along_mm: Float[Array, " k"]) -> Float[Array, " k"]:
        """Areas in mm^2 of sections at several distances (0 where there is none)."""

        def one(x: float) -> float:
            try:
                cut = self.section(s, x)
            except Missing:
                return 0.0
            return float(s.sample(self.tissues, cut.piece.points_mm).sum() * cut.cell_mm2)

        return np.array([one(float(x)) for x in along_mm])


def tube(
    s: Subject,
    tissues: tuple[str, ...],
    start: Array,
    ends_mm: tuple[Array, Array | None] | None = None,
    mask: Bool[Array, "n n n"] | None = None,
) -> Tube:
    """The tube of some tissues. `start` is the direction of the end that comes first; `ends_mm` are points
    between which it runs instead (the second None: as far as it goes)."""
    mask = s.need(*tissues) if mask is None else mask
    ends = None
    if ends_mm is not None:
        first, last = ends_mm
        ends = (first / s.voxel_mm - 0.5, None if last is None else last / s.voxel_mm - 0.5)
    try:
        line = centerline(mask, start, ends=ends)
    except AnatomicaError as error:
        raise Missing(str(error)) from None
    points = _to_the_ends(mask, line.points, line.radii, None if ends is None else ends[0])
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    nearest = np.square(points[:, None, :] - line.points[None]).sum(-1).argmin(1)
    h = s.voxel_mm
    return Tube(tissues, (points + 0.5) * h, along * h, np.maximum(line.radii[nearest], 0.5) * h)


def _face(mask: Bool[Array, "n n n"], exit: Array, radius: float) -> Array | None:
    """The middle of the flat face in which a vessel ends, across an axis of the volume; None: it has none.

    `exit` is where the centreline, carried on straight, leaves the vessel; all in voxel indices.
    """
    for axis in range(3):
        others = tuple(a for a in range(3) if a != axis)
        there = np.flatnonzero(mask.any(others))
        for last, out in ((int(there[0]), -0.5), (int(there[-1]), 0.5)):
            if abs(exit[axis] - last) > 1.5:
                continue
            slab = mask.take(last, axis)
            labels, _ = ndimage.label(slab)  # type: ignore[misc]
            at = np.argwhere(slab)
            near = at[np.square(at - np.delete(exit, axis)).sum(1).argmin()]
            face = labels == labels[tuple(near)]
            # A rounded end shrinks towards its last voxels, a cut one does not.
            before = int(np.clip(last - 4 * out, there[0], there[-1]))
            inside = mask.take(before, axis) & (ndimage.binary_dilation(face, iterations=2) > 0)
            if face.sum() > max(0.6 * np.pi * radius**2, 0.85 * inside.sum()):
                return np.insert(np.argwhere(face).mean(0), axis, last + out)
    return None


def _to_the_ends(
    mask: Bool[Array, "n n n"], points: Float[Array, "m 3"], radii: Array, anchor: Array | None
) -> Float[Array, "k 3"]:
    """The centreline out to both ends of the vessel, in voxel indices, evenly spaced.

    A centreline bends into the rim of a cut vessel. So its last half radius is dropped, and it goes straight
    on from there until it leaves the mask, or bends to the middle of the face in which the scan's border cuts
    the vessel, or to the `anchor` if the first end is known.
    """
    cut = min(round(float(np.median(radii))), len(points) // 6)
    span = max(min(3 * cut, len(points) // 3), 2)
    inner = points[cut : len(points) - cut]

    def beyond(end: Array, inward: Array, radius: float) -> Array:
        way, found = unit(end - inward), []
        for step in range(1, round(8 * radius) + 4):
            at = end + 0.5 * step * way
            index = np.round(at).astype(int)
            if (index < 0).any() or (index >= mask.shape).any() or not mask[tuple(index)]:
                break
            found.append(at)
        face = _face(mask, found[-1] if found else end, radius)
        if face is None:
            return np.array(found).reshape(-1, 3)
        # A parabola that leaves the centreline along its way and ends in the face's middle.
        share = np.linspace(0, 1, max(len(found), 4) + 1)[1:, None]
        straight = end + share * np.linalg.norm(face - end) * way
        return straight + share**2 * (face - straight[-1])

    after = beyond(inner[-1], inner[-1 - span], float(radii[-1]))
    if anchor is None:
        before = beyond(inner[0], inner[span], float(radii[0]))[::-1]
    else:
        inner = inner[int((np.linalg.norm(inner - anchor, axis=1) > 1.2 * float(radii[0])).argmax()) :]
        before = anchor[None]
    joined = np.concatenate([before, inner, after])
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(joined, axis=0), axis=1))])
    even = np.linspace(0, along[-1], max(round(along[-1] / 0.5) + 1, 4))
    return np.stack([np.interp(even, along, x) for x in joined.T], axis=1)
