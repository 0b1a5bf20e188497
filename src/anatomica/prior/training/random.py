"""Randomness as a function of (seed, step): nothing to save, so resuming and splitting work are exact."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from anatomica.anatomy.bounds import check_seed


def generator(seed: int, *words: int) -> torch.Generator:
    """A CPU generator that depends on all the integers and on nothing else."""
    state = np.random.SeedSequence([check_seed(seed), *words]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state & np.uint64(2**63 - 1)))


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, count: int) -> Tensor:
    return torch.randperm(count, generator=generator(seed, 101, epoch))


def batch_indices(seed: int, step: int, batch: int, count: int) -> Int64[Tensor, " b"]:
    """Items of the step's batch: an endless shuffled sequence, each item once per epoch, cut into batches."""
    places = range(step * batch, (step + 1) * batch)
    return torch.stack([_order(seed, p // count, count)[p % count] for p in places])
