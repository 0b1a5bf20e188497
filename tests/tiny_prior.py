"""A preset small enough for tests, and label maps of nested ellipsoids to train it on."""

import dataclasses

import torch

from anatomica.models.presets import PRESETS, AutoencoderConfig, FieldConfig, Preset, UNetConfig

N = 16
TINY = dataclasses.replace(
    PRESETS["small"],
    name="small",
    autoencoder=AutoencoderConfig(
        n=N, channels=(8, 16), res_blocks=(1, 1), stem=2, field=FieldConfig(channels=16, hidden=32)
    ),
    unet=UNetConfig(channels=(8, 16), res_blocks=1, attention_at=(2,)),
    train_autoencoder=dataclasses.replace(PRESETS["small"].train_autoencoder, points=512, batch=4, lr=5e-3),
    train_denoiser=dataclasses.replace(PRESETS["small"].train_denoiser, batch=4, copies=2),
)


def with_lr(config: Preset, lr: float) -> Preset:
    return dataclasses.replace(config, train_autoencoder=dataclasses.replace(config.train_autoencoder, lr=lr))


def ellipsoids(count: int, n: int = N, classes: int = 4, seed: int = 0) -> torch.Tensor:
    """Label maps (count, n, n, n): a shell of each tissue around the next, shifted and scaled at random."""
    generator = torch.Generator().manual_seed(seed)
    line = (torch.arange(n) + 0.5) / n
    grid = torch.stack(torch.meshgrid(line, line, line, indexing="ij"), -1)
    maps = torch.zeros(count, n, n, n, dtype=torch.uint8)
    for m in maps:
        centre = 0.5 + 0.1 * (torch.rand(3, generator=generator) - 0.5)
        radii = 0.35 + 0.1 * torch.rand(3, generator=generator)
        distance = ((grid - centre) / radii).norm(dim=-1)
        for c in range(1, classes):
            m[distance < 1 - 0.28 * (c - 1)] = c
    return maps
