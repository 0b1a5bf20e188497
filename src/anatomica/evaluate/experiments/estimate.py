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


ROUGHLY = {
    "unconditional": 2.0,
    "polish": 4.0,
    "explicit": 2.0,
    "implicit": 2.0,
    "ours-no-polish": 4.0,
    "ours": 5.0,
    "ours-tries": 8.0,
    "paper": 50.0,
    "paper-tuned": 50.0,
    "paper-polish": 52.0,
    "paper-tuned-polish": 52.0,
    "paper-v": 75.0,
    "anatomica-gn": 3.0,
    "anatomica-l": 6.0,
    "anatomica-v": 10.0,
}
"""Seconds of one core per sample of methods that were never timed here, rounded: a heart's in the profile
`here` (single steps were timed: 0.035 s unguided, 0.2 to 0.3 s with the paper's gradient, 0.37 s with
Anatomica-V's)."""


def kind_of(cell: Cell, steps: int | None = None) -> str:
    """Cells of one kind cost about the same per sample."""
    points = "".join(f" {key} {value}" for key, value in cell.settings)
    return f"{cell.spec.anatomy} {cell.method.key}{points}" + (f" {steps} steps" if steps else "")


@dataclass
class Paces:
    """Seconds per sample of every kind of cell in so many sampling steps, as measured on this machine; kept
    in a file. A kind that was never drawn here takes what `ROUGHLY` says, or else the mean of the others."""

    path: Path
    steps: int | None = None
    known: dict[str, tuple[float, int]] = field(default_factory=dict)

    @classmethod
    def at(cls, path: Path, steps: int | None = None) -> Paces:
        kept = load_numbers(path) or {}
        paces = {kind: (float(x[0]), int(x[1])) for kind, x in kept.get("paces", {}).items()}
        return cls(path, steps, paces)

    def add(self, cell: Cell, seconds: float, count: int) -> None:
        """`count` samples of a cell took so many seconds each."""
        kind = kind_of(cell, self.steps)
        mean, before = self.known.get(kind, (0.0, 0))
        total = before + count
        self.known[kind] = (mean * before + seconds * count) / total, total
        save_numbers(self.path, {"paces": {kind: list(x) for kind, x in self.known.items()}})

    def knows(self, cell: Cell) -> bool:
        return kind_of(cell, self.steps) in self.known

    def of(self, cell: Cell) -> float:
        found = self.known.get(kind_of(cell, self.steps))
        if found is not None:
            return found[0]
        if cell.method.key in ROUGHLY:
            own = 25 if cell.method.sampling is None else cell.method.sampling.steps
            return ROUGHLY[cell.method.key] * (self.steps or own) / own
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
