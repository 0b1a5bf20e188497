"""Mending: a piece of a tissue in a place where no patient has it becomes part of what it touches.

A decoder that wavers between two labels writes crumbs of the one into the other. What belongs together is
learned from the training patients: which tissues touch, which come in one piece, and how little of each there
can be.
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

RARE = 0.002
"""Tissues belong together if they touch in a larger share of the training patients."""
SPLIT = 0.05
"""A tissue comes in one piece unless a larger share of the patients that have it have crumbs of it."""
CRUMB = 0.05
"""A crumb is smaller than this share of its tissue's largest piece, and touches another tissue."""
BEYOND = 1.2
"""A volume is unlike the training patients' if it is this many times smaller than all of them, or larger."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Which tissues touch in training patients, and which come in one piece; by position in the table.

    `least` is the smallest volume of a tissue that a patient may lack, as a share of the cube, else 0.
    `joined` says that all tissues together are one piece.
    """

    touching: Bool[np.ndarray, "C C"]
    whole: Bool[np.ndarray, " C"]
    least: Float[np.ndarray, " C"]
    joined: bool

    def to_dict(self, table: LabelTable) -> dict[str, Any]:
        """By name, for a model's card."""
        names = table.names
        touching = {names[c]: [names[k] for k in np.flatnonzero(row)] for c, row in enumerate(self.touching)}
        return {
            "touching": {name: others for name, others in touching.items() if others},
            "whole": [names[c] for c in np.flatnonzero(self.whole)],
            "least": {names[c]: float(f"{self.least[c]:.4g}") for c in np.flatnonzero(self.least)},
            "joined": self.joined,
        }

    @classmethod
    def from_dict(cls, given: dict[str, Any], table: LabelTable) -> Neighbours:
        at = {name: c for c, name in enumerate(table.names)}
        touching, whole = np.zeros((len(at), len(at)), bool), np.zeros(len(at), bool)
        least = np.zeros(len(at))
        for name, others in given["touching"].items():
            touching[at[name], [at[other] for other in others]] = True
        whole[[at[name] for name in given["whole"]]] = True
        for name, share in given["least"].items():
            least[at[name]] = float(share)
        return cls(touching, whole, least, bool(given["joined"]))


def neighbours_of(maps: Iterable[UInt8[np.ndarray, "x y z"]], classes: int) -> Neighbours:
    """What the training patients show."""
    touching, crumbs = np.zeros((classes, classes), int), np.zeros(classes, int)
    shares, apart = [], 0
    for labels in maps:
        _, pieces = find_pieces(labels)
        crumb = np.zeros(classes, bool)
        for i in pieces.alive():
            crumb[pieces.tissue[i]] |= pieces.is_crumb(i)
        crumbs += crumb
        touching += contact_faces(labels, classes) > 0
        apart += detached_voxels(labels) > 0
        shares.append(np.bincount(labels.ravel(), minlength=classes) / labels.size)
    volume = np.stack(shares)
    present = (volume > 0).sum(0)
    whole = (present > 0) & (crumbs <= SPLIT * present)
    may_lack = (present > 0) & (present < len(volume))
    least = np.where(may_lack, np.where(volume > 0, volume, 1.0).min(0), 0.0)
    whole[0], least[0] = False, 0.0
    return Neighbours(touching > RARE * len(volume), whole, least, apart <= RARE * len(volume))


def mend(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
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


def contact_faces(labels: UInt8[np.ndarray, "x y z"], classes: int) -> Int[np.ndarray, "C C"]:
    """How many voxel faces each two tissues share."""
    faces = np.zeros((classes, classes), int)
    a, b, count = _shared_faces(labels.astype(np.int64), classes)
    faces[a, b] = count
    return faces + faces.T


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
