"""Narrowing: where tissues stand in a row, each border goes through the narrowest place near it.

Vertebrae touch at their joints. A border that runs through the middle of one, because a decoder gave its
halves to two neighbours, is far wider than any joint.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy import sparse
from scipy.sparse import csgraph

PRICES = (13.0, 8.0, 5.0, 3.0)
"""The area that a change of labels must save for each unit of volume (in units of the cube): from dear, where
little changes, to cheap.
"""
NARROW = 0.7
"""A border of this share of the widest is narrow; the typical joint of two vertebrae is."""
UNIT = 1000
"""Capacity of a voxel's face; the solver takes whole numbers."""


def narrow(labels: UInt8[np.ndarray, "x y z"], widest: Float[np.ndarray, " C"]) -> UInt8[np.ndarray, "x y z"]:
    """Label indices with every border that is too wide moved to where it is narrow.

    `widest[k]` is the area, as a share of one of the cube's sides, over which tissues up to k may touch those
    beyond. A border that is wider becomes the cut of least area + price * volume of what changes sides: a
    minimum cut. At one price all borders together are the exact minimum of the row's total variation (each is
    a problem of its own, and the solutions are nested). A border that no price makes narrow enough stays.
    A border, and with it a tissue at the end of the row, is given up only at the dearest price.
    """
    inside = labels > 0
    place = labels[inside].astype(int)
    if not len(place):
        return labels
    pairs = _touching_voxels(inside)
    n = round(labels.size ** (1 / 3))
    before = np.zeros(len(place), bool)
    narrowed = np.full(len(place), place.min())
    for k in range(place.min(), place.max()):
        before |= _border(place <= k, pairs, widest[k] * n**2, n)
        narrowed += ~before
    out = labels.copy()
    out[inside] = narrowed
    return out


def _border(
    before: Bool[np.ndarray, " v"], pairs: Int[np.ndarray, "2 p"], most_faces: float, n: int
) -> Bool[np.ndarray, " v"]:
    """Which voxels lie before the border: at the dearest price that makes it narrow, else the narrowest.

    As given if it has at most so many faces, or if no price gives one with as few.
    """
    if _faces(before, pairs) <= most_faces:
        return before
    found = {}
    for price in PRICES:
        moved = minimum_cut(before, pairs, price / n)
        faces = _faces(moved, pairs)
        if faces or price == PRICES[0]:
            found.setdefault(faces, moved)
            if faces <= NARROW * most_faces:
                break
    fewest = min(found)
    return found[fewest] if fewest <= most_faces else before


def minimum_cut(
    before: Bool[np.ndarray, " v"], pairs: Int[np.ndarray, "2 p"], price: float
) -> Bool[np.ndarray, " v"]:
    """The side of each voxel that minimises faces between the sides + price * voxels that changed sides."""
    count = len(before)
    voxel, source, sink = np.arange(count), count, count + 1
    a, b = pairs
    rows = np.concatenate([a, b, np.where(before, source, voxel)])
    columns = np.concatenate([b, a, np.where(before, voxel, sink)])
    capacity = np.full(len(rows), UNIT, np.int32)
    capacity[2 * len(a) :] = round(price * UNIT)
    graph = sparse.csr_matrix((capacity, (rows, columns)), shape=(count + 2, count + 2))
    left = graph - csgraph.maximum_flow(graph, source, sink).flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    side = np.zeros(count + 2, bool)
    side[csgraph.breadth_first_order(left, source, return_predecessors=False)] = True
    return side[:count]


def _faces(before: Bool[np.ndarray, " v"], pairs: Int[np.ndarray, "2 p"]) -> int:
    return int((before[pairs[0]] != before[pairs[1]]).sum())


def _touching_voxels(inside: Bool[np.ndarray, "x y z"]) -> Int[np.ndarray, "2 p"]:
    """Pairs of voxels inside that share a face, numbered in the order of `array[inside]`."""
    number = np.full(inside.shape, -1)
    number[inside] = np.arange(int(inside.sum()))
    found = []
    for axis in range(3):
        moved = np.moveaxis(number, axis, 0)
        pair = np.stack([moved[1:], moved[:-1]]).reshape(2, -1)
        found.append(pair[:, (pair >= 0).all(0)])
    return np.concatenate(found, axis=1)
