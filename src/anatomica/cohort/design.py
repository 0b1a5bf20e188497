"""Designs of experiments: which points of the unit cube are asked for, one row per patient.

`random` and `sobol` can be continued: the first n rows do not depend on how many follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from scipy import stats

from anatomica.cohort.distributions import Distribution
from anatomica.errors import AnatomicaError

Array = np.ndarray
GOLDEN = (math.sqrt(5) - 1) / 2


def random_rows(count: int, dimensions: int, seed: int) -> Float[Array, "m d"]:
    """Independent rows, row by row from one stream."""
    return np.random.default_rng([seed, 1]).random((count, dimensions))


def sobol_rows(count: int, dimensions: int, seed: int) -> Float[Array, "m d"]:
    """Scrambled Sobol points (Owen 1998): more even than independent ones."""
    if not dimensions:
        return np.zeros((count, 0))
    source: Any = stats.qmc.Sobol(dimensions, rng=np.random.default_rng([seed, 2]))
    return source.random_base2(max(0, math.ceil(math.log2(max(1, count)))))[:count]


def grid_rows(count: int, distributions: Sequence[Distribution]) -> Float[Array, "m d"]:
    """A full factorial of `count` rows or fewer at most once through; then it begins again.

    Every value of a choice is a level. The others have as many levels as the count allows, at the middles of
    equal shares.
    """
    levels = [_values(d) for d in distributions]
    choices = math.prod(len(x) for x in levels if x is not None)
    free = sum(x is None for x in levels)
    most = count // max(1, choices)
    each = 1
    while free and (each + 1) ** free <= most:
        each += 1
    if choices > count or (free and each < 2):
        need = choices * 2**free
        raise AnatomicaError(f"a grid over these targets needs at least {need} patients; size is {count}")
    axes = [_middles(each) if x is None else x for x in levels]
    rows = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(axes))
    return np.resize(rows, (count, len(axes)))


def one_at_a_time_rows(count: int, distributions: Sequence[Distribution]) -> Float[Array, "m d"]:
    """The first row has every target at its median; every other one moves one target through its levels."""
    d = len(distributions)
    each = (count - 1) // max(1, d)
    if each < 2:
        raise AnatomicaError(
            f"one-at-a-time over {d} targets needs at least {2 * d + 1} patients; size is {count}"
        )
    rows = [np.full(d, 0.5)]
    for column, distribution in enumerate(distributions):
        values = _values(distribution)
        for u in _middles(each) if values is None else values:
            row = np.full(d, 0.5)
            row[column] = u
            rows.append(row)
    return np.resize(np.array(rows), (count, d))


def strata_of(count: int, shares: Sequence[float]) -> Int64[Array, " m"]:
    """A stratum's number for each patient, in the shares' proportion from the first patient on.

    Multiples of the golden ratio fill the unit interval evenly (Weyl's sequence), so any first n patients
    have the shares to within a few patients.
    """
    u = (0.5 + GOLDEN * np.arange(count)) % 1.0
    return np.searchsorted(np.cumsum(shares)[:-1], u, "right").astype(np.int64)


def _values(distribution: Distribution) -> Array | None:
    """A place in the unit interval for each value of a choice; None for a continuous distribution."""
    if not distribution.discrete:
        return None
    u = _middles(10_000)
    x = distribution.ppf(u)
    return np.array([float(np.median(u[x == value])) for value in np.unique(x)])


def _middles(count: int) -> Array:
    return (np.arange(count) + 0.5) / count
