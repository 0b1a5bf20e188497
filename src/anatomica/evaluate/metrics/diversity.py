"""Diversity: how different samples are from one another, as a share of how different real patients are."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.evaluate.metrics.frechet import standardise
from anatomica.evaluate.metrics.overlap import pairwise_dice


def dissimilarity(maps: UInt8[Tensor, "m n n n"], classes: int) -> Float[np.ndarray, " m"]:
    """For each map, 1 - Dice with the others on average. Their mean is the set's diversity."""
    dice = pairwise_dice(maps, maps, classes)
    others = ~torch.eye(len(maps), dtype=torch.bool)
    return ((1 - dice) * others).sum(1).div(max(1, len(maps) - 1)).numpy()


def spread(samples: Float[np.ndarray, "m f"], real: Float[np.ndarray, "k f"]) -> float:
    """Total variance of the morphology over that of the real set: 1 for a population as varied as it."""
    a, b = standardise(samples, real), standardise(real, real)
    return float(a.var(0, ddof=1).sum() / b.var(0, ddof=1).sum())
