"""One vertebra as an implicit shape in its own frame: origin in the body's middle, x right, y front, z up.

Left and right are one formula in |x|; the patient's asymmetry comes from the deformation of space. Where two
vertebrae meet, a facet pad (a flat ellipsoid around the joint) is split by the joint's plane: the lower
vertebra owns one half, the upper the other, so the two touch over a disc of the pad's size and nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.data.phantoms.shapes import smooth_intersection, smooth_union

Array = np.ndarray
Point = tuple[float, float, float]
FAR_MM = 40.0
REACH_MM = 4.0
"""How far around a part its distance is known; beyond, it counts as far."""
ROOM_MM = 2.8
"""Around a joint's disc, kept free of the one bone for the other to end in."""
LOWER_ROOM_MM, UPPER_ROOM_MM = 18.0, 9.0
"""How far behind the plane that room reaches: on the lower bone, out to its back."""


@dataclass(frozen=True)
class Facet:
    """A facet joint in a vertebra's frame: centre, unit normal from the lower bone to the upper, radius of
    the disc on which they meet, half thickness of the pad; `side` is 1 for the lower bone, -1 for the upper.
    """

    centre_mm: Point
    normal: Point
    radius_mm: float
    half_thick_mm: float
    side: float

    def box(self) -> tuple[Point, Point]:
        (x, y, z), r = self.centre_mm, self.radius_mm + ROOM_MM
        deep = self.side * (LOWER_ROOM_MM if self.side > 0 else UPPER_ROOM_MM)
        ends = np.array([[x, y, z], np.array([x, y, z]) + deep * np.array(self.normal)])
        return _point(ends.min(0) - r), _point(ends.max(0) + r)

    def fields(self, x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
        """Distances to the pad, to this bone's half of it, and to the room kept free for the other bone: a
        short cylinder on the far side of the plane, wider than the pad by the gap.
        """
        dx, dy, dz = x - self.centre_mm[0], y - self.centre_mm[1], z - self.centre_mm[2]
        height = self.normal[0] * dx + self.normal[1] * dy + self.normal[2] * dz
        across2 = np.maximum(dx * dx + dy * dy + dz * dz - height * height, 0)
        a2, h2 = across2 / self.radius_mm**2, (height / self.half_thick_mm) ** 2
        level = np.sqrt(a2 + h2)
        slope = np.sqrt(a2 / self.radius_mm**2 + h2 / self.half_thick_mm**2)
        pad = level * (level - 1) / np.maximum(slope, 1e-3)
        beyond = self.side * height
        rim = np.sqrt(across2) - (self.radius_mm + ROOM_MM)
        deep = LOWER_ROOM_MM if self.side > 0 else UPPER_ROOM_MM
        room = smooth_intersection(rim, np.maximum(-beyond, beyond - deep), 1.5)
        return pad, np.maximum(pad, beyond), room


@dataclass(frozen=True)
class Bar:
    """A tapered bar with rounded ends from `start` to `end`; `flat` shrinks it along x, y, z."""

    start: Point
    end: Point
    start_radius_mm: float
    end_radius_mm: float
    flat: Point = (1.0, 1.0, 1.0)

    def box(self) -> tuple[Point, Point]:
        ends = np.array([self.start, self.end])
        reach = np.array([[self.start_radius_mm], [self.end_radius_mm]]) * np.array(self.flat)
        return _point((ends - reach).min(0)), _point((ends + reach).max(0))

    def distance(self, x: Array, y: Array, z: Array) -> Array:
        fx, fy, fz = self.flat
        ax, ay, az = self.start[0] / fx, self.start[1] / fy, self.start[2] / fz
        bx, by, bz = self.end[0] / fx - ax, self.end[1] / fy - ay, self.end[2] / fz - az
        px, py, pz = x / fx - ax, y / fy - ay, z / fz - az
        t = np.clip((px * bx + py * by + pz * bz) / max(bx * bx + by * by + bz * bz, 1e-6), 0, 1)
        px, py, pz = px - t * bx, py - t * by, pz - t * bz
        away = np.sqrt(px * px + py * py + pz * pz)
        radius = self.start_radius_mm + t * (self.end_radius_mm - self.start_radius_mm)
        return (away - radius) * min(self.flat)


@dataclass(frozen=True)
class Body:
    """Waisted cylinder with kidney-shaped endplates; `wedge` is the share of height lost at the front."""

    width_mm: float
    depth_mm: float
    height_mm: float
    wedge: float
    kidney: float
    """How deep the hind wall's dent is, as a share of the half depth."""

    def box(self) -> tuple[Point, Point]:
        w, d, h = self.width_mm / 2, self.depth_mm / 2, self.height_mm / 2
        return (-w, -d, -h), (w, d, h)

    def distance(self, x: Array, y: Array, z: Array) -> Array:
        u, v = x / (self.width_mm / 2), y / (self.depth_mm / 2)
        v = np.where(v < 0, v * (1 + self.kidney * np.exp(-4 * u * u)), v)
        ring = (u**2.4 + np.abs(v) ** 2.4) ** (1 / 2.4)
        front = 0.5 + 0.5 * np.clip(y / (self.depth_mm / 2), -1, 1)
        half = self.height_mm / 2 * (1 - self.wedge * front)
        tall = np.abs(z)
        level = np.minimum(tall / half, 1)
        side = (ring / (0.87 + 0.13 * level * level) - 1) * (0.45 * min(self.width_mm, self.depth_mm))
        # Endplates are hollow: discs bulge into them.
        end = tall - half + 0.055 * self.height_mm * np.maximum(1 - ring * ring, 0)
        return smooth_intersection(side, end, 2.0)


@dataclass(frozen=True)
class Lamina:
    """The roof of the canal: two plates from the pillars to the midline, lower edge further back."""

    side_mm: tuple[float, float]
    middle_mm: tuple[float, float]
    low_mm: float
    high_mm: float
    thick_mm: float
    lean: float

    def box(self) -> tuple[Point, Point]:
        half, back = self.thick_mm / 2, self.lean * (self.high_mm - self.low_mm)
        y = (self.side_mm[1], self.middle_mm[1])
        return (-half, min(y) - half - back, self.low_mm), (
            self.side_mm[0] + half,
            max(y) + half,
            self.high_mm,
        )

    def distance(self, x: Array, y: Array, z: Array) -> Array:
        (ax, ay), (bx, by) = self.side_mm, self.middle_mm
        px, py = x - ax, y + self.lean * (self.high_mm - z) - ay
        dx, dy = bx - ax, by - ay
        t = np.clip((px * dx + py * dy) / (dx * dx + dy * dy), 0, 1)
        px, py = px - t * dx, py - t * dy
        plate = np.sqrt(px * px + py * py) - self.thick_mm / 2
        slab = np.abs(z - (self.low_mm + self.high_mm) / 2) - (self.high_mm - self.low_mm) / 2
        return smooth_intersection(plate, slab, 2.0)


Part = Bar | Body | Lamina


@dataclass(frozen=True)
class Vertebra:
    """All parts of one vertebra, the canal that is kept free, and its joints."""

    parts: tuple[Part, ...]
    canal_mm: Point
    """Half width, half depth and y of the centre."""
    facets: tuple[Facet, ...]
    blend_mm: float = 3.0

    def box(self) -> tuple[Array, Array]:
        """A box that holds the vertebra, the same on both sides."""
        boxes = np.array([x.box() for x in (*self.parts, *self.facets)])
        low, high = boxes[:, 0].min(0), boxes[:, 1].max(0)
        wide = max(-low[0], high[0])
        return np.array([-wide, *low[1:]]), np.array([wide, *high[1:]])

    def distance(self, points_mm: Array) -> tuple[Array, Array]:
        """Distance to the bone, and to the nearest joint's pad, at points (m, 3); far is FAR_MM."""
        signed, y, z = (np.ascontiguousarray(points_mm[:, i]) for i in range(3))
        x = np.abs(signed)
        bone = np.full(len(x), FAR_MM, dtype=np.float32)
        joint = bone.copy()
        for part in self.parts:
            at = _near(part.box(), x, y, z)
            bone[at] = smooth_union(bone[at], part.distance(x[at], y[at], z[at]), self.blend_mm)
        for facet in self.facets:
            at = _near(facet.box(), signed, y, z)
            pad, half, room = facet.fields(signed[at], y[at], z[at])
            bone[at] = smooth_union(np.maximum(bone[at], -room), half, 1.0)
            joint[at] = np.minimum(joint[at], pad)
        half_width, half_depth, centre = self.canal_mm
        level = np.sqrt((x / half_width) ** 2 + ((y - centre) / half_depth) ** 2)
        canal = (level - 1) * min(half_width, half_depth)
        return smooth_intersection(bone, -canal, 1.0), joint


def _near(box: tuple[Point, Point], x: Array, y: Array, z: Array) -> Array:
    """Indices of the points within REACH_MM of a box."""
    low, high = box
    inside = (z > low[2] - REACH_MM) & (z < high[2] + REACH_MM)
    inside &= (y > low[1] - REACH_MM) & (y < high[1] + REACH_MM)
    inside &= (x > low[0] - REACH_MM) & (x < high[0] + REACH_MM)
    return np.flatnonzero(inside)


def _point(values: Array) -> Point:
    x, y, z = values.tolist()
    return x, y, z
