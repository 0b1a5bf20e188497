"""The left ventricle: its long axis, and its wall in the 17 segments of the American Heart Association."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from scipy import ndimage
from torch import Tensor

from anatomica.measurement.vocabulary.annulus import annulus
from anatomica.measurement.vocabulary.plan import Mark, Missing, Piece, Plan
from anatomica.measurement.vocabulary.shapes import ROOM_MM, ray, unit
from anatomica.measurement.vocabulary.subject import Subject, landmark

Array = np.ndarray
HEIGHTS = {"basal": (0.08, 0.33), "mid": (0.36, 0.64), "apical": (0.67, 0.90)}
"""Parts of the long axis, from the mitral annulus to the apex, at which the rings of segments are looked at;
the first eighth belongs to the valves' ring."""
RINGS = {"basal": (3, 4, 5, 6, 1, 2), "mid": (9, 10, 11, 12, 7, 8), "apical": (14, 15, 16, 13)}
"""Segments by angle from the middle of the septum towards the diaphragm; the apical ring begins 45 degrees
before it, so that segment 14 is the septum's."""
APEX_SEGMENT = 17
LEAST = 0.3
"""Of a segment's rays: as many must meet the wall."""


@dataclass(frozen=True, eq=False)
class Axis:
    """The long axis: base (middle of the mitral annulus) and apex of the cavity, and the directions along it,
    to the middle of the septum, and towards the diaphragm."""

    base_mm: Array
    apex_mm: Array
    along: Array
    septal: Array
    inferior: Array

    @property
    def length_mm(self) -> float:
        return float(np.linalg.norm(self.apex_mm - self.base_mm))


@landmark
def long_axis(s: Subject) -> Axis:
    """From the mitral annulus to the farthest point of the cavity; the right ventricle lies septally."""
    base = annulus(s, "LV", "LA").centre_mm
    s.whole("LV")
    cavity = s.voxels("LV")
    away = np.linalg.norm(cavity - base, axis=1)
    # The mean of the farthest points: one voxel would make the axis jump. The farthest centre of so many
    # voxels lies next to the border itself.
    far = cavity[away > away.max() - 1.5 * s.voxel_mm].mean(0)
    along = unit(far - base)
    apex = base + away.max() * along
    s.need("RV")
    septal = s.voxels("RV").mean(0) - base
    septal = unit(septal - septal @ along * along)
    return Axis(base, apex, along, septal, np.cross(along, septal))


def long_axis_plan(s: Subject) -> Plan:
    """Length of the cavity on its long axis."""
    a = long_axis(s)
    line = ray(s, ("LV",), a.base_mm, a.apex_mm + ROOM_MM * s.edge_mm * a.along)
    lost = a.length_mm - float(s.sample(("LV",), line.piece.points_mm).sum() * line.step_mm)
    return Plan((line.piece,), lambda S: line.length(S[0]) + lost, (Mark(np.stack([a.base_mm, a.apex_mm])),))


def segment_rays(a: Axis, segment: int) -> list[tuple[Array, Array]]:
    """Starts on the axis and unit directions of a segment's rays."""
    if segment == APEX_SEGMENT:
        start = a.base_mm + 0.85 * a.length_mm * a.along
        leans = [(lean, turn) for lean in (0.0, 0.25, 0.45) for turn in np.arange(8) * np.pi / 4]
        ways = [
            unit(a.along + np.tan(lean) * (np.cos(turn) * a.septal + np.sin(turn) * a.inferior))
            for lean, turn in leans
        ]
        return [(start, way) for way in ways]
    ring = next(name for name, members in RINGS.items() if segment in members)
    place = RINGS[ring].index(segment)
    width = 2 * np.pi / len(RINGS[ring])
    first = place * width - (width / 2 if ring == "apical" else 0.0)
    low, high = HEIGHTS[ring]
    rays = []
    for height in np.linspace(low, high, 5):
        for turn in first + width * (np.arange(6) + 0.5) / 6:
            way = np.cos(turn) * a.septal + np.sin(turn) * a.inferior
            rays.append((a.base_mm + height * a.length_mm * a.along, way))
    return rays


@landmark
def _outwards(s: Subject) -> tuple[Float[Array, "a b c 3"], Array]:
    """Direction away from the cavity around the left ventricle, the mean of the endocardium's and the
    epicardium's, and the first voxel of that box."""
    box = s.box("LV", "Myo")
    low = np.maximum([x.start - 3 for x in box], 0)
    high = np.minimum([x.stop + 3 for x in box], s.n)
    around = tuple(slice(a, b) for a, b in zip(low.tolist(), high.tolist(), strict=True))
    cavity, heart = s.mask("LV")[around], s.mask("LV", "Myo")[around]
    distance = [np.asarray(ndimage.distance_transform_edt(x)) for x in (~cavity, cavity, ~heart, heart)]
    field = distance[0] - distance[1] + distance[2] - distance[3]
    smooth = ndimage.gaussian_filter(field.astype(np.float32), 1.5)
    return np.stack([np.gradient(smooth, axis=axis) for axis in range(3)], axis=-1), low


@dataclass(frozen=True, eq=False)
class Wall:
    """Rays through a segment's wall: points, the length across the wall that each stands for, how many, and
    the part of the middle one within the wall."""

    points_mm: Float[Array, "p 3"]
    across_mm: Float[Array, " p"]
    count: int
    mark: Mark


@landmark
def _wall(s: Subject, segment: int) -> Wall:
    rays = segment_rays(long_axis(s), segment)
    step = s.voxel_mm * (0.25 if s.coarse == 1 else 0.5)
    away = np.arange(0.0, 0.35 * s.edge_mm, step)
    room = ROOM_MM * s.edge_mm
    starts, ways = (np.array(x) for x in zip(*rays, strict=True))
    points = starts[:, None] + away[:, None] * ways[:, None]
    muscle, cavity = s.sample(("Myo",), points) > 0.5, s.sample(("LV",), points) > 0.5
    slope, first_voxel = _outwards(s)
    kept, across, marks = [], [], []
    for i in range(len(rays)):
        if not muscle[i].any():
            continue
        first = int(muscle[i].argmax())
        if not cavity[i, :first].any() or (~cavity[i, :first]).sum() * step > s.voxel_mm * 1.5:
            continue  # the ray left through a valve before it met the wall
        last = first + int((~muscle[i, first:]).argmax()) if (~muscle[i, first:]).any() else len(away)
        if (last - first) * step < 0.5 * s.voxel_mm:
            continue
        middle = np.round(points[i, (first + last) // 2] / s.voxel_mm - 0.5).astype(int) - first_voxel
        normal = unit(slope[tuple(np.clip(middle, 0, np.array(slope.shape[:3]) - 1))])
        cosine = float(np.clip(normal @ ways[i], 0.3, 1.0))
        low, high = max(first - round(room / step), 0), min(last + round(room / step), len(away))
        # Another part of the wall that the ray meets farther out is not this one's.
        again = np.flatnonzero(muscle[i, last:high])
        high = last + int(again[0]) // 2 if len(again) else high
        kept.append(points[i, low:high])
        across.append(np.full(high - low, step * cosine))
        marks.append(Mark(points[i, [first, last - 1]]))
    if len(kept) < LEAST * len(rays):
        raise Missing(f"the wall of segment {segment} is not closed")
    return Wall(np.concatenate(kept), np.concatenate(across), len(kept), marks[len(marks) // 2])


def thickness(s: Subject, segment: int) -> Plan:
    """Mean thickness of the wall in a segment: the muscle on rays from the long axis, across the wall."""
    s.need("Myo")
    wall = _wall(s, segment)
    weight = torch.from_numpy(wall.across_mm / wall.count)

    def value(S: Sequence[Tensor]) -> Tensor:
        return (S[0] * weight.to(S[0])).sum()

    return Plan((Piece(("Myo",), wall.points_mm),), value, (wall.mark,))
