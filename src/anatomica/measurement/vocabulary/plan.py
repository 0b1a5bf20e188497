"""A plan: where a named quantity is sampled, and which function of the samples it is.

Landmarks decide where; they come from a label map (a patient's, or the current prediction's) and are frozen.
The value is a differentiable function of how far each point belongs to its tissues. So the hard form is the
plan's value on a label map, sliced trilinearly, and the soft form is the same plan on the field's
probabilities, with a derivative by every one of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

Array = np.ndarray
Value = Callable[[Sequence[Tensor]], Tensor]
"""One tensor (p,) of memberships per piece -> the quantity, a scalar in its own unit."""


class Missing(Exception):
    """A quantity that a label map does not have; the message says why."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Points at which the union of some tissues is sampled, in the cube's mm: (index + 1/2) * voxel."""

    tissues: tuple[str, ...]
    points_mm: Float[Array, "p 3"]


@dataclass(frozen=True, eq=False)
class Mark:
    """What a picture shows of a quantity: a polyline in the cube's mm."""

    line_mm: Float[Array, "m 3"]


@dataclass(frozen=True, eq=False)
class Plan:
    """Where a quantity is sampled and how it follows; without pieces it is a number by itself (a count)."""

    pieces: tuple[Piece, ...]
    value: Value
    marks: tuple[Mark, ...] = ()


def number(x: float) -> Plan:
    """A quantity without a soft form: a count, a type, a yes or no."""
    return Plan((), lambda _: torch.tensor(float(x), dtype=torch.float64))


def combined(plans: Sequence[Plan], value: Callable[[Sequence[Tensor]], Tensor]) -> Plan:
    """A function of other quantities' values: a ratio, a mean, a largest."""
    ends = np.cumsum([0, *(len(p.pieces) for p in plans)]).tolist()

    def of_samples(samples: Sequence[Tensor]) -> Tensor:
        parts = zip(plans, ends, ends[1:], strict=False)
        return value([p.value(samples[first:last]) for p, first, last in parts])

    return Plan(
        tuple(x for p in plans for x in p.pieces), of_samples, tuple(x for p in plans for x in p.marks)
    )


def mean(plans: Sequence[Plan]) -> Plan:
    return combined(plans, lambda x: torch.stack(list(x)).mean())


def largest(plans: Sequence[Plan]) -> Plan:
    return combined(plans, lambda x: torch.stack(list(x)).max())


def ratio(above: Plan, below: Plan) -> Plan:
    return combined([above, below], lambda x: x[0] / x[1].clamp_min(1e-9))


def circle_diameter(area: Tensor) -> Tensor:
    """Diameter of the circle with this area."""
    return (4 / math.pi * area.clamp_min(1e-9)).sqrt()
