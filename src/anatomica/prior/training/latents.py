"""Latents are encoded once: the training maps and augmented copies of them, in a file of the run.

Maps on a finer grid than the autoencoder's are encoded from their tissues' fractions, which say where in a
voxel a border lies.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from anatomica.data.dataset import LabelMapDataset
from anatomica.errors import AnatomicaError
from anatomica.files import write_atomic
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import LatentScaler
from anatomica.prior.presets import TrainingConfig
from anatomica.prior.training.augment import augment
from anatomica.prior.training.evaluate import tissue_fractions
from anatomica.prior.training.parallel import Team
from anatomica.prior.training.random import generator

LATENTS = "latents.safetensors"


def cached_latents(
    labels: UInt8[Tensor, "m n n n"] | LabelMapDataset,
    autoencoder: Autoencoder,
    run: Path,
    training: TrainingConfig,
    seed: int,
    team: Team,
) -> tuple[Float[Tensor, "k c h w d"], LatentScaler]:
    """Posterior means of `copies` versions of every map (the first as it is, the others augmented).

    Means rather than draws: the posterior's noise says nothing about anatomy, so the prior need not learn it.
    """
    key = _fingerprint(labels, autoencoder, training, seed)
    path = run / LATENTS
    latents = None
    if path.exists():
        stored, stored_key = read_latents(path)
        latents = stored if stored_key == key else None
    if latents is None:
        latents = encode_all(labels, autoencoder, training, seed, team.device)
        if team.leads:
            run.mkdir(parents=True, exist_ok=True)
            named = torch.tensor(list(key.encode()), dtype=torch.uint8)
            write_atomic(path, save({"latents": latents, "key": named}))
    scaler = LatentScaler(latents.shape[1]).fit(latents)
    return latents, scaler


def read_latents(path: Path) -> tuple[Float[Tensor, "k c h w d"], str]:
    """The stored latents and the fingerprint of what they were made from."""
    try:
        stored = load_file(path)
        return stored["latents"].float(), bytes(stored["key"].tolist()).decode()
    except (SafetensorError, KeyError, OSError) as error:
        raise AnatomicaError(f"{path} cannot be read ({error}); delete it, it will be made again") from None


@torch.inference_mode()
def encode_all(
    labels: UInt8[Tensor, "m n n n"] | LabelMapDataset,
    autoencoder: Autoencoder,
    training: TrainingConfig,
    seed: int,
    device: torch.device,
) -> Float[Tensor, "k c h w d"]:
    autoencoder.eval()
    n, classes = autoencoder.config.n, autoencoder.classes
    out = []
    for copy in range(training.copies):
        for start in range(0, len(labels), 8):
            maps = [
                augment(labels[i], generator(seed, 104, copy, i), training.augment) if copy else labels[i]
                for i in range(start, min(start + 8, len(labels)))
            ]
            shown = torch.stack(maps).to(device)
            if shown.shape[-1] != n:
                shown = tissue_fractions(shown, classes, n)
            out.append(autoencoder.encode(shown).mean.cpu())
    return torch.cat(out).contiguous()


def _fingerprint(
    labels: Tensor | LabelMapDataset, autoencoder: Autoencoder, training: TrainingConfig, seed: int
) -> str:
    """Changes with the maps, the encoder's weights and the augmentation."""
    shape = (len(labels), *labels[0].shape)
    digest = hashlib.sha256(f"{shape} {training.copies} {training.augment} {seed}".encode())
    for i in range(0, len(labels), max(1, len(labels) // 16)):
        digest.update(labels[i].contiguous().numpy().tobytes())
    for value in autoencoder.encoder.state_dict().values():
        digest.update(value.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
