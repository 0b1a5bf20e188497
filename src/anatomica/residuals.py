"""Residuals: each constraint's distance from its target in units of its tolerance, and where it acts.

The Gauss-Newton solver needs, for every residual, its value and its derivative by the sampled probabilities
S_i. A `Probe` holds both for one constraint: the points that matter, S there, and d rho / d S.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from anatomica.frame import Frame
from anatomica.homology import persistence_pairs
from anatomica.moments import EPSILON, Moments, measure_moments
from anatomica.parse import Union
from anatomica.potentials import betti_of, preserved
from anatomica.resolve import Resolved

UNSATURATED = 1e-3
"""S (1 - S) below this is saturated: a point there hardly moves, and is left out of the derivative."""
STRONGEST = 8
"""How many features to suppress at a time, the most persistent first."""
EMPTY = 0.2
"""A domain with less than this share of the mass it should have is empty."""
EMPTY_TEMPERATURE = 8.0
"""Divides the logits in an empty domain, where probabilities are too flat to have a slope."""
FILLING_TOLERANCE = 0.2
"""A mean probability within this of 1 counts as one tolerance."""
TOPOLOGY_TOLERANCE = 0.1
"""A persistence within this of 0 or 1 counts as one tolerance."""


@dataclass(frozen=True, eq=False)
class Probe:
    """One constraint seen at one clean prediction, for b samples, r residuals and p points that matter.

    `rho` is 0 where a residual is switched off (an invalid domain, a padded feature). `union` says which S
    the derivative is by. With `owner`, the residuals come in equal blocks, one a domain, and each point acts
    on its owner's block alone. `temperature` divides the logits (None: the constraint's own).
    """

    rho: Float[Tensor, "b r"]
    points: Float[Tensor, "b p 3"]
    slope: Float[Tensor, "b r p"]
    union: Union
    owner: Int64[Tensor, " p"] | None = None
    temperature: float | None = None


def geometric_probe(
    S: Float[Tensor, "b k a e g"],
    X: Float[Tensor, "b k a e g 3"],
    r: Resolved,
    frame: Frame,
    union: Union = "sum",
) -> Probe:
    """Residuals of mass, centroid, shape and spread of K substructures: 1 + 3 + 6 + 1 each, where there is a
    target."""
    rho, slope = _with_slopes(lambda leaf: _geometric(measure_moments(leaf, r.domains), r, frame), S)
    moving = _moving(S)
    owner = moving // (S[0, 0].numel())
    return Probe(rho, X.flatten(1, -2)[:, moving], slope.flatten(2)[:, :, moving], union, owner)


def filling_probe(
    mass: Float[Tensor, "b k"],
    X: Float[Tensor, "b k a e g 3"],
    r: Resolved,
    probability: Callable[[Float[Tensor, "b p 3"]], Float[Tensor, "b p"]],
    union: Union,
) -> Probe | None:
    """Residuals "this is the structure" of the points around the targets' centroids in empty domains.

    Where a domain holds next to nothing of its structure, mass, centroid and shape have no slope. As many
    points as make up the wanted mass, those nearest to the wanted centroid, are asked for instead;
    `probability` is theirs at `EMPTY_TEMPERATURE`.
    """
    wanted = r.wanted
    if wanted.mass is None or wanted.centroid is None:
        return None
    target = wanted.mass.to(mass).expand_as(mass)
    empty = (mass < EMPTY * target) & r.domains.valid.expand_as(mass)
    if not empty.any():
        return None
    points = X.flatten(2, -2)
    share = r.domains.s.to(mass).prod(dim=-1).abs().expand_as(mass) / points.shape[2]
    centre = wanted.centroid.to(mass).expand(*mass.shape, 3)
    rho, chosen, slope = [], [], []
    for k in empty.any(dim=0).nonzero()[:, 0].tolist():
        count = max(1, min(points.shape[2], round(float((target / share)[:, k].mean()))))
        nearest = (points[:, k] - centre[:, k, None]).square().sum(-1).topk(count, largest=False).indices
        here = points[:, k].gather(1, nearest[..., None].expand(-1, -1, 3))
        off = (probability(here).mean(dim=1) - 1) / FILLING_TOLERANCE
        rho.append(off * empty[:, k])
        chosen.append(here)
        slope.append(empty[:, k, None].to(mass).expand(-1, count) / (count * FILLING_TOLERANCE))
    row = torch.repeat_interleave(torch.tensor([s.shape[1] for s in slope])).to(mass.device)
    own = row == torch.arange(len(rho), device=mass.device)[:, None]
    slopes = torch.cat(slope, 1)[:, None] * own
    return Probe(torch.stack(rho, 1), torch.cat(chosen, 1), slopes, union, temperature=EMPTY_TEMPERATURE)


def certified_probe(
    S: Float[Tensor, "b v"],
    centres: Float[Tensor, "v 3"],
    place: Int64[Tensor, "b p 8"],
    share: Float[Tensor, "b p 8"],
    r: Resolved,
    frame: Frame,
) -> Probe:
    """The residuals that the certificate will see: of the label map (S > 1/2), sliced trilinearly.

    `place` and `share` say from which voxels, with which weights, each point of the domains is interpolated.
    The values are the hard map's, the slopes are by the soft S.
    """
    shape = (len(S), r.domains.count, *r.domains.grid)

    def residuals(leaf: Tensor) -> Tensor:
        corners = leaf.gather(1, place.flatten(1)).view(place.shape)
        return _geometric(measure_moments((corners * share).sum(-1).view(shape), r.domains), r, frame)

    rho, slope = _with_slopes(residuals, (S > 0.5).to(S))
    moving = _moving(S)
    return Probe(rho, centres[moving].expand(len(S), -1, 3), slope[:, :, moving], "margin")


def _with_slopes(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """(rho (b, r), d rho / d at (b, r, ...)) of a function of a batch."""
    leaf = at.detach().requires_grad_()
    with torch.enable_grad():
        rho = function(leaf)
        b, count = rho.shape
        pick = torch.eye(count, dtype=at.dtype, device=at.device)[:, None].expand(count, b, count)
        (slope,) = torch.autograd.grad(rho, leaf, pick, is_grads_batched=True)
    return rho.detach(), slope.transpose(0, 1)


def _moving(S: Tensor) -> Int64[Tensor, " m"]:
    """Points that are not saturated in some sample of the batch."""
    return ((S * (1 - S)) > UNSATURATED).any(dim=0).flatten().nonzero()[:, 0]


def _geometric(m: Moments, r: Resolved, frame: Frame) -> Float[Tensor, "b r"]:
    """(measured - wanted) / tolerance, zero in invalid domains, centroid and shape only of enough mass."""
    c, wanted = r.constraint, r.wanted
    valid = r.domains.valid.to(m.mass).expand_as(m.mass)
    enough = valid * (m.mass.detach() >= c.mass_threshold)
    parts = []
    if wanted.mass is not None:
        target = wanted.mass.to(m.mass)
        allowed = c.tolerance.mass_percent / 100 * target.clamp_min(c.mass_threshold)
        parts.append((valid * (m.mass - target) / allowed)[..., None])
    if wanted.centroid is not None:
        allowed = c.tolerance.centroid_mm / frame.edge_mm
        parts.append(enough[..., None] * (m.centroid - wanted.centroid.to(m.mass)) / allowed)
    if wanted.shape is not None:
        off = (m.normalised_covariance - wanted.shape.to(m.mass)) / c.tolerance.shape
        i, j = torch.triu_indices(3, 3)
        parts.append(enough[..., None] * off[..., i, j])
    if wanted.spread is not None:
        # Half the relative error of the square is that of the spread, and has a slope at zero as well.
        square = wanted.spread.to(m.mass).square().clamp_min(EPSILON)
        off = (m.size / square - 1) / 2 / (c.tolerance.spread_percent / 100)
        parts.append((enough * off)[..., None])
    return torch.cat(parts, dim=-1).flatten(1)


def topological_probe(
    S: Float[Tensor, "b a e g"], X: Float[Tensor, "b a e g 3"], r: Resolved, certified: bool = False
) -> Probe:
    """Residuals "persistence is 1" of the B features to preserve and "is 0" of the strongest others.

    Each acts on two voxels, the feature's birth and death. With `certified`, a sample whose set S > 1/2
    already has the Betti numbers has no residuals.
    """
    prior = r.wanted.betti
    assert prior is not None
    dims = [d for d, wanted in enumerate(betti_of(prior)) if wanted is not None]
    pairs = persistence_pairs(S.detach(), dims=dims)
    keep = preserved(pairs, prior)
    alive = (pairs.birth > 0.5) & (pairs.death <= 0.5)
    rows = []
    for sample in range(len(S)):
        here = pairs.batch == sample
        counts = [int((here & alive & (pairs.dim == d)).sum()) for d in dims]
        if certified and counts == [betti_of(prior)[d] for d in dims]:
            rows.append((here.new_empty(0, dtype=torch.long),) * 2)
            continue
        wanted = (here & keep).nonzero()[:, 0]
        others = (here & ~keep).nonzero()[:, 0]
        strongest = others[pairs.persistence[others].argsort(descending=True)[:STRONGEST]]
        rows.append((wanted, strongest))
    count = max((len(w) + len(o) for w, o in rows), default=0)
    rho = S.new_zeros(len(S), count)
    voxel = torch.zeros(len(S), 2 * count, dtype=torch.long, device=S.device)
    slope = S.new_zeros(len(S), count, 2 * count)
    for sample, (wanted, strongest) in enumerate(rows):
        chosen = torch.cat([wanted, strongest])
        n = len(chosen)
        target = torch.cat([torch.ones(len(wanted)), torch.zeros(len(strongest))]).to(S)
        rho[sample, :n] = (pairs.persistence[chosen] - target) / TOPOLOGY_TOLERANCE
        voxel[sample, 0 : 2 * n : 2] = pairs.birth_voxel[chosen]
        voxel[sample, 1 : 2 * n : 2] = pairs.death_voxel[chosen]
        index = torch.arange(n, device=S.device)
        slope[sample, index, 2 * index] = 1 / TOPOLOGY_TOLERANCE
        slope[sample, index, 2 * index + 1] = -1 / TOPOLOGY_TOLERANCE
    flat = X.flatten(1, -2)
    points = torch.gather(flat, 1, voxel[..., None].expand(-1, -1, 3))
    return Probe(rho, points, slope, "margin")
