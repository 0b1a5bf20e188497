"""Bootstrap 95 % intervals: how far a number may move with another draw of the same samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

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


def statistic_interval(
    statistic: Callable[[np.ndarray], float], count: int, draws: int = 200, seed: int = 0
) -> Interval:
    """statistic(rows) with rows an index vector: the estimate +- 1.96 bootstrap standard deviations.

    For statistics that resampling biases (a Frechet distance grows with repeated rows): the spread of the
    draws is right where their place is not.
    """
    rng = np.random.default_rng(seed)
    value = statistic(np.arange(count))
    drawn = [statistic(rng.integers(0, count, count)) for _ in range(draws)]
    spread = 1.96 * float(np.std(drawn, ddof=1))
    return Interval(float(value), float(value) - spread, float(value) + spread)
