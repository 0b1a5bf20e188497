"""Label maps beside one another: a view from the front, one from the back and three slices, one row each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from anatomica.anatomy.label_map import LabelMap, cube_affine, resample
from anatomica.report.render import Camera, contact_sheet, mid_slices, render

VOXELS = 96


def side_by_side(
    label_maps: Sequence[LabelMap],
    titles: Sequence[str],
    structures: Sequence[str],
    path: Path,
    azimuth_deg: float = 20.0,
) -> None:
    """Write a PNG with one row per label map, all at the scale of the largest.

    Each is centred on the common centroid of the structures; the slices go through it.
    """
    boxes = [_centre_and_reach(label_map, structures) for label_map in label_maps]
    edge_mm = 2.1 * max(reach for _, reach in boxes)
    images, names = [], []
    for label_map, title, (centre, _) in zip(label_maps, titles, boxes, strict=True):
        affine = cube_affine(edge_mm, VOXELS, centre)
        cube = resample(label_map, (VOXELS, VOXELS, VOXELS), affine)
        views = [render(cube, Camera(turn, 12), 200).image for turn in (azimuth_deg, azimuth_deg + 170)]
        images += [*views, *np.split(mid_slices(cube, 200), 3, axis=1)]
        names += [title, "from the back", "sagittal", "coronal", "axial"]
    contact_sheet(images, path, names, columns=5)


def _centre_and_reach(label_map: LabelMap, structures: Sequence[str]) -> tuple[np.ndarray, float]:
    """Common centroid of the structures, and how far they reach from it along any axis, in mm."""
    inside = np.argwhere(label_map.mask(*structures))
    points = inside @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
    centre = points.mean(0)
    return centre, float(np.abs(points - centre).max())
