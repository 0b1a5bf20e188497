"""From the cube's millimetres to the model's: crop centre, pose and a smooth random deformation.

The deformation is a cubic B-spline free-form deformation on lattices fixed in mm: it is smooth, cheap on a
regular grid (three small matrix products) and independent of the grid it is asked on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Warp:
    """model = R^T q + u(q) with q = position in the cube + centre_mm; u is the sum of the lattices."""

    rotation: Array
    lattices: tuple[tuple[float, Array], ...]  # (spacing in mm, coefficients (m, m, m, 3) in mm)
    centre_mm: Array

    def centred_at(self, centre_mm: Array) -> Warp:
        return replace(self, centre_mm=np.asarray(centre_mm, dtype=np.float64))

    def grid(self, edge_mm: float, n: int) -> Array:
        """Model coordinates of an n^3 cube's voxel centres, (n, n, n, 3) float32."""
        line = ((np.arange(n) + 0.5) / n - 0.5) * edge_mm
        axes = [line + self.centre_mm[i] for i in range(3)]
        turn = self.rotation.T
        out = (
            (axes[0][:, None] * turn[:, 0])[:, None, None]
            + (axes[1][:, None] * turn[:, 1])[None, :, None]
            + (axes[2][:, None] * turn[:, 2])[None, None]
        ).astype(np.float32)
        for spacing, coefficients in self.lattices:
            x, y, z = (_basis(axis, spacing, len(coefficients)) for axis in axes)
            part = np.tensordot(z, coefficients, axes=(1, 2))  # (n, m, m, 3): z, x, y
            part = np.tensordot(y, part, axes=(1, 2))  # y, z, x
            out += np.tensordot(x, part, axes=(1, 2))  # x, y, z
        return out

    def to_cube(self, points: Array) -> Array:
        """The cube's mm of model points (m, 3): the inverse, by fixed-point iteration (ratio about 0.2)."""
        target = np.asarray(points, dtype=np.float64).reshape(-1, 3)
        q = target @ self.rotation.T
        for _ in range(15):
            before = q
            q = (target - self._shift(q)) @ self.rotation.T
            if np.abs(q - before).max(initial=0.0) < 1e-4:
                break
        return q - self.centre_mm

    def derivative(self, points: Array) -> Array:
        """Of the cube's mm by the model's at points (m, 3) of the cube: (m, 3, 3), central differences."""
        q = np.asarray(points, dtype=np.float64).reshape(-1, 3) + self.centre_mm
        step = 0.5
        ahead = np.concatenate([q + step * unit for unit in np.eye(3)])
        behind = np.concatenate([q - step * unit for unit in np.eye(3)])
        slope = (self._shift(ahead) - self._shift(behind)).reshape(3, -1, 3) / (2 * step)
        return np.linalg.inv(self.rotation.T + slope.transpose(1, 2, 0))

    def _shift(self, q: Array) -> Array:
        """Displacement at points (m, 3): each sees the 4 x 4 x 4 nodes around it."""
        total = np.zeros_like(q)
        for spacing, coefficients in self.lattices:
            m = len(coefficients)
            first = np.floor(q / spacing + (m - 1) / 2).astype(int) - 1
            nodes = np.clip(first[:, :, None] + np.arange(4), 0, m - 1)
            weights = [
                np.take_along_axis(_basis(q[:, i], spacing, m), nodes[:, i], axis=1).astype(np.float64)
                for i in range(3)
            ]
            x, y, z = (nodes[:, i] for i in range(3))
            local = coefficients[x[:, :, None, None], y[:, None, :, None], z[:, None, None, :]]
            total += np.einsum("pi,pj,pk,pijkc->pc", *weights, local)
        return total


def random_warp(
    rng: np.random.Generator,
    tilt_deg: float | Sequence[float],
    levels: Sequence[tuple[float, float]],
    reach_mm: float = 200.0,
) -> Warp:
    """A pose of about `tilt_deg` about each axis and one lattice for each (spacing_mm, size_mm) of `levels`.

    `tilt_deg` is a standard deviation, one for all axes or one for each. `size_mm` is that of a coefficient;
    keep it below a fifth of the spacing, or the deformation may fold.
    """
    from anatomica.data.phantoms.shapes import rotation

    tilt = np.broadcast_to(np.asarray(tilt_deg, dtype=np.float64), 3)
    turn = rotation(np.clip(rng.normal(0, tilt, 3), -2 * tilt, 2 * tilt).tolist())
    lattices = []
    for spacing, size in levels:
        m = 2 * int(np.ceil(reach_mm / spacing)) + 3
        noise = np.clip(rng.normal(0, 1, (m, m, m, 3)), -2.2, 2.2) * size
        lattices.append((spacing, noise.astype(np.float32)))
    return Warp(turn, tuple(lattices), np.zeros(3))


def _basis(x: Array, spacing: float, m: int) -> Array:
    """Cubic B-spline weights (len(x), m) of the lattice nodes (i - (m - 1) / 2) * spacing."""
    t = np.abs(x[:, None] / spacing - (np.arange(m) - (m - 1) / 2))
    inner = 2 / 3 - t**2 + t**3 / 2
    outer = np.clip(2 - t, 0, None) ** 3 / 6
    return np.where(t < 1, inner, outer).astype(np.float32)
