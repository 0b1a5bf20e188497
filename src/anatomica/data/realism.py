"""Sizes, places and extents of structures: the features by which phantoms are compared with real patients.

A structure has seven features: its volume, its centroid relative to the common centroid of all compared
structures, and its principal extents, the square roots of its covariance's eigenvalues (an ellipsoid's are
its semi-axes / sqrt(5)). They are in mL and mm, so label maps on any grids can be compared.
`anatomica.evaluate.likeness` says how well two sets of them are told apart; spines are compared by
`anatomica.data.spine_realism`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.errors import AnatomicaError, naming

FEATURES = ("volume", "right", "front", "up", "longest", "middle", "shortest")
LEAST_CASES = 4
"""Two halves of the real cases are compared with one another, and each needs a covariance."""

Array = np.ndarray


@dataclass(frozen=True)
class Reference:
    """What is known of real patients: mean and SD of each structure's features, and their source."""

    source: str
    count: int
    structures: tuple[str, ...]
    mean: Array
    sd: Array


def features(label_map: LabelMap, structures: Sequence[str]) -> Array:
    """The seven features of each structure, one structure after the other.

    A voxel is a small box, not a point: its own spread is part of the covariance, so that coarse and fine
    grids agree.
    """
    linear, offset = label_map.affine[:3, :3], label_map.affine[:3, 3]
    places = [np.argwhere(label_map.mask(name)) @ linear.T + offset for name in structures]
    for name, points in zip(structures, places, strict=True):
        if not len(points):
            raise AnatomicaError(f"the label map has no {name}; all of {', '.join(structures)} are compared")
    common = np.concatenate(places).mean(0)
    row: list[float] = []
    for points in places:
        away = points - points.mean(0)
        covariance = away.T @ away / len(points) + linear @ linear.T / 12
        extents = np.sqrt(np.linalg.eigvalsh(covariance)[::-1])
        volume_ml = len(points) * abs(np.linalg.det(linear)) / 1000
        row += [volume_ml, *(points.mean(0) - common), *extents]
    return np.array(row)


def real_cases(folder: Path, anatomy: Anatomy, mapping: nifti.Mapping = None) -> dict[str, LabelMap]:
    """The NIfTI files below a folder by name, in the anatomy's cube as `anatomica prepare` cuts it."""
    files = sorted(p for p in folder.rglob("*.nii*") if nifti.is_nifti(p))
    if len(files) < LEAST_CASES:
        raise AnatomicaError(
            f"{folder} has {len(files)} NIfTI files (.nii or .nii.gz); give {LEAST_CASES} or more"
        )
    cubes = {}
    for path in files:
        with naming(path):
            cubes[path.name] = to_cube(nifti.load(path, anatomy, mapping), anatomy)
    return cubes


def differences(made: Array, real: Reference) -> list[dict[str, Any]]:
    """Means and SDs of phantoms (cases, features) beside real ones, one entry per feature, as a JSON value.

    `z` is the difference of the means in real SDs, `sd_ratio` the phantoms' SD by the real one.
    """
    mean, sd = made.mean(0), made.std(0, ddof=1)
    rows = []
    for i, (structure, feature) in enumerate((s, f) for s in real.structures for f in FEATURES):
        rows.append(
            {
                "structure": structure,
                "feature": feature,
                "unit": "mL" if feature == "volume" else "mm",
                "real_mean": _short(real.mean[i]),
                "real_sd": _short(real.sd[i]),
                "mean": _short(mean[i]),
                "sd": _short(sd[i]),
                "z": _short((mean[i] - real.mean[i]) / real.sd[i]),
                "sd_ratio": _short(sd[i] / real.sd[i]),
            }
        )
    return rows


def _short(value: float) -> float:
    return round(float(value), 3)
