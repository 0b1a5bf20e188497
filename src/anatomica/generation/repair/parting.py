"""Parting: neighbours in a row that have grown together are parted by a gap of one voxel.

Vertebrae touch at their joints, and between their bodies lies a disc. A decoder that leaves out the disc
makes one bone of two, and the border that the labels draw through it is far wider than any joint.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, UInt8
from scipy import ndimage

from anatomica.generation.repair.narrowing import NARROW


def part(labels: UInt8[np.ndarray, "x y z"], widest: Float[np.ndarray, " C"]) -> UInt8[np.ndarray, "x y z"]:
    """Label indices in which no tissue touches the next one over more than patients' do.

    `widest[k]` is the area, as a share of one of the cube's sides, over which k may touch k + 1. A wider
    border loses its patches, the largest first, until it is as narrow as a joint: the voxels of k + 1 in them
    become background.
    """
    out, side = labels.copy(), round(labels.size ** (1 / 3)) ** 2
    for k in np.unique(labels[labels > 0]).tolist()[:-1]:
        faces = _faces(out, k)
        if faces.sum() <= widest[k] * side:
            continue
        patches, count = ndimage.label(faces > 0, np.ones((3, 3, 3)))  # type: ignore[misc]
        area = np.bincount(patches.ravel(), faces.ravel(), count + 1)
        area[0] = 0
        for patch in np.argsort(-area)[:count]:
            if area.sum() <= NARROW * widest[k] * side:
                break
            out[patches == patch] = 0
            area[patch] = 0
    return out


def _faces(labels: UInt8[np.ndarray, "x y z"], k: int) -> Float[np.ndarray, "x y z"]:
    """Of each voxel of k + 1, the number of its faces that touch k."""
    beside = np.pad(labels == k, 1)
    own: Bool[np.ndarray, "x y z"] = labels == k + 1
    moved = [np.roll(beside, s, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for s in (-1, 1)]
    return np.sum(moved, 0) * own.astype(float)
