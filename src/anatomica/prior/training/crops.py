"""Crops around tissue for the first part of the autoencoder's training.

Nineteen voxels of twenty are background, and a convolution pays for each of them. All layers are
convolutional, so they learn as well from cubes cut around tissue, at an eighth of the cost; the rest of the
run, on whole volumes, then settles what the surroundings change (normalisation, borders).
"""

from __future__ import annotations

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor


def tissue_crop(
    labels: UInt8[Tensor, "n n n"], size: int, grid: int, generator: torch.Generator
) -> tuple[UInt8[Tensor, "s s s"], Int64[Tensor, "3"]]:
    """A cube of `size` voxels around a voxel of a tissue, every tissue as likely; its first voxel's index.

    The crop begins at a multiple of `grid`, so that its latent cells are the whole volume's.
    """
    n = labels.shape[0]
    if size == n:
        return labels, torch.zeros(3, dtype=torch.int64)
    present = labels.unique()
    present = present[present > 0]
    centre = torch.randint(n, (3,), generator=generator)
    if len(present):
        chosen = present[torch.randint(len(present), (), generator=generator)]
        places = (labels == chosen).nonzero()
        centre = places[torch.randint(len(places), (), generator=generator)]
    jitter = torch.randint(-size // 4, size // 4 + 1, (3,), generator=generator)
    start = ((centre + jitter - size // 2) // grid * grid).clamp(0, n - size)
    x, y, z = start.tolist()
    return labels[x : x + size, y : y + size, z : z + size], start
