"""What is known of a spinal phantom without looking at voxels: end plates, heights, discs, canals, pedicles.

Surfaces are found on the vertebra's own distance field along straight lines in its frame, and then moved by
the patient's deformation of space, so that the numbers are those of the label map up to its resolution.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy import signal

from anatomica.data.phantoms.bones import canal_y_mm, pedicle_mm
from anatomica.data.phantoms.column import Column
from anatomica.data.phantoms.warp import Warp

Array = np.ndarray
STATION = 0.35
"""Anterior and posterior heights are taken this share of the body's depth from its middle; right and left
ones this share of its width. Nearer to the rim the plates are rounded."""
STATIONS: dict[str, tuple[float, float]] = {
    "middle": (0.0, 0.0),
    "anterior": (0.0, STATION),
    "posterior": (0.0, -STATION),
    "right": (STATION, 0.0),
    "left": (-STATION, 0.0),
}
_STEP_MM = 0.4
_RAYS = 24


@dataclass(frozen=True)
class Known:
    """Points (RAS mm of the cube), unit vectors and numbers by name."""

    points_mm: dict[str, Array] = field(default_factory=dict)
    directions: dict[str, Array] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)


def known(column: Column, warp: Warp, seen: list[int], whole: list[int]) -> Known:
    """Points of the vertebrae `seen`; end plates, heights, discs and canals of those seen `whole`."""
    names = [level.name for level in column.levels]
    model: dict[str, Array] = {}
    for i in seen:
        level, place = column.levels[i], _place(column, i)
        model[f"{names[i]} body"] = column.centres_mm[i]
        model[f"{names[i]} canal"] = place(0.0, canal_y_mm(level), 0.0)
        if level.region != "atlas":
            x, y, z = pedicle_mm(level)
            model[f"{names[i]} pedicle right"] = place(x, y, z)
            model[f"{names[i]} pedicle left"] = place(-x, y, z)
        if i + 1 in seen:
            for side, point in zip(("right", "left"), column.joints_mm[i], strict=True):
                model[f"{names[i]}-{names[i + 1]} facet {side}"] = point
    for i in whole:
        model |= _plates(column, i)
    points = _moved(warp, model)
    outlines = {names[i]: _outline(column, i) for i in whole}
    rings = _moved(warp, {name: ring for name, ring in outlines.items() if ring is not None})
    numbers: dict[str, float] = {}
    directions: dict[str, Array] = {}
    for i in whole:
        numbers |= _heights(names[i], points)
        if names[i] in rings:
            numbers |= _canal(names[i], rings[names[i]])
        for plate in ("upper", "lower"):
            if f"{names[i]} {plate} middle" in points:
                directions[f"{names[i]} {plate} end plate"] = _normal(names[i], plate, points)
        if i + 1 in whole:
            numbers |= _disc(names[i], names[i + 1], points)
    return Known(points, directions, numbers)


def _place(column: Column, i: int):
    """From a vertebra's own coordinates to the column's."""
    return lambda x, y, z: column.centres_mm[i] + column.frames[i] @ np.array([x, y, z])


def _moved(warp: Warp, points: dict[str, Array]) -> dict[str, Array]:
    """Points, or arrays of points, where the deformation puts them; one inversion for all of them."""
    if not points:
        return {}
    stack = np.concatenate([np.reshape(p, (-1, 3)) for p in points.values()])
    moved, start, placed = warp.to_cube(stack), 0, {}
    for name, point in points.items():
        count = np.size(point) // 3
        placed[name] = moved[start : start + count].reshape(np.shape(point))
        start += count
    return placed


def _plates(column: Column, i: int) -> dict[str, Array]:
    """Points of the upper and lower end plate; the atlas has none, and C2's upper end is the dens."""
    level = column.levels[i]
    if level.region == "atlas":
        return {}
    wanted = [(plate, name) for name in STATIONS for plate in ("upper", "lower")]
    wanted = [x for x in wanted if x[0] == "lower" or level.region != "axis"]
    starts = np.array([(*STATIONS[name], 0.0) for _, name in wanted])
    starts = starts * [level.width_mm, level.depth_mm, 0.0]
    ways = np.array([(0.0, 0.0, 1.0 if plate == "upper" else -1.0) for plate, _ in wanted])
    ends = _cast(column, i, starts, ways, level.height_mm, leaving=True)
    return {f"{level.name} {plate} {name}": end for (plate, name), end in zip(wanted, ends, strict=True)}


def _outline(column: Column, i: int) -> Array | None:
    """The canal's outline in the plane of the body's middle, (rays, 3); None where the ring is open there."""
    if column.levels[i].region == "atlas":
        return None
    turns = np.arange(_RAYS) * 2 * np.pi / _RAYS
    ways = np.stack([np.cos(turns), np.sin(turns), np.zeros(_RAYS)], axis=1)
    starts = np.broadcast_to([0.0, column.bones[i].canal_mm[2], 0.0], ways.shape)
    outline = _cast(column, i, starts, ways, 25.0, leaving=False)
    return outline if np.isfinite(outline).all() else None


def _cast(column: Column, i: int, starts: Array, ways: Array, far_mm: float, leaving: bool) -> Array:
    """Where rays in vertebra i's frame first leave its bone, or else first meet it; nan where they do not.

    Returns points (rays, 3) in the column's frame.
    """
    steps = np.arange(0.0, far_mm, _STEP_MM)
    points = starts[:, None] + steps[:, None] * ways[:, None]
    depth = column.bones[i].distance(points.reshape(-1, 3).astype(np.float32))[0]
    depth = depth.reshape(len(starts), len(steps)) * (1.0 if leaving else -1.0)
    beyond = depth >= 0
    after = np.maximum(beyond.argmax(1), 1)
    rows = np.arange(len(starts))
    low, high = depth[rows, after - 1], depth[rows, after]
    away = (after - 1 + np.clip(-low / (high - low), 0, 1)) * _STEP_MM
    away = np.where(beyond.any(1), away, np.nan)
    return column.centres_mm[i] + (starts + away[:, None] * ways) @ column.frames[i].T


def _heights(name: str, points: dict[str, Array]) -> dict[str, float]:
    found = {}
    for station in ("anterior", "middle", "posterior"):
        upper, lower = points.get(f"{name} upper {station}"), points.get(f"{name} lower {station}")
        if upper is not None and lower is not None:
            found[f"{name}_body_height_{station}_mm"] = float(np.linalg.norm(upper - lower))
    return found


def _disc(upper: str, lower: str, points: dict[str, Array]) -> dict[str, float]:
    found = {}
    for station in ("anterior", "middle", "posterior"):
        above, below = points.get(f"{upper} lower {station}"), points.get(f"{lower} upper {station}")
        if above is not None and below is not None:
            found[f"{upper}-{lower}_disc_height_{station}_mm"] = float(np.linalg.norm(above - below))
    return found


def _canal(name: str, moved: Array) -> dict[str, float]:
    """Area, and diameters from back to front and from side to side, of an outline where it was moved to."""
    # A smooth closed curve through the rays' ends: 24 straight sides would cut 1 % off.
    area = _polygon(np.asarray(signal.resample(moved, 8 * _RAYS, axis=0)))
    quarter = _RAYS // 4
    return {
        f"{name}_canal_area_mm2": float(area),
        f"{name}_canal_width_mm": float(np.linalg.norm(moved[0] - moved[2 * quarter])),
        f"{name}_canal_depth_mm": float(np.linalg.norm(moved[quarter] - moved[3 * quarter])),
    }


def _polygon(ring: Array) -> float:
    """Area of a nearly flat polygon (m, 3)."""
    spokes = ring - ring.mean(0)
    return float(0.5 * np.linalg.norm(np.cross(spokes, np.roll(spokes, -1, axis=0)).sum(0)))


def _normal(name: str, plate: str, points: dict[str, Array]) -> Array:
    """Unit normal of an end plate that points up, from its four outer points."""
    front, back, right, left = (
        points[f"{name} {plate} {station}"] for station in ("anterior", "posterior", "right", "left")
    )
    up = np.cross(right - left, front - back)
    return up / np.linalg.norm(up)
