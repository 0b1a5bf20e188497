"""Every size and rate of the two presets. Nothing but numbers differs between `paper` and `small`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from anatomica.errors import AnatomicaError
from anatomica.prior.sampler import SamplingConfig
from anatomica.prior.settings import STRICT, Above, Depth, Levels, Real, Width


@dataclass(frozen=True)
class FieldConfig:
    """Neural field decoder (paper's Table "Autoencoder architecture", Anatomica-L).

    `split` is the number of parts, along each axis, in which a latent cell gives the field features of its
    own; 1 is the paper's.
    """

    __pydantic_config__ = STRICT
    channels: Width = 64
    fourier: Width = 10
    bandwidth: Above = 1.0
    hidden: Width = 128
    layers: Depth = 3
    split: Annotated[int, Field(ge=1, le=8)] = 1


@dataclass(frozen=True)
class AutoencoderConfig:
    """Encoder and convolutional decoder: channels and residual blocks per level, fine to coarse.

    `stem` is the edge of the patch that the first layer reads and the last one writes. With 1 (the paper) the
    finest level works on voxels; with 2 it works on 2^3 patches, which removes the full-resolution layers,
    nine tenths of the cost; `head` is the width of the pointwise layers that write them. The factor between
    voxels and latents is stem * 2^(levels - 1). With `column` the decoders write bone and level, not a logit
    for each label (`prior/column.py`).
    """

    __pydantic_config__ = STRICT
    n: Annotated[int, Field(ge=4, le=512)] = 128
    channels: Levels = (64, 128, 256)
    res_blocks: Annotated[tuple[Depth, ...], Field(min_length=1, max_length=8)] = (2, 2, 2)
    latent_channels: Annotated[int, Field(ge=1, le=256)] = 3
    stem: Annotated[int, Field(ge=1, le=16)] = 1
    head: Width = 64
    column: bool = False
    field: FieldConfig = field(default_factory=FieldConfig)

    @property
    def factor(self) -> int:
        return self.stem * 2 ** (len(self.channels) - 1)

    @property
    def latent_n(self) -> int:
        return self.n // self.factor


@dataclass(frozen=True)
class UNetConfig:
    """Denoiser (paper's Table "Diffusion model"). `attention_at` are grid edges that get attention."""

    __pydantic_config__ = STRICT
    channels: Levels = (64, 128, 196)
    res_blocks: Depth = 2
    heads: Annotated[int, Field(ge=1, le=64)] = 1
    attention_at: Annotated[tuple[Width, ...], Field(max_length=8)] = (8, 4, 2)


@dataclass(frozen=True)
class EDMConfig:
    """Karras' preconditioning and the lognormal noise of training: ln sigma ~ N(p_mean, p_std^2).

    `components` is the number of principal components of the training latents' Gaussian, of which the
    denoiser knows the exact filter (`prior/latent_gaussian.py`); 0 is the paper's denoiser without it.
    """

    __pydantic_config__ = STRICT
    sigma_data: Above = 1.0
    p_mean: Real = 1.0
    p_std: Above = 1.2
    components: Annotated[int, Field(ge=0, le=1024)] = 0


@dataclass(frozen=True)
class TrainingConfig:
    """One training loop's numbers.

    `warmup` is a share of the run; `points` 0 means the full grid; `augment` is the share of maps moved
    (autoencoder) or the strength of the moves (denoiser's copies); `conv_batch` is how many of the batch the
    costly convolutional decoder sees (None: all of it). Until `crop_until` of the run, two cubes of `crop`
    voxels around tissue stand for each map. `optimizer` is adamw or muon.
    """

    lr: float
    batch: int
    epochs: int
    schedule: str = "constant"
    warmup: float = 0.0
    weight_decay: float = 0.0
    ema: float = 0.999
    kl: float = 1e-6
    points: int = 0
    conv_batch: int | None = None
    crop: int = 0
    crop_until: float = 0.0
    augment: float = 0.0
    copies: int = 1
    clip: float = 1.0
    optimizer: str = "adamw"


@dataclass(frozen=True)
class Preset:
    name: str
    autoencoder: AutoencoderConfig
    unet: UNetConfig
    edm: EDMConfig
    sampling: SamplingConfig
    train_autoencoder: TrainingConfig
    train_denoiser: TrainingConfig


PRESETS: dict[str, Preset] = {
    "paper": Preset(
        "paper",
        AutoencoderConfig(),
        UNetConfig(),
        EDMConfig(),
        # The paper samples stochastically and does not print its churn: these are the values of Karras et al.
        # 2022 for ImageNet-64 (their table 5), raising the noise of each of 100 steps by 40 %.
        SamplingConfig(s_churn=40.0, s_min=0.05, s_max=50.0, s_noise=1.003),
        TrainingConfig(lr=1e-5, batch=1, epochs=40),
        TrainingConfig(lr=2.5e-5, batch=1, epochs=50),
    ),
    "small": Preset(
        "small",
        AutoencoderConfig(
            n=64,
            channels=(24, 64),
            res_blocks=(1, 1),
            stem=2,
            field=FieldConfig(channels=128, hidden=64, split=2),
        ),
        UNetConfig(channels=(32, 64, 96), res_blocks=1),
        EDMConfig(p_mean=0.2, p_std=1.3, components=96),
        # `anatomica train check models/cardiac --data caches/cardiac --curve DIR`: FMD 27 to 35 with eta 1,
        # 54 to 65 with 0, flat from 12 steps on (results/sampling-cardiac.json). 25 steps, because guidance
        # corrects the prediction once per step.
        SamplingConfig(method="multistep", steps=25, rho=7.0, eta=1.0),
        TrainingConfig(
            lr=5e-3,
            batch=2,
            epochs=10,
            schedule="cosine",
            warmup=0.02,
            ema=0.99,
            kl=1e-7,
            points=16384,
            augment=0.5,
            crop=32,
            crop_until=0.8,
            optimizer="muon",  # steps 90 to 119 of 300, cardiac: soft Dice of the field 0.71, AdamW 0.50
        ),
        TrainingConfig(
            lr=1e-3,
            batch=8,
            epochs=20,
            schedule="cosine",
            warmup=0.05,
            ema=0.999,
            augment=0.5,
            optimizer="muon",
        ),
    ),
}


def preset(name: str, column: bool = False) -> Preset:
    """The preset called `name`, for an anatomy whose labels form a `column` or not; errors list the names."""
    try:
        chosen = PRESETS[name]
        return replace(chosen, autoencoder=replace(chosen.autoencoder, column=column))
    except KeyError:
        raise AnatomicaError(f"unknown preset {name!r}; allowed: {', '.join(PRESETS)}") from None
