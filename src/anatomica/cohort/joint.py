"""Joint distributions by a Gaussian copula: correlated normals, each pushed through a quantile function.

With stated Pearson correlations this is NORTA (Cario and Nelson 1997): the normals' correlation of every pair
is chosen so that the quantities have the asked one. With a table it is the correlation of normal scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy import special, stats

from anatomica.cohort.distributions import Distribution
from anatomica.errors import AnatomicaError

Array = np.ndarray
POINTS = 13
"""2^13 quasi-random points per pair: the asked correlation of two normals is met to 0.001."""


def latent_correlation(
    names: Sequence[str], distributions: Sequence[Distribution], pairs: Mapping[tuple[str, str], float]
) -> Float[Array, "d d"]:
    """The normals' correlation matrix for asked Pearson correlations of the quantities; others are 0."""
    asked = np.eye(len(names))
    latent = np.eye(len(names))
    for (a, b), r in pairs.items():
        i, j = names.index(a), names.index(b)
        asked[i, j] = asked[j, i] = r
        latent[i, j] = latent[j, i] = _latent(a, b, distributions[i], distributions[j], r)
    for matrix in (asked, latent):
        least = float(np.linalg.eigvalsh(matrix).min(initial=0.0))
        if least < -1e-9:
            raise AnatomicaError(
                f"no distribution has these correlations together: {_listed(pairs)} (the matrix's least "
                f"eigenvalue is {least:.3g}, and may not be negative); bring the largest of them nearer to 0"
            )
    return latent


def table_correlation(values: Float[Array, "m d"]) -> Float[Array, "d d"]:
    """The normals' correlation matrix of a table's copula: the correlation of its normal scores."""
    ranks = stats.rankdata(values, axis=0)
    scores = special.ndtri(ranks / (len(values) + 1))
    sd = scores.std(0)
    scores = np.where(sd > 0, (scores - scores.mean(0)) / np.where(sd > 0, sd, 1.0), 0.0)
    found = scores.T @ scores / len(values)
    np.fill_diagonal(found, 1.0)
    return found


def correlated(u: Float[Array, "m d"], latent: Float[Array, "d d"]) -> Float[Array, "m d"]:
    """Uniform numbers whose normal scores have the correlations `latent`, from independent ones."""
    if np.allclose(latent, np.eye(len(latent))):
        return u
    return special.ndtr(special.ndtri(np.clip(u, 1e-12, 1 - 1e-12)) @ _root(latent).T)


def _root(latent: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """A with A A^T = latent, also of a singular matrix; lower triangular wherever that exists."""
    try:
        return np.linalg.cholesky(latent)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(latent)
        return vectors * np.sqrt(np.clip(values, 0.0, None))


def _latent(a: str, b: str, first: Distribution, second: Distribution, asked: float) -> float:
    """The normals' correlation that gives two quantities the asked one, by bisection."""
    for name, one in ((a, first), (b, second)):
        if one.support[0] == one.support[1]:
            raise AnatomicaError(f"correlations: {name} has only one value, so it correlates with nothing")
    z = special.ndtri(np.clip(_unit(2), 1e-12, 1 - 1e-12))
    x = first.ppf(special.ndtr(z[:, 0]))

    def achieved(rho: float) -> float:
        mixed = rho * z[:, 0] + np.sqrt(max(0.0, 1 - rho * rho)) * z[:, 1]
        return float(np.corrcoef(x, second.ppf(special.ndtr(mixed)))[0, 1])

    low, high = -1.0, 1.0
    least, most = achieved(low), achieved(high)
    if not least - 1e-3 <= asked <= most + 1e-3:
        raise AnatomicaError(
            f"correlations: {a} and {b} cannot have the correlation {asked:g}; with these distributions "
            f"it lies between {least:.2f} and {most:.2f}"
        )
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if achieved(middle) < asked else (low, middle)
    return (low + high) / 2


def _unit(dimensions: int) -> Float[Array, "m d"]:
    return stats.qmc.Sobol(dimensions, rng=np.random.default_rng(0)).random_base2(POINTS)


def _listed(pairs: Mapping[tuple[str, str], float]) -> str:
    return ", ".join(f"[{a}, {b}]: {r:g}" for (a, b), r in pairs.items())
