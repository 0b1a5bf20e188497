"""How well are phantoms told from real patients? 1-NNA, Frechet distance and correlations of their features.

The features are those of `anatomica.data.realism`, one row per case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.data.realism import FEATURES, LEAST_CASES, Reference, differences
from anatomica.errors import AnatomicaError
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.metrics.frechet import frechet_distance, standardise
from anatomica.evaluate.metrics.nna import correctness

DRAWS = 500
"""Draws of as many phantoms as there are real cases: the mean of 1-NNA is then known to 0.01."""

Made = Float[np.ndarray, "m f"]
Real = Float[np.ndarray, "k f"]


def compare(phantoms: Made, real: Real, structures: Sequence[str], source: str = "") -> dict[str, Any]:
    """Phantoms against real cases, as a JSON value; the functions below define its numbers."""
    if len(real) < LEAST_CASES or len(phantoms) < 2 * len(real):
        raise AnatomicaError(
            f"{len(phantoms)} phantoms cannot be compared with {len(real)} real cases: "
            f"{LEAST_CASES} or more real cases and twice as many phantoms are needed"
        )
    known = Reference(source, len(real), tuple(structures), real.mean(0), real.std(0, ddof=1))
    rows = differences(phantoms, known)
    z, ratios = np.array([x["z"] for x in rows]), [x["sd_ratio"] for x in rows]
    distance, floor = frechet_and_floor(phantoms, real)
    return {
        "source": source,
        "real": len(real),
        "phantoms": len(phantoms),
        "features": rows,
        "rms_z": round(float(np.sqrt((z**2).mean())), 3),
        "largest_z": float(z[np.abs(z).argmax()]),
        "sd_ratios": [min(ratios), max(ratios)],
        "correlations": correlations(phantoms, real, len(structures)),
        "one_nna": _rounded(one_nna(phantoms, real)),
        "one_nna_alike": _rounded(one_nna_alike(phantoms, len(real))),
        "frechet": _rounded(distance),
        "frechet_floor": _rounded(floor),
    }


def one_nna(phantoms: Made, real: Real, draws: int = DRAWS, seed: int = 0) -> Interval:
    """Share of cases whose nearest other one is of their own kind; 0.5 is alike, 1 is told apart.

    Distances are Euclidean in units of the real SDs. As many phantoms as there are real cases are drawn again
    and again; given are the mean and the 2.5th and 97.5th percentile of the draws.
    """
    k, rng = len(real), np.random.default_rng(seed)
    distances = _distances(np.concatenate([standardise(phantoms, real), standardise(real, real)]))
    fixed = np.arange(len(phantoms), len(phantoms) + k)
    return _spread([_told(distances, np.append(_some(rng, len(phantoms), k), fixed)) for _ in range(draws)])


def one_nna_alike(phantoms: Made, count: int, draws: int = DRAWS, seed: int = 0) -> Interval:
    """1-NNA of two disjoint sets of `count` phantoms: what sets of this size give when they are alike."""
    rng, distances = np.random.default_rng(seed), _distances(standardise(phantoms, phantoms))
    return _spread([_told(distances, _some(rng, len(phantoms), 2 * count)) for _ in range(draws)])


def frechet_and_floor(
    phantoms: Made, real: Real, draws: int = DRAWS, seed: int = 0
) -> tuple[Interval, Interval]:
    """Frechet distance in units of the real SDs: of phantoms to real cases, and of these to one another.

    It grows as sets shrink, so both are of sets of half the real cases: one half against the other, and
    against as many phantoms.
    """
    rng, half = np.random.default_rng(seed), len(real) // 2
    made, true = standardise(phantoms, real), standardise(real, real)
    distances, floors = [], []
    for _ in range(draws):
        order = rng.permutation(len(real))
        one, other = true[order[:half]], true[order[half : 2 * half]]
        floors.append(frechet_distance(one, other))
        distances.append(frechet_distance(made[_some(rng, len(made), half)], other))
    return _spread(distances), _spread(floors)


def correlations(
    phantoms: Made, real: Real, structures: int, draws: int = 100, seed: int = 0
) -> dict[str, Any]:
    """Differences of the features' correlations, root mean square over all pairs of features.

    `noise` is the same for as many phantoms as there are real cases against all phantoms: what few cases cost
    even if nothing differs. The correlations of the volumes are given in full.
    """
    rng, pairs = np.random.default_rng(seed), np.triu_indices(real.shape[1], 1)
    made, true = np.corrcoef(phantoms.T), np.corrcoef(real.T)

    def off(found: np.ndarray) -> float:
        return float(np.sqrt(np.mean((found - made)[pairs] ** 2)))

    noise = [off(np.corrcoef(phantoms[_some(rng, len(phantoms), len(real))].T)) for _ in range(draws)]
    volumes = np.ix_(*[np.arange(structures) * len(FEATURES)] * 2)
    return {
        "rms_difference": round(off(true), 3),
        "noise": round(float(np.mean(noise)), 3),
        "volumes_real": np.round(true[volumes], 2).tolist(),
        "volumes": np.round(made[volumes], 2).tolist(),
    }


def _told(distances: Float[Tensor, "m m"], rows: np.ndarray) -> float:
    """Mean leave-one-out correctness of some cases, the first half of one kind, the second of the other."""
    kind = torch.arange(len(rows)) >= len(rows) // 2
    return float(correctness(distances[rows][:, rows], kind).mean())


def _distances(points: Made) -> Float[Tensor, "m m"]:
    x = torch.from_numpy(points)
    return torch.cdist(x, x).fill_diagonal_(torch.inf)


def _some(rng: np.random.Generator, of: int, count: int) -> np.ndarray:
    return rng.choice(of, count, replace=False)


def _spread(values: list[float]) -> Interval:
    """Mean with the 2.5th and 97.5th percentile of the draws."""
    low, high = np.percentile(values, (2.5, 97.5))
    return Interval(float(np.mean(values)), float(low), float(high))


def _rounded(found: Interval) -> list[float]:
    return [round(x, 3) for x in found]
