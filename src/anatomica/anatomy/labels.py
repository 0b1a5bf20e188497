"""Label tables: which id is which tissue, with its names, code and colour."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anatomica.errors import AnatomicaError

Colour = tuple[int, int, int]
BACKGROUND = "background"


@dataclass(frozen=True)
class Label:
    """One tissue: its integer id in a label map, a short and a full name and an RGB colour.

    `synonyms` are further names, such as TotalSegmentator's; `snomed` is the structure's SNOMED CT code
    without its side, where it is known.
    """

    id: int
    name: str
    full_name: str
    colour: Colour
    synonyms: tuple[str, ...] = ()
    snomed: str | None = None

    @property
    def all_names(self) -> tuple[str, ...]:
        return (self.name, self.full_name, *self.synonyms)


def fold(name: str) -> str:
    """A name without case, underscores, hyphens and spaces: `Left_Atrium` and `left atrium` are one name."""
    return "".join(c for c in name.casefold() if c not in "_-" and not c.isspace())


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
            counted = Counter(str(getattr(x, what)) for x in self.labels)
            twice = sorted(v for v, times in counted.items() if times > 1)
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
        """Labels by folded name. A short name wins over a full name, and this over a synonym."""
        known: dict[str, Label] = {}
        for names in (lambda x: (x.name,), lambda x: (x.full_name,), lambda x: x.synonyms):
            for x in self.labels:
                for name in names(x):
                    known.setdefault(fold(name), x)
        return known

    @cached_property
    def _exact(self) -> dict[str, Label]:
        """Tables from files may have names that differ by case only."""
        return {x.name: x for x in self.labels}

    def find(self, name: str) -> Label | None:
        """The label called `name`, by its short name, full name or a synonym; None if there is none.

        Case, underscores, hyphens and spaces do not matter.
        """
        return self._exact.get(name) or self._by_name.get(fold(name))

    def __getitem__(self, name: str) -> Label:
        """The label called `name` as in `find`, or an error that names the nearest and lists all."""
        found = self.find(name)
        if found is not None:
            return found
        close = difflib.get_close_matches(fold(name), self._by_name, 1)
        hint = ""
        if close:
            label = self._by_name[close[0]]
            full = "" if fold(label.name) == fold(label.full_name) else f", {label.full_name}"
            hint = f" (did you mean {label.name}{full}?)"
        raise AnatomicaError(f"unknown tissue {name!r}{hint}; allowed: {', '.join(self.tissues)}")

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
        """A table for a vocabulary that brings only names; colours are spread over the hue circle."""
        ids = sorted(i for i in names if i != 0)
        labels = [Label(i, names[i], names[i], hue(n)) for n, i in enumerate(ids)]
        return cls((Label(0, BACKGROUND, BACKGROUND, (0, 0, 0)), *labels))


def hue(n: int) -> Colour:
    """The n-th of a sequence of well-separated colours (golden-ratio steps of hue)."""
    import colorsys

    r, g, b = colorsys.hsv_to_rgb((n * 0.61803398875) % 1.0, 0.55, 0.92)
    return round(255 * r), round(255 * g), round(255 * b)
