"""What a named quantity can be by its definition: no negative volume, no half piece, no arc of 400 deg."""

from __future__ import annotations

import math
from typing import NamedTuple

from anatomica.errors import AnatomicaError
from anatomica.spec.vocabulary_tables import Entry

MOST_PIECES = 10_000
"""Of a count; more is noise, and a spec's Betti numbers end there too."""


class Range(NamedTuple):
    """Both ends, and whether only whole numbers occur."""

    low: float
    high: float
    whole: bool = False

    @property
    def words(self) -> str:
        what = "a whole number " if self.whole else ""
        if math.isinf(self.high):
            return f"{what}at least {self.low:g}"
        return f"{what}from {self.low:g} to {self.high:g}"

    def meets(self, least: float | None, most: float | None) -> bool:
        """Whether a value of the range lies between two bounds."""
        low = self.low if least is None else max(self.low, least)
        high = self.high if most is None else min(self.high, most)
        if self.whole and math.isfinite(low):
            low = math.ceil(low - 1e-9)
        return low <= high + 1e-9


RANGES = {
    "ao.tortuosity": Range(1.0, math.inf),  # a way over the straight line between its ends
    "ao.arch_type": Range(1, 3, whole=True),
    "bovine": Range(0, 1, whole=True),
    "calcium.score": Range(0, 4, whole=True),
    "calcium.max_angle_deg": Range(0.0, 360.0),
    "av.annulus.eccentricity": Range(0.0, 1.0),
    "mv.annulus.eccentricity": Range(0.0, 1.0),
}
"""Quantities whose range does not follow from their unit."""


def range_of(entry: Entry) -> Range:
    """What a quantity can be: counts are whole, angles have a half circle, all else is not negative.

    >>> from anatomica.anatomy.catalogue import ANATOMIES
    >>> from anatomica.spec.vocabulary import lookup
    >>> range_of(lookup(ANATOMIES["aortic"], "ao.tortuosity")).words
    'at least 1'
    """
    if entry.key in RANGES:
        return RANGES[entry.key]
    if entry.count and not entry.unit:
        return Range(0, MOST_PIECES, whole=True)
    if entry.unit == "deg":
        signed = not entry.key.endswith(".takeoff_deg")
        return Range(-180.0 if signed else 0.0, 180.0)
    return Range(0.0, 100.0 if entry.unit == "%" else math.inf)


def refuse_undefined(text: str, entry: Entry, low: float | None, high: float | None) -> None:
    """An error if a quantity cannot lie between two bounds by its definition."""
    known = range_of(entry)
    if not known.meets(low, high):
        raise AnatomicaError(f"{text!r} cannot be: by its definition {entry.key} is {known.words}")
