"""Lengths and angles of tubes from the centroids of their sections, which move as the tube moves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.vocabulary.plan import Mark, Missing, Plan
from anatomica.measurement.vocabulary.shapes import Section
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.measurement.vocabulary.tubes import Tube

Array = np.ndarray
EVERY = 0.6
"""Sections along a tube are this many radii apart: a circle's chords are then 1.5 % short at most."""


def _course(s: Subject, tube: Tube, low_mm: float, high_mm: float) -> tuple[list[Section], float, float]:
    """Sections along a part of a tube; the arc's length over that of the chords between their centroids, and
    the straight line between the part's ends over that between the first and the last centroid.

    A section within half a radius of a cut end is not whole, so the last ones stay away from it.
    """
    typical = float(np.interp((low_mm + high_mm) / 2, tube.along_mm, tube.radii_mm))
    count = max(int(np.ceil((high_mm - low_mm) / (EVERY * typical))) + 1, 2)
    places = np.linspace(low_mm, high_mm, count).clip(
        tube.radius(0.0) / 2, tube.length_mm - tube.radius(tube.length_mm) / 2
    )
    line = np.array([tube.at(float(x)) for x in places])
    chords = float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())
    straight = float(np.linalg.norm(tube.at(high_mm) - tube.at(low_mm)))
    cuts = [tube.section(s, float(x)) for x in places]
    if any(len(cut.piece.points_mm) == 0 for cut in cuts):
        raise Missing("the tube has no section there")
    between = max(float(np.linalg.norm(line[-1] - line[0])), 1e-9)
    return cuts, (high_mm - low_mm) / max(chords, 1e-9), straight / between


def _centroids(cuts: Sequence[Section], S: Sequence[Tensor]) -> Float[Tensor, "k 3"]:
    return torch.stack([cut.centroid(x) for cut, x in zip(cuts, S, strict=True)])


@dataclass(frozen=True, eq=False)
class Anchor:
    """A branch at one end of a length: a section of the branch near its ostium, and the unit direction of its
    parent there. As far as the section's centroid moves along it, so far moves the end."""

    cut: Section
    way: Float[Array, "3"]
    last: bool


def length_between(
    s: Subject, tube: Tube, low_mm: float, high_mm: float, anchors: Sequence[Anchor] = ()
) -> Plan:
    """Arc length of a part of a tube: through the centroids of its sections.

    The sections stay in their planes. An end that a branch marks moves along the tube with its `anchor`.
    """
    cuts, factor, _ = _course(s, tube, low_mm, high_mm)
    still = []
    for x in anchors:
        here = torch.from_numpy(s.sample(x.cut.piece.tissues, x.cut.piece.points_mm)).double()
        still.append(x.cut.centroid(here))

    def value(S: Sequence[Tensor]) -> Tensor:
        own, ends = S[: len(cuts)], S[len(cuts) :]
        found = factor * _centroids(cuts, own).diff(dim=0).norm(dim=-1).sum()
        for x, here, before in zip(anchors, ends, still, strict=True):
            moved = (x.cut.centroid(here) - before.to(here)) @ torch.from_numpy(x.way).to(here)
            found = found + (moved if x.last else -moved)
        return found

    marks = (*(cut.mark for cut in (cuts[0], cuts[-1])), Mark(np.stack([cut.centre_mm for cut in cuts])))
    return Plan(tuple(x.piece for x in (*cuts, *(a.cut for a in anchors))), value, marks)


def tortuosity(s: Subject, tube: Tube, low_mm: float, high_mm: float) -> Plan:
    """Arc length of a part of a tube over the straight line between its ends."""
    cuts, factor, longer = _course(s, tube, low_mm, high_mm)

    def value(S: Sequence[Tensor]) -> Tensor:
        line = _centroids(cuts, S)
        chord = longer * (line[-1] - line[0]).norm().clamp_min(1e-6)
        return factor * line.diff(dim=0).norm(dim=-1).sum() / chord

    return Plan(tuple(cut.piece for cut in cuts), value)


def degrees_between(a: Float[Tensor, "3"], b: Float[Tensor, "3"]) -> Tensor:
    """Angle of two vectors in degrees, with a slope also where they are parallel."""
    across = torch.linalg.cross(a, b).square().sum().add(1e-12).sqrt()
    return torch.atan2(across, (a * b).sum()) * (180 / math.pi)


def angle_between(first: Sequence[Section], second: Sequence[Section]) -> Plan:
    """Angle in degrees between the ways along two rows of sections, each the slope of the line through its
    sections' centroids."""
    ways = [_slope_of(len(x)) for x in (first, second)]

    def value(S: Sequence[Tensor]) -> Tensor:
        rows = (first, S[: len(first)]), (second, S[len(first) :])
        a, b = (w.to(S[0]) @ _centroids(cuts, x) for w, (cuts, x) in zip(ways, rows, strict=True))
        return degrees_between(a, b)

    marks = tuple(Mark(np.stack([x.centre_mm for x in row])) for row in (first, second))
    return Plan(tuple(x.piece for x in (*first, *second)), value, marks)


def _slope_of(count: int) -> Float[Tensor, " k"]:
    """Weights of evenly spaced points whose sum is the slope of the line through them."""
    places = torch.arange(count, dtype=torch.float64) - (count - 1) / 2
    return places / places.square().sum()
