"""How long experiments will take here: what is missing, times what one sample of its kind takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from anatomica.evaluate.experiments.plan import Cell
from anatomica.evaluate.experiments.store import load_numbers, save_numbers


class Estimate(NamedTuple):
    """Samples of an experiment, how many of them are missing, and the seconds that these will take."""

    experiment: str
    samples: int
    missing: int
    seconds: float


def kind_of(cell: Cell) -> str:
    """Cells of one kind cost about the same per sample."""
    points = "".join(f" {key} {value}" for key, value in cell.settings)
    return f"{cell.spec.anatomy} {cell.method.key}{points}"


@dataclass
class Paces:
    """Seconds per sample of every kind of cell, as measured on this machine; kept in a file.

    A kind that was never drawn has the mean of the others.
    """

    path: Path
    known: dict[str, tuple[float, int]] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path) -> Paces:
        kept = load_numbers(path) or {}
        return cls(path, {kind: (float(x[0]), int(x[1])) for kind, x in kept.get("paces", {}).items()})

    def add(self, cell: Cell, seconds: float, count: int) -> None:
        """`count` samples of a cell took so many seconds each."""
        mean, before = self.known.get(kind_of(cell), (0.0, 0))
        total = before + count
        self.known[kind_of(cell)] = (mean * before + seconds * count) / total, total
        save_numbers(self.path, {"paces": {kind: list(x) for kind, x in self.known.items()}})

    def knows(self, cell: Cell) -> bool:
        return kind_of(cell) in self.known

    def of(self, cell: Cell) -> float:
        found = self.known.get(kind_of(cell))
        if found is not None:
            return found[0]
        return sum(mean for mean, _ in self.known.values()) / max(1, len(self.known))


def unknown_kinds(cells: Sequence[Cell], paces: Paces) -> list[Cell]:
    """The first cell of every kind that was never timed."""
    first: dict[str, Cell] = {}
    for cell in cells:
        if not paces.knows(cell):
            first.setdefault(kind_of(cell), cell)
    return list(first.values())


def in_words(seconds: float) -> str:
    """A time as people say it.

    >>> in_words(42), in_words(600), in_words(9000)
    ('1 min', '10 min', '2.5 h')
    """
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{max(1, round(seconds / 60))} min"
