"""Published normal values, each with the way to measure the same thing on a phantom."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import ndimage

from anatomica.data.phantoms import Phantom

Measure = Callable[[Phantom], float]


@dataclass(frozen=True)
class Published:
    """A normal value (mean and SD) with its source, and how a phantom is measured for it."""

    name: str
    unit: str
    mean: float
    sd: float
    source: str
    measure: Measure


def pooled(*groups: tuple[float, float, float]) -> tuple[float, float]:
    """Mean and SD of several groups together, each given as (count, mean, SD)."""
    count, mean, sd = (np.array(column) for column in zip(*groups, strict=True))
    share = count / count.sum()
    total = float(share @ mean)
    return total, float(np.sqrt(share @ (sd**2 + (mean - total) ** 2)))


def volume(*tissues: str) -> Measure:
    """Volume in mL of some tissues together."""
    return lambda phantom: phantom.label_map.volume_ml(*tissues)


def ratio(above: str, below: str) -> Measure:
    """Ratio of two tissues' volumes."""
    return lambda phantom: phantom.label_map.volume_ml(above) / phantom.label_map.volume_ml(below)


def parameter(name: str) -> Measure:
    """A parameter of the truth."""
    return lambda phantom: phantom.truth.parameters[name]


def diameter(tissue: str, line: str, at_mm: float) -> Measure:
    """Diameter in mm of the circle of equal area, across a centreline at a distance from its first point."""
    return lambda phantom: 2 * float(np.sqrt(cross_section_mm2(phantom, tissue, line, at_mm) / np.pi))


def section(tissue: str, line: str, at_mm: float) -> Measure:
    """Area in cm2 across a centreline at a distance from its first point."""
    return lambda phantom: cross_section_mm2(phantom, tissue, line, at_mm) / 100


def cross_section_mm2(phantom: Phantom, tissue: str, line: str, at_mm: float) -> float:
    """Area of the tissue in the plane across its centreline, around the centreline; nan outside the cube."""
    curve = np.array(phantom.truth.centrelines_mm[line])
    along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    point = np.array([np.interp(at_mm, along, curve[:, i]) for i in range(3)])
    ahead = np.array([np.interp(at_mm + 2.0, along, curve[:, i]) for i in range(3)])
    axis = (ahead - point) / np.linalg.norm(ahead - point)
    across = np.cross(axis, [0.0, 1.0, 0.0] if abs(axis[1]) < 0.9 else [1.0, 0.0, 0.0])
    across /= np.linalg.norm(across)
    step, reach = 0.5, 34.0
    offsets = np.arange(-reach, reach + step / 2, step)
    u, v = np.meshgrid(offsets, offsets, indexing="ij")
    plane = point + u[..., None] * across + v[..., None] * np.cross(axis, across)
    label_map = phantom.label_map
    index = (plane - label_map.affine[:3, 3]) / label_map.spacing_mm
    if (index[len(offsets) // 2, len(offsets) // 2] > np.array(label_map.shape) - 1).any():
        return float("nan")
    soft = ndimage.map_coordinates(
        label_map.mask(tissue).astype(np.float32), np.moveaxis(index, -1, 0), order=1, mode="nearest"
    )
    parts = cast(Any, ndimage).label(soft >= 0.5)[0]
    here = parts[len(offsets) // 2, len(offsets) // 2]
    return float((parts == here).sum()) * step**2 if here else float("nan")
