"""Images made from label maps, so that a network can be trained from an export at once.

Domain randomisation as in SynthSeg (Billot 2023): every label gets an intensity of its own at random, edges
are mixed as a voxel's partial volume mixes them, a smooth bias field, a blur and noise come on top. Nothing
is calibrated to a scanner: a network that has seen every contrast need not know the right one.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap

Array = np.ndarray
PARTIAL = 0.5
"""Voxels: the width of a border between two labels."""


def synthetic_image(label_map: LabelMap, seed: int) -> Float[Array, "x y z"]:
    """An image of the label map with intensities from 0 to 1; the same seed gives the same image."""
    rng = np.random.default_rng([seed, 4])
    table = label_map.table
    levels = np.zeros(max(table.ids) + 1, dtype=np.float32)
    spread = np.zeros_like(levels)
    for id in table.ids:
        levels[id] = rng.uniform(0.1, 0.9)
        spread[id] = rng.uniform(0.0, 0.06)
    texture = ndimage.gaussian_filter(rng.standard_normal(label_map.shape).astype(np.float32), 0.7)
    image = levels[label_map.array] + spread[label_map.array] * texture / max(float(texture.std()), 1e-6)
    image += _clutter(label_map, rng)
    image = ndimage.gaussian_filter(image, PARTIAL)
    image *= _bias(label_map.shape, rng)
    image = ndimage.gaussian_filter(image, rng.uniform(0.0, 0.7))
    image += rng.uniform(0.005, 0.04) * rng.standard_normal(label_map.shape).astype(np.float32)
    low, high = np.percentile(image, (0.5, 99.5))
    return np.clip((image - low) / max(float(high - low), 1e-6), 0.0, 1.0).astype(np.float32)


def _clutter(label_map: LabelMap, rng: np.random.Generator) -> Float[Array, "x y z"]:
    """Tissue around the anatomy that no label names: a background of one grey would teach its border."""
    coarse = rng.standard_normal([6, 6, 6]).astype(np.float32)
    smooth = _stretched(coarse, label_map.shape)
    pieces = np.digitize(smooth, np.quantile(smooth, (0.33, 0.66)))
    levels = rng.uniform(-0.3, 0.3, 3).astype(np.float32)
    return np.where(label_map.array == 0, levels[pieces], 0.0).astype(np.float32)


def _bias(shape: tuple[int, int, int], rng: np.random.Generator) -> Float[Array, "x y z"]:
    """A smooth factor around 1, as a coil's sensitivity."""
    coarse = rng.normal(0.0, rng.uniform(0.0, 0.25), [4, 4, 4]).astype(np.float32)
    return np.exp(_stretched(coarse, shape))


def _stretched(coarse: Array, shape: tuple[int, int, int]) -> Float[Array, "x y z"]:
    """A coarse volume, cubic between its voxels."""
    factors = [n / c for n, c in zip(shape, coarse.shape, strict=True)]
    stretched = ndimage.zoom(coarse, factors, order=3, mode="nearest", grid_mode=True)
    return np.asarray(stretched, dtype=np.float32)
