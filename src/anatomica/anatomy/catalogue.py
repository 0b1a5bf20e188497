"""The catalogue: the shipped anatomies, and a user's own from a YAML file.

There is no registry. A user's anatomy travels as its record: in a cache's manifest, a run, a model's card and
a recipe (`to_card`, `from_card`), so that these are read without the file that it came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from anatomica.anatomy.labels import BACKGROUND, Label, LabelTable, hue
from anatomica.anatomy.record import Expected, LabelRecord, Record, SamplerDefaults, View, check_record
from anatomica.anatomy.records import NAMES, shipped_text
from anatomica.anatomy.strict_yaml import read_text, read_yaml
from anatomica.errors import AnatomicaError, nearest

PAPER_GRID = 128
"""Voxels along an edge of the paper's frame; extents in specs count these."""
YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Anatomy:
    """Label table, the cube in which its models work, and what else is particular to one anatomy.

    `edge_mm` is the cube's edge L; the paper's grid is 128^3, so a paper voxel is edge_mm / 128.
    `centre_on` are the tissues whose union's centre is the cube's centre (empty: all tissues).
    In a `column` the labels follow one another in the table's order, as vertebrae do.
    `phantom` names the module that draws its phantoms, if there is one. Tissues are short names throughout.
    """

    name: str
    table: LabelTable
    edge_mm: float
    centre_on: tuple[str, ...]
    title: str
    camera: View
    several_pieces: tuple[str, ...]
    column: bool
    sampler: SamplerDefaults
    expected: Expected
    phantom: str | None

    @property
    def paper_voxel_mm(self) -> float:
        return self.edge_mm / PAPER_GRID


def anatomy(name_or_path: str | Path) -> Anatomy:
    """A shipped anatomy by its name, or one's own by the path of its YAML file.

    >>> anatomy("cardiac").table["left_atrium"].name
    'LA'
    """
    if isinstance(name_or_path, str) and name_or_path in ANATOMIES:
        return ANATOMIES[name_or_path]
    path, name = Path(name_or_path), str(name_or_path)
    if not (path.suffix.lower() in YAML or isinstance(name_or_path, Path) or len(path.parts) > 1):
        raise AnatomicaError(
            f"unknown anatomy {name!r}{nearest(name, ANATOMIES)}; allowed: {', '.join(ANATOMIES)}, "
            "or the path of a YAML file"
        )
    return _own(read_anatomy(read_text(path, "anatomy file"), name), name)


def _own(about: Anatomy, source: str) -> Anatomy:
    """A user's anatomy, if it cannot be taken for a shipped one."""
    if about.name in ANATOMIES:
        raise AnatomicaError(
            f"{source}: {about.name!r} is the name of a shipped anatomy; give yours another name"
        )
    if about.phantom is not None:
        raise AnatomicaError(f"{source}: phantom: only shipped anatomies have phantoms; leave this line out")
    return about


def read_anatomy(text: str, source: str) -> Anatomy:
    """An anatomy from YAML text."""
    return from_record(check_record(read_yaml(text, source), source), source)


def from_record(record: Record, source: str) -> Anatomy:
    """The anatomy that a record describes; tissues may be named by any of their names in it."""
    rows = (_label(x, n) for n, x in enumerate(record.labels))
    table = LabelTable((Label(0, BACKGROUND, BACKGROUND, (0, 0, 0)), *rows))

    def short(names: tuple[str, ...], field: str) -> tuple[str, ...]:
        try:
            return tuple(table[name].name for name in names)
        except AnatomicaError as error:
            raise AnatomicaError(f"{source}: {field}: {error}") from None

    cases, camera = record.cases, record.camera
    bounded = short(tuple(cases.plausible_ml), "cases.plausible_ml")
    expected = {
        "needed": short(cases.needed, "cases.needed"),
        "whole": short(cases.whole, "cases.whole"),
        "plausible_ml": dict(zip(bounded, cases.plausible_ml.values(), strict=True)),
    }
    return Anatomy(
        record.name,
        table,
        record.edge_mm,
        short(record.centre_on, "centre_on"),
        record.title or "",
        camera.model_copy(update={"ghost": short(camera.ghost, "camera.ghost")}),
        short(record.several_pieces, "several_pieces"),
        record.column,
        record.sampler,
        cases.model_copy(update=expected),
        record.phantom,
    )


def to_record(about: Anatomy) -> dict[str, Any]:
    """The record as plain JSON values; `from_record` gives the same anatomy back."""
    labels = tuple(
        LabelRecord(
            id=x.id,
            name=x.name,
            full_name=x.full_name,
            synonyms=x.synonyms,
            snomed=x.snomed,
            colour=x.colour,
        )
        for x in about.table.labels[1:]
    )
    record = Record(
        name=about.name,
        title=about.title or None,
        edge_mm=about.edge_mm,
        centre_on=about.centre_on,
        camera=about.camera,
        several_pieces=about.several_pieces,
        column=about.column,
        sampler=about.sampler,
        phantom=about.phantom,
        labels=labels,
        cases=about.expected,
    )
    return record.model_dump(mode="json", exclude_defaults=True)


RECORD = "anatomy_record"
"""Key of a user's record beside the anatomy's name."""


def to_card(about: Anatomy) -> dict[str, Any]:
    """What a manifest, run, card or recipe says of its anatomy: the name of a shipped one, or all of it."""
    if is_shipped(about):
        return {"anatomy": about.name}
    return {"anatomy": about.name, RECORD: to_record(about)}


def from_card(content: Mapping[str, Any], source: str) -> Anatomy:
    """The anatomy that `to_card` wrote; `source` names the file in errors."""
    name = content["anatomy"]
    if RECORD not in content:
        if not isinstance(name, str) or name not in ANATOMIES:
            known = ", ".join(ANATOMIES)
            raise AnatomicaError(f"{source}: unknown anatomy {name!r}, and its record is missing ({known})")
        return ANATOMIES[name]
    where = f"{source}, {RECORD}"
    own = _own(from_record(check_record(content[RECORD], where), where), where)
    if own.name != name:
        raise AnatomicaError(f"{source}: its anatomy is {name!r}, but the record is of {own.name!r}")
    return own


def record_digest(about: Anatomy) -> str:
    """Names the exact record."""
    return hashlib.sha256(json.dumps(to_record(about), sort_keys=True).encode()).hexdigest()[:16]


def is_shipped(about: Anatomy) -> bool:
    return ANATOMIES.get(about.name) == about


def _label(record: LabelRecord, position: int) -> Label:
    colour = hue(position) if record.colour is None else record.colour
    full_name = record.full_name or record.name
    return Label(record.id, record.name, full_name, colour, record.synonyms, record.snomed)


ANATOMIES: Mapping[str, Anatomy] = MappingProxyType(
    {name: read_anatomy(shipped_text(name), f"{name}.yaml") for name in NAMES}
)
"""The shipped anatomies by name; nothing is ever added."""
