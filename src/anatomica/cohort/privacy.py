"""How near is a patient to a training patient? By the moments of its tissues, which a model's folder keeps.

The distance of two patients is the root mean square difference of their standardised volumes, centroids and
shapes (`evaluate.metrics.frechet`), in standard deviations of the training population. A copy has the
distance 0. The yardstick is how near the training patients are to one another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.measurement.moments import decompose

Array = np.ndarray


def features(moments: Float[Array, "m C 10"]) -> Float[Array, "m f"]:
    """Seven numbers per tissue, as `evaluate.metrics.frechet.morphology` makes them from label maps."""
    tissues = torch.from_numpy(np.asarray(moments, dtype=np.float64)[:, 1:])
    xx, yy, zz, xy, xz, yz = tissues[..., 4:].unbind(-1)
    covariance = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).unflatten(-1, (3, 3))
    shape = decompose(torch.nan_to_num(covariance)).shape
    shape = torch.where(tissues[..., :1] > 0, shape, torch.nan)
    return torch.cat([tissues[..., :4], shape], dim=-1).flatten(1).numpy()


@dataclass(frozen=True, eq=False)
class Crowd:
    """The training patients as points, standardised by their own mean and standard deviation."""

    mean: Float[Array, " f"]
    sd: Float[Array, " f"]
    points: Float[Array, "m f"]
    own: Float[Array, " m"]
    """Every training patient's distance to the nearest other one."""

    @classmethod
    def of(cls, population: Float[Tensor, "m C 10"]) -> Crowd:
        rows = features(population.numpy())
        seen = ~np.isnan(rows)
        count = np.maximum(seen.sum(0), 1)
        mean = np.where(seen, rows, 0.0).sum(0) / count
        sd = np.sqrt(np.where(seen, (rows - mean) ** 2, 0.0).sum(0) / count)
        points = _standardised(rows, mean, sd)
        distances = _distances(points, points)
        np.fill_diagonal(distances, np.inf)
        return cls(mean, sd, points, distances.min(1))

    def standardised(self, moments: Float[Array, "k C 10"]) -> Float[Array, "k f"]:
        return _standardised(features(moments), self.mean, self.sd)

    def nearest(self, moments: Float[Array, "C 10"]) -> tuple[int, float]:
        """The nearest training patient's number, and how far it is."""
        distances = _distances(self.standardised(moments[None]), self.points)[0]
        return int(distances.argmin()), float(distances.min())

    def limit(self, percent: float) -> float:
        """The distance that this percentage of the training patients keep from none of the others."""
        return float(np.percentile(self.own, percent))


def _standardised(rows: Array, mean: Array, sd: Array) -> Array:
    """z-scores; features that do not vary are left out, those of an absent tissue count as the mean."""
    kept = sd > 1e-9
    return np.nan_to_num((rows[:, kept] - mean[kept]) / sd[kept])


def _distances(a: Float[Array, "m f"], b: Float[Array, "k f"]) -> Float[Array, "m k"]:
    squares = (a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0.0) / max(1, a.shape[1]))
