"""The phantoms behind a model: its training patients, drawn again, and patients held out of training.

A model's folder keeps moments of its training patients, not their label maps. Phantoms can be drawn again
from their seeds, and each is compared with the moments that were kept: other data, or phantoms of another
version, are noticed and not shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from anatomica.anatomy.label_map import LabelMap
from anatomica.data.cache import split_of
from anatomica.data.phantoms import phantom
from anatomica.prior.population import label_moments
from anatomica.prior.zoo import Model

HELD_OUT = 40
"""Held-out phantoms whose distances are shown; one takes 0.03 to 0.5 s."""
CLOSE = 1e-5
"""Of moments in units of the cube; single precision keeps 3e-8 of equal ones."""


@dataclass(frozen=True, eq=False)
class TrainingPhantoms:
    """Seeds of a model's training patients, in the order of its population, and of those held out."""

    model: Model
    train: tuple[int, ...]
    held_out: tuple[int, ...]

    def patient(self, row: int) -> LabelMap | None:
        """The training patient of a row of the population; None if it cannot be drawn again."""
        if self.model.population is None or row >= len(self.train):
            return None
        made = phantom(self.model.anatomy, self.train[row], self.model.n).label_map
        kept, found = self.model.population[row].numpy(), moments_of_map(made)
        same = np.allclose(kept, found, atol=CLOSE, rtol=0.0, equal_nan=True)
        return made if same else None

    def held_out_moments(self, count: int = HELD_OUT) -> Float[np.ndarray, "k C 10"]:
        """Moments of patients that the model was not trained on, of the same population."""
        maps = [phantom(self.model.anatomy, s, self.model.n).label_map for s in self.held_out[:count]]
        return np.stack([moments_of_map(x) for x in maps])


def training_phantoms(model: Model) -> TrainingPhantoms | None:
    """The phantoms that a model was trained on; None if it was trained on anything else.

    `anatomica prepare phantoms` numbers patients from 0 on, and a hash of the name decides who is held out.
    """
    about = model.card.get("data") or {}
    sources, name = about.get("sources") or [], model.anatomy
    if not sources or not all(str(x).startswith(f"phantom {name} seed ") for x in sources):
        return None
    total = int(about.get("train", 0)) + int(about.get("held_out", 0))
    parts = {seed: split_of(f"{name}-{seed:06d}") for seed in range(total)}
    train = tuple(seed for seed, part in parts.items() if part == "train")
    held_out = tuple(seed for seed, part in parts.items() if part != "train")
    found = TrainingPhantoms(model, train, held_out)
    known = len(train) == about.get("train") and bool(held_out) and found.patient(0) is not None
    return found if known else None


def moments_of_map(label_map: LabelMap) -> Float[np.ndarray, "C 10"]:
    indices = torch.from_numpy(label_map.table.index[label_map.array].astype(np.uint8))
    return label_moments(indices, len(label_map.table))
