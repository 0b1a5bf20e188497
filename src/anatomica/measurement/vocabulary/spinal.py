"""Quantities of the spine: bodies, discs, curves and canals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from anatomica.measurement.vocabulary.plan import Mark, Missing, Piece, Plan, combined, ratio
from anatomica.measurement.vocabulary.shapes import ROOM_MM, Ray, ray, volume
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.measurement.vocabulary.vertebrae import (
    CANAL_RAYS,
    STATION,
    STATIONS,
    body,
    canal_outline,
    leaving,
    present,
)
from anatomica.spec.vocabulary_tables import DISCS, VERTEBRAE

Array = np.ndarray
WHERE = {"anterior": STATION, "middle": 0.0, "posterior": -STATION}
BUNDLE = [(x, y) for x in (-0.06, 0.0, 0.06) for y in (-0.03, 0.0, 0.03)]
"""A height is the mean of nine rays, so that it does not jump with the voxels."""


def _volume(s: Subject, name: str) -> Plan:
    s.whole(name)
    return volume(s, name)


def _half(s: Subject, name: str, side: str, right: float, front: float) -> tuple[Ray, Mark]:
    """The ray from the body's middle plane to beyond an end plate, and its part within the body."""
    b = body(s, name)
    way = b.axes[:, 2] * (1.0 if side == "upper" else -1.0)
    start = b.at(right, front)
    away = float(leaving(s, name, start[None], way[None])[0])
    if not np.isfinite(away):
        raise Missing(f"{name} has no {side} end plate there")
    inside = Mark(np.stack([start, start + away * way]))
    return ray(s, (name,), start, start + (away + ROOM_MM * s.edge_mm) * way), inside


def _reach(s: Subject, name: str, side: str, front: float) -> Plan:
    """How far the body reaches from its middle plane, the mean of a bundle of rays."""
    if name == "C2" and side == "upper":
        raise Missing("C2 has no upper end plate")
    rays, marks = zip(*[_half(s, name, side, x, front + y) for x, y in BUNDLE], strict=True)

    def value(S: Sequence[Tensor]) -> Tensor:
        return torch.stack([x.sum() * r.step_mm for x, r in zip(S, rays, strict=True)]).mean()

    return Plan(tuple(r.piece for r in rays), value, (marks[len(marks) // 2],))


def height(s: Subject, name: str, where: str) -> Plan:
    """Height of a body between its plates, along its own axis."""
    both = [_reach(s, name, side, WHERE[where]) for side in ("upper", "lower")]
    return combined(both, lambda x: x[0] + x[1])


def _disc(s: Subject, upper: str, lower: str) -> Plan:
    """From the middle of the upper body's lower plate to that of the lower body's upper plate."""
    above, below = body(s, upper), body(s, lower)
    down, up = _reach(s, upper, "lower", 0.0), _reach(s, lower, "upper", 0.0)
    ends = [
        torch.from_numpy(x) for x in (above.centre_mm, above.axes[:, 2], below.centre_mm, below.axes[:, 2])
    ]

    def value(x: Sequence[Tensor]) -> Tensor:
        a, u, b, v = (e.to(x[0]) for e in ends)
        return ((a - x[0] * u) - (b + x[1] * v)).norm()

    found = combined([down, up], value)
    plates = [x.marks[0].line_mm[-1] for x in (down, up)]
    return Plan(found.pieces, found.value, (Mark(np.stack(plates)),))


def _plate_heights(s: Subject, name: str, side: str) -> Plan:
    """Distances of an end plate from the body's middle plane at nine stations (a vector)."""
    if name == "C2" and side == "upper":
        raise Missing("C2 has no upper end plate")
    rays, marks = zip(*[_half(s, name, side, x, y) for x, y in STATIONS], strict=True)

    def value(S: Sequence[Tensor]) -> Tensor:
        return torch.stack([x.sum() * r.step_mm for x, r in zip(S, rays, strict=True)])

    # The plate from its front to its back.
    rim = [marks[k].line_mm[-1] for k in (3, 0, 7)]
    return Plan(tuple(r.piece for r in rays), value, (Mark(np.stack(rim)),))


def _normal(s: Subject, name: str, side: str) -> Plan:
    """Upward normal of an end plate (a vector), from the plane through nine stations."""
    b, heights = body(s, name), _plate_heights(s, name, side)
    flat = np.array([(x * b.width_mm, y * b.depth_mm, 1.0) for x, y in STATIONS])
    fit = torch.from_numpy(np.linalg.pinv(flat))
    axes, sign = torch.from_numpy(b.axes), 1.0 if side == "upper" else -1.0

    def value(S: Sequence[Tensor]) -> Tensor:
        slope = fit.to(S[0]) @ (sign * heights.value(S))
        normal = torch.stack([-slope[0], -slope[1], torch.ones_like(slope[0])])
        return axes.to(S[0]) @ normal / normal.norm()

    return Plan(heights.pieces, value, heights.marks)


def _lean(way: Tensor, plane: str) -> Tensor:
    """Lean of an upward direction in degrees: backwards (sagittal) or to the right (coronal)."""
    across = -way[1] if plane == "sagittal" else way[0]
    return torch.atan2(across, way[2]) * (180 / math.pi)


def cobb(s: Subject, upper: str, lower: str, plane: str) -> Plan:
    """Angle of the upper vertebra's upper plate with the lower one's lower plate, in a plane of the patient.

    Sagittal: positive where the column is bent forward (kyphosis). Coronal: without sign.
    """
    ends = [_normal(s, upper, "upper"), _normal(s, lower, "lower")]

    def value(x: Sequence[Tensor]) -> Tensor:
        turn = _lean(x[1], plane) - _lean(x[0], plane)
        return turn if plane == "sagittal" else turn.abs()

    return combined(ends, value)


def _centre(s: Subject, name: str) -> Plan:
    """The middle of a body (a vector): its centre, moved as the mass in its box moves."""
    b = body(s, name)
    line = np.linspace(-0.5, 0.5, 9 if s.coarse == 1 else 7)
    box = np.stack(np.meshgrid(1.1 * line, 1.1 * line, 1.5 * line, indexing="ij"), -1).reshape(-1, 3)
    points = b.centre_mm + (box * [b.width_mm, b.depth_mm, b.height_mm]) @ b.axes.T
    here = s.sample((name,), points)
    start = (here[:, None] * points).sum(0) / max(float(here.sum()), 1e-9)
    offset, at = torch.from_numpy(b.centre_mm - start), torch.from_numpy(points)

    def value(S: Sequence[Tensor]) -> Tensor:
        return (S[0][:, None] * at.to(S[0])).sum(0) / S[0].sum().clamp_min(1e-9) + offset.to(S[0])

    return Plan((Piece((name,), points),), value)


def _curve(s: Subject, region: str, sign: float) -> Plan:
    """Angle between the column's directions over the first two and the last two bodies of a region."""
    shown = []
    for name in present(s):
        if name.startswith(region):
            try:
                body(s, name)
            except Missing:
                continue
            shown.append(name)
    if len(shown) < 3:
        kind = {"T": "thoracic", "L": "lumbar"}[region]
        raise Missing(f"fewer than three whole {kind} bodies in the label map")
    ends = [_centre(s, x) for x in (shown[0], shown[1], shown[-2], shown[-1])]

    def value(x: Sequence[Tensor]) -> Tensor:
        first, last = _lean(x[0] - x[1], "sagittal"), _lean(x[2] - x[3], "sagittal")
        return sign * (last - first)

    line = np.stack([body(s, x).centre_mm for x in shown])
    found = combined(ends, value)
    return Plan(found.pieces, found.value, (Mark(line),))


def _canal(s: Subject, name: str, what: str) -> Plan:
    centre, ways, away = canal_outline(s, name)
    met = np.isfinite(away)
    index = np.arange(CANAL_RAYS)
    away = np.interp(index, index[met], away[met], period=CANAL_RAYS)
    rays = [
        ray(s, (name,), centre, centre + (r + 0.75 * s.voxel_mm) * w) for r, w in zip(away, ways, strict=True)
    ]
    sector = math.pi / CANAL_RAYS
    outline = centre + away[:, None] * ways
    # A ray that meets nothing keeps the length that its neighbours give it.
    fixed = torch.from_numpy(np.where(met, np.nan, away))

    def radii(S: Sequence[Tensor]) -> Tensor:
        free = torch.stack([(1 - x).sum() * r.step_mm for x, r in zip(S, rays, strict=True)])
        return torch.where(torch.isnan(fixed).to(free.device), free, fixed.to(free))

    def area(S: Sequence[Tensor]) -> Tensor:
        return (radii(S) ** 2).sum() * sector

    def diameter(S: Sequence[Tensor]) -> Tensor:
        r = radii(S)
        front, back = CANAL_RAYS // 4, 3 * CANAL_RAYS // 4
        return sum(r[k - 1 : k + 2].mean() for k in (front, back))  # type: ignore[return-value]

    mark = Mark(np.concatenate([outline, outline[:1]]))
    return Plan(tuple(r.piece for r in rays), area if what == "area_mm2" else diameter, (mark,))


PLANS = {
    **{f"{name}.volume_ml": partial(_volume, name=name) for name in VERTEBRAE},
    **{
        f"{name}.body.height_mm.{where}": partial(height, name=name, where=where)
        for name in VERTEBRAE[2:]
        for where in WHERE
    },
    **{
        f"{name}.wedge_ratio": lambda s, name=name: ratio(
            height(s, name, "anterior"), height(s, name, "posterior")
        )
        for name in VERTEBRAE[2:]
    },
    **{f"disc.{a}-{b}.height_mm": partial(_disc, upper=a, lower=b) for a, b in DISCS},
    "kyphosis_deg": partial(_curve, region="T", sign=1.0),
    "lordosis_deg": partial(_curve, region="L", sign=-1.0),
    **{
        f"canal.{name}.{what}": partial(_canal, name=name, what=what)
        for name in VERTEBRAE[1:]
        for what in ("area_mm2", "diameter_mm")
    },
}
