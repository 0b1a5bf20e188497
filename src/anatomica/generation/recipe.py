"""Recipes: everything that makes the same label maps again, as plain data in report.json.

Placed domains and targets are kept as numbers, so that a recipe does not need the patient they came from.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from torch import Tensor

from anatomica.anatomy.bounds import check_seed
from anatomica.anatomy.catalogue import from_card, to_card
from anatomica.errors import AnatomicaError, shown
from anatomica.files import CHECKSUM, opened, sealed
from anatomica.generation.goal_recipe import goals_from_dict, goals_to_dict
from anatomica.generation.options import OPTIONS, Options
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.goals import Row, constraints_in, goals_in
from anatomica.measurement.placing import Resolved, Wanted, asked_betti, selection
from anatomica.prior.sampler import SamplingConfig, sampling_from_dict, sampling_to_dict
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import QUANTITIES, Tolerance
from anatomica.spec.spec import Constraint, Spec
from anatomica.version import __version__

MOST_CHARACTERS = 1 << 25
"""Of a recipe; one with a thousand domains has about half a million."""


DECISIVE = ("model", "spec", "resolved", "goals", "arguments")
"""The parts of a recipe that decide the label maps."""
INFORMATIVE = ("anatomica", "torch", "python")
"""Versions, which its checksum leaves out: another one gets a warning."""
MOST_SAMPLES = 1_000_000
"""Of one run."""


class Arguments(BaseModel):
    """What a run was told besides its spec and its model, as on the command line."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    like: str | None = None
    like_phantom: Annotated[int, Field(ge=0)] | None = None
    labels: str | None = None
    samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)] = 8
    seed: Annotated[int, Field(ge=0)] = 0
    options: Options = Options()

    @model_validator(mode="after")
    def _seeds(self) -> Arguments:
        check_seed(self.seed, self.samples)
        return self


def check_arguments(options: dict[str, Any], **given: Any) -> Arguments:
    """The arguments of a run; a value that is not allowed is an error in one sentence."""
    try:
        return Arguments(**given, options=OPTIONS.validate_python(options))
    except ValidationError as error:
        raise AnatomicaError(_sentence(error)) from None


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a report.json says about how it was made; `versions` are those of anatomica and torch."""

    anatomy: str
    model_hash: str
    sampling: SamplingConfig
    spec: Spec | None
    resolved: tuple[Row, ...]
    arguments: Arguments
    versions: dict[str, str]


def make_recipe(
    model: Model, spec: Spec | None, resolved: Sequence[Row], arguments: Arguments
) -> dict[str, Any]:
    """The recipe of a run: versions, model, spec, placed domains and targets, and the command's arguments."""
    made = {
        **_versions(),
        "python": platform.python_version(),
        "model": {
            **to_card(model.about),
            "hash": model.hash,
            "sampling": sampling_to_dict(model.sampling),
        },
        "spec": None if spec is None else spec.model_dump(mode="json", exclude_none=True),
        "resolved": [_to_dict(r) for r in constraints_in(resolved)],
        "goals": goals_to_dict(goals_in(resolved)),
        "arguments": arguments.model_dump(mode="json"),
    }
    return made | {CHECKSUM: sealed({key: made[key] for key in DECISIVE})[CHECKSUM]}


def read_recipe(path: Path) -> Recipe:
    """The recipe in a report.json of `anatomica generate`, checked: it may be someone else's."""
    if not path.exists():
        raise AnatomicaError(f"{path} is not a report.json of anatomica generate (there is no such file)")
    try:
        data = json.loads(_head(path))["recipe"]
        spec = None if data["spec"] is None else Spec.model_validate(data["spec"])
        about = from_card(data["model"], "model")
        spec = None if spec is None else spec.of(about)
        constraints = [] if spec is None else spec.constraints
        resolved = tuple(
            _from_dict(c, selection(about.table, c.structure), row)
            for c, row in zip(constraints, data["resolved"], strict=True)
        )
        if spec is not None:
            resolved = (*resolved, *goals_from_dict(data.get("goals"), spec.asks(about), about))
        versions = {name: str(data[name]) for name in _versions()}
        model_hash, sampling = data["model"]["hash"], sampling_from_dict(data["model"]["sampling"])
        opened({key: data[key] for key in data if key not in INFORMATIVE})
        return Recipe(about.name, model_hash, sampling, spec, resolved, _arguments(data), versions)
    except ValidationError as error:
        reason = _sentence(error)
    except KeyError as error:
        reason = f"{error} is missing"
    except RecursionError:
        reason = "nested too deeply"
    except (OSError, ValueError, TypeError, AttributeError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())
    raise AnatomicaError(f"{path} is not a report.json of anatomica generate ({reason})")


def _head(path: Path) -> str:
    """A report.json without its samples, of which there may be ten thousand."""
    with path.open(encoding="utf-8") as file:
        text = file.read(MOST_CHARACTERS)
        head, samples, _ = text.partition('\n "samples": [')
        if samples:
            return head.rstrip().removesuffix(",") + "}"
        if file.read(1):
            raise ValueError(f"more than {MOST_CHARACTERS:.2g} characters")
    return text


def changed_versions(made: Recipe) -> list[str]:
    """What is not as it was when the recipe was made, so that label maps may differ."""
    now = _versions()
    return [f"{name} {then}, now {now[name]}" for name, then in made.versions.items() if then != now[name]]


def _versions() -> dict[str, str]:
    return {"anatomica": __version__, "torch": str(torch.__version__)}


def _arguments(data: dict[str, Any]) -> Arguments:
    """The arguments of a recipe, none left to a default that another version may have had."""
    given = data["arguments"]
    for names, there in (
        (Arguments.model_fields, given),
        ((f.name for f in fields(Options)), given.get("options", {})),
    ):
        missing = [name for name in names if name not in there]
        if missing:
            raise ValueError(f"the argument {missing[0]!r} is missing")
    return Arguments.model_validate_json(json.dumps(given))


def _sentence(error: ValidationError) -> str:
    """The first problem: which value, what is wrong with it, what is allowed."""
    problem = error.errors()[0]
    name, value = ".".join(map(str, problem["loc"][-1:])), problem["input"]
    if problem["type"] == "literal_error":
        allowed = problem.get("ctx", {})["expected"].replace("'", "").replace(" or ", ", ")
        return f"unknown {name} {shown(value)}; allowed: {allowed}"
    if problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    found = "" if isinstance(value, dict | list) else f", found {shown(value)}"
    return f"{name}: {problem['msg']}{found}"


def _to_dict(r: Resolved) -> dict[str, Any]:
    d, w = r.domains, r.wanted
    placed = {"R": d.R, "s": d.s, "t": d.t, "valid": d.valid}
    return {
        "constraint": r.constraint.name,
        "selection": list(r.selection),
        "grid": list(d.grid),
        "reasons": list(d.reasons),
        **{key: value.tolist() for key, value in placed.items()},
        "wanted": {q.key: value.tolist() for q, value in w.rows},
        "mass_percent": r.constraint.tolerance.mass_percent,
    }


def _from_dict(constraint: Constraint, channels: tuple[int, ...], row: dict[str, Any]) -> Resolved:
    name, count = constraint.name, len(row["valid"])
    if tuple(row["selection"]) != channels or tuple(row["grid"]) != constraint.domain.grid:
        raise ValueError(f"the tissues or the grid of {name!r} are not those of the spec")
    if len(row["reasons"]) != count or not all(isinstance(x, str) for x in row["reasons"]):
        raise ValueError(f"{name!r} has {count} domains but not as many reasons")

    def double(values: Any, *shape: int) -> Tensor:
        x = torch.tensor(values, dtype=torch.float64)
        if x.shape != (count, *shape) or not bool(x.isfinite().all()):
            raise ValueError(f"{name!r} has numbers that do not fit {count} domains")
        return x

    wanted = {q.key: double(row["wanted"][q.key], *q.shape) for q in QUANTITIES if q.key in row["wanted"]}
    domains = Domains(
        double(row["R"], 3, 3),
        double(row["s"], 3),
        double(row["t"], 3),
        constraint.domain.grid,
        torch.tensor(row["valid"], dtype=torch.bool),
        tuple(row["reasons"]),
    )
    # Where the spec states no tolerance of a volume, the one that its target was given.
    stated = constraint.tolerance.model_dump() | {"mass_percent": row.get("mass_percent")}
    constraint = constraint.model_copy(update={"tolerance": Tolerance.model_validate(stated)})
    return Resolved(constraint, channels, domains, Wanted(wanted, asked_betti(constraint.target)))
