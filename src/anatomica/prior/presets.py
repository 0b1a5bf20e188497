"""Every size and rate of the two presets. Nothing but numbers differs between `paper` and `small`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, TypeVar

from anatomica.errors import AnatomicaError
from anatomica.prior.sampler import SamplingConfig


@dataclass(frozen=True)
class FieldConfig:
    """Neural field decoder (paper's Table "Autoencoder architecture", Anatomica-L).

    `split` is the number of parts, along each axis, in which a latent cell gives the field features of its
    own; 1 is the paper's.
    """

    channels: int = 64
    fourier: int = 10
    bandwidth: float = 1.0
    hidden: int = 128
    layers: int = 3
    split: int = 1


@dataclass(frozen=True)
class AutoencoderConfig:
    """Encoder and convolutional decoder: channels and residual blocks per level, fine to coarse.

    `stem` is the edge of the patch that the first layer reads and the last one writes. With 1 (the paper) the
    finest level works on voxels; with 2 it works on 2^3 patches, which removes the full-resolution layers,
    nine tenths of the cost; `head` is the width of the pointwise layers that write them. The factor between
    voxels and latents is stem * 2^(levels - 1).
    """

    n: int = 128
    channels: tuple[int, ...] = (64, 128, 256)
    res_blocks: tuple[int, ...] = (2, 2, 2)
    latent_channels: int = 3
    stem: int = 1
    head: int = 64
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

    channels: tuple[int, ...] = (64, 128, 196)
    res_blocks: int = 2
    heads: int = 1
    attention_at: tuple[int, ...] = (8, 4, 2)


@dataclass(frozen=True)
class EDMConfig:
    """Karras' preconditioning and the lognormal noise of training: ln sigma ~ N(p_mean, p_std^2)."""

    sigma_data: float = 1.0
    p_mean: float = 1.0
    p_std: float = 1.2


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


T = TypeVar("T")

PRESETS: dict[str, Preset] = {
    "paper": Preset(
        "paper",
        AutoencoderConfig(),
        UNetConfig(),
        EDMConfig(),
        SamplingConfig(),
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
        EDMConfig(p_mean=0.4, p_std=1.4),
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
            copies=4,
            optimizer="muon",
        ),
    ),
}


def preset(name: str) -> Preset:
    """The preset called `name`, or an error that lists them."""
    try:
        return PRESETS[name]
    except KeyError:
        raise AnatomicaError(f"unknown preset {name!r}; allowed: {', '.join(PRESETS)}") from None


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain JSON values."""
    return dataclasses.asdict(config)


def from_dict(kind: type[T], values: dict[str, Any]) -> T:
    """The config written by `to_dict`; unknown or missing keys are an error that names them."""
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(values) - set(fields))
    if unknown:
        raise AnatomicaError(f"{kind.__name__}: unknown settings {unknown}; allowed: {', '.join(fields)}")
    made: dict[str, Any] = {}
    for name, value in values.items():
        nested = _NESTED.get((kind.__name__, name))
        if nested is not None:
            value = from_dict(nested, value)
        made[name] = tuple(value) if isinstance(value, list) else value
    return kind(**made)


_NESTED: dict[tuple[str, str], type] = {("AutoencoderConfig", "field"): FieldConfig}
