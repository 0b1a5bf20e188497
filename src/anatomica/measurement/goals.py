"""Goals: asks with their bounds as numbers, how far a label map is from them, and their checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from anatomica.anatomy.catalogue import Anatomy
from anatomica.errors import AnatomicaError
from anatomica.measurement.placing import Resolved
from anatomica.measurement.vocabulary.plan import Missing, Piece, Plan
from anatomica.measurement.vocabulary.statistics import find, plan
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.asks import Ask, Bound, entries_of
from anatomica.spec.expression import Expression
from anatomica.spec.vocabulary import lookup
from anatomica.spec.vocabulary_tables import Entry

COARSE = 64
"""Voxels along the cube of the shipped models."""
STRICT = 1e-9
"""A range and an inequality are held exactly, but for rounding."""


@dataclass(frozen=True, eq=False)
class Goal:
    """An ask with its bounds as numbers, in its own unit. `reference` is the label map on which its levels
    are placed; without one they are placed on each prediction and each finished label map."""

    ask: Ask
    about: Anatomy
    low: float | None
    high: float | None
    reference: Subject | None = None

    @property
    def name(self) -> str:
        return self.ask.left.text

    @property
    def unit(self) -> str:
        return "" if self.ask.left.unit == "1" else self.ask.left.unit

    @property
    def entries(self) -> list[Entry]:
        return entries_of(self.ask, self.about)

    @property
    def guided(self) -> bool:
        """Whether it has a soft form; counts are only checked."""
        return not any(e.count for e in self.entries)

    @property
    def equal(self) -> bool:
        return self.ask.equal


Row = Resolved | Goal
"""What can be asked of a sample: a constraint in its domains, or a named quantity."""


def constraints_in(rows: Sequence[Row]) -> tuple[Resolved, ...]:
    """The constraints among what is asked; the same tuple if there is nothing else."""
    if isinstance(rows, tuple) and not any(isinstance(r, Goal) for r in rows):
        return rows  # type: ignore[return-value]
    return tuple(r for r in rows if isinstance(r, Resolved))


def goals_in(rows: Sequence[Row]) -> tuple[Goal, ...]:
    """The named quantities among what is asked."""
    return tuple(r for r in rows if isinstance(r, Goal))


class Sides(NamedTuple):
    """The two sides of an ask on one label map; a bound has no right side, which is 0."""

    left: Any
    right: Any


def sides(ask: Ask, values: Mapping[str, Any]) -> Sides:
    """Both sides, given the quantities; raises Missing where a number is divided by zero."""
    try:
        return Sides(ask.left.value(values), 0.0 if ask.right is None else ask.right.value(values))
    except ZeroDivisionError:
        zero = [key for key in ask.keys if values[key] == 0]
        raise Missing(f"{' and '.join(zero) or 'a difference'} is 0, by which is divided") from None


def allowed(goal: Goal, values: Mapping[str, float]) -> float:
    """The tolerance of a goal in its unit.

    Of one quantity it is the quantity's own; of a formula or a relation what the tolerances of its quantities
    add up to.
    """
    ask = goal.ask
    bound = goal.low if goal.low is not None else goal.high
    at = abs((bound or 0.0) + float(sides(ask, values).right))
    if ask.tolerance is not None:
        number, unit = ask.tolerance
        return number / 100 * at if unit == "%" and ask.left.unit != "%" else number
    if ask.left.single and ask.right is None:
        return _own(goal.entries[0], at, goal.about)
    keys = list(ask.keys)
    leaf = torch.tensor([float(values[key]) for key in keys], dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        both = sides(ask, dict(zip(keys, leaf.unbind(), strict=True)))
        (slope,) = torch.autograd.grad(both.left - both.right, leaf)
    each = [_own(lookup(goal.about, key), abs(float(values[key])), goal.about) for key in keys]
    return float(sum(abs(a) * b for a, b in zip(slope.tolist(), each, strict=True)))


def _own(entry: Entry, at: float, about: Anatomy) -> float:
    """A quantity's own tolerance at a value; of a share in % at least what one voxel of 64^3 makes, so that
    none of a tissue can be asked for."""
    if entry.tolerance_unit != "%":
        return entry.tolerance
    voxel_mm = about.edge_mm / COARSE
    least = {"mL": voxel_mm**3 / 1000, "mm3": voxel_mm**3, "g": voxel_mm**3 / 1000, "mm2": voxel_mm**2}
    return max(entry.tolerance / 100 * at, least.get(entry.unit, 0.0))


def residual(goal: Goal, both: Sides, tolerance: float) -> Tensor:
    """Distance from what is asked in tolerances; beyond 1 it is not met.

    Of a range or an inequality it is one-sided, and zero where the goal is held by a tolerance (in a narrow
    range by half its width), so that what is held stays held on another grid.
    """
    off = both.left - both.right
    if goal.equal:
        return (off - goal.low) / tolerance
    scale = tolerance
    if goal.low is not None and goal.high is not None:
        scale = min(scale, (goal.high - goal.low) / 2)
    found = torch.zeros_like(off)
    if goal.high is not None:
        found = found + (off - (goal.high - scale)).clamp_min(0) / scale
    if goal.low is not None:
        found = found - ((goal.low + scale) - off).clamp_min(0) / scale
    return found


def error(goal: Goal, both: Sides) -> float:
    """How far a measured value is from what is asked, in its unit."""
    off = float(both.left) - float(both.right)
    low = 0.0 if goal.low is None else max(goal.low - off, 0.0)
    high = 0.0 if goal.high is None else max(off - goal.high, 0.0)
    return max(low, high)


def met(goal: Goal, off: float, tolerance: float) -> bool:
    return off <= tolerance + STRICT if goal.equal else off <= STRICT


@dataclass(frozen=True, eq=False)
class Placed:
    """A goal with its levels, rays and sections placed: the points to sample at, and its two sides as a
    function of the samples, one tensor per piece."""

    goal: Goal
    plans: dict[str, Plan]

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for p in self.plans.values() for piece in p.pieces)

    def values(self, samples: Sequence[Tensor]) -> dict[str, Tensor]:
        found, first = {}, 0
        for key, p in self.plans.items():
            last = first + len(p.pieces)
            found[key] = p.value(samples[first:last])
            first = last
        return found


def place(goal: Goal, s: Subject) -> Placed:
    """A goal's levels on a label map, or on its own reference; raises Missing where there are none."""
    s = s if goal.reference is None else goal.reference
    return Placed(goal, {key: plan(s, key) for key in goal.ask.keys})


def measured(goal: Goal, s: Subject) -> dict[str, float]:
    """The quantities of a goal on a finished label map, as `anatomica measure` finds them; raises Missing."""
    if goal.reference is not None:
        found = place(goal, s)
        values = found.values([s.parse(piece) for piece in found.pieces])
        return {key: float(x) for key, x in values.items()}
    values = {}
    for key in goal.ask.keys:
        one = find(s, key)
        if one.value is None:
            raise Missing(f"{key}: {one.reason}")
        values[key] = one.value
    return values


def resolve_asks(
    asks: Sequence[Ask],
    about: Anatomy,
    reference: Subject | None,
    on_reference: bool,
    percentile: Callable[[str, float], float],
) -> tuple[Goal, ...]:
    """Asks with their bounds as numbers: percentiles of the population, changes relative to the reference."""
    found = []
    for ask in asks:
        if ask.needs_reference and reference is None:
            raise AnatomicaError(f"{ask.text!r} is relative to a reference anatomy; give one (--like FILE)")
        low, high = (_number(ask, bound, reference, percentile) for bound in (ask.low, ask.high))
        if low is not None and high is not None and low > high:
            raise AnatomicaError(f"{ask.text!r}: the range ends before it begins ({low:.4g} to {high:.4g})")
        goal = Goal(ask, about, low, high, reference if on_reference else None)
        if goal.reference is not None:
            try:
                place(goal, goal.reference)
            except Missing as why:
                raise AnatomicaError(f"{ask.text!r}: the reference does not have it ({why})") from None
        found.append(goal)
    return tuple(found)


def _number(
    ask: Ask,
    bound: Bound | None,
    reference: Subject | None,
    percentile: Callable[[str, float], float],
) -> float | None:
    if bound is None or bound.kind == "number":
        return None if bound is None else bound.value
    if bound.kind == "percentile":
        return percentile(ask.left.keys[0], bound.value)
    assert reference is not None
    now = _at_reference(ask.left, reference, ask)
    return now * (1 + bound.value / 100) if bound.kind == "share" else now + bound.value


def _at_reference(left: Expression, reference: Subject, ask: Ask) -> float:
    values = {}
    for key in left.keys:
        one = find(reference, key)
        if one.value is None:
            raise AnatomicaError(f"{ask.text!r}: the reference does not have {key} ({one.reason})")
        values[key] = one.value
    try:
        return float(sides(ask, values).left)
    except Missing as why:
        raise AnatomicaError(f"{ask.text!r}: at the reference {why}") from None
