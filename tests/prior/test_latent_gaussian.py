"""Wiener's filter against the dense closed form, and the denoiser that is built on it."""

import dataclasses

import pytest
import torch
from torch import Tensor

from anatomica.prior.edm import build_denoiser
from anatomica.prior.latent_gaussian import LatentGaussian
from anatomica.prior.presets import EDMConfig
from anatomica.prior.training.objectives import DenoiserObjective
from tiny_prior import TINY

SHAPE = (3, 4, 4, 4)
SIZE = 192


def latents(count: int, seed: int) -> Tensor:
    """Draws of a Gaussian with a mean, four wide directions and noise of variance 0.25 around them."""
    random = torch.Generator().manual_seed(7)
    mean, axes = torch.randn(SIZE, generator=random), torch.randn(4, SIZE, generator=random)
    axes = torch.linalg.qr(axes.T)[0].T * torch.tensor([9.0, 6.0, 4.0, 3.0])[:, None]
    own = torch.Generator().manual_seed(seed)
    x = mean + torch.randn(count, 4, generator=own) @ axes + 0.5 * torch.randn(count, SIZE, generator=own)
    return x.view(count, *SHAPE)


@pytest.fixture(scope="module")
def gaussian() -> LatentGaussian:
    return LatentGaussian(4, SIZE).fit(latents(4000, 0))


def test_fit_finds_the_directions_and_what_varies_beside_them(gaussian: LatentGaussian) -> None:
    torch.testing.assert_close(
        gaussian.variance, torch.tensor([81.0, 36.0, 16.0, 9.0]) + 0.25, rtol=0.08, atol=0
    )
    torch.testing.assert_close(gaussian.basis @ gaussian.basis.T, torch.eye(4), atol=1e-5, rtol=0)
    assert abs(gaussian.rest.mean().item() - 0.25) < 0.01


@pytest.mark.parametrize("sigma", [0.1, 1.0, 5.0, 40.0])
def test_the_filter_is_the_conditional_mean(gaussian: LatentGaussian, sigma: float) -> None:
    """C (C + sigma^2 I)^-1, with the rest alike in all elements, where the two forms are the same."""
    even = LatentGaussian(4, SIZE)
    even.load_state_dict(gaussian.state_dict() | {"rest": torch.full((SIZE,), 0.25)})
    basis = even.basis.double()
    projector = torch.eye(SIZE, dtype=torch.float64) - basis.T @ basis
    C = basis.T @ torch.diag(even.variance.double()) @ basis + 0.25 * projector
    W = C @ torch.linalg.inv(C + sigma**2 * torch.eye(SIZE, dtype=torch.float64))
    z = latents(3, 1) + sigma * torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(2))
    expected = (z.flatten(1).double() - even.mean) @ W.T + even.mean
    found = even.denoise(z, torch.full((3,), sigma)).flatten(1).double()
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    open_variance = torch.diagonal(C - W @ C)
    torch.testing.assert_close(
        even.error(torch.tensor([sigma]))[0].double(), open_variance, atol=1e-4, rtol=1e-3
    )


def test_the_untrained_loss_is_one_at_every_level(gaussian: LatentGaussian) -> None:
    """The network starts at zero, so D is the filter, whose error on new draws is the one it states."""
    edm = build_denoiser(3, 4, TINY.unet, dataclasses.replace(TINY.edm, components=4))
    assert edm.gaussian is not None
    edm.gaussian.load_state_dict(gaussian.state_dict())
    z = latents(256, 3)
    noise = torch.randn(z.shape, generator=torch.Generator().manual_seed(4))
    for u in (0.05, 0.5, 0.95):
        loss, _ = DenoiserObjective(edm)(z, noise, torch.full((256,), u))
        assert abs(loss.item() - 1) < 0.06


def test_without_directions_it_is_the_paper_s_denoiser() -> None:
    """Mean 0 and variance 1 everywhere, as before a fit: c_skip z of sigma_data 1."""
    plain = build_denoiser(3, 4, TINY.unet, EDMConfig())
    filtered = build_denoiser(3, 4, TINY.unet, EDMConfig(components=2))
    z, sigma = (
        torch.randn(3, *SHAPE, generator=torch.Generator().manual_seed(5)),
        torch.tensor([0.1, 1.0, 10.0]),
    )
    torch.testing.assert_close(filtered(z, sigma), plain(z, sigma))


def test_autocast_does_not_round_the_filter(gaussian: LatentGaussian) -> None:
    edm = build_denoiser(3, 4, TINY.unet, dataclasses.replace(TINY.edm, components=4))
    assert edm.gaussian is not None
    edm.gaussian.load_state_dict(gaussian.state_dict())
    z, sigma = (
        80 * torch.randn(2, *SHAPE, generator=torch.Generator().manual_seed(6)),
        torch.tensor([80.0, 80.0]),
    )
    exact = edm(z, sigma)  # the untrained network adds nothing
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(edm(z, sigma), exact)


def test_the_network_learns_what_is_not_gaussian() -> None:
    """Latents at either of two points: a Gaussian puts the mean between them, a denoiser decides for one."""
    random = torch.Generator().manual_seed(9)
    point = torch.randn(SIZE, generator=random)
    z = torch.randint(0, 2, (64, 1), generator=random) * 2.0 - 1
    z = (z * point + 0.1 * torch.randn(64, SIZE, generator=random)).view(64, *SHAPE)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        edm = build_denoiser(3, 4, TINY.unet, dataclasses.replace(TINY.edm, components=1))
    assert edm.gaussian is not None
    edm.gaussian.fit(z)
    optimizer = torch.optim.AdamW(edm.parameters(), lr=3e-3)
    sigma = torch.full((64,), 7.0)

    def error() -> Tensor:
        noisy = z + 7.0 * torch.randn(z.shape, generator=random)
        return (edm.loss_weight(sigma) * (edm(noisy, sigma) - z).square().flatten(1).mean(dim=1)).mean()

    with torch.no_grad():
        before = sum(error().item() for _ in range(8)) / 8
    for _ in range(80):
        optimizer.zero_grad()
        error().backward()
        optimizer.step()
    with torch.no_grad():
        after = sum(error().item() for _ in range(8)) / 8
    assert abs(before - 1) < 0.15
    assert after < 0.8 * before
