"""Where a quantity lies in the training population: quantiles of every named quantity, kept with a model.

The card's section `quantities` has them: `anatomica train check` writes it, and by itself `anatomica
quantities population`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.files import opened, read_json
from anatomica.measurement.vocabulary.statistics import statistics

STEPS = tuple(range(0, 101, 5))
"""Percentiles that are kept."""
FEWEST = 8
"""Of fewer patients percentiles say nothing."""


@dataclass(frozen=True)
class Percentiles:
    """Quantiles at `STEPS` per cent by key, how many patients each is of, and what patients they were."""

    quantiles: dict[str, tuple[float, ...]]
    counts: dict[str, int]
    source: str

    def value(self, key: str, percent: float) -> float:
        """The value that a percentage of the population lies below."""
        if key not in self.quantiles:
            raise AnatomicaError(
                f"the model's population has no percentiles of {key} (fewer than {FEWEST} patients have it)"
            )
        return float(np.interp(percent, STEPS, self.quantiles[key]))

    def percent(self, key: str, value: float) -> float | None:
        """How many per cent of the population lie below a value; None if the population does not say."""
        known = self.quantiles.get(key)
        if known is None:
            return None
        # Equal quantiles (counts): the middle of their range.
        low, high = np.searchsorted(known, value, "left"), np.searchsorted(known, value, "right")
        if high > low:
            return float(STEPS[low] + STEPS[high - 1]) / 2
        return float(np.interp(value, known, STEPS))

    def to_dict(self) -> dict[str, Any]:
        rows = {
            key: {"count": self.counts[key], "quantiles": [float(f"{x:.5g}") for x in values]}
            for key, values in self.quantiles.items()
        }
        return {
            "schema": "anatomica.quantities/1",
            "source": self.source,
            "percent": list(STEPS),
            "keys": rows,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Percentiles:
        if list(content["percent"]) != list(STEPS):
            raise ValueError("the percentiles are not those of this version")
        keys = content["keys"]
        rows = [row["quantiles"] for row in keys.values()]
        if any(len(row) != len(STEPS) or not np.isfinite(np.array(row, float)).all() for row in rows):
            raise ValueError("a quantity does not have all of its percentiles")
        return cls(
            {key: tuple(float(x) for x in row["quantiles"]) for key, row in keys.items()},
            {key: int(row["count"]) for key, row in keys.items()},
            str(content["source"]),
        )


def percentiles_of(rows: Sequence[Mapping[str, float]], source: str, *, extremes: bool = True) -> Percentiles:
    """Quantiles of every quantity over patients, each a mapping of the keys that it has.

    The 0th and the 100th are single patients' values; without `extremes` the 1st and the 99th stand for them.
    """
    steps = STEPS if extremes else (1, *STEPS[1:-1], 99)
    keys = dict.fromkeys(key for row in rows for key in row)
    values = {key: np.array([row[key] for row in rows if key in row]) for key in keys}
    kept = {key: x for key, x in values.items() if len(x) >= FEWEST}
    return Percentiles(
        {key: tuple(np.percentile(x, steps).tolist()) for key, x in kept.items()},
        {key: len(x) for key, x in kept.items()},
        source,
    )


def measured(maps: Iterable[LabelMap], about: Anatomy) -> list[dict[str, float]]:
    """The named quantities of patients, at their own resolution; what one lacks is left out."""
    rows = []
    for label_map in maps:
        _, found = statistics(label_map, about, label_map.shape[0])
        rows.append({x.entry.key: x.value for x in found if x.value is not None})
    return rows


def read_percentiles(folder: Path) -> Percentiles | None:
    """The percentiles in a model folder's card; None if it has none."""
    card = folder / "card.json"
    try:
        content = opened(read_json(card)).get("quantities") if card.is_file() else None
        return None if content is None else Percentiles.from_dict(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AnatomicaError(f"{folder}: its percentiles of quantities cannot be read: {error}") from None
