"""1-NNA: can a nearest-neighbour classifier tell samples from real patients? 0.5 is ideal, 1 the worst."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.evaluate.metrics.clouds import present
from anatomica.evaluate.metrics.emd import default_blur, sliced_bound, transport_cost
from anatomica.evaluate.metrics.nearest import nearest_distances


def one_nna(
    samples: Float[np.ndarray, "m t p 3"], real: Float[np.ndarray, "k t p 3"]
) -> Float[np.ndarray, " both"]:
    """Leave-one-out correctness of every case (samples first, then real), averaged over the tissues it has.

    The mean of the result is the paper's 1-NNA. Sets should be of equal size, or 0.5 is not the ideal. A case
    without a tissue has no shape of it to be told by; one with none at all gets NaN.
    """
    both = np.concatenate([samples, real])
    is_real, there = torch.arange(len(both)) >= len(samples), torch.from_numpy(present(both))
    scores = torch.full((both.shape[1], len(both)), torch.nan)
    for t, has in enumerate(there.T):
        if has.any():
            scores[t, has] = correctness(distances_within(both[has.numpy(), t]), is_real[has])
    return scores.nanmean(0).numpy()


def distances_within(clouds: Float[np.ndarray, "m p 3"]) -> Float[Tensor, "m m"]:
    """EMD of each cloud to those that may be its nearest; infinite elsewhere and on the diagonal."""
    x = torch.from_numpy(clouds).float()
    if len(x) < 2:
        return torch.full((len(x), len(x)), torch.inf)
    eps = default_blur(x)
    own = transport_cost(x, x, eps)
    bound = sliced_bound(x, x).fill_diagonal_(torch.inf)
    return nearest_distances(
        bound, lambda i, j: transport_cost(x[i], x[j], eps) - (own[i] + own[j]) / 2, symmetric=True
    )


def correctness(distances: Float[Tensor, "m m"], is_real: Tensor) -> Float[Tensor, " m"]:
    """1 where the nearest other one is from the same set; the share of such ones where several tie.

    A cloud with no finite distance (the only one that is present) has no neighbour and counts as told apart.
    """
    nearest = distances.amin(1, keepdim=True)
    tied = (distances == nearest) & torch.isfinite(distances)
    same = is_real[:, None] == is_real
    count = tied.sum(1)
    return torch.where(count > 0, (tied & same).sum(1) / count.clamp_min(1), 1.0)
