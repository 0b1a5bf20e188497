"""Memorisation: is a sample nearer to a training case than a new real patient is?"""

from __future__ import annotations

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


def nearest_training(
    maps: UInt8[Tensor, "m n n n"],
    clouds: Float[np.ndarray, "m t p 3"],
    training: UInt8[Tensor, "k n n n"],
    training_clouds: Float[np.ndarray, "k t p 3"],
) -> Nearest:
    """Nearest training cases of `maps`; compare them with those of held-out patients.

    The EMD (cube units) is the mean over the tissues that every cloud set has.
    """
    dice = pairwise_dice(maps, training, clouds.shape[1] + 1).max(dim=1)
    both = np.concatenate([clouds, training_clouds])
    common = ~np.isnan(both[:, :, 0, 0]).any(0)
    a, b = (torch.from_numpy(x[:, common]).float() for x in (clouds, training_clouds))
    if not a.shape[1]:
        none = np.full(len(maps), np.nan)
        return Nearest(dice.values.numpy(), dice.indices.numpy(), none, np.zeros(len(maps), dtype=np.int64))
    eps = [default_blur(b[:, t]) for t in range(b.shape[1])]
    own_a, own_b = (
        torch.stack([transport_cost(x[:, t], x[:, t], e) for t, e in enumerate(eps)], dim=1) for x in (a, b)
    )

    def distance(i: Tensor, j: Tensor) -> Tensor:
        cost = torch.stack([transport_cost(a[i, t], b[j, t], e) for t, e in enumerate(eps)], dim=1)
        return (cost - (own_a[i] + own_b[j]) / 2).mean(1)

    bound = torch.stack([sliced_bound(a[:, t], b[:, t]) for t in range(a.shape[1])]).mean(0)
    emd = nearest_distances(bound, distance).min(dim=1)
    return Nearest(dice.values.numpy(), dice.indices.numpy(), emd.values.numpy(), emd.indices.numpy())
