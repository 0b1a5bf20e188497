"""Generation quality of a cell's samples beside the floor: the same numbers for as many real patients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from anatomica.data.cache import write_json
from anatomica.experiments.identity import code_version, content_hash
from anatomica.experiments.lab import Lab, Patients
from anatomica.experiments.runner import Finished, Runner
from anatomica.metrics.bootstrap import Interval, distance_interval, mean_interval
from anatomica.metrics.clouds import present
from anatomica.metrics.diversity import dissimilarity, spread
from anatomica.metrics.frechet import fmd
from anatomica.metrics.nna import one_nna

CODE = tuple(
    f"metrics/{name}"
    for name in ("bootstrap", "clouds", "diversity", "emd", "frechet", "nearest", "nna", "overlap")
)
"""What decides these numbers, besides this module."""
SETS = 3
"""Sets of real patients that 1-NNA is averaged over, if there are as many."""


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


def quality(runner: Runner, done: Finished) -> Quality:
    """Quality of the samples of a cell."""
    lab, anatomy = runner.lab, done.cell.spec.anatomy
    drawn = [runner.load(key) for key in done.keys]
    samples = Patients(
        done.keys,
        torch.from_numpy(np.stack([d.labels for d in drawn])),
        np.stack([d.morphology for d in drawn]),
        np.stack([d.clouds for d in drawn]),
    )
    return _kept(lab, anatomy, samples)


def floor(lab: Lab, anatomy: str, count: int) -> Quality:
    """Quality of the first `count` training patients: what a perfect generator would get."""
    real = lab.training(anatomy)
    part = Patients(real.ids[:count], real.maps[:count], real.morphology[:count], real.clouds[:count])
    return _kept(lab, anatomy, part)


def _kept(lab: Lab, anatomy: str, samples: Patients) -> Quality:
    """From the cache, or computed and put there."""
    real = lab.held_out(anatomy)
    sets = [[*p.ids, hashlib.sha256(p.morphology.tobytes()).hexdigest()] for p in (samples, real)]
    name = content_hash([anatomy, *sets, code_version((*CODE, "experiments/quality"))])
    path = lab.cache / "quality" / f"{name}.json"
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
        first, second, third = (Interval(*kept[key]) for key in ("fmd", "nna", "diversity"))
        return Quality(kept["count"], first, second, third, kept["spread"], kept["presence"])
    made = compare(samples, real, len(lab.model(anatomy).table))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, made.as_json())
    return made


def compare(samples: Patients, real: Patients, classes: int) -> Quality:
    """All quality metrics of a set against the held-out patients."""
    features, truth = samples.morphology, untargeted(real.morphology, len(samples))
    return Quality(
        len(samples),
        frechet(features, real.morphology),
        mean_interval(told_apart(samples.clouds, real.clouds)),
        mean_interval(dissimilarity(samples.maps, classes)),
        spread(features, truth),
        presence(samples.clouds, untargeted(real.clouds, len(samples))),
    )


def told_apart(
    samples: Float[np.ndarray, "m t p 3"], real: Float[np.ndarray, "k t p 3"]
) -> Float[np.ndarray, " both"]:
    """1-NNA against several disjoint sets of as many patients that were no targets, averaged place by place.

    Which patients one happens to compare with should not decide what a method is worth.
    """
    count = min(len(samples), len(real))
    others = untargeted(real, count)
    sets = max(1, min(SETS, len(others) // count))
    told = [one_nna(samples[:count], real[len(real) - (i + 1) * count :][:count]) for i in range(sets)]
    return np.mean(told, axis=0)


def untargeted(real: np.ndarray, count: int) -> np.ndarray:
    """The held-out patients without the first `count`, as far as as many others remain.

    Those are the samples' targets, and a sample should look real, not be near its own target.
    """
    return real[min(count, max(0, len(real) - count)) :]


def frechet(features: np.ndarray, real: np.ndarray) -> Interval:
    """FMD of samples' morphology from that of the held-out patients that were not their targets."""
    truth = untargeted(real, len(features))
    return distance_interval(lambda rows: fmd(features[rows], truth), len(features))


def presence(samples: np.ndarray, real: np.ndarray) -> float:
    """How much the share of cases that have a tissue differs between the sets, on average over tissues."""
    return float(np.abs(present(samples).mean(0) - present(real).mean(0)).mean())


def qualities(
    runner: Runner, done: Sequence[Finished]
) -> tuple[list[Quality], dict[tuple[str, int], Quality]]:
    """Quality of each cell, and the floor for each anatomy and count among them."""
    found = []
    for f in done:
        runner.tell(f"quality of {f.cell.name}")
        found.append(quality(runner, f))
    wanted = sorted({(f.cell.spec.anatomy, q.count) for f, q in zip(done, found, strict=True)})
    return found, {key: floor(runner.lab, *key) for key in wanted}
