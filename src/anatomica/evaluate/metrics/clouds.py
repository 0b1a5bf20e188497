"""Point clouds of tissues: farthest point sampling of their voxels."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

POINTS = 256


def farthest_points(points: Float[np.ndarray, "n 3"], count: int = POINTS) -> Float[np.ndarray, "c 3"]:
    """`count` points, each the farthest from those before it; the first is the farthest from the centroid.

    Of fewer than `count` points all are taken, again and again, so that every cloud has the same size.
    """
    chosen = np.empty(min(count, len(points)), dtype=int)
    nearest = ((points - points.mean(0)) ** 2).sum(1)
    chosen[0] = nearest.argmax()
    nearest = np.full(len(points), np.inf)
    for i in range(1, len(chosen)):
        step = points - points[chosen[i - 1]]
        np.minimum(nearest, np.einsum("ij,ij->i", step, step), out=nearest)
        chosen[i] = nearest.argmax()
    return points[chosen[np.arange(count) % len(chosen)]]


def tissue_clouds(
    labels: UInt8[Tensor, "n n n"], classes: int, count: int = POINTS
) -> Float[np.ndarray, "t c 3"]:
    """One cloud per tissue in the cube's [0, 1]^3; NaN where the tissue is absent."""
    n = labels.shape[0]
    array = labels.numpy()
    out = np.full((classes - 1, count, 3), np.nan, dtype=np.float32)
    for c in range(1, classes):
        where = np.argwhere(array == c)
        if len(where):
            out[c - 1] = farthest_points(((where + 0.5) / n).astype(np.float32), count)
    return out


def present(clouds: Float[np.ndarray, "*m c 3"]) -> Bool[np.ndarray, "*m"]:
    """Which clouds of a tissue exist."""
    return ~np.isnan(clouds[..., 0, 0])
