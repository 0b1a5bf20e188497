"""Samplers against the one case with a closed form: Gaussian data."""

import math

import pytest
import torch

from anatomica.errors import AnatomicaError
from anatomica.prior.sampler import (
    METHODS,
    RESTART,
    SamplingConfig,
    draw_noise,
    karras_schedule,
    sample,
    sample_euler,
    sample_multistep,
    sample_stochastic,
    seeded_generators,
)

MEAN, STD = 2.0, 0.7


def gaussian_denoiser(z, sigma):
    """E[z_0 | z_sigma] when z_0 ~ N(MEAN, STD^2) in every entry."""
    s2 = sigma.view(-1, 1, 1, 1, 1) ** 2
    return (STD**2 * z + s2 * MEAN) / (STD**2 + s2)


def exact(z, sigma):
    """The probability flow's end point: z - MEAN shrinks by STD / sqrt(STD^2 + sigma^2)."""
    return MEAN + (z - MEAN) * STD / math.sqrt(STD**2 + sigma**2)


def error(method, steps, **options):
    sigmas = karras_schedule(steps, 1e-3, 80.0, 7.0)
    z = 80.0 * torch.randn(1, 3, 4, 4, 4, generator=torch.Generator().manual_seed(0)).double()
    end = method(gaussian_denoiser, z, sigmas, **options)
    return (end - exact(z, 80.0)).abs().max().item()


def test_schedule_is_the_papers_formula():
    sigmas = karras_schedule(5, 0.01, 80.0, 1.0)
    torch.testing.assert_close(sigmas[:5], torch.linspace(80.0, 0.01, 5))
    assert sigmas[5] == 0
    rho7 = karras_schedule(18, 0.002, 80.0, 7.0)
    assert rho7[0] == pytest.approx(80.0)
    assert rho7[17] == pytest.approx(0.002, rel=1e-3)
    assert (rho7[:-1] > rho7[1:]).all()


@pytest.mark.parametrize(
    ("method", "order"), [(sample_euler, 1), (sample_stochastic, 2), (sample_multistep, 2)]
)
def test_order_of_convergence(method, order):
    """Twice the steps divide the error by about 2^order (sigmas are float32: stop well above 1e-6)."""
    coarse, fine = error(method, 32), error(method, 64)
    assert fine < 0.2
    assert coarse / fine > 2**order * 0.75


def test_second_order_beats_euler_at_equal_cost():
    assert error(sample_multistep, 32) < error(sample_euler, 32) / 2


def test_churn_keeps_the_distribution():
    z = 80.0 * torch.randn(64, 3, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    sigmas = karras_schedule(40, 0.01, 80.0, 7.0)
    end = sample_stochastic(
        gaussian_denoiser, z, sigmas, generators=seeded_generators(range(64)), s_churn=20.0
    )
    assert abs(end.mean().item() - MEAN) < 0.02
    assert abs(end.std().item() - STD) < 0.02
    with pytest.raises(AnatomicaError, match="generator"):
        sample_stochastic(gaussian_denoiser, z, sigmas, s_churn=20.0)


@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 2.0])
def test_fresh_noise_keeps_the_distribution(eta):
    z = 80.0 * torch.randn(64, 3, 4, 4, 4, generator=torch.Generator().manual_seed(0))
    sigmas = karras_schedule(100, 0.01, 80.0, 7.0)
    # The first noise is drawn around 0, not around MEAN: what is left of that is MEAN * STD / 80.
    z = z + MEAN
    end = sample_multistep(
        gaussian_denoiser, z, sigmas, generators=seeded_generators(range(100, 164)), eta=eta
    )
    assert abs(end.mean().item() - MEAN) < 0.02
    assert abs(end.std().item() - STD) < 0.02
    if eta:
        # What is left of the first noise is little; the deterministic flow keeps all of it.
        assert abs(torch.corrcoef(torch.stack([end.flatten(), z.flatten()]))[0, 1]) < 0.2
        with pytest.raises(AnatomicaError, match="generator"):
            sample_multistep(gaussian_denoiser, z, sigmas, eta=eta)


@pytest.mark.parametrize("method", ["euler", "multistep", "stochastic"])
def test_a_seed_gives_the_same_sample_in_any_batch(method):
    config = SamplingConfig(method=method, steps=6, rho=7.0, s_churn=4.0, eta=1.0)
    together = sample(gaussian_denoiser, (3, 2, 2, 2), [5, 6, 7], config)
    alone = sample(gaussian_denoiser, (3, 2, 2, 2), [6], config)
    torch.testing.assert_close(together[1:2], alone)
    assert not torch.allclose(together[0], together[1])


def test_noise_comes_from_each_samples_own_generator():
    like = torch.empty(2, 3, 2, 2, 2)
    a = draw_noise(seeded_generators([1, 2]), like)
    b = draw_noise(seeded_generators([2, 1]), like)
    torch.testing.assert_close(a, b.flip(0))
    with pytest.raises(AnatomicaError):
        draw_noise(seeded_generators([1]), like)


def test_callback_sees_every_step():
    seen = []
    config = SamplingConfig(method="multistep", steps=4)
    sample(gaussian_denoiser, (3, 2, 2, 2), [0], config, callback=seen.append)
    assert [s.index for s in seen] == [0, 1, 2, 3]
    assert seen[0].sigma == pytest.approx(80.0)


def test_bad_settings_are_named():
    with pytest.raises(AnatomicaError, match="magic"):
        sample(gaussian_denoiser, (3, 2, 2, 2), [0], SamplingConfig(method="magic"))
    with pytest.raises(AnatomicaError, match="step"):
        karras_schedule(0)


@pytest.mark.parametrize("method", METHODS)
def test_a_variation_starts_below_the_restart_and_keeps_what_the_denoiser_keeps(method: str) -> None:
    config = SamplingConfig(method=method, steps=12)
    start = torch.stack([torch.full((1, 2, 2, 2), v) for v in (0.0, 1000.0)])
    levels: list[float] = []

    def denoiser(z, sigma):
        return torch.where(z > 500, 1000.0, 0.0)

    def see(step):
        levels.append(step.sigma)

    z = sample(denoiser, (1, 2, 2, 2), [1, 2], config, callback=see, start=start)
    assert z.allclose(start, atol=1e-3)
    assert 0 < max(levels) <= RESTART
    anew = sample(denoiser, (1, 2, 2, 2), [1, 2], config)
    assert anew.allclose(torch.zeros(1), atol=1e-3), "without a start the schedule begins at pure noise"
