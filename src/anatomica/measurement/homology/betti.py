"""Hard Betti numbers of a binary mask from connected components and the Euler number."""

from __future__ import annotations

from typing import NamedTuple

import cc3d
import numpy as np


class Betti(NamedTuple):
    """Components, loops and voids."""

    b0: int
    b1: int
    b2: int


def betti_numbers(mask: np.ndarray) -> Betti:
    """Betti numbers of a 3D mask whose voxels are the vertices of a cubical complex (V-construction).

    Foreground is 6-connected, background 26-connected; outside the array is background. Axes of size 1 are
    legal: a plane has loops (its holes) and no voids.
    """
    mask = np.ascontiguousarray(_crop(mask), dtype=bool)
    if not mask.any():
        return Betti(0, 0, 0)
    b0 = int(cc3d.connected_components(mask.view(np.uint8), connectivity=6, return_N=True)[1])
    outside = np.pad(~mask, 1, constant_values=True)
    background = cc3d.connected_components(outside.view(np.uint8), connectivity=26, return_N=True)[1]
    b2 = int(background) - 1
    return Betti(b0, b0 + b2 - euler_number(mask), b2)


def euler_number(mask: np.ndarray) -> int:
    """Vertices - edges + squares - cubes of the complex whose vertices are the mask's voxels."""
    total, chi = {(): mask}, int(mask.sum())
    for axis in range(3):
        grown = {}
        for axes, cells in total.items():
            length = cells.shape[axis]
            both = cells.take(range(1, length), axis) & cells.take(range(length - 1), axis)
            grown[(*axes, axis)] = both
            chi += (-1) ** (len(axes) + 1) * int(both.sum())
        total |= grown
    return chi


def _crop(mask: np.ndarray) -> np.ndarray:
    """The mask's bounding box: anatomy fills a small part of its cube."""
    for axis in range(3):
        index = np.flatnonzero(mask.any(axis=tuple(a for a in range(3) if a != axis)))
        if not len(index):
            return mask[:0]
        mask = mask.take(range(index[0], index[-1] + 1), axis)
    return mask
