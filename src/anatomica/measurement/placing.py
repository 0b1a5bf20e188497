"""From a spec to tensors: every constraint's domains placed and its targets in the cube's own units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial.transform import Rotation
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.domain import Domains, stack
from anatomica.measurement.domains.place import StructureMap, needs_reference, place
from anatomica.measurement.moments import Moments, measure_moments
from anatomica.measurement.parse import slice_domains
from anatomica.spec.quantities import BY_KEY, QUANTITIES, BettiPrior, Quantity, Target
from anatomica.spec.spec import Constraint, Spec
from anatomica.spec.strict import Vector


@dataclass(frozen=True, eq=False)
class Wanted:
    """Targets of K domains in cube units, by quantity: (k, *shape), or (b, k, *shape) with one per sample.

    A quantity that is not in `values` is free.
    """

    values: dict[str, Tensor]
    betti: BettiPrior | None = None

    @property
    def any_moment(self) -> bool:
        return bool(self.values)

    @property
    def rows(self) -> list[tuple[Quantity, Tensor]]:
        """The quantities that are asked for, in the table's order, with their targets."""
        return [(q, self.values[q.key]) for q in QUANTITIES if q.key in self.values]

    def without(self, keys: Iterable[str]) -> Wanted:
        """The same targets, some quantities set free."""
        left = set(keys)
        return replace(self, values={key: x for key, x in self.values.items() if key not in left})


@dataclass(frozen=True, eq=False)
class Resolved:
    """A constraint ready for parsing: channel indices, placed domains, targets."""

    constraint: Constraint
    selection: tuple[int, ...]
    domains: Domains
    wanted: Wanted

    @property
    def temperature(self) -> float:
        """The softmax value is for topology: it lets gradients pass where probabilities are near 0 or 1."""
        return self.constraint.temperature if self.wanted.betti is not None else 1.0

    def to(self, like: Tensor) -> Resolved:
        """The same constraint with domains and targets in the dtype and on the device of `like`."""
        if (self.domains.s.dtype, self.domains.s.device) == (like.dtype, like.device):
            return self
        values = {key: x.to(like) for key, x in self.wanted.values.items()}
        return replace(self, domains=self.domains.to(like), wanted=replace(self.wanted, values=values))

    @cached_property
    def valid_domains(self) -> list[int]:
        """Domains that are valid, in every sample if each has its own."""
        valid = self.domains.valid.reshape(-1, self.domains.count)
        return valid.all(dim=0).nonzero()[:, 0].tolist()


class Tissues(NamedTuple):
    """Channel indices of tissues that are looked at without a constraint, as a constraint has them."""

    selection: tuple[int, ...]
    temperature: float = 1.0


def of_sample(r: Resolved, i: int) -> Resolved:
    """Sample i's constraint, if `r` has a leading sample axis; else the one that all samples share."""
    d, w = r.domains, r.wanted
    own = {q.key: x[i] if x.ndim > 1 + len(q.shape) else x for q, x in w.rows}
    wanted = replace(w, values=own)
    if d.s.ndim > 2:
        reasons = d.reasons[i * d.count : (i + 1) * d.count]
        d = Domains(d.R[i], d.s[i], d.t[i], d.grid, d.valid[i], reasons)
    return Resolved(r.constraint, r.selection, d, wanted)


def batched(resolved: Sequence[tuple[Resolved, ...]]) -> tuple[Resolved, ...]:
    """Constraints of several samples as one set with a leading sample axis in domains and targets."""
    if not resolved or all(r is resolved[0] for r in resolved):
        return resolved[0] if resolved else ()
    joined = []
    for same in zip(*resolved, strict=True):
        values = {key: torch.stack([r.wanted.values[key] for r in same]) for key in same[0].wanted.values}
        wanted = Wanted(values, same[0].wanted.betti)
        joined.append(
            Resolved(same[0].constraint, same[0].selection, stack([r.domains for r in same]), wanted)
        )
    return tuple(joined)


def selection(table: LabelTable, structure: Sequence[str]) -> tuple[int, ...]:
    """Channel indices of tissues (the selection vector u)."""
    return tuple(table.ids.index(table.id_of(name)) for name in structure)


def structure_map(cube: LabelMap) -> StructureMap:
    """Tissue names -> the cube's binary structure map as a float tensor."""

    @cache
    def S(names: tuple[str, ...]) -> Tensor:
        return torch.from_numpy(cube.mask(*names).astype(np.float32))

    return lambda names: S(tuple(names))


def resolve(wanted: Spec, frame: Frame, reference: LabelMap | None = None) -> tuple[Resolved, ...]:
    """Place the domains of every constraint and convert its targets.

    `reference` is a label map in the frame's cube: domains are computed from it, and the quantities of
    `Constraint.match` that have no number in the spec are measured in it.
    """
    S = structure_map(reference) if reference is not None else None
    return tuple(_resolve_one(c, frame, S) for c in wanted.constraints)


def _resolve_one(c: Constraint, frame: Frame, S: StructureMap | None) -> Resolved:
    if needs_reference(c.domain) and S is None:
        raise AnatomicaError(
            f"constraint {c.name!r}: a {c.domain.family} domain is placed on a reference anatomy; "
            "give one (--like FILE), or use a box domain with numbers"
        )
    domains = place(c.domain, c.structure, frame, S)
    measured = None
    if S is not None:
        structure = S(c.structure)
        if _taken_from_reference(c) and not (structure > 0).any():
            reason = f"{' + '.join(c.structure)} does not occur"
            domains = Domains(
                domains.R,
                domains.s,
                domains.t,
                domains.grid,
                torch.zeros_like(domains.valid),
                tuple(r or reason for r in domains.reasons),
            )
        measured = measure_in(structure, domains)
    return Resolved(
        c, selection(frame.anatomy.table, c.structure), domains, _wanted(c, frame, domains, measured)
    )


def _taken_from_reference(c: Constraint) -> bool:
    """Whether the domain or a target comes from the reference, which must have the structure then."""
    missing = (c.target.given(BY_KEY[key]) is None for key in c.match)
    axes = c.target.axes_mm is not None
    return needs_reference(c.domain) or any(
        free and not (axes and key == "shape") for key, free in zip(c.match, missing, strict=True)
    )


def measure_in(structure: Float[Tensor, "h w d"], domains: Domains) -> Moments:
    """Moments of one structure map in K domains, in double precision."""
    S = slice_domains(structure[None], domains)[0]
    return measure_moments(S.double(), domains)


def _wanted(c: Constraint, frame: Frame, domains: Domains, measured: Moments | None) -> Wanted:
    """A constraint's targets: numbers of the spec first, then what `match` takes from the reference."""
    k, found = domains.count, {}
    for q in QUANTITIES:
        given = c.target.given(q)
        if given is not None:
            width, to_cube = q.asked[given[0]]
            rows = torch.tensor(given[1], dtype=torch.float64).reshape(-1, width)
            if len(rows) not in (1, k):
                raise AnatomicaError(f"constraint {c.name!r}: {len(rows)} target values for {k} domains")
            found[q.key] = to_cube(rows.expand(k, width), frame)
        elif q.key == "shape" and c.target.axes_mm is not None:
            turned = c.target.rotation_deg or (0.0, 0.0, 0.0)
            found[q.key] = _ellipsoid_shape(c.target.axes_mm, turned).expand(k, 3, 3)
        elif measured is not None and q.key in c.match:
            found[q.key] = q.measured(measured, domains)
    return Wanted(found, asked_betti(c.target))


def asked_betti(target: Target) -> BettiPrior | None:
    """The wanted Betti numbers; a prior without a number (`betti: {}`) asks for nothing."""
    return None if target.betti == BettiPrior() else target.betti


def _ellipsoid_shape(axes: Vector, rotation_deg: Vector) -> Float[Tensor, "3 3"]:
    """Scale-normalised covariance of an ellipsoid with these semi-axes, turned about x, then y, then z."""
    U = torch.from_numpy(Rotation.from_euler("xyz", rotation_deg, degrees=True).as_matrix())
    squares = torch.tensor(axes, dtype=torch.float64) ** 2
    return U @ torch.diag(squares / squares.sum()) @ U.T
