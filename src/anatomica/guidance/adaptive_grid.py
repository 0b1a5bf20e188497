"""Sampling a function on a grid without visiting where it does not vary."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

STRICTER = 4
"""Each coarser grid is held to a tolerance smaller by this."""


def sample_where_it_varies(
    function: Callable[[Tensor], Tensor], X: Float[Tensor, "a e g 3"], tolerance: float, coarsest: int
) -> Float[Tensor, "a e g"]:
    """function(points (p, 3)) -> (p,) on the grid X, to 4/3 of `tolerance`.

    Every second point of each axis is sampled first, itself from every second one, down to `coarsest` points.
    Where such a point differs from its 26 neighbours by less than the tolerance, its value stands for the
    fine points around it; elsewhere all are sampled. If the function is resolved by the coarsest points (as a
    field is by the cells of its latent), no value is off by more, and neither is any birth or death of its
    persistence diagram (stability theorem).
    """
    shape = X.shape[:3]
    if tolerance <= 0 or min(shape) < 2 * coarsest:
        return function(X.reshape(-1, 3)).reshape(shape)
    coarse = sample_where_it_varies(function, X[::2, ::2, ::2], tolerance / STRICTER, coarsest)
    high = F.max_pool3d(coarse[None, None], 3, stride=1, padding=1)[0, 0]
    low = -F.max_pool3d(-coarse[None, None], 3, stride=1, padding=1)[0, 0]
    varies = _spread(high - low > tolerance, shape)
    values = _spread(coarse, shape).clone()
    values[varies] = function(X[varies])
    return values


def _spread(coarse: Tensor, shape: torch.Size) -> Tensor:
    """Each coarse value on the 2^3 fine points that begin at its own, cut to the fine grid."""
    for axis, n in enumerate(shape):
        coarse = coarse.repeat_interleave(2, dim=axis).narrow(axis, 0, n)
    return coarse
