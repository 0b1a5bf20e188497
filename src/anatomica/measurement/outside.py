"""What of a structure lies outside its control domains. A box around a structure asks for all of it."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.placing import Resolved
from anatomica.spec.spec import Constraint, GlobalDomain


def must_be_empty(c: Constraint) -> bool:
    """Whether the constraint's structure may not go on outside its domain."""
    return c.outside_is == "empty" and not isinstance(c.domain, GlobalDomain)


def in_a_domain(points: Float[Tensor, "p 3"], domains: Domains) -> Bool[Tensor, " p"]:
    """Which points lie in one of the valid domains."""
    found = torch.zeros(len(points), dtype=torch.bool, device=points.device)
    for k in range(domains.count):
        if bool(domains.valid[k]):
            own = (points - domains.t[k].to(points)) @ domains.R[k].to(points)
            found |= (own.abs() <= domains.s[k].to(points) / 2 + 1e-6).all(dim=-1)
    return found


def outside_mass(structure: Float[Tensor, "h w d"], domains: Domains) -> float:
    """The share of the cube that is filled by voxels of the structure whose centres lie in no domain."""
    voxels = structure.nonzero()
    sizes = torch.tensor(structure.shape, dtype=torch.float64)
    there = in_a_domain((voxels.double() + 0.5) / sizes, domains)
    return float(structure[tuple(voxels[~there].T)].double().sum() / structure.numel())


def allowed_outside(r: Resolved, inside: Float[Tensor, "*b k"]) -> Float[Tensor, "*b"]:
    """How much mass one tolerance is: a share of the mass in all domains, which is wanted or is there."""
    whole = (inside * r.domains.valid.to(inside)).sum(dim=-1).clamp_min(r.constraint.mass_threshold)
    return whole * r.constraint.tolerance.outside_percent / 100
