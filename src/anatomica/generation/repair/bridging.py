"""Bridging: parts of an anatomy that lie apart are joined to the rest across the narrowest gap."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int, UInt8
from scipy import ndimage

SPECK = 0.05
"""A part smaller than this share of each of its tissues is taken away instead."""
FARTHEST = 8 / 64
"""The widest gap that is bridged, in edges of the cube."""


def bridge(labels: UInt8[np.ndarray, "x y z"]) -> UInt8[np.ndarray, "x y z"]:
    """Label indices in one piece (26-connected): parts of any size are joined to the largest, specks go.

    A bridge is a straight line of small cubes from the part's nearest voxel to the rest's; its voxels have
    the label of the nearer end.
    """
    parts, count = ndimage.label(labels > 0, np.ones((3, 3, 3)))  # type: ignore[misc]
    if count < 2:
        return labels
    out, sizes = labels.copy(), np.bincount(parts.ravel())
    sizes[0] = 0
    rest = parts == sizes.argmax()
    volume = np.bincount(labels.ravel())
    for part in np.argsort(-sizes[1:])[1:] + 1:
        here = parts == part
        if all((labels[here] == t).sum() < SPECK * volume[t] for t in np.unique(labels[here])):
            out[here] = 0
            continue
        line = _shortest_line(here, rest)
        if len(line) <= FARTHEST * len(labels):
            _draw(out, line)
            rest |= here
    return out


def _shortest_line(
    part: Bool[np.ndarray, "x y z"], rest: Bool[np.ndarray, "x y z"]
) -> Int[np.ndarray, "p 3"]:
    """Voxels on the line between the two nearest ones of the part and the rest, the part's first."""
    distance, nearest = ndimage.distance_transform_edt(~rest, return_indices=True)  # type: ignore[misc]
    at = np.unravel_index(np.where(part, distance, np.inf).argmin(), part.shape)
    a, b = np.array(at), nearest[(slice(None), *at)]
    steps = int(np.abs(b - a).max())
    return np.rint(a + np.linspace(0, 1, steps + 1)[:, None] * (b - a)).astype(int)


def _draw(labels: UInt8[np.ndarray, "x y z"], line: Int[np.ndarray, "p 3"]) -> None:
    """Background on the line, and in the voxels around it, becomes the tissue at the nearer end."""
    ends = labels[tuple(line[0])], labels[tuple(line[-1])]
    for i, voxel in enumerate(line):
        around = tuple(slice(max(0, v - 1), v + 2) for v in voxel)
        empty = labels[around] == 0
        labels[around][empty] = ends[0] if 2 * i < len(line) else ends[1]
