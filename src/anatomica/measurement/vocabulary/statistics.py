"""All named quantities of a label map: values where the labels allow them, reasons where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anatomica.anatomy.catalogue import PAPER_GRID, Anatomy
from anatomica.anatomy.label_map import LabelMap, affordable, to_cube
from anatomica.measurement.measure import soft_structure_map
from anatomica.measurement.vocabulary import aortic, cardiac, coronary, relations, spinal
from anatomica.measurement.vocabulary.plan import Mark, Missing, Plan
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.ranges import range_of
from anatomica.spec.vocabulary import entries, lookup
from anatomica.spec.vocabulary_tables import Entry

PLANS = {
    "cardiac": cardiac.PLANS,
    "aortic": aortic.PLANS,
    "spinal": spinal.PLANS,
    "coronary": coronary.PLANS,
}
"""How each key is placed on a subject, by anatomy."""


@dataclass(frozen=True, eq=False)
class Found:
    """A quantity of one label map; without a value the reason says why."""

    entry: Entry
    value: float | None
    reason: str = ""
    marks: tuple[Mark, ...] = ()


def plan(s: Subject, key: str) -> Plan:
    """Where a quantity is sampled on a subject; raises Missing where the label map does not have it."""
    entry = lookup(s.about, key)
    if (kind := entry.key.partition("[")[0]) in relations.PLANS:
        return relations.PLANS[kind](s, *entry.parts)
    if entry.parts:
        upper, lower, plane = entry.parts
        return spinal.cobb(s, upper, lower, plane)
    return PLANS[s.about.name][entry.key](s)


def find(s: Subject, key: str) -> Found:
    """A quantity's hard form on a subject. What is a little outside of its definition, by the luck of voxels,
    is brought to its end; what is farther outside was not measured."""
    entry = lookup(s.about, key)
    try:
        placed = plan(s, key)
        value = s.hard(placed)
    except Missing as why:
        return Found(entry, None, str(why))
    if not np.isfinite(value):
        return Found(entry, None, "the label map gives no finite number")
    known = range_of(entry)
    held = float(min(max(value, known.low), known.high))
    if abs(value - held) > max(entry.tolerance, 0.02 * abs(held)):
        return Found(entry, None, f"{value:.3g} was found, which is not {known.words}")
    return Found(entry, held, marks=placed.marks)


COARSEST = 64
"""Voxels along the anatomy's cube below which a long scan is not measured unless that is asked for."""


def subject(label_map: LabelMap, about: Anatomy, resolution: int | None = None) -> Subject:
    """A label map on any grid in its anatomy's cube, with partial volumes and the scan's borders.

    Without a resolution it is the paper's, or less for a scan that is much longer than the cube.
    """
    if resolution is None:
        resolution = affordable(label_map, about, PAPER_GRID, COARSEST)
    cube = to_cube(label_map, about, resolution, grow=True)
    if cube is label_map:
        return Subject(cube, about)
    corners = np.array(list(np.ndindex(2, 2, 2))) * np.array(label_map.shape) - 0.5
    ras = corners @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
    mm = ras - cube.affine[:3, 3] + 0.5 * float(cube.spacing_mm[0])
    return Subject(cube, about, soft_structure_map(label_map, cube), (mm.min(0), mm.max(0)))


def statistics(
    label_map: LabelMap,
    about: Anatomy,
    resolution: int | None = None,
    keys: Sequence[str] | None = None,
) -> tuple[Subject, list[Found]]:
    """Every quantity of the anatomy's vocabulary (or some), in the vocabulary's order."""
    s = subject(label_map, about, resolution)
    wanted = [e.key for e in entries(about.name)] if keys is None else list(keys)
    return s, [find(s, key) for key in wanted]
