"""Is a finished label map like the training patients? One that meets its targets may still be implausible."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.pieces import contact_area, detached_voxels, voxels_apart
from anatomica.prior.neighbours import APART, BEYOND
from anatomica.prior.population import label_moments, semi_axes
from anatomica.prior.redraw import SIGMAS, WINDOW, redrawn
from anatomica.prior.zoo import Model

MIXED = 0.1
"""Repair may change this share of the tissue; it changes at most 0.02 of a held-out patient's."""
AREA = 0.002
"""Tissues that touch in no patient may still share less than this area, as a share of one of the cube's
sides: 8 faces of 64^3. Tissues in a row, which touch at joints of one size, may share this much more than in
any patient."""
ROOM = 0.006
"""Other tissues that touch in patients may share this much more area than in any of them. Chosen by
`anatomica demo`: its right ventricles touched the aorta over 400 to 512 mm2 (in training at most 192 mm2) and
were called implausible."""


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

    Returns () if the model has no population statistics.
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
class Misshapen:
    """A tissue that is longer, shorter, thicker or thinner than any training patient's.

    What is compared is a semi-axis of the ellipsoid that has the tissue's covariance.
    """

    tissue: str
    axis: str
    semi_axis_mm: float
    least_mm: float
    most_mm: float

    def __str__(self) -> str:
        seen = f"training {self.least_mm:.3g} to {self.most_mm:.3g} mm"
        return f"{self.tissue}'s {self.axis} semi-axis is {self.semi_axis_mm:.3g} mm ({seen})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


AXES = ("shortest", "middle", "longest")


def misshapen(model: Model, label_map: LabelMap) -> tuple[Misshapen, ...]:
    """Tissues with a semi-axis unlike every training patient's, such as a branch that ends in a stub.

    Only tissues that all patients have are looked at: what the cube cuts off has any length.
    Returns () if the model has no population statistics.
    """
    if model.population is None:
        return ()
    whole = (model.population[:, :, 0] > 0).all(0)
    whole[0] = False
    labels = torch.from_numpy(label_map.table.index[label_map.array])
    here = label_moments(labels, len(model.table))
    found = []
    for c in whole.nonzero()[:, 0].tolist():
        if here[c, 0] == 0:
            continue
        known = semi_axes(model.population[:, c].double().numpy()) * model.edge_mm
        least, most = known.min(0), known.max(0)
        own = semi_axes(here[c]) * model.edge_mm
        beyond = np.maximum(own / np.maximum(most, 1e-9), least / np.maximum(own, 1e-9))
        k = int(beyond.argmax())
        if beyond[k] > BEYOND:
            tissue = model.table.names[c]
            found.append(Misshapen(tissue, AXES[k], float(own[k]), float(least[k]), float(most[k])))
    return tuple(found)


@dataclass(frozen=True)
class StrangeContact:
    """Two classes that touch more widely than in any training patient, and the most that they do there."""

    tissue: str
    other: str
    area_mm2: float
    most_mm2: float

    def __str__(self) -> str:
        seen = f"at most {self.most_mm2:.4g}" if self.most_mm2 else "never"
        return f"{self.tissue} touches {self.other} ({self.area_mm2:.4g} mm2; in training {seen})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Detached:
    """Tissue apart from the rest, where every training patient's is in one piece."""

    volume_ml: float

    def __str__(self) -> str:
        return f"{self.volume_ml:.4g} mL lie apart from the rest"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Split:
    """A tissue in pieces, this much of it outside the largest, where every training patient has one piece."""

    tissue: str
    volume_ml: float

    def __str__(self) -> str:
        return f"{self.tissue} is in pieces ({self.volume_ml:.4g} mL apart from its largest)"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Patchwork:
    """A label map so mixed up that repair changed this share of its tissue."""

    share: float

    def __str__(self) -> str:
        return f"labels were mixed up ({self.share:.0%} of the tissue mended)"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Redrawn:
    """A place whose labels the prior would redraw: this share of a cube of `edge_mm`, in patients at most
    `limit`."""

    share: float
    limit: float
    edge_mm: float

    def __str__(self) -> str:
        seen = f"in training patients at most {self.limit:.0%}"
        return f"the prior would redraw {self.share:.0%} of a cube of {self.edge_mm:.3g} mm ({seen})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Oddity = Unusual | Misshapen | StrangeContact | Detached | Split | Patchwork | Redrawn


def redrawn_places(model: Model, label_map: LabelMap) -> tuple[Redrawn, ...]:
    """Where the prior would draw something else, more widely than in training patients.

    Returns () if the model's card does not say how much it redraws in those.
    """
    limits = model.card.get("redrawn")
    if not limits:
        return ()
    labels = torch.from_numpy(_at_resolution(label_map.table.index[label_map.array], model.n))
    found = redrawn(model.autoencoder, model.denoiser, model.scaler, labels[None])[0].tolist()
    shares = dict(zip((f"{sigma:g}" for sigma in SIGMAS), found, strict=True))
    farthest = max(limits, key=lambda sigma: shares[sigma] / limits[sigma])
    share, limit = shares[farthest], BEYOND * limits[farthest]
    return (Redrawn(share, limits[farthest], WINDOW * model.edge_mm),) if share > limit else ()


def _at_resolution(labels: UInt8[np.ndarray, "m m m"], n: int) -> UInt8[np.ndarray, "n n n"]:
    """The labels at the centres of n^3 voxels."""
    if len(labels) == n:
        return labels
    at = ((np.arange(n) + 0.5) * len(labels) / n).astype(int)
    return labels[np.ix_(at, at, at)]


def strange_contacts(model: Model, label_map: LabelMap) -> tuple[StrangeContact, ...]:
    """Pairs of classes that touch where no training patient's do, or far more widely.

    Returns () if the model's card does not say which tissues touch.
    """
    if model.neighbours is None:
        return ()
    names, most = model.table.names, model.neighbours.contact
    area = contact_area(label_map.table.index[label_map.array], len(names))
    room = np.where((most == 0) | model.neighbours.in_a_row, AREA, ROOM)
    pairs = np.argwhere(np.triu(area > BEYOND * most + room))
    side_mm2 = model.edge_mm**2
    return tuple(
        StrangeContact(names[a], names[b], float(area[a, b] * side_mm2), float(most[a, b] * side_mm2))
        for a, b in pairs
    )


def detached(model: Model, label_map: LabelMap) -> tuple[Detached, ...]:
    """What lies apart, if it is more than a speck and all training patients are in one piece."""
    if model.neighbours is None or not model.neighbours.joined:
        return ()
    volume_ml = detached_voxels(label_map.array) * label_map.voxel_ml
    return (Detached(volume_ml),) if volume_ml > APART * model.edge_mm**3 / 1000 else ()


def split_tissues(model: Model, label_map: LabelMap) -> tuple[Split, ...]:
    """Tissues in pieces that training patients have in one piece; a tissue that the cube cuts may be."""
    if model.neighbours is None:
        return ()
    apart = voxels_apart(label_map.table.index[label_map.array], len(model.table))
    apart[~model.neighbours.single | (apart <= APART * label_map.array.size)] = 0
    return tuple(
        Split(model.table.names[c], float(apart[c] * label_map.voxel_ml)) for c in np.flatnonzero(apart)
    )


def oddities(model: Model, label_map: LabelMap, mended: int = 0) -> tuple[Oddity, ...]:
    """What makes a label map unlike the training patients; repair changed `mended` of its voxels.

    The constants of this file and `BEYOND` call few real cases odd: `anatomica train check` writes into a
    card how many of the held-out patients (`held_out_unlike_training` of `held_out_judged`).
    """
    rules = (unusual_tissues, misshapen, strange_contacts, detached, split_tissues, redrawn_places)
    found = (f(model, label_map) for f in rules)
    share = mended / max(1, int((label_map.array > 0).sum()))
    patchwork = [Patchwork(share)] if share > MIXED else []
    return tuple(itertools.chain(*found, patchwork))


def sentence(unusual: Sequence[Oddity], most: int = 3) -> str:
    """The first few of them, for people."""
    shown = ", ".join(map(str, unusual[:most]))
    return shown + (f" and {len(unusual) - most} more" if len(unusual) > most else "")
