"""A preset small enough for tests, and label maps of nested ellipsoids to train it on."""

import dataclasses
from pathlib import Path

import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import LatentScaler, build_denoiser
from anatomica.prior.population import population_moments
from anatomica.prior.presets import PRESETS, AutoencoderConfig, FieldConfig, UNetConfig
from anatomica.prior.zoo import save_model

N = 16
CORONARY = anatomy("coronary")
TINY = dataclasses.replace(
    PRESETS["small"],
    name="small",
    autoencoder=AutoencoderConfig(
        n=N, channels=(8, 16), res_blocks=(1, 1), stem=2, field=FieldConfig(channels=16, hidden=32)
    ),
    unet=UNetConfig(channels=(8, 16), res_blocks=1, attention_at=(2,)),
    edm=dataclasses.replace(PRESETS["small"].edm, components=4),
    train_autoencoder=dataclasses.replace(
        PRESETS["small"].train_autoencoder, points=512, batch=4, lr=5e-3, crop=8
    ),
    train_denoiser=dataclasses.replace(PRESETS["small"].train_denoiser, batch=4, copies=2),
)


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


def save_tiny_model(folder: Path, name: str = "coronary", patients: int = 4, n: int = N) -> Path:
    """An untrained model on disk: enough to load, sample and decode."""
    about = anatomy(name)
    classes = len(about.table)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        autoencoder = Autoencoder(classes, dataclasses.replace(TINY.autoencoder, n=n))
        edm = build_denoiser(3, n // 4, TINY.unet, TINY.edm)
        # An untrained field answers the same everywhere; a steeper last layer makes it a varied anatomy.
        last = autoencoder.field.mlp[-1]
        assert isinstance(last, torch.nn.Linear)
        with torch.no_grad():
            last.weight.mul_(6)
        scaler = LatentScaler(3).fit(3 * torch.randn(8, 3, n // 4, n // 4, n // 4))
    population = population_moments(ellipsoids(patients, n), classes)
    notes = {"preset": "small"}
    return save_model(folder, about, autoencoder, edm, scaler, TINY.unet, TINY.sampling, notes, population)
