"""Recipes: everything that makes the same label maps again, as plain data in report.json.

Placed domains and targets are kept as numbers, so that a recipe does not need the patient they came from.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from anatomica import __version__
from anatomica.domains.domain import Domains
from anatomica.errors import AnatomicaError
from anatomica.models.zoo import Model
from anatomica.resolve import QUANTITIES, Resolved, Wanted
from anatomica.spec import Spec


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a report.json says about how it was made."""

    anatomy: str
    model_hash: str
    spec: Spec | None
    resolved: tuple[Resolved, ...]
    arguments: dict[str, Any]


def make_recipe(
    model: Model, spec: Spec | None, resolved: Sequence[Resolved], arguments: dict[str, Any]
) -> dict[str, Any]:
    """The recipe of a run: versions, model, spec, placed domains and targets, and the command's arguments."""
    return {
        "anatomica": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": {"anatomy": model.anatomy, "hash": model.hash},
        "spec": None if spec is None else spec.model_dump(mode="json", exclude_none=True),
        "resolved": [_to_dict(r) for r in resolved],
        "arguments": arguments,
    }


def read_recipe(path: Path) -> Recipe:
    """The recipe in a report.json of `anatomica generate`."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))["recipe"]
        spec = None if data["spec"] is None else Spec.model_validate(data["spec"])
        constraints = [] if spec is None else spec.constraints
        resolved = tuple(_from_dict(c, row) for c, row in zip(constraints, data["resolved"], strict=True))
        about = data["model"]
        return Recipe(about["anatomy"], about["hash"], spec, resolved, dict(data["arguments"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AnatomicaError(f"{path} is not a report.json of anatomica generate ({error})") from None


def _to_dict(r: Resolved) -> dict[str, Any]:
    d, w = r.domains, r.wanted
    placed = {"R": d.R, "s": d.s, "t": d.t, "valid": d.valid}
    wanted = {key: getattr(w, key) for key in QUANTITIES}
    return {
        "constraint": r.constraint.name,
        "selection": list(r.selection),
        "grid": list(d.grid),
        "reasons": list(d.reasons),
        **{key: value.tolist() for key, value in placed.items()},
        "wanted": {key: value.tolist() for key, value in wanted.items() if value is not None},
    }


def _from_dict(constraint, row: dict[str, Any]) -> Resolved:
    def double(values: Any) -> Tensor:
        return torch.tensor(values, dtype=torch.float64)

    a, e, g = row["grid"]
    wanted = {key: double(row["wanted"][key]) if key in row["wanted"] else None for key in QUANTITIES}
    domains = Domains(
        double(row["R"]),
        double(row["s"]),
        double(row["t"]),
        (a, e, g),
        torch.tensor(row["valid"], dtype=torch.bool),
        tuple(row["reasons"]),
    )
    return Resolved(
        constraint, tuple(row["selection"]), domains, Wanted(**wanted, betti=constraint.target.betti)
    )
