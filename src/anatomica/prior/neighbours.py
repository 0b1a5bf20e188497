"""Tissues side by side in the training patients: which touch and how widely, which come in one piece."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, UInt8

from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError, shown
from anatomica.measurement.pieces import contact_area, detached_voxels, find_pieces, voxels_apart

RARE = 0.002
"""Tissues belong together if they touch in a larger share of the training patients."""
SPLIT = 0.05
"""A tissue comes in one piece unless a larger share of the patients that have it have crumbs of it."""
APART = 3e-5
"""Less than this share of the cube may lie apart from the rest: 8 voxels of 64^3."""
BEYOND = 1.2
"""A volume or area is unlike the training patients' if it is this many times smaller or larger than all."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How widely tissues touch in training patients, and which come in one piece; by position in the table.

    `contact` is the largest area that two tissues (or one and the background) share, as a share of one of the
    cube's sides, 0 where they do not touch. `least` is the smallest volume of a tissue that a patient may
    lack, as a share of the cube, else 0. `joined` says that all tissues together are one piece, `single` of
    which tissues no part lies apart from the rest of it, unless the cube's side cuts it.
    """

    contact: Float[np.ndarray, "C C"]
    whole: Bool[np.ndarray, " C"]
    least: Float[np.ndarray, " C"]
    joined: bool
    single: Bool[np.ndarray, " C"]

    @property
    def touching(self) -> Bool[np.ndarray, "C C"]:
        return self.contact > 0

    @property
    def in_a_row(self) -> bool:
        """Whether tissues touch only the one before and the one after them in the table, as vertebrae do."""
        a, b = np.nonzero(self.contact[1:, 1:])
        return len(a) > 0 and bool((abs(a - b) == 1).all())

    def to_dict(self, table: LabelTable) -> dict[str, Any]:
        """By name, for a model's card."""
        names = table.names
        contact = {
            names[c]: {names[k]: float(f"{row[k]:.4g}") for k in np.flatnonzero(row)}
            for c, row in enumerate(self.contact)
        }
        return {
            "contact": {name: others for name, others in contact.items() if others},
            "whole": [names[c] for c in np.flatnonzero(self.whole)],
            "least": {names[c]: float(f"{self.least[c]:.4g}") for c in np.flatnonzero(self.least)},
            "joined": self.joined,
            "single": [names[c] for c in np.flatnonzero(self.single)],
        }

    @classmethod
    def from_dict(cls, given: Any, table: LabelTable) -> Neighbours:
        """What `to_dict` wrote; what does not have that form is an error in one sentence."""
        try:
            found = cls._from_dict(given, table)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise AnatomicaError(f"its neighbours cannot be read: {shown(str(error))}") from None
        if not (found.contact >= 0).all() or not (found.least >= 0).all():
            raise AnatomicaError("its neighbours have areas or volumes below 0")
        return found

    @classmethod
    def _from_dict(cls, given: dict[str, Any], table: LabelTable) -> Neighbours:
        at = {name: c for c, name in enumerate(table.names)}
        contact, least = np.zeros((len(at), len(at))), np.zeros(len(at))
        whole, single = np.zeros(len(at), bool), np.zeros(len(at), bool)
        if "touching" in given:  # older cards say neither how widely nor what touches the background
            given = given | {"contact": {k: dict.fromkeys(v, np.inf) for k, v in given["touching"].items()}}
            contact[0, 1:] = contact[1:, 0] = np.inf
        for name, others in given["contact"].items():
            for other, area in others.items():
                contact[at[name], at[other]] = float(area)
        whole[[at[name] for name in given["whole"]]] = True
        single[[at[name] for name in given.get("single", ())]] = True  # older cards do not say
        for name, share in given["least"].items():
            least[at[name]] = float(share)
        return cls(contact, whole, least, bool(given["joined"]), single)


def neighbours_of(maps: Iterable[UInt8[np.ndarray, "x y z"]], classes: int) -> Neighbours:
    """What the training patients show."""
    touching = np.zeros((classes, classes), int)
    crumbs, split = np.zeros(classes, int), np.zeros(classes, int)
    contact = np.zeros((classes, classes))
    shares, apart = [], 0
    for labels in maps:
        _, pieces = find_pieces(labels)
        crumb = np.zeros(classes, bool)
        for i in pieces.alive():
            crumb[pieces.tissue[i]] |= pieces.is_crumb(i)
        crumbs += crumb
        area = contact_area(labels, classes)
        touching += area > 0
        contact = np.maximum(contact, area)
        apart += detached_voxels(labels) > 0
        split += voxels_apart(labels, classes) > APART * labels.size
        shares.append(np.bincount(labels.ravel(), minlength=classes) / labels.size)
    volume = np.stack(shares)
    present = (volume > 0).sum(0)
    whole = (present > 0) & (crumbs <= SPLIT * present)
    may_lack = (present > 0) & (present < len(volume))
    least = np.where(may_lack, np.where(volume > 0, volume, 1.0).min(0), 0.0)
    whole[0], least[0] = False, 0.0
    contact[touching <= RARE * len(volume)] = 0.0
    single = (present > 0) & (split <= RARE * present)
    single[0] = False
    return Neighbours(contact, whole, least, apart <= RARE * len(volume), single)
