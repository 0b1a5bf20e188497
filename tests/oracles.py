"""Closed forms and simple shapes that the tests measure against. All coordinates are the cube's [0, 1]^3."""

from __future__ import annotations

import numpy as np
import torch
from scipy import ndimage
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, cube_affine


def voxel_centres(n: int) -> np.ndarray:
    """(n, n, n, 3) array of voxel centres."""
    line = (np.arange(n) + 0.5) / n
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1)


def occupancy(inside: np.ndarray | torch.Tensor, n: int, factor: int = 2) -> torch.Tensor:
    """Share of each voxel that is inside, from an indicator sampled `factor` times finer along each axis."""
    fine = np.asarray(inside, dtype=np.float32)
    shape = (n, factor, n, factor, n, factor)
    return torch.from_numpy(fine.reshape(shape).mean(axis=(1, 3, 5)))


class Ellipsoid:
    """A solid ellipsoid with known moments: volume 4/3 pi abc, covariance U diag(a^2, b^2, c^2) U^T / 5."""

    def __init__(self, centre, axes, angles_deg=(0.0, 0.0, 0.0)) -> None:
        self.centre, self.axes = np.asarray(centre, float), np.asarray(axes, float)
        self.U = Rotation.from_euler("xyz", angles_deg, degrees=True).as_matrix()

    @property
    def mass(self) -> float:
        return 4 / 3 * np.pi * float(np.prod(self.axes))

    @property
    def covariance(self) -> np.ndarray:
        return self.U @ np.diag(self.axes**2) @ self.U.T / 5

    def contains(self, points: np.ndarray) -> np.ndarray:
        local = (points - self.centre) @ self.U / self.axes
        return (local**2).sum(-1) <= 1

    def volume(self, n: int) -> torch.Tensor:
        return occupancy(self.contains(voxel_centres(2 * n)), n)


def tube(curve: np.ndarray, radius: float, n: int) -> np.ndarray:
    """Voxels within `radius` of a densely sampled curve."""
    distance, _ = KDTree(curve).query(voxel_centres(n).reshape(-1, 3), distance_upper_bound=2 * radius)
    return (distance <= radius).reshape(n, n, n)


def shell(n: int, centre: float, inner: float, outer: float) -> np.ndarray:
    distance = np.linalg.norm(voxel_centres(n) - centre, axis=-1)
    return (distance >= inner) & (distance <= outer)


def torus(n: int, centre=(0.5, 0.5, 0.5), ring: float = 0.22, pipe: float = 0.08) -> np.ndarray:
    x, y, z = np.moveaxis(voxel_centres(n) - np.asarray(centre), -1, 0)
    return (np.hypot(x, y) - ring) ** 2 + z**2 <= pipe**2


def double_torus(n: int) -> np.ndarray:
    return (
        torus(n, (0.28, 0.5, 0.5), 0.16, 0.06)
        | torus(n, (0.72, 0.5, 0.5), 0.16, 0.06)
        | box(n, (0.42, 0.44, 0.44), (0.58, 0.56, 0.56))
    )


def box(n: int, low, high) -> np.ndarray:
    points = voxel_centres(n)
    return np.all((points >= np.asarray(low)) & (points <= np.asarray(high)), axis=-1)


def arch(count: int = 3000) -> np.ndarray:
    """An aorta's course: up, over a half circle from front to back, and down."""
    up = np.stack([np.full(count, 0.5), np.full(count, 0.72), np.linspace(0.25, 0.6, count)], axis=1)
    angle = np.linspace(0, np.pi, count)
    over = np.stack([np.full(count, 0.5), 0.5 + 0.22 * np.cos(angle), 0.6 + 0.22 * np.sin(angle)], axis=1)
    down = np.stack([np.full(count, 0.5), np.full(count, 0.28), np.linspace(0.6, 0.05, count)], axis=1)
    course = np.concatenate([up, over, down])
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(course, axis=0), axis=1))])
    even = np.linspace(0, length[-1], count)
    course = np.stack([np.interp(even, length, course[:, axis]) for axis in range(3)], axis=1)
    # Rounded, since a vessel's curvature has no jumps.
    return ndimage.gaussian_filter1d(course, 0.05 * count / length[-1], axis=0, mode="nearest")[10:-10]


def helix(turns: float = 0.8, count: int = 4000) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi * turns, count)
    return np.stack(
        [0.5 + 0.25 * np.cos(angle), 0.5 + 0.25 * np.sin(angle), np.linspace(0.15, 0.85, count)], 1
    )


def two_ventricles(n: int = 64) -> LabelMap:
    """A toy heart: LV and RV as ellipsoids, LA on top of the LV."""
    points = voxel_centres(n)
    array = np.zeros((n, n, n), np.uint8)
    table = ANATOMIES["cardiac"].table
    array[Ellipsoid((0.42, 0.5, 0.45), (0.1, 0.09, 0.14)).contains(points)] = table.id_of("LV")
    array[Ellipsoid((0.62, 0.5, 0.45), (0.09, 0.08, 0.13)).contains(points)] = table.id_of("RV")
    array[Ellipsoid((0.42, 0.5, 0.66), (0.1, 0.1, 0.08)).contains(points)] = table.id_of("LA")
    return LabelMap(array, cube_affine(256.0, n), table)


def components(mask: np.ndarray, neighbours: np.ndarray) -> tuple[np.ndarray, int]:
    """Connected components by scipy: their numbers from 1 on, and how many."""
    numbers = np.zeros(mask.shape, np.int32)
    ndimage.label(mask, neighbours, output=numbers)
    return numbers, int(numbers.max(initial=0))
