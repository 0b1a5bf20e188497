"""Label tables: which id is which tissue, with its names, code and colour."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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

    >>> table = LabelTable.from_names({5: "RV"})
    >>> table.id_of("rv")
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
