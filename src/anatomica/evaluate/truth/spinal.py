"""Named quantities of a spinal phantom: rays through its analytic bones, in the cube."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from anatomica.anatomy.catalogue import PAPER_GRID
from anatomica.data.phantoms import Truth
from anatomica.data.phantoms import spinal as phantoms
from anatomica.data.phantoms.column import Column, grow
from anatomica.data.phantoms.paint import draw_pathology
from anatomica.data.phantoms.warp import Warp, random_warp
from anatomica.evaluate.truth.scene import shift_of, unit
from anatomica.measurement.vocabulary.vertebrae import C2_HALF_MM, STATION, STATIONS
from anatomica.spec.vocabulary_tables import VERTEBRAE

Array = np.ndarray
VOXEL_MM = phantoms.FRAME.edge_mm / PAPER_GRID
STEP_MM = 0.25
RAYS = 96
Depth = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class Body:
    """A vertebral body: its middle, axes (columns: right, front, up), half sizes, and its bone's distance."""

    name: str
    centre_mm: Array
    axes: Array
    size_mm: Array
    depth: Depth

    @property
    def room_mm(self) -> float:
        """How far the box around the body is from the cube's border."""
        shares = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.6, 0.6)])
        corners = self.centre_mm + (shares * self.size_mm) @ self.axes.T
        return float(phantoms.HALF_MM - np.abs(corners).max())

    def at(self, right: float, front: float) -> Array:
        """A point of the middle plane, by shares of width and depth."""
        return self.centre_mm + self.axes[:, :2] @ (np.array([right, front]) * self.size_mm[:2])

    def reaches(self, places: Sequence[tuple[float, float]], sign: float) -> Array:
        """How far the bone reaches up (1) or down (-1) from points of the middle plane."""
        starts = np.array([self.at(*x) for x in places])
        return _leaving(self.depth, starts, np.tile(sign * self.axes[:, 2], (len(starts), 1)))

    def end(self, sign: float) -> Array:
        """The middle of an end plate."""
        return self.centre_mm + sign * self.reaches([(0.0, 0.0)], sign)[0] * self.axes[:, 2]


def known(truth: Truth) -> dict[str, float]:
    """Every quantity of the spinal vocabulary that the phantom has."""
    column, warp = replayed(truth)
    shift = shift_of(warp, phantoms.FRAME.edge_mm)

    def model(points_mm: Array) -> Array:
        return (points_mm + warp.centre_mm) @ warp.rotation + shift(points_mm)

    found = _volumes(column, warp)
    bodies: dict[str, Body] = {}
    unsure = set()
    for name in VERTEBRAE[1:]:
        i = VERTEBRAE.index(name)
        if np.abs(column.centres_mm[i, 2]) < phantoms.HALF_MM:
            body = _body(name, column, warp, _distance(column, i, model))
            # Of a body that ends a voxel from the cube's border the voxels decide whether it is cut off.
            if body.room_mm > 1.8 * VOXEL_MM:
                bodies[name] = body
            elif body.room_mm > 0.2 * VOXEL_MM:
                unsure.add(name[0])
    for name, body in bodies.items():
        if name != "C2":
            places = [(0.0, STATION), (0.0, 0.0), (0.0, -STATION)]
            both = body.reaches(places, 1.0) + body.reaches(places, -1.0)
            heights = dict(zip(("anterior", "middle", "posterior"), both.tolist(), strict=True))
            found |= {f"{name}.body.height_mm.{where}": x for where, x in heights.items()}
            found[f"{name}.wedge_ratio"] = heights["anterior"] / heights["posterior"]
        found |= _canal(body, warp.to_cube(_canal_middle(column, VERTEBRAE.index(name)))[0])
    for upper, lower in pairwise(VERTEBRAE[1:]):
        if upper in bodies and lower in bodies:
            gap = bodies[upper].end(-1.0) - bodies[lower].end(1.0)
            found[f"disc.{upper}-{lower}.height_mm"] = float(np.linalg.norm(gap))
    return found | _angles(bodies, unsure)


def replayed(truth: Truth) -> tuple[Column, Warp]:
    """The phantom's bones, drawn again from its seed in the order of `data.phantoms.spinal.build`."""
    rng = np.random.default_rng([phantoms._SALT, truth.seed])
    pathology = draw_pathology(rng, phantoms.PATHOLOGIES, None)
    column = grow(rng, pathology)
    warp = random_warp(rng, 2.5, [(52.0, 2.0), (22.0, 0.75), (11.0, 0.3)], reach_mm=90.0)
    column = phantoms._in_window(rng, column, pathology)
    name = next(x for x in truth.landmarks_mm if x.endswith(" body"))
    again = warp.to_cube(column.centres_mm[VERTEBRAE.index(name.split()[0])])[0]
    if not np.allclose(again, truth.landmarks_mm[name], atol=2e-3):
        raise AssertionError("the spinal phantoms are drawn in another order than their truth expects")
    return column, warp


def _volumes(column: Column, warp: Warp) -> dict[str, float]:
    """Volumes of the vertebrae that do not reach the cube's border, by counting points that lie midway
    between the centres of the paper's voxels."""
    array = phantoms._draw(column, replace(warp, centre_mm=warp.centre_mm + VOXEL_MM / 2), PAPER_GRID)
    found = {}
    for i, name in enumerate(VERTEBRAE, start=1):
        mask = array == i
        sides = (mask[0], mask[-1], mask[:, 0], mask[:, -1], mask[..., 0], mask[..., -1])
        if mask.any() and not any(side.any() for side in sides):
            found[f"{name}.volume_ml"] = float(mask.sum() * VOXEL_MM**3 / 1000)
    return found


def _distance(column: Column, i: int, model: Callable[[Array], Array]) -> Depth:
    bone, centre, frame = column.bones[i], column.centres_mm[i], column.frames[i]

    def depth(points_mm: Array) -> Array:
        local = (model(points_mm.reshape(-1, 3)) - centre) @ frame
        return bone.distance(local.astype(np.float32))[0].reshape(points_mm.shape[:-1])

    return depth


def _leaving(depth: Depth, starts_mm: Array, ways: Array, far_mm: float = 45.0, sign: float = 1.0) -> Array:
    """Distances at which rays (k, 3) leave the bone (or with `sign` -1 first meet it); nan: never."""
    away = np.arange(0.0, far_mm, STEP_MM)
    d = sign * depth(starts_mm[:, None] + away[:, None] * ways[:, None])
    beyond = d >= 0
    k = np.maximum(beyond.argmax(1), 1)
    rows = np.arange(len(d))
    low, high = d[rows, k - 1], d[rows, k]
    found = away[k - 1] + STEP_MM * np.clip(-low / np.maximum(high - low, 1e-9), 0, 1)
    return np.where(beyond.any(1), found, np.nan)


def _body(name: str, column: Column, warp: Warp, depth: Depth) -> Body:
    """The body between its walls and plates."""
    i = VERTEBRAE.index(name)
    centre = warp.to_cube(column.centres_mm[i])[0]
    turn = warp.derivative(centre)[0] @ column.frames[i]
    up = unit(turn[:, 2])
    # The front is where the canal is not.
    front = centre - warp.to_cube(_canal_middle(column, i))[0]
    front = unit(front - front @ up * up)
    level = column.levels[i]
    size = np.array([level.width_mm, level.depth_mm, level.height_mm])
    body = Body(name, centre, np.stack([np.cross(front, up), front, up], axis=1), size, depth)
    for _ in range(4):
        body = _centred(body)
    return body


def _centred(b: Body) -> Body:
    """The body's middle between its walls in front, behind and at the sides, and between its plates."""

    def reaches(axis: int, offsets: list[tuple[float, float, float]]) -> tuple[float, float]:
        ends = []
        starts = b.centre_mm + (np.array(offsets) * b.size_mm) @ b.axes.T
        for sign in (1.0, -1.0):
            ways = np.tile(sign * b.axes[:, axis], (len(starts), 1))
            ends.append(float(np.median(_leaving(b.depth, starts, ways))))
        return ends[0], ends[1]

    both = [
        reaches(0, [(0.0, y, z) for y in (0.1, 0.22) for z in (-0.12, 0.12)]),
        reaches(1, [(x, 0.0, z) for x in (-0.08, 0.08) for z in (-0.1, 0.1)]),
        reaches(2, [(x, y, 0.0) for x in (-0.12, 0.12) for y in (-0.12, 0.12)]),
    ]
    if b.name == "C2":
        both[2] = (2 * C2_HALF_MM - both[2][1], both[2][1])
    plus, minus = np.array(both).T
    moved = replace(b, centre_mm=b.centre_mm + b.axes @ ((plus - minus) / 2), size_mm=plus + minus)
    up = unit(np.sum([plate(moved, side) for side in ((-1.0,) if b.name == "C2" else (1.0, -1.0))], axis=0))
    front = unit(b.axes[:, 1] - b.axes[:, 1] @ up * up)
    return replace(moved, axes=np.stack([np.cross(front, up), front, up], axis=1))


def plate(b: Body, sign: float) -> Array:
    """Upward unit normal of the upper (1) or lower (-1) end plate: of the plane through nine stations."""
    heights = b.reaches(STATIONS, sign)
    flat = np.array([(x * b.size_mm[0], y * b.size_mm[1], 1.0) for x, y in STATIONS])
    good = np.abs(heights - np.median(heights)) < max(0.45 * b.size_mm[2], 3.0)
    slope, *_ = np.linalg.lstsq(flat[good], sign * heights[good], rcond=None)
    return b.axes @ unit([-slope[0], -slope[1], 1.0])


def _canal_middle(column: Column, i: int) -> Array:
    return column.centres_mm[i] + column.frames[i] @ np.array([0.0, column.bones[i].canal_mm[2], 0.0])


def _canal(b: Body, middle_mm: Array) -> dict[str, float]:
    """Area and depth of the canal in the plane of the body's middle; nothing where the ring is open there."""
    right, front, up = b.axes.T
    centre = middle_mm - ((middle_mm - b.centre_mm) @ up) * up
    turn = np.arange(RAYS) * 2 * np.pi / RAYS
    ways = np.cos(turn)[:, None] * right + np.sin(turn)[:, None] * front
    away = np.zeros(RAYS)
    for _ in range(3):
        away = _leaving(b.depth, np.tile(centre, (RAYS, 1)), ways, 25.0, -1.0)
        if not np.isfinite(away).all():
            return {}
        # The outline's centroid: of triangles from the centre, two thirds of the way out.
        centre = centre + (away[:, None] ** 3 * ways).sum(0) * 2 / 3 / (away**2).sum()
    quarter = RAYS // 4
    around = [np.mean(away[k - 2 : k + 3]) for k in (quarter, 3 * quarter)]
    return {
        f"canal.{b.name}.area_mm2": float((away**2).sum() * np.pi / RAYS),
        f"canal.{b.name}.diameter_mm": float(sum(around)),
    }


def _angles(bodies: dict[str, Body], unsure: set[str]) -> dict[str, float]:
    """Angles between end plates, and between lines through the middles of bodies."""
    found = {}
    names = [x for x in bodies if x != "C2"]
    for gap in (1, 3, len(names) - 1):
        for a, b in zip(names, names[gap:], strict=False) if gap > 0 else ():
            upper, lower = plate(bodies[a], 1.0), plate(bodies[b], -1.0)
            found[f"cobb_deg[{a},{b}]"] = _back(lower) - _back(upper)
            found[f"cobb_coronal_deg[{a},{b}]"] = abs(_aside(lower) - _aside(upper))
    for key, part, sign in (("kyphosis_deg", "T", 1.0), ("lordosis_deg", "L", -1.0)):
        shown = [bodies[x].centre_mm for x in names if x.startswith(part)]
        if len(shown) > 2 and part not in unsure:
            found[key] = sign * (_back(shown[-2] - shown[-1]) - _back(shown[0] - shown[1]))
    return found


def _back(way: Array) -> float:
    return float(np.degrees(np.arctan2(-way[1], way[2])))


def _aside(way: Array) -> float:
    return float(np.degrees(np.arctan2(way[0], way[2])))
