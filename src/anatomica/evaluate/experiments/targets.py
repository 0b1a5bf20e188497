"""Targets: every sample of a cell is asked to be like one held-out patient, each in its own domains."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.lab import Lab
from anatomica.generation.resolve import constraints_for
from anatomica.measurement.domains.place import needs_reference
from anatomica.measurement.placing import Resolved
from anatomica.spec.spec import Spec


@dataclass(frozen=True, eq=False)
class Target:
    """A spec resolved on one patient (None if the spec needs none); `identity` names the label map."""

    case: str | None
    identity: str | None
    reference: LabelMap | None
    resolved: tuple[Resolved, ...]


def asks_for_a_patient(spec: Spec) -> bool:
    return any(needs_reference(c.domain) or c.match for c in spec.constraints)


def targets(lab: Lab, spec: Spec, count: int) -> list[Target]:
    """`count` targets: the lab's half of the held-out patients in order, those without a valid domain left
    out, then again from the first."""
    model = lab.model(spec.anatomy)
    if not asks_for_a_patient(spec):
        return [Target(None, None, None, constraints_for(model, spec))] * count
    real = lab.asked(spec.anatomy)
    found: list[Target] = []
    for id, labels in zip(real.ids, real.maps, strict=True):
        if len(found) == count:
            break
        reference = lab.label_map(spec.anatomy, labels)
        try:
            resolved = constraints_for(model, spec, reference)
        except AnatomicaError:
            continue  # no valid domain in this patient: another one takes its place
        identity = f"{id} {hashlib.sha256(reference.array.tobytes()).hexdigest()[:16]}"
        found.append(Target(id, identity, reference, resolved))
    if not found:
        raise AnatomicaError(f"no held-out patient has a valid domain of {spec.name!r}")
    return [found[i % len(found)] for i in range(count)]


def resolve_like(lab: Lab, spec: Spec, target: Target) -> tuple[Resolved, ...]:
    """Another spec resolved on the same patient: what guides when it is not what is measured."""
    return constraints_for(lab.model(spec.anatomy), spec, target.reference)
