"""A finished patient of a cohort, and all that the engine knows of drawing: request -> patient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from anatomica.anatomy.label_map import LabelMap
from anatomica.cohort.plan import Plan

Outcome = Literal["kept", "too near", "excluded", "other stratum", "implausible", "unmet", "infeasible"]
OUTCOMES: tuple[Outcome, ...] = (
    "kept",
    "too near",
    "excluded",
    "other stratum",
    "implausible",
    "unmet",
    "infeasible",
)
"""What can become of a request, from the best to the worst: the order in which candidates are preferred."""


@dataclass(frozen=True, eq=False)
class Patient:
    """A finished request: the record as plain data, and the label map if it is kept."""

    record: dict[str, Any]
    label_map: LabelMap | None


Draw = Callable[[Plan, int], Patient]
"""The patient of the request with this number."""
