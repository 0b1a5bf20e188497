"""Dice of every map of one set with every map of another, as matrix products."""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor


def pairwise_dice(
    a: UInt8[Tensor, "m n n n"], b: UInt8[Tensor, "k n n n"], classes: int
) -> Float[Tensor, "m k"]:
    """Mean Dice over the tissues that at least one of the two maps has."""
    total, count = torch.zeros(len(a), len(b)), torch.zeros(len(a), len(b))
    for c in range(1, classes):
        first, second = ((x == c).flatten(1) for x in (a, b))
        size = first.sum(1)[:, None] + second.sum(1)
        # Only voxels where the tissue occurs at all: a fraction of the cube.
        used = first.any(0) & second.any(0)
        shared = first[:, used].float() @ second[:, used].float().T
        there = size > 0
        total += torch.where(there, 2 * shared / size.clamp_min(1), 0)
        count += there
    return total / count.clamp_min(1)
