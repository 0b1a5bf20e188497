"""The plan of a cohort: every request, known before anything is drawn, and the same whoever draws it.

A plan is checked when it is made. It is kept in the cohort's folder with every table resolved, so that
another machine needs nothing but that folder and the model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from pydantic import ValidationError

from anatomica.anatomy.catalogue import anatomy as named_anatomy
from anatomica.cohort import design
from anatomica.cohort.distributions import Distribution
from anatomica.cohort.joint import correlated, latent_correlation, table_correlation
from anatomica.cohort.patients_csv import header, read_columns
from anatomica.cohort.rules import Condition, conditions, quantity, stratum_conditions
from anatomica.cohort.spec import MOST_PATIENTS, CohortSpec, Stratum
from anatomica.errors import AnatomicaError, first_problem, shown
from anatomica.files import read_sealed, write_sealed
from anatomica.spec.vocabulary import entries

Array = np.ndarray
FILE = "plan.json"
SCHEMA = "anatomica.cohort-plan/2"
"""2: the maker has no layouts, so patients have other keys."""
EVERYBODY = ""
"""The stratum of a cohort without strata."""


@dataclass(frozen=True)
class Request:
    """One patient that is asked for: quantities with their targets, a seed and a stratum's name."""

    targets: tuple[tuple[str, float], ...]
    seed: int
    stratum: str = EVERYBODY

    def to_dict(self) -> dict[str, Any]:
        return {"targets": dict(self.targets), "seed": self.seed, "stratum": self.stratum}


@dataclass(frozen=True)
class Maker:
    """What decides patients besides their requests: hashes of the weights, of the code, and of the
    training population, by which requests are infeasible and patients too near."""

    model: str
    code: str
    population: str = ""


@dataclass(frozen=True, eq=False)
class Plan:
    """A checked spec with its distributions resolved; `size` may have grown since the spec was written."""

    spec: CohortSpec
    size: int
    maker: Maker
    keys: tuple[str, ...]
    distributions: tuple[Distribution, ...]
    latent: Float[Array, "d d"]

    @cached_property
    def values(self) -> Float[Array, "m d"]:
        """The targets of every patient."""
        return self._to_values(correlated(self._unit, self.latent))

    @cached_property
    def strata(self) -> Int64[Array, " m"]:
        return design.strata_of(self.size, list(self.spec.shares.values()) or [1.0])

    @cached_property
    def include(self) -> tuple[Condition, ...]:
        return conditions(self.spec.anatomy, self.spec.include)

    def stratum(self, name: str) -> tuple[Condition, ...]:
        """The conditions of a stratum."""
        if name == EVERYBODY:
            return ()
        given = self.spec.strata[name]
        if isinstance(given, Stratum) and given.when:
            return conditions(self.spec.anatomy, given.when)
        others = [x for x in self.spec.strata if x != name]
        return stratum_conditions(self.spec.anatomy, name, others)

    def request(self, index: int, turn: int = 0) -> Request:
        """The request of a patient; `turn` > 0: the one that replaces it, of the same distribution."""
        if turn == 0:
            row = self.values[index]
        else:
            u = np.random.default_rng([self.spec.seed, 3, index, turn]).random((1, len(self.keys)))
            row = self._to_values(correlated(u, self.latent))[0]
        stratum = (list(self.spec.strata) or [EVERYBODY])[int(self.strata[index])]
        # One at a time, only the target may change: every patient has the same seed.
        place = 0 if self.spec.design == "one-at-a-time" else index
        targets = tuple(zip(self.keys, (float(f"{x:.9g}") for x in row), strict=True))
        return Request(targets, _seed(self.spec.seed, place, turn), stratum)

    def key(self, index: int) -> str:
        """The name of a patient in the store: a hash of all that decides it."""
        spec = self.spec
        decides = {
            "request": self.request(index).to_dict(),
            "maker": asdict(self.maker),
            "conditions": [str(x) for x in (*self.include, *self.stratum(self.request(index).stratum))],
            "rules": [spec.valid, spec.tries, spec.replace, spec.resolution],
            "privacy": None if spec.privacy is None else spec.privacy.percent,
            # Replacements and equal requests of a grid: the place in the plan tells them apart.
            "place": [spec.seed, index],
        }
        if spec.replace:
            decides["distributions"] = self._resolved()
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:32]

    def grown(self, more: int) -> Plan:
        """The plan with more patients; those that it has stay as they are."""
        if self.spec.design in ("grid", "one-at-a-time"):
            raise AnatomicaError(
                f"a {self.spec.design} design is complete; only random and sobol cohorts can grow"
            )
        if self.size + more > MOST_PATIENTS:
            raise AnatomicaError(f"a cohort has at most {MOST_PATIENTS} patients; this one has {self.size}")
        return replace(self, size=self.size + more)

    def save(self, folder: Path) -> None:
        content = {
            "schema": SCHEMA,
            "spec": self.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
            "size": self.size,
            "maker": asdict(self.maker),
            **self._resolved(),
        }
        folder.mkdir(parents=True, exist_ok=True)
        write_sealed(folder / FILE, content)

    def _resolved(self) -> dict[str, Any]:
        rows = [d.model_dump(mode="json", exclude_none=True) for d in self.distributions]
        return {"targets": dict(zip(self.keys, rows, strict=True)), "latent": self.latent.tolist()}

    @cached_property
    def _unit(self) -> Float[Array, "m d"]:
        d, kind = len(self.keys), self.spec.design
        if kind == "grid":
            return design.grid_rows(self.size, self.distributions)
        if kind == "one-at-a-time":
            return design.one_at_a_time_rows(self.size, self.distributions)
        rows = design.random_rows if kind == "random" else design.sobol_rows
        return rows(self.size, d, self.spec.seed)

    def _to_values(self, u: Float[Array, "m d"]) -> Float[Array, "m d"]:
        columns = [one.ppf(u[:, i]) for i, one in enumerate(self.distributions)]
        return np.stack(columns, axis=1) if columns else np.zeros((len(u), 0))


def make_plan(spec: CohortSpec, maker: Maker, folder: Path = Path()) -> Plan:
    """The plan of a spec, checked; tables are read from `folder`, where the spec lies."""
    named_anatomy(spec.anatomy)
    own = {quantity(spec.anatomy, key).key: value for key, value in spec.targets.distributions.items()}
    given = {key: value.read(key, folder) for key, value in own.items()}
    table = spec.targets.table
    if table is None:
        keys, distributions = tuple(given), tuple(given.values())
        pairs = _known_pairs(spec, keys)
        latent = latent_correlation(keys, distributions, pairs)
    else:
        if spec.targets.correlations:
            raise AnatomicaError("targets: give correlations or a table (from), not both")
        columns = _columns(spec, folder / table.csv)
        values = read_columns(folder / table.csv, columns)
        keys = tuple(quantity(spec.anatomy, c).key for c in columns)
        if twice := [key for key in keys if keys.count(key) > 1]:
            raise AnatomicaError(f"targets: the columns name {twice[0]} twice; name it once")
        if extra := [key for key in given if key not in keys]:
            raise AnatomicaError(
                f"targets: {extra[0]} is not a column of {table.csv}, so it has no joint distribution"
            )
        distributions = tuple(
            given.get(key) or Distribution(empirical=values[:, i].tolist()) for i, key in enumerate(keys)
        )
        latent = table_correlation(values)
    _check(spec, keys)
    plan = Plan(spec, spec.size, maker, keys, distributions, latent)
    _check_design(plan)
    _check_include(plan)
    return plan


def read_plan(folder: Path) -> Plan:
    """The plan of a cohort's folder."""
    path = folder / FILE
    if not path.is_file():
        raise AnatomicaError(f"{folder} is not a cohort's folder: {FILE} is missing")
    try:
        content: Mapping[str, Any] = read_sealed(path, always=True)
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema {content['schema']!r}")
        targets, size = content["targets"], content["size"]
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= MOST_PATIENTS:
            raise ValueError(f"size {shown(size)}")
        return Plan(
            CohortSpec.model_validate(content["spec"]),
            size,
            Maker(**content["maker"]),
            tuple(targets),
            tuple(Distribution.model_validate(x) for x in targets.values()),
            np.array(content["latent"], dtype=float).reshape(len(targets), len(targets)),
        )
    except ValidationError as error:
        reason = first_problem(error)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())
    raise AnatomicaError(f"{path} cannot be read: {reason}; draw the cohort again")


def _columns(spec: CohortSpec, path: Path) -> list[str]:
    table = spec.targets.table
    assert table is not None
    if table.columns:
        return [str(x) for x in table.columns]
    known = {e.key.lower() for e in entries(spec.anatomy)}
    found = [name for name in header(path) if name.lower() in known]
    if not found:
        raise AnatomicaError(f"{path} has no column that is a quantity of {spec.anatomy} anatomy")
    return found


def _known_pairs(spec: CohortSpec, keys: tuple[str, ...]) -> dict[tuple[str, str], float]:
    pairs = {}
    for (a, b), r in spec.targets.pairs.items():
        names = quantity(spec.anatomy, a).key, quantity(spec.anatomy, b).key
        for name in names:
            if name not in keys:
                raise AnatomicaError(f"correlations: {name} is not among the targets")
        pairs[names] = r
    return pairs


def _check(spec: CohortSpec, keys: tuple[str, ...]) -> None:
    for key in keys:
        if quantity(spec.anatomy, key).count:
            raise AnatomicaError(
                f"targets: {key} is counted, and a count cannot be led to a target; "
                "make it a stratum or include it"
            )


def _check_design(plan: Plan) -> None:
    kind, correlates = plan.spec.design, not np.allclose(plan.latent, np.eye(len(plan.keys)))
    if kind in ("grid", "one-at-a-time"):
        if not plan.keys:
            raise AnatomicaError(f"a {kind} design needs targets to vary")
        if correlates:
            raise AnatomicaError(
                f"a {kind} design has every combination of levels, so it has no correlations"
            )
    for name in plan.spec.strata:
        plan.stratum(name)
    _ = plan.values, plan.strata


def _check_include(plan: Plan) -> None:
    """Conditions on targets must leave the targets as they are asked, or nothing would be as asked."""
    for condition in plan.include:
        if condition.key not in plan.keys:
            continue
        values = plan.values[:, plan.keys.index(condition.key)]
        broken = sum(not condition.holds(x) for x in values.tolist())
        if broken:
            share = "none" if broken == len(values) else f"only {1 - broken / len(values):.1%}"
            raise AnatomicaError(
                f"include: {share} of the requests for {condition.key} can meet {str(condition)!r}; "
                "truncate the target to that range instead"
            )


def _seed(seed: int, place: int, turn: int) -> int:
    """The seed of a patient, of 63 bits: none is another's, whatever the cohort's size."""
    digest = hashlib.sha256(f"{seed}/{place}/{turn}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
