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
    return torch.stack([transport_cost(clouds[:, t], clouds[:, t], e) for t, e in enumerate(blur)], dim=1)


def nearest_training(
    maps: UInt8[Tensor, "m n n n"], clouds: Float[np.ndarray, "m t p 3"], known: Known
) -> Nearest:
    """Nearest training cases of `maps`; compare them with those of held-out patients.

    The EMD (cube units) is the mean over the tissues that every case has.
    """
    dice = pairwise_dice(maps, known.maps, clouds.shape[1] + 1).max(dim=1)
    given = torch.from_numpy(clouds).float()
    common = ~(given.isnan().any(0) | known.clouds.isnan().any(0)).flatten(1).any(1)
    used = common.nonzero()[:, 0].tolist()
    if not used:
        none = np.full(len(maps), np.nan)
        return Nearest(dice.values.numpy(), dice.indices.numpy(), none, np.zeros(len(maps), dtype=np.int64))
    a, b, blur = given[:, used], known.clouds[:, used], [known.blur[t] for t in used]
    own_a, own_b = _own(a, blur), known.own[:, used]

    def distance(i: Tensor, j: Tensor) -> Tensor:
        cost = torch.stack([transport_cost(a[i, t], b[j, t], e) for t, e in enumerate(blur)], dim=1)
        return (cost - (own_a[i] + own_b[j]) / 2).mean(1)

    bound = torch.stack([sliced_bound(a[:, t], b[:, t]) for t in range(a.shape[1])]).mean(0)
    emd = nearest_distances(bound, distance).min(dim=1)
    return Nearest(dice.values.numpy(), dice.indices.numpy(), emd.values.numpy(), emd.indices.numpy())
