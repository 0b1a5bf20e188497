"""A model's card, checked once when it is read: what the program uses of it has the type it is used as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from anatomica.errors import AnatomicaError, first_problem, shown
from anatomica.files import opened, read_json, sealed

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
