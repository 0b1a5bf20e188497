"""Bootstrap 95 % intervals: how far a number may move with another draw of the same samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

DRAWS = 2000


class Interval(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


def mean_interval(
    values: Sequence[float] | Float[np.ndarray, " m"], draws: int = DRAWS, seed: int = 0
) -> Interval:
    """The mean with its percentile interval; NaNs are left out."""
    x = np.asarray(values, dtype=float)
    x = x[~np.isnan(x)]
    if not len(x):
        return Interval(float("nan"), float("nan"), float("nan"))
    rows = np.random.default_rng(seed).integers(0, len(x), (draws, len(x)))
    low, high = np.percentile(x[rows].mean(1), (2.5, 97.5))
    return Interval(float(x.mean()), float(low), float(high))


def share_interval(hits: Sequence[bool] | Bool[np.ndarray, " m"]) -> Interval:
    """The share of hits with Wilson's interval, which is honest at 0 and 1 too, where resampling is not."""
    n = len(hits)
    if not n:
        return Interval(float("nan"), float("nan"), float("nan"))
    share, z2 = float(np.mean(hits)), 1.96**2 / n
    middle = (share + z2 / 2) / (1 + z2)
    half = float(np.sqrt(z2 * (share * (1 - share) + z2 / 4))) / (1 + z2)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def distance_interval(
    distance: Callable[[np.ndarray], float], count: int, draws: int = 200, seed: int = 0
) -> Interval:
    """distance(rows) for an index vector, with an interval of 1.96 bootstrap SDs of its logarithm.

    For positive statistics that resampling biases (a Frechet distance grows with repeated rows): the spread
    of the draws is right although their mean is not.
    """
    rng = np.random.default_rng(seed)
    value = float(distance(np.arange(count)))
    drawn = np.array([distance(rng.integers(0, count, count)) for _ in range(draws)])
    factor = float(np.exp(1.96 * np.std(np.log(drawn.clip(min=1e-12)), ddof=1)))
    return Interval(value, value / factor, value * factor)
