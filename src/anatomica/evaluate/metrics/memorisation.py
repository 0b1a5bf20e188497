"""Memorisation: is a sample nearer to a training case than a new real patient is?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from anatomica.evaluate.metrics.clouds import present
from anatomica.evaluate.metrics.emd import default_blur, sliced_bound, transport_cost
from anatomica.evaluate.metrics.overlap import pairwise_dice

CANDIDATES = 8
"""How many training cases' EMD to a case is computed: of those with the smallest sliced bounds, which rank
them nearly as the EMD does and are 0 for a copy."""


class Nearest(NamedTuple):
    """For each case its most similar training case by Dice, and the EMD to the nearest one."""

    dice: Float[np.ndarray, " m"]
    by_dice: Int64[np.ndarray, " m"]
    emd: Float[np.ndarray, " m"]
    by_emd: Int64[np.ndarray, " m"]


@dataclass(frozen=True, eq=False)
class Known:
    """Training cases, ready to be searched; `blur` is Sinkhorn's, one per tissue."""

    maps: UInt8[Tensor, "k n n n"]
    clouds: Float[Tensor, "k t p 3"]
    there: Tensor
    blur: list[float]

    @classmethod
    def of(cls, maps: UInt8[Tensor, "k n n n"], clouds: Float[np.ndarray, "k t p 3"]) -> Known:
        points, there = torch.from_numpy(clouds).float(), torch.from_numpy(present(clouds))
        tissues = zip(points.unbind(1), there.unbind(1), strict=True)
        blur = [default_blur(x[has]) if has.any() else 1.0 for x, has in tissues]
        return cls(maps, points, there, blur)


def nearest_training(
    maps: UInt8[Tensor, "m n n n"],
    clouds: Float[np.ndarray, "m t p 3"],
    known: Known,
    candidates: int = CANDIDATES,
) -> Nearest:
    """Nearest training cases of `maps`; compare them with those of held-out patients.

    The EMD (cube units) of two cases is the mean over the tissues that both have; a training case with fewer
    than half of a case's tissues is not a neighbour of it. NaN where a case has no neighbour. The EMD is that
    to the nearest of the most promising `candidates`.
    """
    dice = pairwise_dice(maps, known.maps, clouds.shape[1] + 1).max(dim=1)
    a, there = torch.from_numpy(clouds).float(), torch.from_numpy(present(clouds))
    bounds = torch.stack([sliced_bound(a[:, t], known.clouds[:, t]) for t in range(a.shape[1])]).nanmean(0)
    shared = there.float() @ known.there.float().T
    near = shared >= there.sum(1, keepdim=True).clamp_min(1) / 2
    bounds = torch.where(near, bounds, torch.inf)
    bound, j = bounds.topk(min(candidates, bounds.shape[1]), dim=1, largest=False)
    i = torch.arange(len(a))[:, None].expand_as(j)
    found = torch.full_like(bound, torch.inf)
    ask = bound.isfinite()
    found[ask] = _emd(a, there, known, i[ask], j[ask])
    emd = found.min(dim=1)
    emd_or_none = torch.where(emd.values.isfinite(), emd.values, torch.nan)
    by_emd = j.gather(1, emd.indices[:, None])[:, 0]
    return Nearest(dice.values.numpy(), dice.indices.numpy(), emd_or_none.numpy(), by_emd.numpy())


def _emd(a: Tensor, there: Tensor, known: Known, i: Tensor, j: Tensor) -> Float[Tensor, " pairs"]:
    """EMD of the pairs a[i], known[j]: the mean over the tissues that both have."""
    each = torch.full((len(i), len(known.blur)), torch.nan)
    for t, eps in enumerate(known.blur):
        both = (there[i, t] & known.there[j, t]).nonzero()[:, 0]
        if len(both):
            x, y = a[:, t], known.clouds[:, t]
            own = (_own(x, i[both], eps) + _own(y, j[both], eps)) / 2
            each[both, t] = transport_cost(x[i[both]], y[j[both]], eps) - own
    return each.nanmean(1)


def _own(clouds: Float[Tensor, "m p 3"], index: Int64[Tensor, " pairs"], eps: float) -> Tensor:
    """The cost of clouds to themselves, each computed once."""
    used, place = index.unique(return_inverse=True)
    return transport_cost(clouds[used], clouds[used], eps)[place]
