"""The preset `paper` is the paper's tables; counts follow from them by arithmetic."""

import pytest
import torch

from anatomica.errors import AnatomicaError
from anatomica.machine import peak_memory_mb
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import EDM, build_denoiser
from anatomica.prior.layers import use_checkpointing
from anatomica.prior.presets import PRESETS, AutoencoderConfig, EDMConfig, UNetConfig, preset
from anatomica.prior.sampler import SamplingConfig
from anatomica.prior.settings import from_dict, to_dict
from anatomica.prior.training.objectives import AutoencoderObjective, DenoiserObjective
from anatomica.prior.unet import UNet

PAPER = PRESETS["paper"]


def count(module: torch.nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def conv(a: int, b: int, kernel: int = 3) -> int:
    return kernel**3 * a * b + b


def block(a: int, b: int, embedding: int = 0) -> int:
    """Two norms, two convolutions, the embedding's scale and shift, a projection if the width changes."""
    modulation = 2 * b * (embedding + 1) if embedding else 0
    return 2 * a + conv(a, b) + 2 * b + conv(b, b) + modulation + (conv(a, b, 1) if a != b else 0)


def attention(c: int) -> int:
    return 2 * c + 3 * c * (c + 1) + c * (c + 1)


def test_the_tables_numbers():
    ae, unet, edm, sampling = PAPER.autoencoder, PAPER.unet, PAPER.edm, PAPER.sampling
    assert (ae.n, ae.factor, ae.latent_channels, ae.latent_n) == (128, 4, 3, 32)
    assert (ae.channels, ae.res_blocks) == ((64, 128, 256), (2, 2, 2))
    f = ae.field
    assert (f.channels, f.fourier, f.bandwidth, f.hidden, f.layers) == (64, 10, 1.0, 128, 3)
    assert (unet.channels, unet.res_blocks, unet.heads) == ((64, 128, 196), 2, 1)
    assert unet.attention_at == (8, 4, 2)
    assert (edm.sigma_data, edm.p_mean, edm.p_std) == (1.0, 1.0, 1.2)
    assert (sampling.sigma_min, sampling.sigma_max, sampling.rho, sampling.steps) == (0.01, 80.0, 1.0, 100)
    first, second = PAPER.train_autoencoder, PAPER.train_denoiser
    assert (first.lr, first.epochs, first.batch, first.kl, first.points) == (1e-5, 40, 1, 1e-6, 0)
    assert (second.lr, second.epochs, second.batch) == (2.5e-5, 50, 1)


def test_autoencoder_parameter_counts():
    with torch.device("meta"):
        model = Autoencoder(11, PAPER.autoencoder)
    blocks = sum(2 * block(c, c) for c in (64, 128, 256))
    encoder = conv(11, 64) + blocks + conv(64, 128) + conv(128, 256) + 2 * 256 + conv(256, 6)
    decoder = conv(3, 256) + blocks + conv(256, 128, 4) + conv(128, 64, 4) + 2 * 64 + conv(64, 11)
    mlp = 64 * 128 + 20 * 128 + 128 + 3 * 2 * 128 + 2 * (128 * 128 + 128) + 128 * 11 + 11
    assert count(model.encoder) == encoder == 10_462_470
    assert count(model.conv_decoder) == decoder == 11_956_875
    assert count(model.field) == conv(3, 64) + mlp == 51_339


def test_denoiser_parameter_count():
    with torch.device("meta"):
        model = UNet(3, 32, PAPER.unet, 3)
    a, b, c, e = 64, 128, 196, 256
    embed = a * e + e + e * e + e
    down = 2 * block(a, a, e) + conv(a, a) + block(a, b, e) + block(b, b, e) + conv(b, b)
    down += block(b, c, e) + block(c, c, e) + 2 * attention(c)
    middle = 2 * block(c, c, e) + attention(c)
    up = 2 * block(2 * c, c, e) + block(c + b, c, e) + 3 * attention(c) + conv(c, c, 4)
    up += block(c + b, b, e) + block(2 * b, b, e) + block(b + a, b, e) + conv(b, b, 4)
    up += block(b + a, a, e) + 2 * block(2 * a, a, e)
    total = embed + conv(3, a) + down + middle + up + 2 * a + conv(a, 3)
    assert count(model) == total == 30_681_783


def test_small_fits_its_budget():
    with torch.device("meta"):
        for classes in (4, 7, 11, 25):
            model = Autoencoder(classes, PRESETS["small"].autoencoder)
            small = PRESETS["small"]
            network = build_denoiser(3, small.autoencoder.latent_n, small.unet, small.edm)
            assert 2 * (count(model) + count(network)) < 16e6


@pytest.mark.parametrize("name", ["paper", "small"])
def test_configs_survive_json(name):
    p = PRESETS[name]
    for kind, config in (
        (AutoencoderConfig, p.autoencoder),
        (UNetConfig, p.unet),
        (EDMConfig, p.edm),
        (SamplingConfig, p.sampling),
    ):
        assert from_dict(kind, to_dict(config)) == config


def test_unknown_preset():
    with pytest.raises(AnatomicaError, match="small"):
        preset("large")


@pytest.mark.slow
def test_paper_preset_takes_a_training_step():
    """Batch 1 at 128^3 with recomputed blocks, full grid, both decoders; then the denoiser at 32^3."""
    g = torch.Generator().manual_seed(0)
    labels = torch.randint(0, 11, (1, 128, 128, 128), generator=g, dtype=torch.uint8)
    model = Autoencoder(11, PAPER.autoencoder)
    model.to(memory_format=torch.channels_last_3d)  # pyright: ignore[reportCallIssue]
    use_checkpointing(model)
    loss, _ = AutoencoderObjective(model, 1e-6)(labels, torch.randn(1, 3, 32, 32, 32, generator=g), None)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
    denoiser = EDM(UNet(3, 32, PAPER.unet, 3), PAPER.edm)
    z, noise = (torch.randn(1, 3, 32, 32, 32, generator=g) for _ in range(2))
    loss, _ = DenoiserObjective(denoiser)(z, noise, torch.rand(1, generator=g))
    loss.backward()
    assert torch.isfinite(loss)
    peak = peak_memory_mb()
    assert peak is None or peak < 20 * 2**10
