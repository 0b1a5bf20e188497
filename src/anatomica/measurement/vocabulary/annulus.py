"""Valve annuli: the flat patch in which two cavities meet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.vocabulary.plan import Mark, Missing, Piece, Plan, circle_diameter
from anatomica.measurement.vocabulary.shapes import (
    FINER,
    ROOM_MM,
    Contact,
    basis,
    contact,
    fine_contact,
    patches,
    unit,
)
from anatomica.measurement.vocabulary.subject import Subject, landmark

Array = np.ndarray
APART = 1.25
"""Voxels on each side of the annulus at which its two cavities are sampled."""
VALVE_MM = 6.0
"""Cavities that are no farther apart meet across an unlabelled valve."""


@dataclass(frozen=True, eq=False)
class Annulus:
    """Where two cavities meet: centre, unit normal from the first to the second, and the largest patch."""

    between: tuple[str, str]
    centre_mm: Array
    normal: Array
    patch: Contact
    gap_mm: float


@landmark
def annulus(s: Subject, first: str, second: str) -> Annulus:
    """The largest patch in which two cavities share faces, or face each other across a valve."""
    s.need(first, second)
    gap = 0.0 if contact(s, first, second) is not None else VALVE_MM
    found = fine_contact(s, first, second, gap)
    if found is None:
        raise Missing(f"{first} and {second} do not touch")
    largest = patches(found, s.voxel_mm / FINER)[0]
    patch = Contact(found.centres_mm[largest], found.directions[largest], found.face_mm2)
    if patch.area_mm2 < 4 * s.voxel_mm**2:
        raise Missing(f"{first} and {second} hardly touch")
    normal = unit(patch.vector_mm2)
    # A face counts by how much of it is seen along the normal: a stepped border weighs like a flat one.
    weight = np.clip(patch.directions @ normal, 0, None)
    centre = (weight[:, None] * patch.centres_mm).sum(0) / max(float(weight.sum()), 1e-9)
    return Annulus((first, second), centre, normal, patch, gap)


def annulus_plan(s: Subject, first: str, second: str, what: str) -> Plan:
    """Area, perimeter, equivalent diameter or eccentricity of an annulus.

    The annulus is sampled as the product of both cavities' memberships a little on either side of its plane.
    Area and elongation are scaled to those of the shared faces, seen along the normal: the faces know of a
    border that is bent like a saddle, which the two planes cut off.
    """
    a = annulus(s, first, second)
    u, v = basis(a.normal)
    flat = np.stack([(a.patch.centres_mm - a.centre_mm) @ w for w in (u, v)], -1)
    reach = np.abs(flat).max() + ROOM_MM * s.edge_mm
    step = s.voxel_mm * (0.5 if s.coarse == 1 else 1.0)
    line = np.arange(-reach, reach + step, step)
    x, y = (w.ravel() for w in np.meshgrid(line, line, indexing="ij"))
    near = np.hypot(x, y) <= reach
    x, y = x[near], y[near]
    plane = a.centre_mm + x[:, None] * u + y[:, None] * v
    apart = (APART * s.voxel_mm + a.gap_mm / 2) * a.normal
    pieces = (Piece((first,), plane - apart), Piece((second,), plane + apart))
    both = np.prod([s.sample(p.tissues, p.points_mm) for p in pieces], axis=0)
    if both.sum() <= 0:
        raise Missing(f"{first} and {second} do not face each other across a plane")
    cell = a.patch.area_mm2 / float(both.sum())
    uv = torch.from_numpy(np.stack([x, y], -1))
    seen = torch.from_numpy(np.clip(a.patch.directions @ a.normal, 0, None))
    longer = float(
        _elongation(seen, torch.from_numpy(flat)) / _elongation(torch.from_numpy(both).double(), uv)
    )
    turn = np.linspace(0, 2 * np.pi, 49)[:, None]
    ring = a.centre_mm + math.sqrt(a.patch.area_mm2 / math.pi) * (np.cos(turn) * u + np.sin(turn) * v)

    def value(S: Sequence[Tensor]) -> Tensor:
        both = S[0] * S[1]
        area = both.sum() * cell
        if what == "area_mm2":
            return area
        if what == "diameter_mm":
            return circle_diameter(area)
        ratio = (longer * _elongation(both, uv.to(both))).clamp_min(1.0)
        if what == "eccentricity":
            return 1 - 1 / ratio
        wide = circle_diameter(area) / 2 * ratio.sqrt()
        return _ellipse_perimeter(wide, wide / ratio)

    return Plan(pieces, value, (Mark(ring),))


def _elongation(weight: Float[Tensor, " p"], uv: Float[Tensor, "p 2"]) -> Tensor:
    """Largest over least diameter of the ellipse with these second moments."""
    mass = weight.sum().clamp_min(1e-9)
    away = uv - (weight[:, None] * uv).sum(0) / mass
    xx, yy = ((weight[:, None] * away**2).sum(0) / mass).unbind()
    xy = (weight * away[:, 0] * away[:, 1]).sum() / mass
    middle, spread = (xx + yy) / 2, (((xx - yy) / 2) ** 2 + xy**2 + 1e-9).sqrt()
    return ((middle + spread) / (middle - spread).clamp_min(1e-9)).sqrt()


def _ellipse_perimeter(a: Tensor, b: Tensor) -> Tensor:
    """Ramanujan's second approximation, from semi-axes."""
    h = ((a - b) / (a + b)) ** 2
    return math.pi * (a + b) * (1 + 3 * h / (10 + (4 - 3 * h).sqrt()))
