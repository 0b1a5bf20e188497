"""A model's card, checked once when it is read (what the program uses of it has the type it is used as), and
its numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from anatomica.errors import AnatomicaError, first_problem, shown
from anatomica.files import opened, read_json, sealed, write_atomic

FORMAT = 2
"""2: the field's bottleneck is activated."""
NAME = "card.json"
MOST_BYTES = 1 << 24
"""The shipped cards have 50 kB."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**63)]
Numbers = dict[str, Any]


class Section(BaseModel):
    """A part of a card; what the program does not use may be anything."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


class Since(Section):
    steps: Count = 0


class Run(Section):
    """How a network was trained, and what it was trained from."""

    step: Count = 0
    since: Since = Since()


class Dice(Section):
    mean: Number | None = None
    tissues: dict[str, Number] = {}


class Reconstruction(Section):
    held_out: Count | None = None
    field: Dice = Dice()
    conv: Dice = Dice()
    agreement: Dice = Dice()
    field_fine: Dice = Dice()
    field_fractions: Dice = Dice()


class Volume(Section):
    ks: Number


class Samples(Section):
    samples: Count | None = None
    fmd: Number | None = None
    fmd_training: Number | None = None
    fmd_as_decoded: Number | None = None
    drawn_a_sample: Number | None = None
    nearest_training_dice: Number | None = None
    nearest_training_dice_of_held_out: Number | None = None
    volumes: dict[str, Volume] = {}


class TissueStatistics(Section):
    """Share of the training patients that have a tissue, and percentiles of its volume."""

    present: Annotated[float, Field(ge=0, le=1)]
    volume_ml: dict[str, Number] = {}


class Sampler(Section):
    """What `anatomica models` shows of the sampler."""

    eta: Number = 0.0


class Card(Section):
    """card.json. `settings.from_dict` reads networks and sampler, `Neighbours` and `Percentiles` the rest."""

    format: int
    anatomy: str
    labels: Annotated[list[str], Field(min_length=2, max_length=256)]
    edge_mm: Annotated[float, Field(gt=0, le=1e5)]
    autoencoder: Numbers
    unet: Numbers
    edm: Numbers
    sampling: Sampler
    sha256: dict[str, Sha256]
    training: dict[str, Run] = {}
    reconstruction: Reconstruction = Reconstruction()
    samples: Samples = Samples()
    population: dict[str, TissueStatistics] = {}
    private: bool = False


def read_card(folder: Path) -> dict[str, Any]:
    """The card of a model folder, checked: as plain data, for much of it is only shown."""
    path = folder / NAME
    if not path.is_file():
        raise AnatomicaError(f"{folder} is not a model folder: {NAME} is missing")
    try:
        content = opened(read_json(path, MOST_BYTES))
    except ValueError as error:
        raise AnatomicaError(f"{path} cannot be read: {error}") from None
    if content.get("format") != FORMAT:
        found = shown(content.get("format"))
        raise AnatomicaError(f"{path} has format {found}; this version reads format {FORMAT}")
    try:
        Card.model_validate(content)
    except ValidationError as error:
        raise AnatomicaError(f"{path} is not a complete model card: {first_problem(error)}") from None
    return content


def card_bytes(card: dict[str, Any]) -> bytes:
    """card.json with a checksum of itself."""
    return (json.dumps(sealed(card), indent=1) + "\n").encode()


def write_card(folder: Path, card: dict[str, Any]) -> None:
    """Replace the card of a model folder."""
    write_atomic(folder / NAME, card_bytes(card))


def trained_steps(card: dict[str, Any], kind: str) -> int:
    """Optimizer steps of the autoencoder or denoiser, those of the models that it started from included."""
    return steps_of(card.get("training", {}).get(kind, {}))


def steps_of(run: dict[str, Any]) -> int:
    """The same of a run's own record."""
    return run.get("step", 0) + run.get("since", {}).get("steps", 0)


def card_numbers(card: dict[str, Any]) -> dict[str, str]:
    """A card's numbers, for `anatomica models`."""
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
        "FMD": f"{number(samples.get('fmd'), 2)} ({number(samples.get('fmd_training'), 2)})",
        "as decoded": number(samples.get("fmd_as_decoded"), 2),
        "drawn": number(samples.get("drawn_a_sample"), 2),
        "KS": number(sum(distances) / len(distances), 2) if distances else "-",
        "nearest": f"{number(samples.get('nearest_training_dice'), 2)} "
        f"({number(samples.get('nearest_training_dice_of_held_out'), 2)})",
    }
