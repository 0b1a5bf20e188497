"""Volumes of labels under any conforming faces, put right by one bias per label along the normals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int32

STEPS = 4
"""Newton steps; the volumes are nearly linear in the biases, so two are usually enough."""


def balanced(
    vertices: Float64[np.ndarray, "v 3"],
    faces: Int32[np.ndarray, "f 3"],
    sides: Int32[np.ndarray, "f 2"],
    wanted: dict[int, float],
) -> Float64[np.ndarray, "v 3"]:
    """Vertices moved along their labels' normals so that each label id encloses its wanted volume (mm^3).

    All vertices of a label's border move equally far: its bias outwards, less that of the label on the
    other side.
    """
    ids = list(wanted)
    target = np.array([wanted[i] for i in ids])
    used, flat = np.unique(faces, return_inverse=True)
    corners = flat.reshape(-1, 3)
    moved = vertices.copy()
    for _ in range(STEPS):
        x = moved[used]
        slope = _slopes(x, corners, sides, ids)
        length = np.linalg.norm(slope, axis=2, keepdims=True)
        normal = slope / np.where(length > 1e-12 * length.max(), length, np.inf)
        bias = np.linalg.lstsq(
            np.einsum("vlk,vmk->lm", slope, normal), target - _volumes(x, corners, sides, ids), rcond=1e-9
        )[0]
        moved[used] += np.einsum("m,vmk->vk", bias, normal)
    return moved


def _volumes(
    x: np.ndarray, corners: np.ndarray, sides: np.ndarray, ids: Sequence[int]
) -> Float64[np.ndarray, " l"]:
    a, b, c = (x[corners[:, n]] - x.mean(axis=0) for n in range(3))
    cone = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    return np.array([cone[sides[:, 0] == i].sum() - cone[sides[:, 1] == i].sum() for i in ids])


def _slopes(
    x: np.ndarray, corners: np.ndarray, sides: np.ndarray, ids: Sequence[int]
) -> Float64[np.ndarray, "v l 3"]:
    """d volume of each label / d vertex: a third of the area vectors of its faces there."""
    a, b, c = (x[corners[:, n]] for n in range(3))
    area = np.cross(b - a, c - a) / 6.0
    slope = np.zeros((len(x), len(ids), 3))
    for place, i in enumerate(ids):
        for side, sign in ((0, 1.0), (1, -1.0)):
            own = sides[:, side] == i
            for n in range(3):
                np.add.at(slope[:, place], corners[own, n], sign * area[own])
    return slope
