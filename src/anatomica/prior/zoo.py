"""Trained models on disk: a folder of safetensors files and a card. Nothing is pickled.

autoencoder.safetensors   encoder, both decoders (fp16)
denoiser.safetensors      U-Net (fp16) and the latents' statistics
population.safetensors    moments of every tissue of every training patient (where the data was given)
card.json                 anatomy (a user's with its record), label table, frame, sizes, recipe, measured
                          quality, volumes, neighbours, checksums
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy, from_card, to_card
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError, nearest, shown
from anatomica.files import write_together
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.card import FORMAT, NAME, card_bytes, read_card
from anatomica.prior.edm import EDM, LatentScaler, build_denoiser
from anatomica.prior.gaussian_population import fit_gaussian, read_population
from anatomica.prior.neighbours import Neighbours
from anatomica.prior.percentiles import Percentiles, read_percentiles
from anatomica.prior.population import population_statistics
from anatomica.prior.presets import AutoencoderConfig, EDMConfig, UNetConfig
from anatomica.prior.sampler import SamplingConfig, sampling_from_dict, sampling_to_dict
from anatomica.prior.settings import from_dict, to_dict
from anatomica.prior.training.checkpoint import check_state, load_into

WEIGHTS = Path(__file__).parent.parent / "weights"
FILES = ("autoencoder.safetensors", "denoiser.safetensors")
POPULATION = "population.safetensors"


@dataclass(frozen=True, eq=False)
class Model:
    """A trained prior of one anatomy: everything that generation needs. `hash` names the exact weights.

    `population` holds the training patients' moments (`population_moments`), `neighbours` which of their
    tissues touch, `percentiles` those of their named quantities, where the folder has them.
    """

    about: Anatomy
    n: int
    autoencoder: Autoencoder
    denoiser: EDM
    scaler: LatentScaler
    sampling: SamplingConfig
    card: dict[str, Any]
    hash: str
    population: Float[Tensor, "m C 10"] | None = None
    neighbours: Neighbours | None = None
    percentiles: Percentiles | None = None

    @property
    def anatomy(self) -> str:
        """The anatomy's name."""
        return self.about.name

    @property
    def table(self) -> LabelTable:
        return self.about.table

    @property
    def edge_mm(self) -> float:
        return self.about.edge_mm

    @property
    def frame(self) -> Frame:
        """The anatomy's cube of n^3 voxels with its centre at 0 mm."""
        return Frame.model(self.about, self.n)

    @property
    def latent_shape(self) -> tuple[int, int, int, int]:
        config = self.autoencoder.config
        return (config.latent_channels, *[config.latent_n] * 3)  # type: ignore[return-value]

    @property
    def device(self) -> torch.device:
        return self.scaler.mean.device

    def label_map(self, labels: UInt8[np.ndarray, "n n n"]) -> LabelMap:
        """Label indices as a label map in the model's frame."""
        ids = np.array(self.table.ids, dtype=np.uint8)
        return LabelMap(ids[labels], cube_affine(self.edge_mm, labels.shape[0]), self.table)

    def to(self, device: torch.device | str) -> Model:
        """The same model on another device (the modules are moved, not copied)."""
        for module in (self.autoencoder, self.denoiser, self.scaler):
            module.to(device)
        return replace(self)


def save_model(
    folder: Path,
    about: Anatomy,
    autoencoder: Autoencoder,
    denoiser: EDM,
    scaler: LatentScaler,
    unet: UNetConfig,
    sampling: SamplingConfig,
    notes: dict[str, Any] | None = None,
    population: Float[Tensor, "m C 10"] | None = None,
    neighbours: Neighbours | None = None,
    private: bool = False,
) -> Path:
    """Write a model folder. `notes` go into the card: preset, training, data, quality.

    `population` is kept in a file of its own, its volumes' percentiles and the `neighbours` in the card.
    A `private` folder keeps no numbers of single patients: of the population a Gaussian.
    """
    files = {FILES[0]: save(_half(autoencoder.state_dict()))}
    scale = {f"scaler.{k}": v.float().contiguous() for k, v in scaler.state_dict().items()}
    files[FILES[1]] = save(_half(denoiser.state_dict()) | scale)
    if population is not None:
        kept = fit_gaussian(population).to_tensors() if private else {"moments": population.float()}
        files[POPULATION] = save({name: value.contiguous() for name, value in kept.items()})
        notes = (notes or {}) | {"population": population_statistics(population, about.table, about.edge_mm)}
    if neighbours is not None:
        notes = (notes or {}) | {"neighbours": neighbours.to_dict(about.table)}
    card = {
        "format": FORMAT,
        **to_card(about),
        "labels": list(about.table.names),
        "edge_mm": about.edge_mm,
        "autoencoder": to_dict(autoencoder.config),
        "unet": to_dict(unet),
        "edm": to_dict(denoiser.config),
        "sampling": sampling_to_dict(sampling),
        "sha256": {name: _sha256(data) for name, data in files.items()},
        **({"private": True} if private else {}),
        **(notes or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_together({folder / name: data for name, data in files.items()} | {folder / NAME: card_bytes(card)})
    return folder


def load_model(name_or_path: str | Path, device: torch.device | str = "cpu") -> Model:
    """A shipped model by its anatomy's name, or any folder that `save_model` wrote.

    >>> load_model("coronary").latent_shape
    (3, 16, 16, 16)
    """
    folder = folder_of(name_or_path)
    card = read_card(folder)
    about = _about(folder, card)
    try:
        config = from_dict(AutoencoderConfig, card["autoencoder"])
        unet, edm = from_dict(UNetConfig, card["unet"]), from_dict(EDMConfig, card["edm"])
        sampling = sampling_from_dict(card["sampling"])
        known = card.get("neighbours")
        neighbours = None if known is None else Neighbours.from_dict(known, about.table)
    except AnatomicaError as error:
        raise AnatomicaError(f"{folder / NAME}: {error}") from None
    if config.latent_n * config.factor != config.n or len(config.res_blocks) != len(config.channels):
        raise AnatomicaError(f"{folder / NAME}: the autoencoder's sizes do not fit each other")
    checksums = card["sha256"]

    def parts() -> tuple[Autoencoder, EDM, LatentScaler]:
        return (
            Autoencoder(len(about.table), config),
            build_denoiser(config.latent_channels, config.latent_n, unet, edm),
            LatentScaler(config.latent_channels),
        )

    first, second = (_read_tensors(folder / name, checksums.get(name)) for name in FILES)
    denoising = {k: v for k, v in second.items() if not k.startswith("scaler.")}
    scale = {k[7:]: v for k, v in second.items() if k.startswith("scaler.")}
    states = (first, folder / FILES[0]), (denoising, folder / FILES[1]), (scale, folder / FILES[1])
    # First without memory: a card of a few bytes can ask for any number of channels.
    shadow = _shadow(parts, folder)
    for module, (state, path) in zip(shadow, states, strict=True):
        check_state(module, state, path)
    autoencoder, denoiser, scaler = parts()
    for module, (state, path) in zip((autoencoder, denoiser, scaler), states, strict=True):
        load_into(module, state, path)
    if not bool((scaler.std > 0).all()):
        raise AnatomicaError(f"{folder / FILES[1]}: the latents' standard deviations must be above 0")
    for module in (autoencoder, denoiser, scaler):
        module.eval().requires_grad_(False).to(device)
    for module in (autoencoder, denoiser):
        module.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    population = None
    if POPULATION in checksums:
        path = folder / POPULATION
        population = read_population(_read_tensors(path, checksums[POPULATION]), len(about.table), path)
    return Model(
        about,
        config.n,
        autoencoder,
        denoiser,
        scaler,
        sampling,
        card,
        _hash(checksums),
        population,
        neighbours,
        read_percentiles(folder),
    )


def shipped() -> tuple[str, ...]:
    """Names of the anatomies whose weights are in the package."""
    return tuple(name for name in ANATOMIES if (WEIGHTS / name / "card.json").is_file())


def shipped_hash(name: str) -> str:
    """`Model.hash` of shipped weights, read from their card."""
    return _hash(read_card(WEIGHTS / name)["sha256"])


def folder_of(name_or_path: str | Path) -> Path:
    """A string that names an anatomy is a shipped model; a path is a folder, whatever it is called."""
    name = str(name_or_path)
    if isinstance(name_or_path, str) and name in ANATOMIES:
        if name not in shipped():
            have = ", ".join(shipped()) or "none"
            raise AnatomicaError(
                f"no weights for {name} in this package (there are: {have}); train them first"
            )
        return WEIGHTS / name
    folder = Path(name_or_path)
    if not folder.is_dir():
        raise AnatomicaError(
            f"no model {name!r}{nearest(name, shipped())}: neither a shipped anatomy "
            f"({', '.join(shipped())}) nor a folder that `anatomica train export` wrote"
        )
    return folder


def _about(folder: Path, card: dict[str, Any]) -> Anatomy:
    """The card's anatomy, whose labels and cube must be those that the model was trained with."""
    about = from_card(card, str(folder / NAME))
    labels, edge_mm = card["labels"], card["edge_mm"]
    if list(about.table.names) != labels:
        raise AnatomicaError(
            f"{folder} was trained on the tissues {shown(', '.join(labels), 200)}; this version's "
            f"{about.name} table has {', '.join(about.table.names)}"
        )
    if edge_mm != about.edge_mm:
        raise AnatomicaError(
            f"{folder} was trained in a cube of {edge_mm} mm; this version's {about.name} cube has "
            f"{about.edge_mm:g} mm"
        )
    return about


def _shadow(
    parts: Callable[[], tuple[Autoencoder, EDM, LatentScaler]], folder: Path
) -> tuple[Autoencoder, EDM, LatentScaler]:
    """The modules with the shapes of their tensors, but without the tensors."""
    try:
        with torch.device("meta"):
            return parts()
    except (ValueError, RuntimeError, TypeError, ZeroDivisionError, IndexError) as error:
        reason = " ".join(str(error).split())
        raise AnatomicaError(f"{folder / NAME}: no network has these sizes ({shown(reason, 200)})") from None


def _read_tensors(path: Path, checksum: str | None) -> dict[str, Tensor]:
    if not path.is_file():
        raise AnatomicaError(f"{path.parent} is not a model folder: {path.name} is missing")
    data = path.read_bytes()
    if _sha256(data) != checksum:
        raise AnatomicaError(
            f"{path} is damaged or from another model: {len(data)} bytes whose checksum is not the card's; "
            "fetch or export it again"
        )
    try:
        return {name: value.float() for name, value in load(data).items()}
    except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise AnatomicaError(f"{path} is not a safetensors file: {error}") from None


def _half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: v.detach().cpu().half().contiguous().clone() for k, v in state.items()}


def _hash(checksums: dict[str, str]) -> str:
    """The name of the exact weights."""
    return _sha256("".join(checksums[name] for name in FILES).encode())[:16]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
