"""What a cell's samples are worth for its task: errors of moments, or precision of counts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from anatomica.evaluate.experiments.runner import Finished
from anatomica.evaluate.metrics.bootstrap import Interval, mean_interval, share_interval
from anatomica.evaluate.metrics.fidelity import SCALES
from anatomica.evaluate.metrics.precision import correct

MEASURES = ("mass", "centroid", "covariance")
NUMBERS = ("B0", "B1", "B2")


def fidelities(done: Finished) -> dict[str, Interval]:
    """Mass x 1e5, centroid x 1e4, covariance x 1e5, as the paper prints them."""
    return {
        key: mean_interval(done.values("fidelity", key) * float(getattr(SCALES, key))) for key in MEASURES
    }


def precisions(done: Finished, key: str = "betti") -> dict[str, Interval]:
    """Precision in % of each Betti number the task asks for."""
    prior = done.cell.measured.constraints[0].target.betti
    assert prior is not None
    hits = correct([n[key] for n in done.numbers], prior.numbers)
    return {
        name: Interval(*(100 * x for x in share_interval(hit)))
        for name, hit in zip(NUMBERS, hits, strict=True)
        if hit is not None
    }


def values_of(done: Finished) -> tuple[dict[str, Interval], bool]:
    """The task's own measures, and whether less is better."""
    counts = done.cell.measured.constraints[0].target.betti is not None
    return (precisions(done), False) if counts else (fidelities(done), True)


def share(done: Iterable[Finished], key: str) -> Interval:
    """Percentage of samples of which `key` is true, among those of which it is known."""
    known = np.concatenate([f.values(key) for f in done])
    return Interval(*(100 * x for x in share_interval(known[~np.isnan(known)] > 0.5)))
