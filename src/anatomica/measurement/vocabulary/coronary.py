"""Quantities of a piece of a coronary artery, frame by frame as a pullback shows it.

Frames lie across the cube's z-axis, which is that of the catheter. Where a side branch leaves, the main
vessel's outline is carried on across the branch's mouth from both sides of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import cc3d
import numpy as np
import torch
from jaxtyping import Float
from scipy import ndimage
from torch import Tensor

from anatomica.measurement.vocabulary.outlines import ANGLES, Outline, outlines
from anatomica.measurement.vocabulary.plan import Mark, Missing, Piece, Plan, circle_diameter, number
from anatomica.measurement.vocabulary.shapes import ROOM_MM, ray, unit, volume, volume_piece
from anatomica.measurement.vocabulary.subject import Subject, landmark
from anatomica.measurement.vocabulary.tubes import Tube, tube

Array = np.ndarray
ALL = ("Lu", "Ca", "Ve")
REFERENCE = 0.9
"""The reference lumen of a stenosis is this quantile of the frames' areas."""
NEAREST = 24
"""Voxels of calcium nearest to the lumen that are looked at for the tissue between the two."""
INTO = 1.5
"""Voxels by which a line between lumen and calcium reaches into both."""
NARROW = 0.25
"""Frames whose lumen is larger by at most this share are widened together with the narrowest."""
SCORE = {"max_angle_deg": (180.0, 2), "max_thickness_mm": (0.5, 1), "length_mm": (5.0, 1)}
"""Fujino's score: points for calcium beyond each limit."""


@dataclass(frozen=True, eq=False)
class Frames:
    """The frames with a lumen, from below: the lumen's centres (f, 3), each frame's points that belong to the
    main vessel with some room around it, and those that belong to its lumen."""

    centres_mm: Float[Array, "f 3"]
    vessel_mm: list[Float[Array, "_ 3"]]
    lumen_mm: list[Float[Array, "_ 3"]]
    cell_mm2: float

    def __len__(self) -> int:
        return len(self.centres_mm)


@landmark
def frames(s: Subject) -> Frames:
    """Every `coarse`-th frame, cut out of the main vessel."""
    lumen, vessel = s.need("Lu"), s.mask(*ALL)
    index = [k for k in range(s.coarse // 2, s.n, s.coarse) if lumen[:, :, k].any()]
    line = _main(s).points_mm
    order = np.argsort(line[:, 2])
    heights = (np.array(index) + 0.5) * s.voxel_mm
    middles = np.stack([np.interp(heights, line[order, 2], line[order, i]) for i in (0, 1)], -1)
    blood, whole = outlines(lumen[:, :, index], vessel[:, :, index], middles / s.voxel_mm - 0.5)
    centres = np.concatenate([(blood.centroids() + 0.5) * s.voxel_mm, heights[:, None]], axis=1)
    return Frames(centres, _within(s, whole, index), _within(s, blood, index), (s.coarse * s.voxel_mm) ** 2)


def _within(s: Subject, outline: Outline, index: Sequence[int]) -> list[Float[Array, "_ 3"]]:
    """Points of each frame within an outline and some room around it, but for branches' mouths."""
    at = np.arange(s.coarse // 2, s.n, s.coarse) if s.coarse > 1 else np.arange(s.n)
    x, y = np.meshgrid(at, at, indexing="ij")
    limit = outline.radii + np.where(outline.gap, 0.0, ROOM_MM * s.n)
    found = []
    for k, (a, b), radii in zip(index, outline.centres, limit, strict=True):
        column = (np.arctan2(y - b, x - a) % (2 * np.pi)) * ANGLES / (2 * np.pi)
        here = np.hypot(x - a, y - b) <= np.interp(column, np.arange(ANGLES + 1), np.append(radii, radii[0]))
        points = np.stack([x[here], y[here], np.full(int(here.sum()), k)], -1)
        found.append((points + 0.5) * s.voxel_mm)
    return found


@landmark
def _main(s: Subject) -> Tube:
    """The main lumen's centreline from the lowest to the highest frame with a lumen; branches leave the cube
    at its sides."""
    lumen = s.need("Lu")
    rows = np.flatnonzero(lumen.any((0, 1)))
    ends = []
    for k in (rows[0], rows[-1]):
        labels, count = ndimage.label(lumen[:, :, k])  # type: ignore[misc]
        biggest = 1 + int(np.bincount(labels.ravel())[1:].argmax()) if count > 1 else 1
        ends.append((np.array([*np.argwhere(labels == biggest).mean(0), k]) + 0.5) * s.voxel_mm)
    return tube(s, ("Lu",), np.array([0.0, 0.0, -1.0]), (ends[0], ends[1]))


def areas(s: Subject) -> Float[Array, " f"]:
    """Areas in mm^2 of the main lumen in the frames."""
    f = frames(s)
    return np.array([s.sample(("Lu",), points).sum() for points in f.lumen_mm]) * f.cell_mm2


def _area_plan(s: Subject, tissues: tuple[str, ...], at: Array) -> Plan:
    """Areas of tissues in some frames: a plan with a vector as its value, for functions of them."""
    f = frames(s)
    chosen = [(f.lumen_mm if tissues == ("Lu",) else f.vessel_mm)[i] for i in at]
    owner = torch.from_numpy(np.repeat(np.arange(len(at)), [len(x) for x in chosen]))

    def value(S: Tensor) -> Tensor:
        return S.new_zeros(len(at)).index_add(0, owner, S) * f.cell_mm2

    return Plan((Piece(tissues, np.concatenate(chosen)),), lambda S: value(S[0]))


def _narrowest(s: Subject) -> int:
    """The frame of the minimal lumen area, among areas smoothed over three frames against voxel noise."""
    return int(ndimage.uniform_filter1d(areas(s), 3, mode="nearest").argmin())


def _ring(s: Subject, frame: int) -> Mark:
    f = frames(s)
    turn = np.linspace(0, 2 * np.pi, 49)[:, None]
    radius = np.sqrt(areas(s)[frame] / np.pi)
    ring = radius * np.concatenate([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
    return Mark(f.centres_mm[frame] + ring)


def _around(s: Subject, frame: int) -> Array:
    """A frame and its neighbours, over which areas are averaged."""
    return np.arange(max(frame - 1, 0), min(frame + 2, len(frames(s))))


def _min_area(s: Subject) -> Plan:
    """That of the narrowest frame where it is placed; it changes with all frames that are nearly as narrow,
    which would be the narrowest next if only this one were widened."""
    at, found = _narrowest(s), areas(s)
    near = _around(s, at)
    least = float(found[near].mean())
    both = np.union1d(near, np.flatnonzero(found <= (1 + NARROW) * least))
    wider, cut = float(found[both].mean()) - least, _area_plan(s, ("Lu",), both)
    return Plan(cut.pieces, lambda S: cut.value(S).mean() - wider, (_ring(s, at),))


def _burden(s: Subject) -> Plan:
    near = _around(s, _narrowest(s))
    lumen, whole = _area_plan(s, ("Lu",), near), _area_plan(s, ALL, near)

    def value(S: Sequence[Tensor]) -> Tensor:
        return 100 * (1 - lumen.value(S[:1]).sum() / whole.value(S[1:]).sum().clamp_min(1e-9))

    return Plan((*lumen.pieces, *whole.pieces), value, (_ring(s, _narrowest(s)),))


def _stenosis(s: Subject) -> Plan:
    near, found = _around(s, _narrowest(s)), areas(s)
    reference = np.quantile(found, REFERENCE)
    wide = np.argsort(np.abs(found - reference))[:3]
    narrow, normal = _area_plan(s, ("Lu",), near), _area_plan(s, ("Lu",), wide)

    def value(S: Sequence[Tensor]) -> Tensor:
        return 100 * (1 - narrow.value(S[:1]).mean() / normal.value(S[1:]).mean().clamp_min(1e-9))

    return Plan((*narrow.pieces, *normal.pieces), value, (_ring(s, _narrowest(s)), _ring(s, int(wide[0]))))


def _mean_area(s: Subject, tissues: tuple[str, ...]) -> Plan:
    s.need("Ve")
    cut = _area_plan(s, tissues, np.arange(len(frames(s))))
    return Plan(cut.pieces, lambda S: cut.value(S).mean())


def _mean_diameter(s: Subject) -> Plan:
    cut = _area_plan(s, ("Lu",), np.arange(len(frames(s))))
    return Plan(cut.pieces, lambda S: circle_diameter(cut.value(S)).mean())


def _wall(s: Subject) -> Plan:
    """Mean over the frames of the vessel's radius minus the lumen's, both of circles of their areas."""
    s.need("Ve")
    every = np.arange(len(frames(s)))
    lumen, whole = _area_plan(s, ("Lu",), every), _area_plan(s, ALL, every)

    def value(S: Sequence[Tensor]) -> Tensor:
        return (circle_diameter(whole.value(S[1:])) - circle_diameter(lumen.value(S[:1]))).mean() / 2

    return Plan((*lumen.pieces, *whole.pieces), value)


@dataclass(frozen=True, eq=False)
class Unrolled:
    """Samples along rays from the lumen's centre in the frames with calcium: (f, angles, steps) points."""

    frame: Array
    points_mm: Float[Array, "f a r 3"]
    step_mm: float
    calcium: Float[Array, "f a r"]
    lumen: Float[Array, "f a r"]

    def plan_of(self, tissues: tuple[str, ...], f: int) -> Piece:
        return Piece(tissues, self.points_mm[f].reshape(-1, 3))


EDGE = 3
"""Samples of a ray, half a voxel apart, that must be calcium: a single one would count every corner of a
voxel at a deposit's end."""


@landmark
def unrolled(s: Subject) -> Unrolled:
    """Every frame with calcium and a lumen, seen from the lumen's centre."""
    calcium, lumen = s.need("Ca"), s.need("Lu")
    there = np.asarray(calcium.any((0, 1)) & lumen.any((0, 1)))
    height = np.round(frames(s).centres_mm[:, 2] / s.voxel_mm - 0.5).astype(int)
    index = height[there[height]]
    if not len(index):
        raise Missing("no frame shows calcium and a lumen")
    step = s.voxel_mm / 2
    count = int(np.ceil(0.45 * s.edge_mm / step))
    turn = np.arange(ANGLES) * 2 * np.pi / ANGLES
    ways = np.stack([np.cos(turn), np.sin(turn), 0 * turn], -1)
    away = (np.arange(count) + 0.5) * step
    spokes = ways[:, None] * away[:, None]
    points = frames(s).centres_mm[there[height]][:, None, None] + spokes
    return Unrolled(index, points, step, s.sample(("Ca",), points), s.sample(("Lu",), points))


def _max_angle(s: Subject) -> Plan:
    """Largest arc of calcium in a frame, as seen from the lumen's centre, the mean over three frames."""
    u = unrolled(s)
    arcs = ((u.calcium > 0.5).sum(-1) >= EDGE).sum(1)
    middle = int(ndimage.uniform_filter1d(arcs.astype(float), 3, mode="nearest").argmax())
    near = [int(np.clip(f, 0, len(arcs) - 1)) for f in (middle - 1, middle, middle + 1)]
    shape = u.points_mm[middle].shape[:2]

    def value(S: Sequence[Tensor]) -> Tensor:
        # A soft count of each ray's samples in calcium, and a soft step where they are enough.
        counts = [torch.sigmoid(16 * (x.view(shape) - 0.5)).sum(-1) for x in S]
        return torch.sigmoid(4 * (torch.stack(counts) - EDGE)).sum() * (360 / ANGLES / len(near))

    return Plan(tuple(u.plan_of(("Ca",), f) for f in near), value, _arcs(u, middle))


def _arcs(u: Unrolled, f: int) -> tuple[Mark, ...]:
    """Where a frame's rays meet calcium: a line through the middles of the calcium for each run of rays."""
    inside = u.calcium[f] > 0.5
    hit = inside.any(-1)
    if not hit.any():
        return ()
    middle = (inside * np.arange(inside.shape[1])).sum(1) // np.maximum(inside.sum(1), 1)
    line = u.points_mm[f][np.arange(len(hit)), middle]
    if hit.all():
        return (Mark(np.concatenate([line, line[:1]])),)
    begin = int((~hit).argmax())  # no run goes around the end
    hit, line = np.roll(hit, -begin), np.roll(line, -begin, axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], hit, [False]]).astype(int)))
    return tuple(Mark(line[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))


def _max_thickness(s: Subject) -> Plan:
    """Largest length of a ray from the lumen's centre within calcium."""
    u = unrolled(s)
    thick = ndimage.uniform_filter1d(u.calcium.sum(-1), 3, axis=0, mode="nearest")
    thick = ndimage.uniform_filter1d(thick, 3, axis=1, mode="wrap")
    f, a = np.unravel_index(int(thick.argmax()), thick.shape)
    near = [(a + d) % ANGLES for d in (-1, 0, 1)]
    points = u.points_mm[f][near].reshape(-1, 3)
    inside = u.points_mm[f, a][u.calcium[f, a] > 0.5]
    marks = (Mark(inside[[0, -1]]),) if len(inside) else ()
    return Plan((Piece(("Ca",), points),), lambda S: S[0].sum() * u.step_mm / len(near), marks)


def _length(s: Subject) -> Plan:
    """Length along the vessel of the longest deposit."""
    labels = cc3d.connected_components(s.need("Ca"), connectivity=26)
    spans = [(x[2].stop - x[2].start, i) for i, x in enumerate(ndimage.find_objects(labels), 1) if x]
    own = max(spans)[1]
    room = max(round(ROOM_MM * s.n), 1)
    rows = np.flatnonzero((labels == own).any((0, 1)))
    rows = np.arange(max(rows[0] - room, 0), min(rows[-1] + room + 1, s.n))
    columns = np.argwhere((labels == own).any(2))
    points = np.stack(
        [
            np.repeat(columns[:, 0], len(rows)),
            np.repeat(columns[:, 1], len(rows)),
            np.tile(rows, len(columns)),
        ],
        -1,
    )
    shape = (len(columns), len(rows))
    # Other deposits that lie in the same columns do not count.
    mine = torch.from_numpy(np.isin(labels[tuple(points.T)], (0, own)).astype(float)).view(shape)

    def value(S: Sequence[Tensor]) -> Tensor:
        most = (S[0].view(shape) * mine.to(S[0])).amax(0)
        return torch.sigmoid(16 * (most - 0.5)).sum() * s.voxel_mm

    return Plan((Piece(("Ca",), (points + 0.5) * s.voxel_mm),), value)


def _to_lumen(s: Subject) -> Plan:
    """Least thickness of what lies between lumen and calcium: on the middle one of the lines between voxels
    of both that are nearest to each other, since the shortest would be short by the luck of rounding."""
    calcium, lumen = s.need("Ca"), s.need("Lu")
    away, nearest = ndimage.distance_transform_edt(~lumen, return_indices=True)  # type: ignore[misc]
    at = np.argwhere(calcium)
    at = at[np.argsort(away[tuple(at.T)], kind="stable")[:NEAREST]]
    from_lumen = np.stack([x[tuple(at.T)] for x in nearest], -1)
    ways = np.array([unit(x) for x in at - from_lumen])
    lines = [
        ray(s, ("Lu", "Ca"), (a - INTO * w + 0.5) * s.voxel_mm, (b + INTO * w + 0.5) * s.voxel_mm)
        for a, b, w in zip(from_lumen, at, ways, strict=True)
    ]
    gaps = [float((1 - s.sample(("Lu", "Ca"), x.piece.points_mm)).sum() * x.step_mm) for x in lines]
    line = lines[int(np.argsort(gaps)[len(gaps) // 2])]

    def value(S: Sequence[Tensor]) -> Tensor:
        return (1 - S[0]).clamp_min(0).sum() * line.step_mm

    return Plan((line.piece,), value, (line.mark,))


def _count(s: Subject) -> Plan:
    s.need("Lu")
    return number(float(cc3d.connected_components(s.mask("Ca"), connectivity=6, return_N=True)[1]))


def _score(s: Subject) -> Plan:
    s.need("Lu")
    if not s.there("Ca"):
        return number(0.0)
    parts = {"max_angle_deg": _max_angle, "max_thickness_mm": _max_thickness, "length_mm": _length}
    return number(sum(points for key, (limit, points) in SCORE.items() if s.hard(parts[key](s)) > limit))


def _calcium_volume(s: Subject) -> Plan:
    """Where there is none, all of the vessel is looked at: an ask can only grow what it sees."""
    s.need("Lu")
    if s.there("Ca"):
        return volume(s, "Ca", per_mm3=1.0)
    vessel, cell = volume_piece(s, *(x for x in ALL if s.there(x)))
    return Plan((Piece(("Ca",), vessel.points_mm),), lambda S: S[0].sum() * cell)


PLANS = {
    "lumen.min_area_mm2": _min_area,
    "lumen.min_area_at_mm": lambda s: number(
        float(s.to_ras(frames(s).centres_mm[_narrowest(s)])[2] - s.to_ras(np.zeros(3))[2])
    ),
    "lumen.mean_diameter_mm": _mean_diameter,
    "vessel.area_mm2": partial(_mean_area, tissues=ALL),
    "plaque_burden_pct": _burden,
    "area_stenosis_pct": _stenosis,
    "wall.thickness_mm": _wall,
    "calcium.count": _count,
    "calcium.volume_mm3": _calcium_volume,
    "calcium.max_angle_deg": _max_angle,
    "calcium.max_thickness_mm": _max_thickness,
    "calcium.length_mm": _length,
    "calcium.score": _score,
    "calcium.to_lumen_mm": _to_lumen,
}
