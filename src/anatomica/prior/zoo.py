"""Trained models on disk: a folder of safetensors files and a card. Nothing is pickled.

autoencoder.safetensors   encoder, both decoders (fp16)
denoiser.safetensors      U-Net (fp16) and the latents' statistics
population.safetensors    moments of every tissue of every training patient (where the data was given)
layouts.safetensors       where unconditional samples begin, if not in noise (`Layouts`)
card.json                 anatomy (a user's with its record), label table, frame, sizes, recipe, measured
                          quality, volumes, neighbours, checksums
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
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
from anatomica.errors import AnatomicaError, nearest
from anatomica.files import write_atomic, write_together
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import EDM, LatentScaler
from anatomica.prior.layouts import Layouts
from anatomica.prior.neighbours import Neighbours
from anatomica.prior.population import population_statistics
from anatomica.prior.presets import AutoencoderConfig, EDMConfig, UNetConfig, from_dict, to_dict
from anatomica.prior.sampler import SamplingConfig, sampling_from_dict, sampling_to_dict
from anatomica.prior.training.checkpoint import load_into
from anatomica.prior.unet import UNet

FORMAT = 2
"""2: the field's bottleneck is activated."""
WEIGHTS = Path(__file__).parent.parent / "weights"
FILES = ("autoencoder.safetensors", "denoiser.safetensors")
POPULATION = "population.safetensors"
LAYOUTS = "layouts.safetensors"
CARD = "card.json"


@dataclass(frozen=True, eq=False)
class Model:
    """A trained prior of one anatomy: everything that generation needs. `hash` names the exact weights.

    `population` holds the training patients' moments (`population_moments`), `neighbours` which of their
    tissues touch, where the folder has them. With `layouts` unconditional samples begin in one of them.
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
    layouts: Layouts | None = None

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
    def layouts_hash(self) -> str | None:
        """Names the exact layouts."""
        return None if self.layouts is None else self.card["sha256"][LAYOUTS][:16]

    @property
    def device(self) -> torch.device:
        return self.scaler.mean.device

    def label_map(self, labels: UInt8[np.ndarray, "n n n"]) -> LabelMap:
        """Label indices as a label map in the model's frame."""
        ids = np.array(self.table.ids, dtype=np.uint8)
        return LabelMap(ids[labels], cube_affine(self.edge_mm, labels.shape[0]), self.table)

    def layout(self, seeds: Sequence[int]) -> Float[Tensor, "b c h w d"] | None:
        """Where the sampler begins for these seeds; None: in noise."""
        return None if self.layouts is None else self.layouts.draw(seeds)

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
    layouts: Layouts | None = None,
) -> Path:
    """Write a model folder. `notes` go into the card: preset, training, data, quality.

    `population` is kept in a file of its own, its volumes' percentiles and the `neighbours` in the card.
    """
    files = {FILES[0]: save(_half(autoencoder.state_dict()))}
    scale = {f"scaler.{k}": v.float().contiguous() for k, v in scaler.state_dict().items()}
    network = {f"network.{k}": v for k, v in _half(denoiser.network.state_dict()).items()}
    files[FILES[1]] = save(network | scale)
    if population is not None:
        files[POPULATION] = save({"moments": population.float().contiguous()})
        notes = (notes or {}) | {"population": population_statistics(population, about.table, about.edge_mm)}
    if layouts is not None:
        files[LAYOUTS] = save(layouts.to_tensors())
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
        **(notes or {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    write_together({folder / name: data for name, data in files.items()} | {folder / CARD: _to_json(card)})
    return folder


def load_model(name_or_path: str | Path, device: torch.device | str = "cpu") -> Model:
    """A shipped model by its anatomy's name, or any folder that `save_model` wrote.

    >>> load_model("coronary").latent_shape
    (3, 16, 16, 16)
    """
    folder = _folder(name_or_path)
    card = _read_card(folder)
    try:
        about = from_card(card, str(folder / "card.json"))
        config = from_dict(AutoencoderConfig, card["autoencoder"])
        unet, edm = from_dict(UNetConfig, card["unet"]), from_dict(EDMConfig, card["edm"])
        sampling = sampling_from_dict(dict(card["sampling"]))
        labels, edge_mm, checksums = card["labels"], card["edge_mm"], card["sha256"]
    except (KeyError, TypeError) as error:
        raise AnatomicaError(f"{folder / 'card.json'} is not a complete model card: {error}") from None
    if list(about.table.names) != labels:
        raise AnatomicaError(
            f"{folder} was trained on the tissues {', '.join(labels)}; this version's {about.name} table has "
            f"{', '.join(about.table.names)}"
        )
    if edge_mm != about.edge_mm:
        raise AnatomicaError(
            f"{folder} was trained in a cube of {edge_mm} mm; this version's {about.name} cube has "
            f"{about.edge_mm:g} mm"
        )
    try:
        known = card.get("neighbours")
        neighbours = None if known is None else Neighbours.from_dict(known, about.table)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnatomicaError(f"{folder / 'card.json'}: its neighbours cannot be read: {error}") from None
    autoencoder = Autoencoder(len(about.table), config)
    denoiser = EDM(UNet(config.latent_channels, config.latent_n, unet), edm)
    scaler = LatentScaler(config.latent_channels)
    first, second = (_read_tensors(folder / name, checksums.get(name)) for name in FILES)
    load_into(autoencoder, first, folder / FILES[0])
    network = {k[8:]: v for k, v in second.items() if k.startswith("network.")}
    load_into(denoiser.network, network, folder / FILES[1])
    load_into(scaler, {k[7:]: v for k, v in second.items() if k.startswith("scaler.")}, folder / FILES[1])
    for module in (autoencoder, denoiser, scaler):
        module.eval().requires_grad_(False).to(device)
    for module in (autoencoder, denoiser):
        module.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    layouts = None
    if LAYOUTS in checksums:
        layouts = _read_layouts(folder / LAYOUTS, checksums[LAYOUTS], config)
    return Model(
        about,
        config.n,
        autoencoder,
        denoiser,
        scaler,
        sampling,
        card,
        _hash(checksums),
        _read_tensors(folder / POPULATION, checksums[POPULATION])["moments"]
        if POPULATION in checksums
        else None,
        neighbours,
        layouts,
    )


def set_layouts(folder: Path, layouts: Layouts | None) -> None:
    """Give a model folder other layouts, or none."""
    card, path = _read_card(folder), folder / LAYOUTS
    if layouts is None:
        card["sha256"].pop(LAYOUTS, None)
        write_atomic(folder / CARD, _to_json(card))
        path.unlink(missing_ok=True)  # only when the card does not name it any more
    else:
        data = save(layouts.to_tensors())
        card["sha256"][LAYOUTS] = _sha256(data)
        write_together({path: data, folder / CARD: _to_json(card)})


def shipped() -> tuple[str, ...]:
    """Names of the anatomies whose weights are in the package."""
    return tuple(name for name in ANATOMIES if (WEIGHTS / name / "card.json").is_file())


def shipped_hash(name: str) -> str:
    """`Model.hash` of shipped weights, read from their card."""
    return _hash(_read_card(WEIGHTS / name)["sha256"])


def trained_steps(card: dict[str, Any], kind: str) -> int:
    """Optimizer steps of the autoencoder or denoiser, those of the models that it started from included."""
    return steps_of(card.get("training", {}).get(kind, {}))


def steps_of(run: dict[str, Any]) -> int:
    """The same of a run's own record."""
    return run.get("step", 0) + run.get("since", {}).get("steps", 0)


def card_numbers(name_or_path: str | Path) -> dict[str, str]:
    """A card's numbers, for `anatomica models`."""
    card = _read_card(_folder(name_or_path))
    found, samples = card.get("reconstruction", {}), card.get("samples", {})
    keys = ("field", "conv", "agreement", "field_fine", "field_fractions")
    means = {key: found.get(key, {}).get("mean") for key in keys}
    tissues = [(v, k) for p in ("field", "conv") for k, v in found.get(p, {}).get("tissues", {}).items()]
    distances = [volume["ks"] for volume in samples.get("volumes", {}).values()]
    steps = (str(trained_steps(card, kind) or "-") for kind in ("autoencoder", "denoiser"))

    def number(value: float | None, digits: int = 3) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return {
        "anatomy": card["anatomy"],
        "steps": " + ".join(steps),
        "held out": str(found.get("held_out", "-")),
        "Dice field": number(means["field"]),
        "conv": number(means["conv"]),
        "agreement": number(means["agreement"]),
        "field, fine": number(means["field_fine"]),
        "of fractions": number(means["field_fractions"]),
        "least": f"{min(tissues)[1]} {min(tissues)[0]:.3f}" if tissues else "-",
        "samples": str(samples.get("samples", "-")),
        "eta": f"{card['sampling'].get('eta', 0.0):g}",
        "begins in": "layouts" if LAYOUTS in card["sha256"] else "noise",
        "FMD": f"{number(samples.get('fmd'), 2)} ({number(samples.get('fmd_training'), 2)})",
        "as decoded": number(samples.get("fmd_as_decoded"), 2),
        "drawn": number(samples.get("drawn_a_sample"), 2),
        "KS": number(sum(distances) / len(distances), 2) if distances else "-",
        "nearest": f"{number(samples.get('nearest_training_dice'), 2)} "
        f"({number(samples.get('nearest_training_dice_of_held_out'), 2)})",
    }


def _folder(name_or_path: str | Path) -> Path:
    """A string that names an anatomy is the shipped model; a path is a folder, whatever it is called."""
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


def _read_card(folder: Path) -> dict[str, Any]:
    path = folder / "card.json"
    if not path.is_file():
        raise AnatomicaError(f"{folder} is not a model folder: card.json is missing")
    try:
        card = json.loads(path.read_text())
        if not isinstance(card, dict):
            raise ValueError("not an object")
    except ValueError as error:
        raise AnatomicaError(f"{path} cannot be read: {error}") from None
    if card.get("format") != FORMAT:
        raise AnatomicaError(f"{path} has format {card.get('format')!r}; this version reads format {FORMAT}")
    return card


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
    except SafetensorError as error:
        raise AnatomicaError(f"{path} is not a safetensors file: {error}") from None


def _read_layouts(path: Path, checksum: str, config: AutoencoderConfig) -> Layouts:
    tensors = _read_tensors(path, checksum)
    shape = (config.latent_channels, *[config.latent_n] * 3)
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    m, k = (*found.get("patients", ()), 0, 0)[:2]
    if found != {"mean": shape, "basis": (k, *shape), "patients": (m, k)}:
        raise AnatomicaError(f"{path} holds no layouts of this model's latents, {shape}: {found}")
    return Layouts(**tensors)


def _to_json(card: dict[str, Any]) -> bytes:
    return (json.dumps(card, indent=1) + "\n").encode()


def _half(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {k: v.detach().cpu().half().contiguous().clone() for k, v in state.items()}


def _hash(checksums: dict[str, str]) -> str:
    """The name of the exact weights."""
    return _sha256("".join(checksums[name] for name in FILES).encode())[:16]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
