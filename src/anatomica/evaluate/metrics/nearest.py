"""Nearest neighbours under a costly distance that has a cheap lower bound."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

SLACK = 0.8
"""The bound is below the exact distance, and the divergence a little below that; this much is allowed for."""

Distance = Callable[[Tensor, Tensor], Tensor]
"""distance(i, j): index vectors of equal length to distances of those pairs."""


def nearest_distances(
    bound: Float[Tensor, "m k"], distance: Distance, at_once: int = 2, symmetric: bool = False
) -> Float[Tensor, "m k"]:
    """The distances that decide every row's nearest neighbour; the others stay infinite.

    Each row asks for its most promising candidates until the best distance is below every bound that is
    left. An infinite bound (the row itself, say) is never asked for. With `symmetric`, (i, j) is (j, i).
    """
    found = torch.full_like(bound, torch.inf)
    left = SLACK * bound
    while True:
        best = found.amin(1, keepdim=True)
        value, column = left.topk(min(at_once, left.shape[1]), dim=1, largest=False)
        row = torch.arange(len(left))[:, None].expand_as(column)
        ask = torch.isfinite(value) & (value < best)
        if not bool(ask.any()):
            return found
        i, j = row[ask], column[ask]
        if symmetric:
            low, high = torch.minimum(i, j), torch.maximum(i, j)
            pairs = torch.unique(torch.stack([low, high], dim=1), dim=0)
            i, j = pairs[:, 0], pairs[:, 1]
        d = distance(i, j)
        found[i, j] = d
        left[i, j] = torch.inf
        if symmetric:
            found[j, i] = d
            left[j, i] = torch.inf
