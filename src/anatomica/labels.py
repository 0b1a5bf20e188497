"""Label tables (id <-> name <-> colour) and the four anatomies of the paper with their frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anatomica.errors import AnatomicaError

Colour = tuple[int, int, int]
BACKGROUND = "background"


@dataclass(frozen=True)
class Label:
    """One tissue: its integer id in a label map, the paper's short name, a full name and an RGB colour."""

    id: int
    name: str
    full_name: str
    colour: Colour


@dataclass(frozen=True)
class LabelTable:
    """The tissues of one vocabulary, background (id 0) first.

    >>> ANATOMIES["cardiac"].table.id_of("RV")
    5
    """

    labels: tuple[Label, ...]

    def __post_init__(self) -> None:
        for what in ("id", "name"):
            values = [str(getattr(x, what)) for x in self.labels]
            twice = sorted({v for v in values if values.count(v) > 1})
            if twice:
                raise AnatomicaError(f"label table: {what} {', '.join(twice)} occurs more than once")
        if not self.labels or self.labels[0].id != 0:
            raise AnatomicaError("label table: the first label must be the background with id 0")

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Short names of all labels, background included, in order."""
        return tuple(x.name for x in self.labels)

    @cached_property
    def tissues(self) -> tuple[str, ...]:
        """Short names without the background."""
        return self.names[1:]

    @cached_property
    def ids(self) -> tuple[int, ...]:
        return tuple(x.id for x in self.labels)

    @cached_property
    def index(self) -> np.ndarray:
        """Positions in the table by id: `table.index[array]` turns a label map into label indices."""
        found = np.zeros(max(self.ids) + 1, dtype=np.uint8)
        found[list(self.ids)] = np.arange(len(self.ids))
        return found

    @cached_property
    def _by_name(self) -> dict[str, Label]:
        full = {x.full_name.lower(): x for x in self.labels}
        return full | {x.name.lower(): x for x in self.labels}

    def __getitem__(self, name: str) -> Label:
        """The label called `name` (short or full name, any case)."""
        try:
            return self._by_name[name.lower()]
        except KeyError:
            raise AnatomicaError(f"unknown tissue {name!r}; allowed: {', '.join(self.tissues)}") from None

    def id_of(self, name: str) -> int:
        return self[name].id

    def ids_of(self, names: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.id_of(n) for n in names)

    def by_id(self, id: int) -> Label:
        for x in self.labels:
            if x.id == id:
                return x
        raise AnatomicaError(f"unknown label id {id}; allowed: {', '.join(map(str, self.ids))}")

    @classmethod
    def from_names(cls, names: dict[int, str]) -> LabelTable:
        """A table for a vocabulary that brings names alone; colours are spread over the hue circle."""
        ids = sorted(i for i in names if i != 0)
        labels = [Label(i, names[i], names[i], _hue(n)) for n, i in enumerate(ids)]
        return cls((Label(0, BACKGROUND, BACKGROUND, (0, 0, 0)), *labels))


def _hue(n: int) -> Colour:
    """The n-th of a sequence of well-separated colours (golden-ratio steps of hue)."""
    import colorsys

    r, g, b = colorsys.hsv_to_rgb((n * 0.61803398875) % 1.0, 0.55, 0.92)
    return round(255 * r), round(255 * g), round(255 * b)


@dataclass(frozen=True)
class Anatomy:
    """One of the paper's data sets: its label table and the cube in which its model works.

    `edge_mm` is the cube's edge L; the paper's grid is 128^3, so a paper voxel is edge_mm / 128.
    `centre_on` are the tissues whose union's centre is the cube's centre (empty: all tissues).
    """

    name: str
    table: LabelTable
    edge_mm: float
    centre_on: tuple[str, ...] = field(default=())

    @property
    def paper_voxel_mm(self) -> float:
        return self.edge_mm / PAPER_GRID


PAPER_GRID = 128
"""Voxels along an edge of the paper's frame; extents in specs count these."""


def _table(*rows: tuple[str, str, Colour]) -> LabelTable:
    background = Label(0, BACKGROUND, BACKGROUND, (0, 0, 0))
    return LabelTable((background, *(Label(i, *row) for i, row in enumerate(rows, start=1))))


def _spine() -> LabelTable:
    regions = [("C", 7, "cervical", 0.95), ("T", 12, "thoracic", 0.30), ("L", 5, "lumbar", 0.58)]
    return _table(
        *(
            (f"{letter}{n}", f"{region} vertebra {n}", _shade(hue, n))
            for letter, count, region, hue in regions
            for n in range(1, count + 1)
        )
    )


def _shade(hue: float, n: int) -> Colour:
    """Neighbouring vertebrae differ in lightness, regions in hue."""
    import colorsys

    r, g, b = colorsys.hsv_to_rgb((hue + 0.035 * (n % 3)) % 1.0, (0.35, 0.62)[n % 2], (0.95, 0.80)[n % 2])
    return round(255 * r), round(255 * g), round(255 * b)


ANATOMIES: dict[str, Anatomy] = {
    "cardiac": Anatomy(
        "cardiac",
        _table(
            ("Myo", "myocardium", (206, 110, 84)),
            ("LA", "left atrium", (232, 150, 170)),
            ("LV", "left ventricle", (196, 40, 48)),
            ("RA", "right atrium", (120, 170, 220)),
            ("RV", "right ventricle", (52, 96, 190)),
            ("Ao", "aorta", (224, 70, 60)),
            ("PA", "pulmonary artery", (90, 120, 230)),
            ("IVC", "inferior vena cava", (40, 150, 170)),
            ("SVC", "superior vena cava", (70, 180, 200)),
            ("PV", "pulmonary veins", (240, 180, 90)),
        ),
        edge_mm=256.0,
        centre_on=("LA", "LV", "RA", "RV"),
    ),
    "aortic": Anatomy(
        "aortic",
        _table(
            ("Ao", "aorta", (214, 64, 56)),
            ("BCT", "brachiocephalic trunk", (240, 170, 60)),
            ("LCCA", "left common carotid artery", (90, 170, 90)),
            ("RCCA", "right common carotid artery", (60, 140, 200)),
            ("LSCA", "left subclavian artery", (150, 100, 200)),
            ("RSCA", "right subclavian artery", (70, 190, 190)),
        ),
        edge_mm=256.0,
    ),
    "spinal": Anatomy("spinal", _spine(), edge_mm=128.0),
    "coronary": Anatomy(
        "coronary",
        _table(
            ("Lu", "lumen", (200, 50, 50)),
            ("Ca", "calcium", (250, 240, 220)),
            ("Ve", "vessel wall", (222, 170, 130)),
        ),
        edge_mm=12.8,
    ),
}


def anatomy(name: str) -> Anatomy:
    """The anatomy called `name`, or an error that lists the four."""
    try:
        return ANATOMIES[name]
    except KeyError:
        raise AnatomicaError(f"unknown anatomy {name!r}; allowed: {', '.join(ANATOMIES)}") from None
