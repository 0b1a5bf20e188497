"""How good is a set of samples compared with held-out patients: FMD, 1-NNA, diversity, spread, presence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.evaluate.metrics.bootstrap import Interval, distance_interval, mean_interval
from anatomica.evaluate.metrics.clouds import present
from anatomica.evaluate.metrics.diversity import dissimilarity, spread
from anatomica.evaluate.metrics.frechet import fmd
from anatomica.evaluate.metrics.nna import one_nna

SETS = 3
"""Sets of real patients that 1-NNA is averaged over, if there are as many."""


@dataclass(frozen=True, eq=False)
class Patients:
    """One split of an anatomy's real cases at the model's resolution, with what the metrics read of them."""

    ids: tuple[str, ...]
    maps: UInt8[Tensor, "m n n n"]
    morphology: Float[np.ndarray, "m f"]
    clouds: Float[np.ndarray, "m t p 3"]

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, rows: Sequence[int]) -> Patients:
        """Some of them."""
        chosen = list(rows)
        ids = tuple(self.ids[i] for i in chosen)
        return Patients(ids, self.maps[chosen], self.morphology[chosen], self.clouds[chosen])


@dataclass(frozen=True)
class Quality:
    """FMD and 1-NNA against held-out patients; diversity (mean 1 - Dice), spread (1 is as real ones), and the
    mean difference of the shares of cases that have a tissue, which 1-NNA does not see."""

    count: int
    fmd: Interval
    nna: Interval
    diversity: Interval
    spread: float
    presence: float

    def as_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "fmd": list(self.fmd),
            "nna": list(self.nna),
            "diversity": list(self.diversity),
            "spread": self.spread,
            "presence": self.presence,
        }


def compare(samples: Patients, real: Patients, classes: int) -> Quality:
    """All quality metrics of a set against real patients that were not its targets."""
    features = samples.morphology
    return Quality(
        len(samples),
        frechet(features, real.morphology),
        mean_interval(told_apart(samples.clouds, real.clouds)),
        mean_interval(dissimilarity(samples.maps, classes)),
        spread(features, real.morphology),
        presence(samples.clouds, real.clouds),
    )


def told_apart(
    samples: Float[np.ndarray, "m t p 3"], real: Float[np.ndarray, "k t p 3"]
) -> Float[np.ndarray, " both"]:
    """1-NNA against several disjoint sets of as many patients, averaged place by place.

    Which patients one happens to compare with should not decide what a method is worth.
    """
    count = min(len(samples), len(real))
    sets = max(1, min(SETS, len(real) // count))
    told = [one_nna(samples[:count], real[i * count : (i + 1) * count]) for i in range(sets)]
    return np.mean(told, axis=0)


def frechet(features: np.ndarray, real: np.ndarray) -> Interval:
    """FMD of samples' morphology from that of real patients."""
    return distance_interval(lambda rows: fmd(features[rows], real), len(features))


def presence(samples: np.ndarray, real: np.ndarray) -> float:
    """How much the share of cases that have a tissue differs between the sets, on average over tissues."""
    return float(np.abs(present(samples).mean(0) - present(real).mean(0)).mean())
