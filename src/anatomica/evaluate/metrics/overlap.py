"""Dice of every map of one set with every map of another."""

from __future__ import annotations

import torch
from jaxtyping import Float, UInt8
from torch import Tensor


def pairwise_dice(
    a: UInt8[Tensor, "m n n n"], b: UInt8[Tensor, "k n n n"], classes: int
) -> Float[Tensor, "m k"]:
    """Mean Dice over the tissues that at least one of the two maps has."""
    sizes = torch.stack([_sizes(one, classes) for one in b])
    # All maps' values of a voxel side by side: a tissue's voxels are then read in whole rows.
    voxels = b.flatten(1).T.contiguous()
    return torch.stack([_dice(one.flatten(), voxels, sizes) for one in a])


def _sizes(labels: Tensor, classes: int) -> Tensor:
    return torch.bincount(labels.flatten(), minlength=classes)


def _dice(one: UInt8[Tensor, " v"], voxels: UInt8[Tensor, "v k"], sizes: Tensor) -> Float[Tensor, " k"]:
    """Of one map with k others, whose tissues have `sizes` (k, classes)."""
    own = _sizes(one, sizes.shape[1])
    shared = [(voxels[one == c] == c).sum(0) for c in range(1, len(own))]
    both = own[1:] + sizes[:, 1:]
    dice = torch.where(both > 0, 2 * torch.stack(shared, 1) / both.clamp_min(1), 0)
    return dice.sum(1) / (both > 0).sum(1).clamp_min(1)
