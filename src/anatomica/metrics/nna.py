"""1-NNA: can a nearest-neighbour classifier tell samples from real patients? 0.5 is ideal, 1 the worst."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.metrics.clouds import present
from anatomica.metrics.emd import default_blur, sliced_bound, transport_cost
from anatomica.metrics.nearest import nearest_distances


def one_nna(
    samples: Float[np.ndarray, "m t p 3"], real: Float[np.ndarray, "k t p 3"]
) -> Float[np.ndarray, " both"]:
    """Leave-one-out correctness of every cloud set (samples first, then real), averaged over the tissues.

    The mean of the result is the paper's 1-NNA. Sets should be of equal size, or 0.5 is not the ideal.
    """
    both = np.concatenate([samples, real])
    is_real = torch.arange(len(both)) >= len(samples)
    scores = [
        correctness(distances_within(both[:, t]), is_real)
        for t in range(both.shape[1])
        if present(both[:, t]).any()
    ]
    return torch.stack(scores).mean(0).numpy()


def distances_within(clouds: Float[np.ndarray, "m p 3"]) -> Float[Tensor, "m m"]:
    """EMD of each cloud to those that may be its nearest; infinite elsewhere and on the diagonal.

    Two absent clouds are at distance 0, an absent and a present one are infinitely far apart.
    """
    there = torch.from_numpy(present(clouds))
    x = torch.from_numpy(clouds)[there].float()
    found = torch.where(~there[:, None] & ~there, 0.0, torch.inf)
    if len(x) > 1:
        eps = default_blur(x)
        own = transport_cost(x, x, eps)
        bound = sliced_bound(x, x).fill_diagonal_(torch.inf)
        near = nearest_distances(
            bound, lambda i, j: transport_cost(x[i], x[j], eps) - (own[i] + own[j]) / 2, symmetric=True
        )
        index = there.nonzero()[:, 0]
        found[index[:, None], index] = near
    return found.fill_diagonal_(torch.inf)


def correctness(distances: Float[Tensor, "m m"], is_real: Tensor) -> Float[Tensor, " m"]:
    """1 where the nearest other one is from the same set; the share of such ones where several tie.

    A cloud with no finite distance (the only one that is present) has no neighbour and counts as told apart.
    """
    nearest = distances.amin(1, keepdim=True)
    tied = (distances == nearest) & torch.isfinite(distances)
    same = is_real[:, None] == is_real
    count = tied.sum(1)
    return torch.where(count > 0, (tied & same).sum(1) / count.clamp_min(1), 1.0)
