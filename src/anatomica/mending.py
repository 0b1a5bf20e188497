"""Mending: a piece of a tissue in a place where no patient has it becomes part of what it touches.

A decoder that wavers between two labels writes crumbs of the one into the other. What belongs together is
learned from the training patients: which tissues touch and how widely, which come in one piece, and how
little of each there can be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage

from anatomica.labels import LabelTable
from anatomica.narrowing import narrow

RARE = 0.002
"""Tissues belong together if they touch in a larger share of the training patients."""
SPLIT = 0.05
"""A tissue comes in one piece unless a larger share of the patients that have it have crumbs of it."""
CRUMB = 0.05
"""A crumb is smaller than this share of its tissue's largest piece, and touches another tissue."""
BEYOND = 1.2
"""A volume or area is unlike the training patients' if it is this many times smaller or larger than all."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """How widely tissues touch in training patients, and which come in one piece; by position in the table.

    `contact` is the largest area that two tissues (or one and the background) share, as a share of one of the
    cube's sides, 0 where they do not touch. `least` is the smallest volume of a tissue that a patient may
    lack, as a share of the cube, else 0. `joined` says that all tissues together are one piece.
    """

    contact: Float[np.ndarray, "C C"]
    whole: Bool[np.ndarray, " C"]
    least: Float[np.ndarray, " C"]
    joined: bool

    @property
    def touching(self) -> Bool[np.ndarray, "C C"]:
        return self.contact > 0

    @property
    def in_a_row(self) -> bool:
        """Whether tissues touch the one before and the one after them in the table alone, as vertebrae do."""
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
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any], table: LabelTable) -> Neighbours:
        at = {name: c for c, name in enumerate(table.names)}
        contact, whole, least = np.zeros((len(at), len(at))), np.zeros(len(at), bool), np.zeros(len(at))
        if "touching" in given:  # cards of before, which said neither how widely nor what touches background
            given = given | {"contact": {k: dict.fromkeys(v, np.inf) for k, v in given["touching"].items()}}
            contact[0, 1:] = contact[1:, 0] = np.inf
        for name, others in given["contact"].items():
            for other, area in others.items():
                contact[at[name], at[other]] = float(area)
        whole[[at[name] for name in given["whole"]]] = True
        for name, share in given["least"].items():
            least[at[name]] = float(share)
        return cls(contact, whole, least, bool(given["joined"]))


def neighbours_of(maps: Iterable[UInt8[np.ndarray, "x y z"]], classes: int) -> Neighbours:
    """What the training patients show."""
    touching, crumbs = np.zeros((classes, classes), int), np.zeros(classes, int)
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
        shares.append(np.bincount(labels.ravel(), minlength=classes) / labels.size)
    volume = np.stack(shares)
    present = (volume > 0).sum(0)
    whole = (present > 0) & (crumbs <= SPLIT * present)
    may_lack = (present > 0) & (present < len(volume))
    least = np.where(may_lack, np.where(volume > 0, volume, 1.0).min(0), 0.0)
    whole[0], least[0] = False, 0.0
    contact[touching <= RARE * len(volume)] = 0.0
    return Neighbours(contact, whole, least, apart <= RARE * len(volume))


def mend(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices without misplaced pieces and gaps; of tissues in a row, no border is too wide."""
    mended = close_gaps(join_misplaced(labels, neighbours), neighbours)
    if not neighbours.in_a_row:
        return mended
    narrowed = narrow(mended, BEYOND * np.append(np.diag(neighbours.contact, 1), 0.0))
    return mended if np.array_equal(narrowed, mended) else join_misplaced(narrowed, neighbours)


def join_misplaced(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices whose misplaced pieces have become part of the larger piece they share most faces with.

    A piece (voxels of one tissue, joined by faces) is misplaced if most of its faces to other tissues are to
    ones that its tissue touches in no patient, if it is a crumb of a tissue that comes in one piece, or if it
    belongs to a trace: a tissue that patients may lack, in less volume than any of them has. The smallest
    goes first, and what it changes counts for the next. A trace that touches nothing becomes background;
    otherwise the border with the background stays.
    """
    number, pieces = find_pieces(labels)
    changed = True
    while changed:
        changed = False
        for i in sorted(pieces.alive(), key=lambda i: pieces.size[i]):
            if pieces.owner[i] == i and _misplaced(pieces, i, neighbours, labels.size):
                larger = {k: f for k, f in pieces.faces[i].items() if pieces.size[k] > pieces.size[i]}
                if larger:
                    pieces.join(i, max(larger, key=lambda k: (larger[k], pieces.size[k])))
                    changed = True
    for i in pieces.alive():
        if not pieces.faces[i] and _is_trace(pieces, i, neighbours, labels.size):
            pieces.owner[i] = 0
    return np.array([pieces.tissue[pieces.root(i)] for i in range(len(pieces.owner))], labels.dtype)[number]


def close_gaps(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices in which no tissue is laid open that other tissues cover in all patients.

    A lumen's voxels that touch the background become part of what covers it most, the wall.
    """
    contact = neighbours.contact
    covers = np.where(contact[0] > 0, contact, 0.0)
    covered = (contact[0] == 0) & (covers.max(1) > 0)
    covered[0] = False
    if not covered.any():
        return labels
    open_air = ndimage.binary_dilation(labels == 0) & covered[labels]
    out = labels.copy()
    out[open_air] = covers.argmax(1)[labels[open_air]]
    return out


def _misplaced(pieces: Pieces, i: int, neighbours: Neighbours, voxels: int) -> bool:
    tissue, faces = pieces.tissue[i], pieces.faces[i]
    strange = sum(f for k, f in faces.items() if not neighbours.touching[tissue, pieces.tissue[k]])
    crumb = bool(neighbours.whole[tissue]) and pieces.is_crumb(i)
    return 2 * strange > faces.total() or crumb or _is_trace(pieces, i, neighbours, voxels)


def _is_trace(pieces: Pieces, i: int, neighbours: Neighbours, voxels: int) -> bool:
    tissue = pieces.tissue[i]
    volume = sum(pieces.size[k] for k in pieces.of_tissue[tissue]) / voxels
    return bool(volume < neighbours.least[tissue] / BEYOND)


class Pieces:
    """The pieces of a label map as a graph that can be contracted; piece 0 is the background.

    `faces[i]` counts the voxel faces that piece i shares with other tissues' pieces. A piece that was joined
    to another has it as `owner`, and no faces any more.
    """

    def __init__(
        self, tissue: Sequence[int], size: Sequence[int], shared: Iterable[tuple[int, int, int]]
    ) -> None:
        self.tissue, self.size, self.owner = list(tissue), list(size), list(range(len(tissue)))
        self.faces: list[Counter[int]] = [Counter() for _ in tissue]
        for i, k, count in shared:
            self.faces[i][k] += count
            self.faces[k][i] += count
        self.of_tissue: dict[int, set[int]] = {}
        for i in range(1, len(tissue)):
            self.of_tissue.setdefault(tissue[i], set()).add(i)

    def alive(self) -> list[int]:
        return [i for i in range(1, len(self.owner)) if self.owner[i] == i]

    def root(self, i: int) -> int:
        while self.owner[i] != i:
            i = self.owner[i]
        return i

    def is_crumb(self, i: int) -> bool:
        largest = max(self.size[k] for k in self.of_tissue[self.tissue[i]])
        return bool(self.faces[i]) and self.size[i] < CRUMB * largest

    def join(self, i: int, target: int) -> None:
        """Piece i becomes part of the target, and so do neighbours of i that have the target's tissue."""
        same = [k for k in self.faces[i] if k != target and self.tissue[k] == self.tissue[target]]
        self.of_tissue[self.tissue[i]].discard(i)
        for k, count in self.faces[i].items():
            del self.faces[k][i]
            if k != target:
                self.faces[k][target] += count
                self.faces[target][k] += count
        self.faces[i].clear()
        self.owner[i] = target
        self.size[target] += self.size[i]
        for k in same:
            self.join(k, target)


def find_pieces(labels: UInt8[np.ndarray, "x y z"]) -> tuple[Int[np.ndarray, "x y z"], Pieces]:
    """Every voxel's piece (0: background), and the pieces."""
    number, tissue = np.zeros(labels.shape, np.int64), [0]
    for c, box in enumerate(ndimage.find_objects(labels), start=1):
        if box is not None:
            found, count = ndimage.label(labels[box] == c)  # type: ignore[misc]
            number[box] += np.where(found > 0, found + (len(tissue) - 1), 0)
            tissue += [c] * count
    size = np.bincount(number.ravel(), minlength=len(tissue))
    shared = (values.tolist() for values in _shared_faces(number, len(tissue)))
    return number, Pieces(tissue, size.tolist(), zip(*shared, strict=True))


def detached_voxels(labels: UInt8[np.ndarray, "x y z"]) -> int:
    """How many voxels of tissue lie apart from the largest piece of all tissues together, corners joining."""
    found, _ = ndimage.label(labels > 0, np.ones((3, 3, 3)))  # type: ignore[misc]
    sizes = np.bincount(found.ravel())[1:]
    return int(sizes.sum() - sizes.max(initial=0))


def contact_area(labels: UInt8[np.ndarray, "x y z"], classes: int) -> Float[np.ndarray, "C C"]:
    """The area that each two classes share, along voxel faces, as a share of one of the cube's sides."""
    faces = np.zeros((classes + 1, classes + 1))
    a, b, count = _shared_faces(labels.astype(np.int64) + 1, classes + 1)
    faces[a, b] = count
    return (faces + faces.T)[1:, 1:] / labels.size ** (2 / 3)


def _shared_faces(number: Int[np.ndarray, "x y z"], most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (a, b) of different numbers in 1 .. most - 1 on two sides of voxel faces, and of how many."""
    pairs = []
    for axis in range(3):
        moved = np.moveaxis(number, axis, 0)
        a, b = moved[1:], moved[:-1]
        border = (a != b) & (a > 0) & (b > 0)
        pairs.append(a[border] * most + b[border])
    codes, counts = np.unique(np.concatenate(pairs), return_counts=True)
    return (*np.divmod(codes, most), counts)
