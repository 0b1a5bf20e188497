"""What makes patients: the model and the code of a plan, found and compared by their hashes."""

from __future__ import annotations

from pathlib import Path

from anatomica.cohort.plan import Maker, Plan
from anatomica.cohort.spec import CohortSpec
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.prior.percentiles import Percentiles, read_percentiles
from anatomica.prior.zoo import POPULATION, WEIGHTS, Model, load_model

DRAWING = "cohort.drawing"
"""The module whose imports decide a patient."""


def code() -> str:
    return code_version(DRAWING)


def maker_of(spec: CohortSpec) -> Maker:
    """The maker of a spec's patients as it is on this machine."""
    return _maker(load_for_spec(spec), spec)


def _maker(model: Model, spec: CohortSpec) -> Maker:
    known = population_of(spec)
    population = [model.card["sha256"].get(POPULATION), None if known is None else known.to_dict()]
    return Maker(model.hash, code(), content_hash(population)[:16])


def load_for_spec(spec: CohortSpec, device: str = "cpu") -> Model:
    model = load_model(spec.anatomy if spec.model is None else Path(spec.model), device)
    if model.anatomy != spec.anatomy:
        raise AnatomicaError(
            f"{spec.model} is a model of {model.anatomy} anatomy; the spec asks for {spec.anatomy}"
        )
    return model


def load_for(plan: Plan, device: str = "cpu") -> Model:
    """The plan's model; other weights or other code would give other patients, so they are an error."""
    model = load_for_spec(plan.spec, device)
    now = _maker(model, plan.spec)
    if now != plan.maker:
        what = "code" if now.code != plan.maker.code else "weights or another population"
        raise AnatomicaError(
            f"this cohort was begun with other {what}, so its other patients would not be of the same kind; "
            "go on with the version that began it, or draw the spec into a new folder"
        )
    return model


def population_of(spec: CohortSpec) -> Percentiles | None:
    """Percentiles of the quantities in the model's training population, where its folder has them."""
    return read_percentiles(WEIGHTS / spec.anatomy if spec.model is None else Path(spec.model))
