"""Where decoders are trained: points denser at tissue borders, with the weights that undo the density."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64, Integer
from torch import Tensor


class DrawnPoints(NamedTuple):
    """Voxel centres, their flat voxel index and label, and weights whose expected sum is the voxel count."""

    points: Float[Tensor, "b p 3"]
    voxel: Int64[Tensor, "b p"]
    labels: Int64[Tensor, "b p"]
    weights: Float[Tensor, "b p"]


# Shares of the points drawn from all voxels, from border voxels, and equally from every tissue present.
SHARES = (0.3, 0.4, 0.3)


def draw_points(labels: Integer[Tensor, "b n n n"], count: int, uniform: Float[Tensor, "b p"]) -> DrawnPoints:
    """Draw voxel centres from a known density q and weight them 1/q.

    Any weighted sum over the drawn points is then an unbiased estimate of the plain sum over the full grid,
    so cross-entropy has the same minimum, and Dice, a ratio of such sums, the same maximum; only the variance
    is spent where it matters: on borders, and on tissues that have few voxels. `uniform` are `count` numbers
    in [0, 1) per sample; taken as offsets of equal strata, they cover q evenly (systematic sampling).
    """
    b, n = labels.shape[:2]
    flat = labels.reshape(b, -1).long()
    density = SHARES[0] / flat.shape[1] + torch.zeros_like(flat, dtype=torch.float64)
    border = border_mask(labels).view(b, -1)
    density += SHARES[1] * border / border.sum(1, keepdim=True).clamp_min(1)
    sizes = torch.zeros(b, int(flat.max()) + 1, dtype=torch.float64, device=labels.device)
    sizes.scatter_add_(1, flat, torch.ones_like(density))
    tissues = (sizes[:, 1:] > 0).sum(1, keepdim=True).clamp_min(1)
    share = torch.where(sizes > 0, SHARES[2] / (tissues * sizes.clamp_min(1)), 0.0)
    share[:, 0] = 0.0
    density += share.gather(1, flat)
    density /= density.sum(1, keepdim=True)
    strata = (torch.arange(count, device=labels.device) + uniform.to(labels.device)) / count
    index = torch.searchsorted(density.cumsum(1), strata.to(torch.float64)).clamp_max(flat.shape[1] - 1)
    weights = 1.0 / (count * density.gather(1, index))
    place = torch.stack([index // n**2, index // n % n, index % n], -1)
    return DrawnPoints((place.float() + 0.5) / n, index, flat.gather(1, index), weights.float())


def all_points(labels: Integer[Tensor, "b n n n"]) -> DrawnPoints:
    """The full grid, the paper's way: every voxel centre with weight 1."""
    b, n = labels.shape[:2]
    centres = (torch.arange(n, device=labels.device) + 0.5) / n
    grid = torch.stack(torch.meshgrid(centres, centres, centres, indexing="ij"), -1).view(1, -1, 3)
    flat = labels.reshape(b, -1).long()
    index = torch.arange(n**3, device=labels.device).expand(b, -1)
    return DrawnPoints(grid.expand(b, -1, -1), index, flat, torch.ones_like(flat, dtype=torch.float32))


def border_mask(labels: Integer[Tensor, "b n n n"]) -> Integer[Tensor, "b n n n"]:
    """1 where one of the six neighbours has another label, as uint8."""
    mask = torch.zeros_like(labels, dtype=torch.uint8)
    for axis in (1, 2, 3):
        size = labels.shape[axis] - 1
        differs = (labels.narrow(axis, 0, size) != labels.narrow(axis, 1, size)).to(torch.uint8)
        mask.narrow(axis, 0, size).bitwise_or_(differs)
        mask.narrow(axis, 1, size).bitwise_or_(differs)
    return mask
