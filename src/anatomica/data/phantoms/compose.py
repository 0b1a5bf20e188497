"""Well-composed rasters: no two voxels of a tissue that touch only across an edge or a corner of free space.

With a 6-connected foreground and a 26-connected background, a surface that bends within a voxel leaves
pinholes: two diagonal background voxels see each other between two diagonal voxels of bone. Filling one of
the two gives the raster the topology of the smooth surface (Latecki, 3D well-composed pictures, 1997).
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

Array = np.ndarray


def compose(array: Array, depth: Array, owner: Array, touch: Array, rounds: int = 6) -> int:
    """Fill pinholes in place, the voxel closer to the bone first; returns how many voxels were filled.

    `depth` is a distance to the nearest bone and `owner` that bone's label, on the array's grid. A voxel that
    would join two labels is left free unless `touch` is set there.
    """
    filled = 0
    for _ in range(rounds):
        before = filled
        for axes in combinations(range(3), 2):
            for step in ((1, 1), (1, -1)):
                filled += _fill(array, depth, owner, touch, *_diagonals(array, axes, step))
        filled += sum(_fill(array, depth, owner, touch, *pair) for pair in _corners(array))
        if filled == before:
            break
    return filled


def _diagonals(array: Array, axes: tuple[int, int], step: tuple[int, int]) -> tuple[Array, Array]:
    """Pairs of free voxels on one diagonal of a square whose other diagonal is bone, (m, 3) each."""
    one, two = [0, 0, 0], [0, 0, 0]
    one[axes[0]], two[axes[1]] = step
    # The square's corners from a bone voxel: a, a + one (free), a + two (free), a + one + two (bone).
    both = [i + j for i, j in zip(one, two, strict=True)]
    low = [max(0, -o) for o in both]
    size = [n - abs(o) for n, o in zip(array.shape, both, strict=True)]

    def view(offset: list[int]) -> Array:
        return array[tuple(slice(a + o, a + o + s) for a, o, s in zip(low, offset, size, strict=True))]

    bone, across, b, c = view([0, 0, 0]), view(both), view(one), view(two)
    at = np.argwhere((bone > 0) & (across > 0) & (b != bone) & (c != bone) & (b != across) & (c != across))
    at = at + np.array(low)
    return at + np.array(one), at + np.array(two)


def _corners(array: Array) -> list[tuple[Array, Array]]:
    """Pairs of voxels on a cube's long diagonal whose other six voxels are of one tissue or of a union."""
    nx, ny, nz = (n - 1 for n in array.shape)
    offsets = list(product((0, 1), repeat=3))
    views = [array[i : i + nx, j : j + ny, k : k + nz] for i, j, k in offsets]
    filled = sum((v > 0).view(np.int8) for v in views)
    mixed = np.logical_or.reduce([v != views[0] for v in views[1:]])
    at = np.argwhere(mixed & (np.asarray(filled) >= 6))
    labels = np.stack([v[tuple(at.T)] for v in views], 1)
    pairs = []
    for a in range(4):
        b = 7 - a
        others = np.delete(labels, (a, b), axis=1)
        low, high = others.min(1), others.max(1)
        one = (low == high) & (labels[:, a] != low) & (labels[:, b] != low)
        union = (labels[:, a] == 0) & (labels[:, b] == 0)
        hole = at[(low > 0) & (one | union)]
        pairs.append((hole + np.array(offsets[a]), hole + np.array(offsets[b])))
    return pairs


def _fill(array: Array, depth: Array, owner: Array, touch: Array, first: Array, second: Array) -> int:
    """Of each pair of voxels, fill the one that may be filled and lies deeper."""
    if not len(first):
        return 0
    cost = [np.where(_may(array, owner, touch, p), depth[tuple(p.T)], np.inf) for p in (first, second)]
    pick = np.where((cost[0] <= cost[1])[:, None], first, second)[np.isfinite(np.minimum(*cost))]
    array[tuple(pick.T)] = owner[tuple(pick.T)]
    return len(pick)


def _may(array: Array, owner: Array, touch: Array, at: Array) -> Array:
    """Whether each voxel is free and, filled, would be joined to its owner and join no two labels."""
    here = tuple(at.T)
    allowed = (array[here] == 0) & (owner[here] > 0)
    alone, beside = np.ones(len(at), bool), np.zeros(len(at), bool)
    for axis in range(3):
        for step in (-1, 1):
            near = at.copy()
            near[:, axis] = np.clip(near[:, axis] + step, 0, array.shape[axis] - 1)
            label = array[tuple(near.T)]
            alone &= (label == 0) | (label == owner[here])
            beside |= label == owner[here]
    return allowed & beside & (alone | touch[here])
