"""Which candidate of a sample is kept, and when another one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import badness, worth_another

TRIES = 12
"""Unconditional samples are drawn up to this often until they are plausible."""
GUIDED_TRIES = 4
"""Samples under constraints are drawn up to this often until they are valid."""
VARIED = 7
"""The first of these tries vary the implausible sample, so that a rare kind of patient does not give way
to a frequent one."""
ANOTHER_SEED = 1_000_003
"""Candidate j of a sample has the seed s + j * this prime, so that no two samples share candidates."""


def better(old: Sample | None, new: Sample) -> Sample:
    """The better of two candidates, with the time and the number of draws of both.

    Fewer unmet checks first, then fewer oddities, then (if there are any) fewer repaired voxels, then smaller
    errors.
    """
    if old is None:
        return new

    def key(sample: Sample) -> tuple[int, int, int, float]:
        unmet, error = badness(sample.checks)
        return unmet, len(sample.unusual), sample.mended if sample.unusual else 0, error

    kept = new if key(new) < key(old) else old
    return replace(
        kept,
        seconds=old.seconds + new.seconds,
        cpu_seconds=old.cpu_seconds + new.cpu_seconds,
        drawn=old.drawn + new.drawn,
    )


def again(sample: Sample) -> bool:
    """Whether another candidate is wanted, because this one is not valid and another could be."""
    return worth_another(sample.checks) or not sample.plausible


def start(seeds: Sequence[int], best: dict[int, Sample], turn: int) -> Float[Tensor, "b c h w d"] | None:
    """What a try of unconditional samples begins with: the implausible samples, or noise (None)."""
    return torch.stack([best[s].latent for s in seeds]) if 0 < turn <= VARIED else None
