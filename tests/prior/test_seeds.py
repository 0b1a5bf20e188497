"""A seed is a patient: every one of 2^63, and none under two names."""

import numpy as np
import pytest
import torch

from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError
from anatomica.generation.recipe import check_arguments
from anatomica.prior.sampler import draw_noise, seeded_generators
from anatomica.prior.seeds import seeded
from anatomica.prior.training.random import generator

SEEDS = [0, 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**33, 2**53 + 1, 2**62, 2**63 - 1]


def noise(seed: int) -> torch.Tensor:
    return draw_noise(seeded_generators([seed]), torch.empty(1, 3, 4, 4, 4))[0]


@pytest.mark.parametrize("seed", [0, 7, 100_000, 2**32 - 1])
def test_small_seeds_keep_the_stream_that_torch_gives(seed):
    expected = torch.randn(3, 4, 4, 4, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(noise(seed), expected)


def test_no_two_seeds_give_the_same_noise():
    drawn = [noise(seed) for seed in SEEDS]
    for i, a in enumerate(drawn):
        for b in drawn[:i]:
            assert abs(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1]) < 0.4
    assert torch.equal(noise(2**40 + 3), noise(2**40 + 3))


def test_noise_of_large_seeds_is_normal():
    values = torch.randn(200_000, generator=seeded(2**50 + 11)).double()
    moments = [values.mean(), values.var() - 1, (values**3).mean(), (values**4).mean() - 3]
    assert max(abs(float(m)) for m in moments) < 0.05  # ten times their standard errors


def test_training_tells_large_seeds_apart():
    first, second = (torch.rand(4, generator=generator(seed, 1, 2)) for seed in (5, 2**32 + 5))
    assert not torch.equal(first, second)


def test_patients_of_large_seeds_differ_from_each_other():
    a, b = (phantom("coronary", seed, 32).label_map.array for seed in (3, 2**32 + 3))
    assert (a != b).any()
    assert a.dtype == np.uint8


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64, 10**30])
def test_what_is_no_seed_is_refused_in_one_sentence(seed):
    with pytest.raises(AnatomicaError, match=r"from 0 to 2\^63 - 1"):
        seeded_generators([seed])
    with pytest.raises(AnatomicaError, match=r"from 0 to 2\^63 - 1"):
        phantom("coronary", seed, 32)


def test_the_last_seed_of_a_run_counts():
    assert check_arguments({}, samples=1, seed=2**63 - 1).seed == 2**63 - 1
    with pytest.raises(
        AnatomicaError, match=r"^a seed is a whole number .* of the first of 2 patients is not$"
    ):
        check_arguments({}, samples=2, seed=2**63 - 1)
