"""Is a finished label map like the patients of the prior? A met target alone does not make an anatomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from anatomica.mending import BEYOND, contact_faces
from anatomica.models.zoo import Model
from anatomica.volume import LabelMap

AREA = 0.002
"""Tissues that touch in no patient may share a smaller area, as a share of one of the cube's sides."""


@dataclass(frozen=True)
class Unusual:
    """A tissue with a volume that no training patient's comes near, and the least and most that they have.

    Volume 0: the tissue is missing though every training patient has it.
    """

    tissue: str
    volume_ml: float
    least_ml: float
    most_ml: float

    def __str__(self) -> str:
        seen = f"training {self.least_ml:.4g} to {self.most_ml:.4g} mL"
        return f"{self.tissue} {self.volume_ml:.4g} mL ({seen})" if self.volume_ml else f"no {self.tissue}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def unusual_tissues(model: Model, label_map: LabelMap) -> tuple[Unusual, ...]:
    """The tissues of a label map that are unlike those of every training patient, by their volumes.

    Nothing is unusual beside a model without a population.
    """
    if model.population is None:
        return ()
    found = []
    for name, mass in zip(model.table.tissues, model.population[:, 1:, 0].double().unbind(1), strict=True):
        seen = mass[mass > 0] * model.edge_mm**3 / 1000
        if not len(seen):
            continue
        volume, least, most = label_map.volume_ml(name), float(seen.min()), float(seen.max())
        missing = volume == 0 and len(seen) == len(mass)
        if missing or (volume > 0 and not least / BEYOND <= volume <= BEYOND * most):
            found.append(Unusual(name, volume, least, most))
    return tuple(found)


@dataclass(frozen=True)
class StrangeContact:
    """Two tissues that touch, and do so in no training patient."""

    tissue: str
    other: str
    area_mm2: float

    def __str__(self) -> str:
        return f"{self.tissue} touches {self.other} ({self.area_mm2:.4g} mm2; in training never)"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Oddity = Unusual | StrangeContact


def strange_contacts(model: Model, label_map: LabelMap) -> tuple[StrangeContact, ...]:
    """Pairs of tissues that touch where no training patient's do. None beside a model without neighbours."""
    if model.neighbours is None:
        return ()
    labels, names = label_map.table.index[label_map.array], model.table.names
    faces = contact_faces(labels, len(names))
    few = AREA * labels.size ** (2 / 3)
    pairs = np.argwhere(np.triu(~model.neighbours.touching & (faces > few)))
    face_mm2 = label_map.voxel_ml ** (2 / 3) * 100
    return tuple(StrangeContact(names[a], names[b], float(faces[a, b] * face_mm2)) for a, b in pairs)


def oddities(model: Model, label_map: LabelMap) -> tuple[Oddity, ...]:
    """All that makes a label map unlike the training patients'; nothing, if it is an anatomy."""
    return unusual_tissues(model, label_map) + strange_contacts(model, label_map)


def sentence(unusual: Sequence[Oddity], most: int = 3) -> str:
    """The first few of them, for people."""
    shown = ", ".join(map(str, unusual[:most]))
    return shown + (f" and {len(unusual) - most} more" if len(unusual) > most else "")
