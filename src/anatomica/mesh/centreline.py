"""Centrelines of vessels in mm, with the radius of the largest sphere that fits inside at each point."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cc3d
import numpy as np
from jaxtyping import Float64
from scipy.spatial import KDTree

from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.centerline import centerline
from anatomica.mesh.formats.vtk_xml import write_vtp
from anatomica.mesh.surface import Surface

SPACING_VOXELS = 0.5
LEAST_SHARE = 0.02
"""Pieces of a tissue smaller than this share of it get no line."""


@dataclass(frozen=True, eq=False)
class Line:
    """One unbranched curve through a piece of a tissue, its upper end first."""

    tissue: str
    points_mm: Float64[np.ndarray, "n 3"]
    radii_mm: Float64[np.ndarray, " n"]


def centrelines(label_map: LabelMap, surface: Surface, names: tuple[str, ...]) -> tuple[Line, ...]:
    """One line for each piece of each named tissue; the radius is the distance to the tissue's surface.

    A branching tissue has one line, the longest way through it. Raises AnatomicaError if a tissue has none.
    """
    found = []
    for name in names:
        pieces = cc3d.connected_components(label_map.mask(name).astype(np.uint8), connectivity=26)
        sizes = np.bincount(pieces.ravel())[1:]
        # A cut at the label map's rim is no wall.
        beside = (surface.sides == label_map.table.id_of(name)).any(axis=1) & ~surface.cut()
        corners = surface.vertices[surface.triangles[beside]]
        # Corners and centres of triangles are dense enough: half a voxel apart along the surface.
        near = KDTree(np.concatenate([corners.reshape(-1, 3), corners.mean(axis=1)]))
        own = []
        for piece in np.flatnonzero(sizes >= LEAST_SHARE * sizes.sum()) + 1:
            try:
                line = centerline(pieces == piece, _up(label_map), SPACING_VOXELS)
            except AnatomicaError:
                continue  # a lump, not a tube
            points = line.points @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
            own.append(Line(name, points, np.asarray(near.query(points)[0])))
        if not own:
            raise AnatomicaError(f"{name!r} has no centreline: it is absent, or no piece of it is a tube")
        found += own
    return tuple(found)


def _up(label_map: LabelMap) -> np.ndarray:
    """The patient's up in voxel indices."""
    return np.linalg.inv(label_map.affine[:3, :3]) @ np.array([0.0, 0.0, 1.0])


def write_centrelines(path: Path, lines: tuple[Line, ...], table_ids: dict[str, int]) -> None:
    """A .vtp with one polyline per curve; the radius has VMTK's name."""
    points = np.concatenate([x.points_mm for x in lines])
    ends = np.cumsum([len(x.points_mm) for x in lines])
    index = [np.arange(end - len(x.points_mm), end) for x, end in zip(lines, ends, strict=True)]
    radii = {"MaximumInscribedSphereRadius": np.concatenate([x.radii_mm for x in lines])}
    tissue = {"material": np.array([table_ids[x.tissue] for x in lines], dtype=np.int32)}
    write_vtp(path, points, None, index, radii, tissue)
