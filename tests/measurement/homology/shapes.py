"""Volumes to test on: every kind of value and solids whose Betti numbers are known."""

from itertools import product

import numpy as np
from scipy.ndimage import gaussian_filter, uniform_filter

KINDS = ("binary", "levels", "ties", "zeros", "smooth", "noise", "narrow", "plateaus")


def values(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A volume of one kind, float32 or float64 by turns of the generator."""
    if kind == "binary":
        volume = (rng.random(shape) < rng.random()).astype(float)
    elif kind == "levels":
        volume = rng.integers(0, 4, shape) / 3
    elif kind == "ties":
        volume = np.round(rng.standard_normal(shape), 1)
    elif kind == "zeros":  # 0.0 and -0.0 are one value
        volume = rng.choice([-1.0, -0.0, 0.0, 1.0], shape)
    elif kind == "smooth":
        volume = uniform_filter(rng.standard_normal(shape), 3, mode="nearest")
    elif kind == "noise":
        volume = rng.standard_normal(shape)
    elif kind == "narrow":  # neighbouring floating-point numbers
        volume = 1 + rng.integers(0, 8, shape) * np.finfo(np.float32).eps
    else:
        volume = np.clip(2 * rng.standard_normal(shape), 0, 1)
    return volume.astype((np.float32, np.float64)[rng.choice(2)])


def every_small_shape(longest: int = 12) -> list[tuple[int, int, int]]:
    edges = range(1, longest + 1)
    return list(product(edges, edges, edges))


def smooth(n: int, width: float, seed: int) -> np.ndarray:
    field = gaussian_filter(np.random.default_rng(seed).standard_normal((n, n, n)), width)
    return (field / field.std()).astype(np.float32)


def grid(n: int) -> np.ndarray:
    """Coordinates of voxel centres in [-1, 1]."""
    line = (np.arange(n) + 0.5) * 2 / n - 1
    return np.stack(np.meshgrid(line, line, line, indexing="ij"))


def ball(n: int) -> np.ndarray:
    return 0.7 - np.linalg.norm(grid(n), axis=0)


def shell(n: int) -> np.ndarray:
    return 0.2 - abs(np.linalg.norm(grid(n), axis=0) - 0.6)


def ring(n: int, centre: float, radius: float = 0.6) -> np.ndarray:
    """Minus the distance to a circle in the plane z = 0, centred on the x axis."""
    x, y, z = grid(n)
    return -np.hypot(np.hypot(x - centre, y) - radius, z)


def torus(n: int) -> np.ndarray:
    return 0.25 + ring(n, 0.0)


def double_torus(n: int) -> np.ndarray:
    return 0.15 + np.maximum(ring(n, -0.4, 0.35), ring(n, 0.4, 0.35))
