"""A run folder: RUN/autoencoder (then perhaps RUN/decoders) and RUN/denoiser, read back and exported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from anatomica.anatomy.catalogue import from_card, to_card
from anatomica.errors import AnatomicaError
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import EDM, LatentScaler, build_denoiser
from anatomica.prior.neighbours import neighbours_of
from anatomica.prior.population import population_moments
from anatomica.prior.presets import AutoencoderConfig, EDMConfig, UNetConfig, preset
from anatomica.prior.redraw import redraw_limits
from anatomica.prior.settings import from_dict
from anatomica.prior.training.checkpoint import load_into, read_checkpoint
from anatomica.prior.training.evaluate import reconstruction
from anatomica.prior.training.latents import LATENTS, read_latents
from anatomica.prior.zoo import Model, save_model

CHECKPOINT = "checkpoint.safetensors"
MOST_PATIENTS = 1000
"""Patients whose moments a model's folder keeps, and from which it knows what touches: enough for
percentiles, and 1 MB for 24 vertebrae."""
REDRAWN = 300
"""Training patients that are redrawn for the limits of plausibility, half a second each."""
HELD_OUT = 128
"""Held-out patients whose reconstruction is measured."""


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Whatever is wrong with a checkpoint's description names the file."""
    try:
        yield
    except (KeyError, TypeError, AnatomicaError) as error:
        raise AnatomicaError(f"{path} does not describe its networks ({error})") from None


def read_autoencoder(run: Path) -> tuple[Autoencoder, dict[str, Any]]:
    """The EMA's autoencoder of RUN/decoders, or else RUN/autoencoder, and the run's description."""
    path = run / "decoders" / CHECKPOINT
    if not path.is_file():
        path = run / "autoencoder" / CHECKPOINT
    if not path.is_file():
        raise AnatomicaError(
            f"{run} has no trained autoencoder; run `anatomica train autoencoder --out {run}`"
        )
    tensors, header = read_checkpoint(path)
    about = header["about"]
    with _named(path):
        model = Autoencoder(about["classes"], from_dict(AutoencoderConfig, about["autoencoder"]))
    load_into(model, {k[4:]: v for k, v in tensors.items() if k.startswith("ema.")}, path)
    return model.eval(), about | header["progress"]


def read_denoiser(run: Path) -> tuple[EDM, LatentScaler, dict[str, Any]]:
    """The EMA's denoiser of RUN/denoiser, the latents' scaler and the run's description."""
    path = run / "denoiser" / CHECKPOINT
    if not path.is_file():
        raise AnatomicaError(f"{run} has no trained denoiser; run `anatomica train denoiser --out {run}`")
    tensors, header = read_checkpoint(path)
    about = header["about"]
    with _named(path):
        config = from_dict(AutoencoderConfig, about["autoencoder"])
        unet, edm = from_dict(UNetConfig, about["unet"]), from_dict(EDMConfig, about["edm"])
        model = build_denoiser(config.latent_channels, config.latent_n, unet, edm)
    load_into(model, {k[4:]: v for k, v in tensors.items() if k.startswith("ema.")}, path)
    scaler = LatentScaler(config.latent_channels).fit(read_latents(run / "denoiser" / LATENTS)[0])
    return model.eval(), scaler, about | header["progress"]


def export_run(
    run: Path,
    out: Path,
    train: UInt8[Tensor, "m n n n"] | None = None,
    held_out: UInt8[Tensor, "v n n n"] | None = None,
    held_out_fine: UInt8[Tensor, "w f f f"] | None = None,
    notes: dict[str, Any] | None = None,
    base: Model | None = None,
    private: bool = False,
) -> Path:
    """RUN to a model folder; measures reconstruction and the population where data is given.

    It samples as the preset says, and the anatomy's record.

    With `base` the part that the run does not have is that model's: the run trained only its decoders on, or
    only its denoiser, in the same latent space. A `private` folder keeps no numbers of single patients.
    """
    if base is not None and not has_autoencoder(run):
        autoencoder, first = _autoencoder_of(base)
    else:
        autoencoder, first = read_autoencoder(run)
    if base is not None and not (run / "denoiser" / CHECKPOINT).is_file():
        denoiser, scaler, second = _denoiser_of(base, autoencoder)
    else:
        denoiser, scaler, second = read_denoiser(run)
    about, other = from_card(first, str(run)), from_card(second, str(run))
    if other != about:
        same = ", but of another record" if other.name == about.name else ""
        raise AnatomicaError(f"{run}: autoencoder of {about.name}, denoiser of {other.name}{same}")
    card: dict[str, Any] = {"preset": first["preset"], "training": {}}
    for kind, info in (("autoencoder", first), ("denoiser", second)):
        keep = ("step", "elapsed_s", "training", "budget", "seed", "maps", "since")
        card["training"][kind] = {k: info[k] for k in keep if k in info}
    if held_out is not None:
        part = held_out[:HELD_OUT]
        card["reconstruction"] = reconstruction(autoencoder, part, about.table, held_out_fine).as_dict()
    population = neighbours = None
    if train is not None:
        population = population_moments(train[:MOST_PATIENTS], len(about.table))
        neighbours = neighbours_of(train[:MOST_PATIENTS].numpy(), len(about.table))
        card["redrawn"] = redraw_limits(autoencoder, denoiser, scaler, train[:REDRAWN])
    sampling = preset(first["preset"]).sampling
    if about.sampler.eta is not None:
        sampling = replace(sampling, eta=about.sampler.eta)
    unet = from_dict(UNetConfig, second["unet"])
    with torch.no_grad():
        card |= notes or {}
        parts = (autoencoder, denoiser, scaler, unet, sampling)
        return save_model(out, about, *parts, card, population, neighbours, private)


def has_autoencoder(run: Path) -> bool:
    """Whether an autoencoder was trained in this run's folder."""
    return any((run / kind / CHECKPOINT).is_file() for kind in ("autoencoder", "decoders"))


def _autoencoder_of(model: Model) -> tuple[Autoencoder, dict[str, Any]]:
    """A model's autoencoder with its record."""
    record = model.card.get("training", {}).get("autoencoder", {})
    return model.autoencoder, record | to_card(model.about) | {"preset": model.card["preset"]}


def _denoiser_of(model: Model, autoencoder: Autoencoder) -> tuple[EDM, LatentScaler, dict[str, Any]]:
    """A model's denoiser with its record, if the autoencoder has the same latent space."""
    ours, theirs = autoencoder.encoder.state_dict(), model.autoencoder.encoder.state_dict()
    if ours.keys() != theirs.keys() or not all(torch.equal(ours[k], theirs[k]) for k in ours):
        raise AnatomicaError(
            f"the run's encoder is not that of the {model.anatomy} model {model.hash}: its denoiser "
            "would not fit; train a denoiser in the run"
        )
    record = model.card.get("training", {}).get("denoiser", {})
    return model.denoiser, model.scaler, record | to_card(model.about) | {"unet": model.card["unet"]}
