"""Residuals of topology: persistences while sampling, births and deaths of a finished label map.

A count must hold when the structure's border moves by half its calibre. Moving a border inwards is a minimum
over a ball, outwards a maximum: the label map's residuals are those of the moved fields too, and act where
the minimum or maximum is taken.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from anatomica.guidance.potentials import most
from anatomica.guidance.residuals import LEVEL_TOLERANCE, SURE, Probe
from anatomica.measurement.homology import PersistencePairs, persistence_pairs
from anatomica.spec.quantities import BettiPrior

STRONGEST = 8
"""How many features to suppress at a time, the most persistent first."""
CRITICAL = 32
"""How many births and deaths of a label map to move at a time, the farthest off first."""
TOPOLOGY_TOLERANCE = 0.1
"""A persistence within this of 0 or 1 counts as one tolerance."""
HOLDS = (0.4, 0.5, 0.6)
"""Levels of the margin at which the Betti numbers must be those asked for, so that nothing is pushed."""
WIDEST_MOVE = 3.0
"""A border is moved by this many points at most: farther ones are left to the certificate."""


def topological_probe(S: Float[Tensor, "b a e g"], X: Float[Tensor, "b a e g 3"], prior: BettiPrior) -> Probe:
    """Residuals "persistence is 1" of the B features to preserve and "is 0" of the strongest others.

    Each acts on two voxels, the feature's birth and death. A sample whose count holds has none: pushed on
    regardless, a deposit that is already there opens the wall beside it.
    """
    pairs = _pairs(S, prior)
    keep = most(pairs, pairs.persistence, prior)
    asked = []
    for sample in range(len(S)):
        here = pairs.batch == sample
        if all(_alive_counts(pairs, here, level, prior) for level in HOLDS):
            here = torch.zeros_like(here)
        wanted, others = (here & keep).nonzero()[:, 0], (here & ~keep).nonzero()[:, 0]
        strongest = others[pairs.persistence[others].argsort(descending=True)[:STRONGEST]]
        chosen = torch.cat([wanted, strongest])
        rho = (pairs.persistence[chosen] - keep[chosen].to(S)) / TOPOLOGY_TOLERANCE
        voxel = torch.stack([pairs.birth_voxel[chosen], pairs.death_voxel[chosen]], dim=1)
        slope = S.new_tensor([1.0, -1.0]).expand_as(voxel) / TOPOLOGY_TOLERANCE
        asked.append((rho, voxel, slope))
    return _critical_probe(asked, X)


def _alive_counts(pairs: PersistencePairs, here: Bool[Tensor, " n"], level: float, prior: BettiPrior) -> bool:
    """Whether the superlevel set of one volume has the Betti numbers asked for."""
    alive = here & (pairs.birth > level) & (pairs.death <= level)
    counts = (int((alive & (pairs.dim == d)).sum()) for d in range(3))
    return all(b is None or b == count for b, count in zip(prior.numbers, counts, strict=True))


class Moved(NamedTuple):
    """A volume whose superlevel sets are another one's with their border moved, and the point of that other
    volume that each value is from."""

    S: Float[Tensor, "a e g"]
    source: Int64[Tensor, " p"]


def moved_borders(S: Float[Tensor, "a e g"], spacing: Sequence[float], reach: float) -> tuple[Moved, ...]:
    """The volume with all borders moved inwards and outwards by `reach`, as `sub_voxel.conditions` counts it.

    A border lies half a spacing before the first point beyond it.
    """
    radius = min(reach + min(spacing) / 2, WIDEST_MOVE * min(spacing)) * (1 + 1e-6)
    span = [range(-math.floor(radius / s), math.floor(radius / s) + 1) for s in spacing]
    ball = [
        o
        for o in itertools.product(*span)
        if math.dist([0] * 3, [x * s for x, s in zip(o, spacing, strict=True)]) <= radius
    ]
    index = torch.arange(S.numel(), device=S.device).view(S.shape)
    return tuple(_extreme(S, index, ball, sign) for sign in (-1.0, 1.0))


def _extreme(S: Tensor, index: Tensor, ball: Sequence[tuple[int, ...]], sign: float) -> Moved:
    """The largest (sign 1) or smallest (-1) value around each point, and where; nothing lies outside."""
    pad = [max(abs(o[axis]) for o in ball) for axis in (2, 1, 0) for _ in range(2)]
    values, places = F.pad(sign * S, pad, value=-math.inf), F.pad(index, pad)
    best, source = sign * S, index
    for offset in ball:
        here = tuple(slice(p + o, p + o + n) for p, o, n in zip(pad[::-2], offset, S.shape, strict=True))
        better = values[here] > best
        best, source = torch.where(better, values[here], best), torch.where(better, places[here], source)
    return Moved(sign * best, source.flatten())


def certified_topological_probe(
    S: Float[Tensor, "b a e g"],
    X: Float[Tensor, "b a e g 3"],
    prior: BettiPrior,
    source: Int64[Tensor, " p"] | None = None,
) -> Probe:
    """Residuals of the label map S > 1/2: births and deaths on the wrong side of 1/2, and those close to it.

    A feature is in the label map if it is born above 1/2 and dies below. The B features with the largest
    margin must exceed 1/2 by at least one tolerance; all others must miss it by as much, in their birth or
    their death. So a residual beyond 1 is a feature too many or too few, and each acts on one voxel. Levels
    are logits, which have a slope however sure the field is. A sample that has the Betti numbers has no
    residuals. `source` says which point of X each value of a moved border is from.
    """
    pairs = _pairs(S, prior)
    birth, death = (torch.logit(level, SURE) / LEVEL_TOLERANCE for level in (pairs.birth, pairs.death))
    keep = most(pairs, torch.minimum(birth, -death), prior)
    asked = []
    for sample in range(len(S)):
        here = pairs.batch == sample
        met = _alive_counts(pairs, here, 0.5, prior)
        kept, others = (here & keep).nonzero()[:, 0], (here & ~keep).nonzero()[:, 0]
        born_less = _which_end(pairs, birth, death, others)
        rho = torch.cat(
            [
                (birth[kept] - 1).clamp_max(0),
                (death[kept] + 1).clamp_min(0),
                (birth[others[born_less]] + 1).clamp_min(0),
                (death[others[~born_less]] - 1).clamp_max(0),
            ]
        )
        at = (pairs.birth_voxel, pairs.death_voxel) * 2
        rows = (kept, kept, others[born_less], others[~born_less])
        voxel = torch.cat([voxels[i] for voxels, i in zip(at, rows, strict=True)])
        farthest = rho.abs().argsort(descending=True)[: 0 if met else CRITICAL]
        rho, voxel = rho[farthest], voxel[farthest]
        p = S[sample].flatten()[voxel].clamp(SURE, 1 - SURE)
        slope = (rho != 0) / (LEVEL_TOLERANCE * p * (1 - p))
        voxel = voxel if source is None else source[voxel]
        asked.append((rho, voxel[:, None], slope[:, None]))
    return _critical_probe(asked, X)


def _which_end(
    pairs: PersistencePairs, birth: Tensor, death: Tensor, others: Int64[Tensor, " n"]
) -> Bool[Tensor, " n"]:
    """Whether an unwanted feature should be born lower rather than die higher: whichever is nearer.

    Joining a component may close a loop at the same voxel, which would then have to rise and to sink. The one
    of the two features for which the other end costs less takes that.
    """
    cost = {True: birth[others] + 1, False: 1 - death[others]}
    born_less = cost[True] <= cost[False]
    present = torch.minimum(cost[True], cost[False]) > 0
    rising = {int(pairs.death_voxel[others[i]]): i for i in (present & ~born_less).nonzero()[:, 0].tolist()}
    for i in (present & born_less).nonzero()[:, 0].tolist():
        rival = rising.get(int(pairs.birth_voxel[others[i]]))
        if rival is not None:
            loser = i if cost[False][i] <= cost[True][rival] else rival
            born_less[loser] = ~born_less[loser]
    return born_less


def _pairs(S: Float[Tensor, "b a e g"], prior: BettiPrior) -> PersistencePairs:
    """The features of the dimensions that have a prior."""
    return persistence_pairs(S.detach(), dims=[d for d, b in enumerate(prior.numbers) if b is not None])


def _critical_probe(
    asked: Sequence[tuple[Float[Tensor, " n"], Int64[Tensor, "n v"], Float[Tensor, "n v"]]],
    X: Float[Tensor, "b a e g 3"],
) -> Probe:
    """Every sample's residuals, the voxels that each acts on and the slopes there, padded to the most."""
    count, each = max(len(rho) for rho, _, _ in asked), asked[0][1].shape[1]
    rho = X.new_zeros(len(X), count)
    voxel = torch.zeros(len(X), count, each, dtype=torch.long, device=X.device)
    slope = X.new_zeros(len(X), count, each)
    for sample, (off, acts_on, by) in enumerate(asked):
        rho[sample, : len(off)], voxel[sample, : len(off)], slope[sample, : len(off)] = off, acts_on, by
    at = voxel.flatten(1)[..., None].expand(-1, -1, 3)
    owner = torch.arange(count, device=X.device).repeat_interleave(each)
    return Probe(rho, torch.gather(X.flatten(1, -2), 1, at), slope.flatten(1)[:, None], owner, "margin")
