"""What a voxel grid can tell: how far counting voxels is off a true volume."""

from __future__ import annotations

import math

SHELL = 6.0
"""Border voxels of a structure of N voxels: at most N, and about this times N^(2/3)."""
WITHIN = 0.58
"""Two standard deviations of a border voxel that is counted whole or not at all, uniform in between."""


def volume_floor_percent(voxels: float) -> float:
    """Percentage within which a true volume of so many voxels lies when it is counted.

    Border voxels round independently, so their errors add up like the root of their number: 9 % of an artery
    of 40 voxels, 1 % of a ventricle of 2,000. `anatomica bench floor` holds it against phantoms on two grids.
    """
    border = min(voxels, SHELL * voxels ** (2 / 3))
    return 100 * WITHIN * math.sqrt(border) / voxels if voxels > 0 else math.inf
