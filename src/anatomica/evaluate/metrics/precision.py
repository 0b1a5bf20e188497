"""Topological precision: the share of samples with the wanted Betti number, per dimension."""

from __future__ import annotations

from collections.abc import Sequence

import cc3d
import numpy as np
from jaxtyping import Bool

from anatomica.measurement.homology.betti import Betti, betti_numbers

SPECK_VOXELS = 8
"""Pieces with fewer voxels are specks: one voxel of a grid twice as coarse."""


def remove_specks(mask: Bool[np.ndarray, "h w d"], voxels: int = SPECK_VOXELS) -> Bool[np.ndarray, "h w d"]:
    """The mask without components, and without enclosed pockets of background, of fewer than `voxels` voxels.

    Connectivity is that of the Betti numbers: foreground 6, background 26.
    """
    kept = cc3d.dust(mask.astype(np.uint8), threshold=voxels, connectivity=6) > 0
    # Background that reaches the border is the outside, however small; a rim makes all of it one piece.
    outside = np.pad(~kept, 1, constant_values=True).astype(np.uint8)
    background = cc3d.dust(outside, threshold=voxels, connectivity=26) > 0
    return ~background[1:-1, 1:-1, 1:-1]


def counted(mask: Bool[np.ndarray, "h w d"], voxels: int = SPECK_VOXELS) -> tuple[Betti, Betti]:
    """Betti numbers of a hard mask as it is, and without specks."""
    return betti_numbers(mask), betti_numbers(remove_specks(mask, voxels))


def correct(
    numbers: Sequence[Sequence[int]], wanted: Sequence[int | None]
) -> tuple[Bool[np.ndarray, " m"] | None, ...]:
    """For each dimension whether the Betti number is the wanted one; None where nothing is wanted.

    Their mean is the precision.
    """
    rows = np.asarray(numbers).reshape(-1, 3)
    return tuple(None if w is None else rows[:, d] == w for d, w in enumerate(wanted))
