"""Fidelity and coverage of a set of samples beside a real set, as rows of features.

Precision and recall by k-nearest-neighbour balls (Kynkäänniemi 2019), coverage (Naeem 2020), and the Vendi
score (Friedman and Dieng 2023), the effective number of different samples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.distance import cdist

Array = np.ndarray
NEIGHBOURS = 5
"""k of the balls around points: the value of both papers."""


class Coverage(NamedTuple):
    """Shares: of samples inside the real set's balls (precision), of real ones inside the samples' balls
    (recall), and of real ones whose ball holds a sample (coverage)."""

    precision: float
    recall: float
    coverage: float


def coverage(
    samples: Float[Array, "m f"], real: Float[Array, "k f"], neighbours: int = NEIGHBOURS
) -> Coverage:
    """All three, by Euclidean distance; give both sets in the same standardised units."""
    between = cdist(samples, real)
    real_radius, sample_radius = _radius(real, neighbours), _radius(samples, neighbours)
    return Coverage(
        float((between <= real_radius).any(1).mean()),
        float((between <= sample_radius[:, None]).any(0).mean()),
        float((between.min(0) <= real_radius).mean()),
    )


def vendi_score(samples: Float[Array, "m f"], width: float) -> float:
    """exp of the entropy of the eigenvalues of K / m, K a Gaussian kernel of this width: from 1 to m."""
    K = np.exp(-(cdist(samples, samples) ** 2) / (2 * width**2))
    values = np.clip(np.linalg.eigvalsh(K / len(samples)), 0.0, None)
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))


def kernel_width(real: Float[Array, "k f"]) -> float:
    """The median distance within the real set, the usual width of a Gaussian kernel."""
    distances = cdist(real, real)[np.triu_indices(len(real), 1)]
    return float(np.median(distances))


def _radius(points: Array, neighbours: int) -> Array:
    """Every point's distance to its k-th neighbour."""
    k = min(neighbours, len(points) - 1)
    return np.sort(cdist(points, points), axis=1)[:, k]
