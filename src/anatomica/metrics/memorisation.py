"""Memorisation: is a sample nearer to a training case than a new real patient is?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from anatomica.metrics.emd import default_blur, sliced_bound, transport_cost
from anatomica.metrics.nearest import nearest_distances
from anatomica.metrics.overlap import pairwise_dice


class Nearest(NamedTuple):
    """For each case its most similar training case by Dice, and the EMD to the nearest one."""

    dice: Float[np.ndarray, " m"]
    by_dice: Int64[np.ndarray, " m"]
    emd: Float[np.ndarray, " m"]
    by_emd: Int64[np.ndarray, " m"]


@dataclass(frozen=True, eq=False)
class Known:
    """Training cases, ready to be searched: what does not depend on the query is computed once."""

    maps: UInt8[Tensor, "k n n n"]
    clouds: Float[Tensor, "k t p 3"]
    blur: list[float]
    own: Float[Tensor, "k t"]

    @classmethod
    def of(cls, maps: UInt8[Tensor, "k n n n"], clouds: Float[np.ndarray, "k t p 3"]) -> Known:
        points = torch.from_numpy(clouds).float()
        blur = [
            default_blur(x) if len(x) else 1.0 for x in (c[~c[:, 0, 0].isnan()] for c in points.unbind(1))
        ]
        return cls(maps, points, blur, _own(points, blur))


def _own(clouds: Tensor, blur: list[float]) -> Tensor:
    """The cost of each cloud to itself; NaN where there is none."""
    every = torch.arange(len(clouds))
    return _costs(clouds, clouds, every, every, blur)


def _costs(a: Tensor, b: Tensor, i: Tensor, j: Tensor, blur: list[float]) -> Tensor:
    """Transport costs (pairs, tissues) of the pairs a[i], b[j]; NaN where one of the two lacks the tissue."""
    has_a, has_b = (~x[:, :, 0, 0].isnan() for x in (a, b))
    cost = torch.full((len(i), len(blur)), torch.nan)
    for t, eps in enumerate(blur):
        both = (has_a[i, t] & has_b[j, t]).nonzero()[:, 0]
        if len(both):
            cost[both, t] = transport_cost(a[i[both], t], b[j[both], t], eps)
    return cost


def nearest_training(
    maps: UInt8[Tensor, "m n n n"], clouds: Float[np.ndarray, "m t p 3"], known: Known
) -> Nearest:
    """Nearest training cases of `maps`; compare them with those of held-out patients.

    The EMD (cube units) of two cases is the mean over the tissues that both have; a training case with fewer
    than half of a case's tissues is no neighbour of it. NaN where a case has no neighbour.
    """
    dice = pairwise_dice(maps, known.maps, clouds.shape[1] + 1).max(dim=1)
    a, b = torch.from_numpy(clouds).float(), known.clouds
    own_a, own_b = _own(a, known.blur), known.own
    has_a, has_b = (~x[:, :, 0, 0].isnan() for x in (a, b))

    def distance(i: Tensor, j: Tensor) -> Tensor:
        return (_costs(a, b, i, j, known.blur) - (own_a[i] + own_b[j]) / 2).nanmean(1)

    bounds = torch.stack([sliced_bound(a[:, t], b[:, t]) for t in range(a.shape[1])])
    shared = has_a.float() @ has_b.float().T
    near = shared >= has_a.sum(1, keepdim=True).clamp_min(1) / 2
    emd = nearest_distances(torch.where(near, bounds.nanmean(0), torch.inf), distance).min(dim=1)
    emd_or_none = torch.where(emd.values.isfinite(), emd.values, torch.nan)
    return Nearest(dice.values.numpy(), dice.indices.numpy(), emd_or_none.numpy(), emd.indices.numpy())
