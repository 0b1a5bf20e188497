"""From a spec to tensors: every constraint's domains placed and its targets in the cube's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from scipy.spatial.transform import Rotation
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.place import StructureMap, needs_reference, place
from anatomica.measurement.moments import Moments, measure_moments
from anatomica.measurement.parse import slice_domains
from anatomica.spec import spec

QUANTITIES = ("mass", "centroid", "shape", "spread")


@dataclass(frozen=True, eq=False)
class Wanted:
    """Targets for K domains in cube units, for all samples or with a leading sample axis; None is free."""

    mass: Float[Tensor, "*b k"] | None
    centroid: Float[Tensor, "*b k 3"] | None
    shape: Float[Tensor, "*b k 3 3"] | None
    spread: Float[Tensor, "*b k"] | None
    betti: spec.BettiPrior | None

    @property
    def any_moment(self) -> bool:
        return any(getattr(self, name) is not None for name in QUANTITIES)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A constraint ready for parsing: channel indices, placed domains, targets."""

    constraint: spec.Constraint
    selection: tuple[int, ...]
    domains: Domains
    wanted: Wanted


def of_sample(r: Resolved, i: int) -> Resolved:
    """Sample i's constraint, if `r` has a leading sample axis; else the one that all samples share."""
    d, w = r.domains, r.wanted
    own = lambda x, ndim: None if x is None else x[i] if x.ndim > ndim else x  # noqa: E731
    wanted = Wanted(own(w.mass, 1), own(w.centroid, 2), own(w.shape, 3), own(w.spread, 1), w.betti)
    if d.s.ndim > 2:
        reasons = d.reasons[i * d.count : (i + 1) * d.count]
        d = Domains(d.R[i], d.s[i], d.t[i], d.grid, d.valid[i], reasons)
    return Resolved(r.constraint, r.selection, d, wanted)


def selection(table: LabelTable, structure: Sequence[str]) -> tuple[int, ...]:
    """Channel indices of tissues (the selection vector u)."""
    return tuple(table.ids.index(table.id_of(name)) for name in structure)


def structure_map(cube: LabelMap) -> StructureMap:
    """Tissue names -> the cube's binary structure map as a float tensor."""

    @cache
    def S(names: tuple[str, ...]) -> Tensor:
        return torch.from_numpy(cube.mask(*names).astype(np.float32))

    return lambda names: S(tuple(names))


def resolve(wanted: spec.Spec, frame: Frame, reference: LabelMap | None = None) -> tuple[Resolved, ...]:
    """Place the domains of every constraint and convert its targets.

    `reference` is a label map in the frame's cube: domains are computed from it, and the quantities of
    `Constraint.match` that have no number in the spec are measured in it.
    """
    S = structure_map(reference) if reference is not None else None
    return tuple(_resolve_one(c, frame, S) for c in wanted.constraints)


def _resolve_one(c: spec.Constraint, frame: Frame, S: StructureMap | None) -> Resolved:
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
        c, selection(frame.anatomy.table, c.structure), domains, _wanted(c, frame, domains.count, measured)
    )


def _taken_from_reference(c: spec.Constraint) -> bool:
    """Whether the domain or a target comes from the reference, which must have the structure then."""
    target = c.target
    given = {
        "mass": (target.volume_ml, target.mass),
        "centroid": (target.centroid_mm, target.centroid),
        "shape": (target.shape, target.axes_mm),
        "spread": (target.spread_mm,),
    }
    return needs_reference(c.domain) or any(all(x is None for x in given[name]) for name in c.match)


def measure_in(structure: Float[Tensor, "h w d"], domains: Domains) -> Moments:
    """Moments of one structure map in K domains, in double precision."""
    S = slice_domains(structure[None], domains)[0]
    return measure_moments(S.double(), domains)


def _wanted(c: spec.Constraint, frame: Frame, k: int, measured: Moments | None) -> Wanted:
    target = c.target

    def rows(value: object, width: int) -> Tensor:
        """One row a domain from a single value or a list with one a domain."""
        x = torch.tensor(value, dtype=torch.float64).reshape(-1, width)
        if len(x) not in (1, k):
            raise AnatomicaError(f"constraint {c.name!r}: {len(x)} target values for {k} domains")
        return x.expand(k, width)

    mass = centroid = shape = spread = None
    if target.volume_ml is not None:
        mass = rows(target.volume_ml, 1)[:, 0] * frame.to_mass(1.0)
    elif target.mass is not None:
        mass = rows(target.mass, 1)[:, 0]
    elif measured is not None and "mass" in c.match:
        mass = measured.mass
    if target.centroid_mm is not None:
        centroid = torch.from_numpy(frame.to_unit(rows(target.centroid_mm, 3).numpy()))
    elif target.centroid is not None:
        centroid = rows(target.centroid, 3)
    elif measured is not None and "centroid" in c.match:
        centroid = measured.centroid
    if target.shape is not None:
        xx, yy, zz, xy, xz, yz = rows(target.shape, 6).unbind(-1)
        shape = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).reshape(-1, 3, 3)
    elif target.axes_mm is not None:
        shape = _ellipsoid_shape(target.axes_mm, target.rotation_deg or (0.0, 0.0, 0.0)).expand(k, 3, 3)
    elif measured is not None and "shape" in c.match:
        shape = measured.normalised_covariance
    if target.spread_mm is not None:
        spread = rows(target.spread_mm, 1)[:, 0] / frame.edge_mm
    elif measured is not None and "spread" in c.match:
        spread = measured.size.sqrt()
    return Wanted(mass, centroid, shape, spread, asked_betti(target))


def asked_betti(target: spec.Target) -> spec.BettiPrior | None:
    """The wanted Betti numbers; a prior without a number (`betti: {}`) asks for nothing."""
    return None if target.betti == spec.BettiPrior() else target.betti


def _ellipsoid_shape(axes: spec.Vector, rotation_deg: spec.Vector) -> Float[Tensor, "3 3"]:
    """Scale-normalised covariance of an ellipsoid with these semi-axes, turned about x, then y, then z."""
    U = torch.from_numpy(Rotation.from_euler("xyz", rotation_deg, degrees=True).as_matrix())
    squares = torch.tensor(axes, dtype=torch.float64) ** 2
    return U @ torch.diag(squares / squares.sum()) @ U.T
