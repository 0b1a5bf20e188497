"""What is asked of a model: a spec's constraints, placed in the model's own frame, and asks with numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pydantic import ValidationError

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.errors import AnatomicaError, naming
from anatomica.generation.feasible_asks import refuse_infeasible
from anatomica.measurement.goals import Goal, Row, constraints_in, resolve_asks
from anatomica.measurement.placing import Resolved, resolve
from anatomica.measurement.possible import refuse_impossible
from anatomica.measurement.rounding import volume_floor_percent
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.zoo import Model
from anatomica.spec.asks import Asks, entries_of
from anatomica.spec.quantities import MASS_PERCENT, BettiPrior, Target
from anatomica.spec.spec import Constraint, GlobalDomain, Spec

COUNTS = {"calcium.count": "Ca"}
"""Named counts of pieces, and the tissue that they are of."""


def as_spec(wanted: Spec | Asks, about: Anatomy) -> Spec:
    """A spec of the anatomy, from one or from what `ask(...)` returns."""
    if isinstance(wanted, Spec):
        return wanted.of(about)
    try:
        return Spec(name="ask", anatomy=about.name, ask=wanted.texts, place=wanted.place)
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise AnatomicaError(message) from None


def with_asks(spec: Spec | None, asks: Sequence[str], about: Anatomy) -> Spec:
    """A spec that asks for named quantities as well; without one, a spec of these only."""
    if spec is None:
        return as_spec(Asks(tuple(asks)), about)
    more = spec.model_copy(update={"ask": (*spec.ask, *asks)})
    more.asks(about)
    return more


def with_counts(spec: Spec, model: Model) -> Spec:
    """The spec with a topological constraint for every number of pieces that it asks for.

    A count of pieces is a Betti number, which can be guided; the ask itself remains as a check.
    """
    known = {c.name for c in spec.constraints}
    more = []
    for ask in spec.asks(model.about):
        tissue = COUNTS.get(ask.left.text) or (entries_of(ask, model.about)[0].parts or ("",))[0]
        pieces = ask.left.text in COUNTS or ask.left.text.startswith("pieces[")
        if not pieces or not ask.equal or ask.low is None or ask.low.kind != "number" or ask.text in known:
            continue
        domain = GlobalDomain(grid=(model.n, model.n, model.n))
        target = Target(betti=BettiPrior(b0=round(ask.low.value)))
        named = {"name": ask.text, "structure": [tissue], "domain": domain, "match": [], "target": target}
        more.append(Constraint(**named, temperature=4.0))  # the softmax value of the paper's counts
    return spec.model_copy(update={"constraints": [*spec.constraints, *more]}) if more else spec


def resolve_for(model: Model, wanted: Spec | Asks, reference: LabelMap | None = None) -> tuple[Row, ...]:
    """A spec's constraints in the model's own frame, whose centre is 0 mm, and its asks with numbers.

    Domains, and the targets that the spec leaves to `Constraint.match`, come from `reference` (any label map
    of the anatomy); so do the levels of asks, unless the spec says `place: prediction`.
    """
    spec = with_counts(as_spec(wanted, model.about), model)
    frame = model.frame
    cube = None
    if reference is not None:
        with naming("the reference"):
            array = to_cube(reference, frame.anatomy, model.n).array
        cube = LabelMap(array, frame.affine, reference.table)
    resolved = tuple(_above_the_floor(r, model.n) for r in resolve(spec, frame, cube))
    if resolved and not any(bool(r.domains.valid.any()) for r in resolved):
        reasons = "; ".join(f"{r.constraint.name}: {r.domains.reasons[0]}" for r in resolved)
        raise AnatomicaError(f"the reference has no valid domain for {spec.name!r} ({reasons})")
    free = [r.constraint.name for r in resolved if not r.wanted.any_moment and r.wanted.betti is None]
    if free:
        raise AnatomicaError(
            f"constraint {free[0]!r} has no target: give a number, or a reference (--like FILE) to match"
        )
    refuse_impossible(resolved, frame)
    return (*resolved, *_goals(model, spec, cube))


def _above_the_floor(r: Resolved, n: int) -> Resolved:
    """A volume's default tolerance is what an n^3 grid can tell of it; one that the spec states stays."""
    given, mass = r.constraint.tolerance, r.wanted.values.get("mass")
    solid = r.constraint.domain.family in ("global", "cartesian")
    if mass is None or not solid or given.mass_percent is not None:
        return r
    floor = volume_floor_percent(float(mass.min()) * n**3)
    if floor <= MASS_PERCENT or math.isinf(floor):
        return r
    wider = given.model_copy(update={"mass_percent": round(floor, 1)})
    return replace(r, constraint=r.constraint.model_copy(update={"tolerance": wider}))


def _goals(model: Model, spec: Spec, cube: LabelMap | None) -> tuple[Goal, ...]:
    """A spec's asks with their bounds as numbers, none of them contradicting another."""
    s = None if cube is None else Subject(cube, model.about)
    if spec.place == "reference" and s is None and spec.ask:
        raise AnatomicaError(
            "place: reference takes the levels of a reference anatomy; give one (--like FILE)"
        )
    on_reference = spec.place == "reference" or (spec.place is None and s is not None)
    goals = resolve_asks(spec.asks(model.about), model.about, s, on_reference, partial(_percentile, model))
    refuse_infeasible(goals, model.percentiles)
    return goals


def _percentile(model: Model, key: str, percent: float) -> float:
    if model.percentiles is None:
        raise AnatomicaError(
            f"p{percent:g} of {key}: the {model.anatomy} model has no percentiles of its population; measure "
            "some with: anatomica quantities population"
        )
    return model.percentiles.value(key, percent)


def refuse_unseen(resolved: Sequence[Row]) -> None:
    """The paper's update sees only quantities with a weight: a constraint on others would have no slope."""
    for r in resolved:
        if isinstance(r, Goal):
            raise AnatomicaError(
                f"{r.ask.text!r} is a named quantity, which the gradient solver does not see; use --solver "
                "gauss-newton"
            )
        if r.wanted.betti is None and all(q.weight is None for q, _ in r.wanted.rows):
            asked = " and ".join(q.title for q, _ in r.wanted.rows)
            raise AnatomicaError(
                f"constraint {r.constraint.name!r} asks only for {asked}, which the gradient solver does "
                "not see; use --solver gauss-newton"
            )


def constraints_for(model: Model, spec: Spec, reference: LabelMap | None = None) -> tuple[Resolved, ...]:
    """`resolve_for` without named quantities: what the paper's tasks ask."""
    return constraints_in(resolve_for(model, spec, reference))
