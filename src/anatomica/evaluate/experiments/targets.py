"""Targets: every sample of a cell is asked to be like one held-out patient, each in its own domains."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.lab import Lab
from anatomica.generation.draw import resolve_for
from anatomica.measurement.domains.domain import stack
from anatomica.measurement.domains.place import needs_reference
from anatomica.measurement.placing import Resolved, Wanted
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
    """`count` targets: the held-out patients in order, those without a valid domain left out, then again."""
    model = lab.model(spec.anatomy)
    if not asks_for_a_patient(spec):
        return [Target(None, None, None, resolve_for(model, spec))] * count
    real = lab.held_out(spec.anatomy)
    found: list[Target] = []
    for id, labels in zip(real.ids, real.maps, strict=True):
        if len(found) == count:
            break
        reference = lab.label_map(spec.anatomy, labels)
        try:
            resolved = resolve_for(model, spec, reference)
        except AnatomicaError:
            continue  # no valid domain in this patient: another one takes its place
        identity = f"{id} {hashlib.sha256(reference.array.tobytes()).hexdigest()[:16]}"
        found.append(Target(id, identity, reference, resolved))
    if not found:
        raise AnatomicaError(f"no held-out patient has a valid domain of {spec.name!r}")
    return [found[i % len(found)] for i in range(count)]


def resolve_like(lab: Lab, spec: Spec, target: Target) -> tuple[Resolved, ...]:
    """Another spec resolved on the same patient: what guides when it is not what is measured."""
    return resolve_for(lab.model(spec.anatomy), spec, target.reference)


def batched(resolved: Sequence[tuple[Resolved, ...]]) -> tuple[Resolved, ...]:
    """Constraints of several samples as one set with a leading sample axis in domains and targets."""
    if all(r is resolved[0] for r in resolved):
        return resolved[0]
    joined = []
    for same in zip(*resolved, strict=True):
        wanted = Wanted(
            _stacked([r.wanted.mass for r in same]),
            _stacked([r.wanted.centroid for r in same]),
            _stacked([r.wanted.shape for r in same]),
            _stacked([r.wanted.spread for r in same]),
            same[0].wanted.betti,
        )
        joined.append(
            Resolved(same[0].constraint, same[0].selection, stack([r.domains for r in same]), wanted)
        )
    return tuple(joined)


def _stacked(values: Sequence[Tensor | None]) -> Tensor | None:
    there = [v for v in values if v is not None]
    return torch.stack(there) if there else None
