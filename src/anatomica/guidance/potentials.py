"""Anatomical potentials: how far substructures are from their targets. Plain losses, usable in any loop."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.homology import PersistencePairs, persistence_pairs
from anatomica.measurement.moments import Moments, measure_moments
from anatomica.measurement.placing import Resolved, Wanted
from anatomica.spec.quantities import BettiPrior
from anatomica.spec.spec import Weights


def geometric_potential(
    moments: Moments, domains: Domains, wanted: Wanted, weights: Weights, mass_threshold: float
) -> Float[Tensor, "*b k"]:
    """L_geo = l0 MSE(m) + l1 MSE(p) + l2 MSE(Sigma^n), one value per substructure; free targets add nothing.

    Adaptive mass weighting: l1 = l2 = 0 where the mass is below the threshold, because centroid and
    covariance of a nearly empty substructure are noise with huge gradients.
    """
    mass = moments.mass
    enough = (mass.detach() >= mass_threshold).to(mass)
    loss = torch.zeros_like(mass)
    for q, target in wanted.rows:
        if q.weight is None:
            continue
        off = (q.measured(moments, domains) - target.to(mass)) ** 2
        mean = off.flatten(mass.ndim).mean(dim=-1) if q.shape else off
        weight = getattr(weights, q.weight)
        loss = loss + (weight * mean if q.any_mass else weight * enough * mean)
    return loss


def topological_potential(S: Float[Tensor, "b k a e g"], prior: BettiPrior) -> Float[Tensor, "b k"]:
    """L_topo = - sum of preserved persistence^2 + sum of suppressed persistence^2, per substructure.

    In every dimension with a prior B, the B most persistent features are preserved and all others suppressed.
    """
    dims = [d for d, wanted in enumerate(prior.numbers) if wanted is not None]
    if not dims:
        return S.sum(dim=(-3, -2, -1)) * 0
    pairs = persistence_pairs(S.flatten(0, 1), dims=dims)
    sign = 1 - 2 * most(pairs, pairs.persistence, prior).to(S)
    loss = S.new_zeros(S.shape[0] * S.shape[1])
    return loss.index_add(0, pairs.batch, sign * pairs.persistence**2).unflatten(0, S.shape[:2])


def most(pairs: PersistencePairs, strength: Float[Tensor, " n"], prior: BettiPrior) -> Bool[Tensor, " n"]:
    """Which pairs are among the B strongest of their volume and dimension (by persistence: the set Y)."""
    keep = torch.zeros(len(pairs.dim), dtype=torch.bool, device=pairs.dim.device)
    wanted = torch.tensor([b or 0 for b in prior.numbers], device=pairs.dim.device)
    group = pairs.batch * 3 + pairs.dim
    # Sorted by group, then by falling strength: a pair's rank is its place after its group's first.
    order = torch.argsort(strength.detach(), descending=True, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    sorted_group = group[order]
    first = torch.searchsorted(sorted_group, sorted_group)
    rank = torch.arange(len(order), device=order.device) - first
    keep[order] = rank < wanted[pairs.dim[order].long()]
    return keep


def composite_potential(parsed: Sequence[Tensor], resolved: Sequence[Resolved]) -> Float[Tensor, "b"]:
    """L = 1/K sum_k (lambda_geo L_geo + lambda_topo L_topo) over the K valid substructures.

    `parsed` holds one (b, k, a, e, g) tensor per constraint. Invalid domains are masked.
    """
    batch = len(parsed[0])
    total, count = parsed[0].new_zeros(batch), 0
    for S, r in zip(parsed, resolved, strict=True):
        c = r.constraint
        loss = S.new_zeros(S.shape[:2])
        if c.weights.geometric and r.wanted.any_moment:
            moments = measure_moments(S, r.domains)
            loss = loss + c.weights.geometric * geometric_potential(
                moments, r.domains, r.wanted, c.weights, c.mass_threshold
            )
        if r.wanted.betti is not None and c.weights.topological:
            loss = loss + c.weights.topological * topological_potential(S, r.wanted.betti)
        valid = r.domains.valid.to(S)
        total = total + (loss * valid).sum(dim=-1)
        count = count + valid.expand(batch, -1).sum(dim=-1)
    return total / torch.as_tensor(count).clamp_min(1)
