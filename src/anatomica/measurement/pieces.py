"""Pieces of a label map: which voxels of a tissue hang together, and which pieces and tissues touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float, Int, UInt8
from scipy import ndimage

CRUMB = 0.05
"""A crumb is smaller than this share of its tissue's largest piece, and touches another tissue."""


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
    """How many voxels of tissue lie outside the largest piece of all tissues together (26-connected)."""
    found, _ = ndimage.label(labels > 0, np.ones((3, 3, 3)))  # type: ignore[misc]
    sizes = np.bincount(found.ravel())[1:]
    return int(sizes.sum() - sizes.max(initial=0))


def voxels_apart(labels: UInt8[np.ndarray, "x y z"], classes: int) -> Int[np.ndarray, " C"]:
    """How many voxels of each class lie outside its largest piece (26-connected).

    0 for the background, and for a tissue that the cube's side cuts: what joins its pieces may lie outside.
    """
    apart = np.zeros(classes, np.int64)
    for c, box in enumerate(ndimage.find_objects(labels, classes - 1), start=1):
        if box is not None and all(
            b.start > 0 and b.stop < n for b, n in zip(box, labels.shape, strict=True)
        ):
            apart[c] = detached_voxels((labels[box] == c).view(np.uint8))
    return apart


def contact_area(labels: UInt8[np.ndarray, "x y z"], classes: int) -> Float[np.ndarray, "C C"]:
    """The area that each two classes share, along voxel faces, as a share of one of the cube's sides."""
    faces = np.zeros((classes + 1, classes + 1))
    a, b, count = _shared_faces(labels.astype(np.int64) + 1, classes + 1)
    faces[a, b] = count
    return (faces + faces.T)[1:, 1:] / labels.size ** (2 / 3)


def _shared_faces(number: Int[np.ndarray, "x y z"], most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs (a, b) of different numbers in 1 .. most - 1 that share voxel faces, and how many faces."""
    pairs = []
    for axis in range(3):
        moved = np.moveaxis(number, axis, 0)
        a, b = moved[1:], moved[:-1]
        border = (a != b) & (a > 0) & (b > 0)
        pairs.append(a[border] * most + b[border])
    codes, counts = np.unique(np.concatenate(pairs), return_counts=True)
    return (*np.divmod(codes, most), counts)
