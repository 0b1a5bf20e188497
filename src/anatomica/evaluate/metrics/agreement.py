"""How well do values agree with a distribution, or with other values? KS and Wasserstein distances in one
dimension, the energy distance in several."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.spatial.distance import cdist

Array = np.ndarray
BAND = 1.358
"""95 % of samples of n of a continuous distribution lie within this / sqrt(n) of it (Kolmogorov 1933)."""


class Agreement(NamedTuple):
    """The Kolmogorov-Smirnov distance with the largest that 95 % of true samples have, and the Wasserstein
    distance in the quantity's unit."""

    ks: float
    band: float
    wasserstein: float

    @property
    def within(self) -> bool:
        return bool(self.ks <= self.band)


def against_distribution(
    values: Float[Array, " m"], cdf: Callable[[Array], Array], ppf: Callable[[Array], Array]
) -> Agreement:
    """Values against a distribution. For one with steps the distance is taken at its values, on which the
    band is conservative."""
    x = np.sort(values)
    n = len(x)
    at, before = cdf(x), cdf(np.nextafter(x, -np.inf))
    above = np.arange(1, n + 1) / n
    # At equal values only the last step counts from above and the first from below.
    last = np.append(x[1:] != x[:-1], True)
    first = np.append(True, x[1:] != x[:-1])
    ks = max(float(np.abs(above - at)[last].max()), float(np.abs(above - 1 / n - before)[first].max()))
    expected = ppf((np.arange(n) + 0.5) / n)
    return Agreement(ks, BAND / np.sqrt(n), float(np.abs(x - expected).mean()))


def against_values(values: Float[Array, " m"], others: Float[Array, " k"]) -> Agreement:
    """Two sets of values; the band is that of two independent samples of one distribution."""
    # The statistic is the same; the exact p-value, which nobody reads, warns where it cannot be computed.
    found = stats.ks_2samp(values, others, method="asymp")
    ks = float(found.statistic)  # pyright: ignore[reportAttributeAccessIssue]
    band = BAND * np.sqrt((len(values) + len(others)) / (len(values) * len(others)))
    return Agreement(ks, float(band), float(stats.wasserstein_distance(values, others)))


def energy_distance(a: Float[Array, "m d"], b: Float[Array, "k d"]) -> float:
    """2 E|X - Y| - E|X - X'| - E|Y - Y'| (Székely and Rizzo 2013), in units of b's standard deviations."""
    scale = np.where(b.std(0) > 0, b.std(0), 1.0)
    x, y = a / scale, b / scale
    return float(2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean())


def energy_band(b: Float[Array, "k d"], count: int, draws: int = 200, seed: int = 0) -> float:
    """95th percentile of the energy distance of `count` of the rows of b, drawn at random, from all of b."""
    rng = np.random.default_rng(seed)
    found = [energy_distance(b[rng.integers(0, len(b), count)], b) for _ in range(draws)]
    return float(np.percentile(found, 95))
