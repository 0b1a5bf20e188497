"""What is asked, beside what is there: the spec as YAML and JSON, every domain placed and measured on the
shown patient as `anatomica measure` does it, and targets beside the population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float
from torch import Tensor

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.errors import AnatomicaError
from anatomica.generation.feasibility import compare
from anatomica.measurement.domains.place import needs_reference
from anatomica.measurement.measure import Measured, domain_dict, measure_resolved
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved, resolve
from anatomica.prior.zoo import load_model
from anatomica.spec.spec import Spec
from anatomica.spec.yaml import dump_spec, parse_spec, spec_to_dict
from anatomica.studio.asks import Ask, lines, shown
from anatomica.studio.patients import Patient

model_of = cache(load_model)
"""Models of the server's own, for populations and frames; the worker has others."""


def read_spec(
    text: str | None,
    data: dict[str, Any] | None,
    asks: Mapping[str, Ask],
    more: Sequence[str],
    about: Anatomy,
) -> Spec | None:
    """The spec of a page's YAML, or of its JSON, its targets and further lines of `ask`; None if nothing is
    asked."""
    if text is None:
        given = data or {"name": "studio", "anatomy": about.name}
        wanted = [*lines(asks, about), *more]
        if not given.get("constraints") and not wanted:
            return None
        text = yaml.safe_dump(
            given | ({"ask": wanted} if wanted else {}), sort_keys=False, allow_unicode=True
        )
    return parse_spec(text, "spec") if text.strip() else None


def plan(spec: Spec | None, patient: Patient | None) -> dict[str, Any]:
    """The spec in both forms; each constraint's domains on the patient; targets beside the population."""
    if spec is None:
        return {"yaml": "", "spec": None, "asks": {}, "lines": [], "constraints": [], "population": []}
    if spec.anatomy not in ANATOMIES:
        raise AnatomicaError(f"the studio knows the anatomies {', '.join(ANATOMIES)}, not {spec.anatomy!r}")
    about = ANATOMIES[spec.anatomy]
    placed, frame, measured = _placed(spec, patient)
    asks = shown(spec, about)
    return {
        "yaml": dump_spec(spec),
        "spec": spec_to_dict(spec),
        "asks": {key: ask.model_dump(exclude_none=True) for key, ask in asks.asks.items()},
        "lines": asks.lines,
        "constraints": [
            _constraint(r, m, frame) for r, m in zip(placed, measured or [None] * len(placed), strict=True)
        ],
        "population": _population(placed, frame),
    }


def _population(placed: tuple[Resolved, ...], frame: Frame) -> list[dict[str, Any]]:
    """Targets beside the training patients; in an enlarged cube shares of it mean another thing."""
    model = model_of(frame.anatomy.name)
    same = abs(frame.edge_mm - model.edge_mm) < 1e-3 * model.edge_mm
    return [c.to_dict() for c in compare(model, placed)] if same else []


def _placed(
    spec: Spec, patient: Patient | None
) -> tuple[tuple[Resolved, ...], Frame, tuple[Measured, ...] | None]:
    """Constraints placed on the patient and measured there; without one, only boxes have a place."""
    about = ANATOMIES[spec.anatomy]
    if patient is not None and patient.about is about:
        frame = Frame.of(patient.cube, about)
        placed = resolve(spec, frame, patient.cube)
        return placed, frame, measure_resolved(patient.cube, placed, patient.soft)
    frame = model_of(about.name).frame
    if any(needs_reference(c.domain) for c in spec.constraints):
        return (), frame, None
    return resolve(spec, frame), frame, None


def _constraint(r: Resolved, m: Measured | None, frame: Frame) -> dict[str, Any]:
    return {
        "name": r.constraint.name,
        "structure": r.constraint.structure,
        "family": r.constraint.domain.family,
        "domains": [_domain(r, m, k, frame) for k in range(r.domains.count)],
    }


def _domain(r: Resolved, m: Measured | None, k: int, frame: Frame) -> dict[str, Any]:
    if m is None:
        return _place_only(r, k, frame)
    found = domain_dict(m, k, frame)
    if not found["valid"] or found["mass"] <= 0:
        return found
    achieved = ellipsoid(m.moments.centroid[k], m.moments.covariance[k], frame)
    return found | {"achieved": achieved, "target": _target(r, m.moments, k, frame)}


def _place_only(r: Resolved, k: int, frame: Frame) -> dict[str, Any]:
    return {
        "valid": bool(r.domains.valid[k]),
        "reason": r.domains.reasons[k],
        "grid": list(r.domains.grid),
        "centre_mm": frame.to_mm(r.domains.t[k].numpy()).tolist(),
        "size_mm": (r.domains.s[k] * frame.edge_mm).tolist(),
        "rotation": r.domains.R[k].tolist(),
    }


def _target(r: Resolved, achieved: Moments, k: int, frame: Frame) -> dict[str, Any] | None:
    """The wanted ellipsoid; what is free in it is as achieved."""
    values = r.wanted.values
    if not {"mass", "centroid", "shape", "spread"} & set(values):
        return None
    centroid = values["centroid"][k] if "centroid" in values else achieved.centroid[k]
    size = achieved.covariance[k].diagonal().sum()
    if "spread" in values:
        size = values["spread"][k].double() ** 2
    elif "mass" in values:
        # Volume grows with length^3, the covariance with length^2; a speck says little about size.
        ratio = (values["mass"][k] / achieved.mass[k].clamp_min(1e-9)).clamp(1 / 8, 8)
        size = size * ratio ** (2 / 3)
    shape = values["shape"][k] if "shape" in values else achieved.normalised_covariance[k]
    return ellipsoid(centroid.double(), (size * shape).double(), frame)


def ellipsoid(centroid: Float[Tensor, "3"], covariance: Float[Tensor, "3 3"], frame: Frame) -> dict[str, Any]:
    """The solid ellipsoid with these moments: its centre, and its semi-axes as columns, in RAS mm."""
    values, vectors = np.linalg.eigh(covariance.double().numpy())
    axes = vectors * np.sqrt(5 * np.clip(values, 0, None)) * frame.edge_mm
    return {"centre_mm": frame.to_mm(centroid.numpy()).tolist(), "axes_mm": axes.tolist()}


def command(
    spec: Spec | None, anatomy: str, samples: int, seed: int, steps: int | None, reference: str | None
) -> str:
    """The command line that does the same."""
    words = [f"anatomica generate {anatomy}"]
    if spec is not None and spec.constraints:
        words = ["anatomica generate --spec spec.yaml"]
    elif spec is not None:
        words += [f'--set "{text}"' for text in spec.ask]
    if spec is not None and reference is not None:
        words.append(f"--like {reference}")
    words += [f"--samples {samples}", f"--seed {seed}"]
    if steps is not None:
        words.append(f"--steps {steps}")
    return " ".join([*words, "--out out/studio"])
