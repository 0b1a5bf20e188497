"""U-Net, EDM preconditioning and the latents' scaling."""

import pytest
import torch

from anatomica.prior.edm import EDM, LatentScaler, training_sigmas
from anatomica.prior.layers import Conv3d, use_checkpointing
from anatomica.prior.presets import EDMConfig
from anatomica.prior.training.objectives import DenoiserObjective
from anatomica.prior.unet import UNet
from tiny_prior import TINY


def network() -> UNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = UNet(3, 4, TINY.unet, 3)
        torch.nn.init.normal_(net.out.weight, std=0.1)
        return net


def test_untrained_network_gives_the_gaussian_denoiser():
    """The last layer starts at zero, so D = c_skip z: the exact denoiser of N(0, sigma_data^2) data."""
    edm = EDM(UNet(3, 4, TINY.unet, 3), EDMConfig())
    z, sigma = torch.randn(3, 3, 4, 4, 4), torch.tensor([0.1, 1.0, 10.0])
    expected = z / (1 + sigma**2).view(-1, 1, 1, 1, 1)
    torch.testing.assert_close(edm(z, sigma), expected)


def test_loss_weight_makes_the_untrained_loss_one_at_every_level():
    """With D = c_skip z on unit Gaussian data, omega E|D - z|^2 = omega sigma^2/(1 + sigma^2) = 1."""
    objective = DenoiserObjective(EDM(UNet(3, 4, TINY.unet, 3), EDMConfig()))
    g = torch.Generator().manual_seed(0)
    z, noise = (torch.randn(64, 3, 4, 4, 4, generator=g) for _ in range(2))
    for u in (0.1, 0.5, 0.9):
        loss, _ = objective(z, noise, torch.full((64,), u))
        assert abs(loss.item() - 1) < 0.05


def test_noise_levels_are_lognormal():
    u = (torch.arange(10_000) + 0.5) / 10_000
    log = training_sigmas(EDMConfig(), u).log()
    assert abs(log.mean().item() - 1.0) < 1e-3
    assert abs(log.std().item() - 1.2) < 1e-2


def test_a_sample_does_not_depend_on_its_batch():
    edm = EDM(network(), EDMConfig()).eval()
    z, sigma = torch.randn(3, 3, 4, 4, 4), torch.tensor([0.1, 1.0, 10.0])
    with torch.no_grad():
        together = edm(z, sigma)
        alone = torch.cat([edm(z[i : i + 1], sigma[i : i + 1]) for i in range(3)])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


def test_batch_one_convolution_takes_the_fast_kernel_and_agrees():
    conv = Conv3d(4, 6, 3, stride=2, padding=1)
    x = torch.randn(1, 4, 8, 8, 8)
    with torch.no_grad():
        fast = conv(x)
    torch.testing.assert_close(fast, torch.nn.Conv3d.forward(conv, x), atol=1e-5, rtol=1e-4)


def test_checkpointing_changes_no_gradient():
    z, sigma = torch.randn(2, 3, 4, 4, 4), torch.ones(2)
    grads = []
    for on in (False, True):
        edm = EDM(network(), EDMConfig())
        use_checkpointing(edm, on)
        edm(z, sigma).square().sum().backward()
        grads.append(torch.cat([p.grad.flatten() for p in edm.parameters() if p.grad is not None]))
    torch.testing.assert_close(grads[0], grads[1])


def test_scaler_standardises_and_restores():
    latents = 3 * torch.randn(16, 3, 4, 4, 4) + torch.tensor([1.0, -2.0, 5.0]).view(1, 3, 1, 1, 1)
    scaler = LatentScaler(3).fit(latents)
    z = scaler.standardise(latents)
    torch.testing.assert_close(z.mean((0, 2, 3, 4)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.std((0, 2, 3, 4)), torch.ones(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(scaler.restore(z), latents)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_half_precision_gradients_of_small_grids_are_right(n):
    """Memory full of NaN beforehand: a kernel that reads what nobody wrote shows itself."""
    torch.manual_seed(0)
    layer = Conv3d(3, 16, 3, padding=1)
    layer.to(memory_format=torch.channels_last_3d)  # pyright: ignore[reportCallIssue]
    x = torch.randn(4, 3, n, n, n).to(memory_format=torch.channels_last_3d)
    for _ in range(20):
        junk = [torch.full((1 << 14,), torch.nan) for _ in range(20)]
        del junk
        gradients = []
        for half in (True, False):
            layer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=half):
                layer(x).float().square().sum().backward()
            gradients.append(layer.weight.grad)
        assert (gradients[0] - gradients[1]).norm() < 0.02 * gradients[1].norm()
