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

from anatomica.anatomy.frame import Frame
from anatomica.measurement.moments import Moments, measure_moments
from anatomica.measurement.parse import Union
from anatomica.measurement.placing import Resolved
from anatomica.prior.field import corners

UNSATURATED = 1e-3
"""S (1 - S) below this is saturated: a point there hardly moves, and is left out of the derivative."""
EMPTY = 0.2
"""A domain with less than this share of the mass it should have is empty."""
EMPTY_TEMPERATURE = 8.0
"""Divides the logits in an empty domain, where probabilities are too flat to have a slope."""
FILLING_TOLERANCE = 0.2
"""A mean probability within this of 1 counts as one tolerance."""
LEVEL_TOLERANCE = 0.4
"""A logit this far beyond 0 (a probability of 0.6) is on the right side of a label map's border for sure."""
SURE = 1e-4
"""Probabilities nearer to 0 or 1 count as this near."""


@dataclass(frozen=True, eq=False)
class Probe:
    """One constraint seen at one clean prediction, for b samples, r residuals and p points that matter.

    The residuals come in equal blocks of e, one per domain or feature, and each point acts only on its
    owner's block: `slope` is d rho / d S of that block. `rho` is 0 where a residual is switched off (an
    invalid domain, a padded feature). `union` says which S the derivative is by. `temperature` divides the
    logits (None: the constraint's own). With `held` a column's levels stay, and only bone may move.
    """

    rho: Float[Tensor, "b r"]
    points: Float[Tensor, "b p 3"]
    slope: Float[Tensor, "b e p"]
    owner: Int64[Tensor, " p"]
    union: Union
    temperature: float | None = None
    held: bool = False


def geometric_probe(
    S: Float[Tensor, "b k a e g"],
    X: Float[Tensor, "b k a e g 3"],
    r: Resolved,
    frame: Frame,
    union: Union = "sum",
    hard: bool = False,
) -> Probe:
    """Residuals of K substructures' moments: one row per number that has a target, K times.

    With `hard` the values are those of the indicator S > 1/2; the slopes are by the soft S all the same.
    """
    at = (S > 0.5).to(S) if hard else S
    rho, slope = _with_slopes(lambda leaf: _geometric(measure_moments(leaf, r.domains), r, frame), at)
    moving, moves = _moving(S)
    owner = moving // (S[0, 0].numel())
    slope = slope.flatten(2)[:, :, moving] * moves[:, None]
    return Probe(rho, X.flatten(1, -2)[:, moving], slope, owner, union)


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
    if not {"mass", "centroid"} <= wanted.values.keys():
        return None
    target = wanted.values["mass"].to(mass).expand_as(mass)
    empty = (mass < EMPTY * target) & r.domains.valid.expand_as(mass)
    if not empty.any():
        return None
    points = X.flatten(2, -2)
    share = r.domains.s.to(mass).prod(dim=-1).abs().expand_as(mass) / points.shape[2]
    centre = wanted.values["centroid"].to(mass).expand(*mass.shape, 3)
    rho, chosen, slope = [], [], []
    counts = (target / share).round().clamp(1, points.shape[2])
    for k in empty.any(dim=0).nonzero()[:, 0].tolist():
        most = int(counts[:, k].max())
        # Nearest first, so that each sample takes as many as its own mass calls for.
        nearest = (points[:, k] - centre[:, k, None]).square().sum(-1).topk(most, largest=False).indices
        here = points[:, k].gather(1, nearest[..., None].expand(-1, -1, 3))
        own = torch.arange(most, device=mass.device) < counts[:, k, None]
        weight = own.to(mass) * empty[:, k, None] / counts[:, k, None]
        off = (probability(here) * weight).sum(dim=1) - empty[:, k].to(mass)
        rho.append(off / FILLING_TOLERANCE)
        chosen.append(here)
        slope.append(weight / FILLING_TOLERANCE)
    owner = torch.repeat_interleave(torch.tensor([s.shape[1] for s in slope])).to(mass.device)
    slopes = torch.cat(slope, 1)[:, None]
    return Probe(torch.stack(rho, 1), torch.cat(chosen, 1), slopes, owner, union, EMPTY_TEMPERATURE)


@dataclass(frozen=True, eq=False)
class Voxels:
    """The voxels of an n^3 label map that a constraint's domains are sliced from, each domain with its own.

    Voxel v belongs to domain `owner[v]`; `place` and `share` say from which of them, with which weights,
    each point of the domains is interpolated.
    """

    centres: Float[Tensor, "v 3"]
    owner: Int64[Tensor, " v"]
    place: Int64[Tensor, "b p 8"]
    share: Float[Tensor, "b p 8"]
    n: int

    @classmethod
    def of(cls, X: Float[Tensor, "b k a e g 3"], n: int) -> Voxels:
        points = X.flatten(1, -2)
        cells, share = corners(points, (n, n, n))
        share = share * ((points >= 0) & (points <= 1)).all(dim=-1, keepdim=True)
        domain = torch.arange(X.shape[1], device=X.device).repeat_interleave(X[0, 0, ..., 0].numel())
        voxels, place = (domain[:, None] * n**3 + cells).unique(return_inverse=True)
        x, y, z = voxels // n**2 % n, voxels // n % n, voxels % n
        return cls((torch.stack([x, y, z], -1) + 0.5) / n, voxels // n**3, place, share, n)

    def sliced(self, S: Float[Tensor, "b v"]) -> Float[Tensor, "b p"]:
        """S at the domains' points."""
        return (S.gather(1, self.place.flatten(1)).view(self.place.shape) * self.share).sum(-1)


def certified_probe(
    S: Float[Tensor, "b v"], voxels: Voxels, r: Resolved, frame: Frame
) -> tuple[Probe, Float[Tensor, "b k"]]:
    """The residuals that the certificate will see: of the label map (S > 1/2), sliced trilinearly; and the
    masses.

    The values are the hard map's, the slopes are by the soft S.
    """

    def moments(leaf: Tensor) -> Moments:
        parsed = voxels.sliced(leaf).view(len(S), r.domains.count, *r.domains.grid)
        return measure_moments(parsed, r.domains)

    hard = (S > 0.5).to(S)
    rho, slope = _with_slopes(lambda leaf: _geometric(moments(leaf), r, frame), hard)
    moving, moves = _moving(S)
    points = voxels.centres[moving].expand(len(S), -1, 3)
    probe = Probe(rho, points, slope[:, :, moving] * moves[:, None], voxels.owner[moving], "margin")
    return probe, moments(hard).mass


def _with_slopes(function: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    """(rho (b, k * e), d rho / d at (b, e, ...)) of a function to (b, k, e).

    Each of `at` acts on only one of the k domains, so one backward pass for each of the e kinds of residual
    serves all domains.
    """
    leaf = at.detach().requires_grad_()
    with torch.enable_grad():
        rho = function(leaf)
        kinds = torch.eye(rho.shape[-1], dtype=at.dtype, device=at.device)
        pick = kinds[:, None, None].expand(-1, *rho.shape)
        (slope,) = torch.autograd.grad(rho, leaf, pick, is_grads_batched=True)
    return rho.detach().flatten(1), slope.transpose(0, 1)


def _moving(S: Tensor) -> tuple[Int64[Tensor, " m"], Float[Tensor, "b m"]]:
    """Points that are not saturated in some sample of the batch, and in which samples they are not.

    A sample's derivative has its own points only: what else is in the batch does not matter to it.
    """
    free = ((S * (1 - S)) > UNSATURATED).flatten(1)
    moving = free.any(dim=0).nonzero()[:, 0]
    return moving, free[:, moving].to(S)


def _geometric(m: Moments, r: Resolved, frame: Frame) -> Float[Tensor, "b k e"]:
    """(measured - wanted) / tolerance, zero in invalid domains, centroid and shape only of enough mass."""
    c = r.constraint
    valid = r.domains.valid.to(m.mass).expand_as(m.mass)
    enough = valid * (m.mass.detach() >= c.mass_threshold)
    parts = []
    for q, wanted in r.wanted.rows:
        target = wanted.to(m.mass)
        allowed = q.allowed(target, c.tolerance.of(q), frame.edge_mm, c.mass_threshold)
        allowed = allowed[..., None] if isinstance(allowed, Tensor) else allowed
        mask = valid if q.any_mass else enough
        parts.append(mask[..., None] * q.off(m, r.domains, target) / allowed)
    return torch.cat(parts, dim=-1)
