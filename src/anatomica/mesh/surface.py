"""The conforming surface of a label map: one mesh, every interface once, between the two tissues it parts.

A dual method: the faces are the voxels' own faces where two labels meet, and their corners move within the
cells between the voxels' centres. So the surface has the topology of the label map by construction, no
triangle is turned over and none crosses another (`cpp/mesh_link.hpp`, `cpp/mesh_triangles.hpp` say why).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int8, Int32, UInt8
from scipy.spatial import KDTree

from anatomica import _kernel  # pyright: ignore[reportAttributeAccessIssue]
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError

ROUNDS = 60
"""Steps of relaxation. RMS distance from the true surface of a sphere (radius 20), an ellipsoid and a plane
of slope 0.1, in voxels: 0.053, 0.068 and 0.18 after 30 steps, 0.044, 0.063 and 0.083 after 60, 0.043, 0.062
and 0.076 after 100 (tests/mesh/test_surface.py has the shapes)."""
CORRECTIONS = 6
"""Rounds of correcting the volumes and choosing the triangles anew, at most; one or two are usual."""
BESIDE = 1.25
"""Voxels from the centre of a cell to vertices that are in it or beside it. Of nine shipped hearts (128^3)
in which vertices on the field's border got into each other's way, relaxing only those in the cell itself
(0.75) helped one, relaxing these all nine."""
MOST_LABELS = 256
"""The kernel counts labels in a byte."""
LATTICE = 2.0**16
"""Vertices lie at multiples of 1 / LATTICE voxel, so that the exact crossing test sees just what is
written."""

Points = Float32[np.ndarray, "p 3"]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles between tissues, in RAS mm.

    A triangle's normal (right hand) points out of the label `sides[:, 0]` into `sides[:, 1]`; both are
    label ids, and background (0) is always the second. `across` is the array axis, 1 to 3, along which the
    voxels of the two labels are neighbours, negative if it points from the second label to the first; 0
    where the triangle closes a gap between two parts of a third tissue, which touch at an edge only.
    `affine` and `shape` are those of the label map.
    """

    vertices: Float64[np.ndarray, "v 3"]
    triangles: Int32[np.ndarray, "t 3"]
    sides: Int32[np.ndarray, "t 2"]
    across: Int8[np.ndarray, " t"]
    affine: Float64[np.ndarray, "4 4"]
    shape: tuple[int, int, int]
    table: LabelTable

    def present(self) -> tuple[str, ...]:
        """Short names of the tissues that have a surface."""
        found = set(np.unique(self.sides).tolist())
        return tuple(x.name for x in self.table.labels[1:] if x.id in found)

    def of(self, *names: str) -> Int32[np.ndarray, "s 3"]:
        """The closed surface of the union of the named tissues: its triangles, normals outwards."""
        inside = np.isin(self.sides, self.table.ids_of(names))
        out, into = (inside[:, 0] & ~inside[:, 1]), (inside[:, 1] & ~inside[:, 0])
        return np.concatenate([self.triangles[out], self.triangles[into][:, ::-1]])

    def part(self, *names: str) -> Surface:
        """The surface of the named tissues only; what is around them becomes background."""
        kept = np.isin(self.sides, self.table.ids_of(names))
        sides = np.where(kept, self.sides, 0)
        own = kept.any(axis=1)
        turned = (sides[:, 0] == 0)[own]
        triangles = np.where(turned[:, None], self.triangles[own][:, ::-1], self.triangles[own])
        used, index = np.unique(triangles, return_inverse=True)
        return replace(
            self,
            vertices=self.vertices[used],
            triangles=index.reshape(-1, 3).astype(np.int32),
            sides=np.where(turned[:, None], sides[own][:, ::-1], sides[own]).astype(np.int32),
            across=np.where(turned, -self.across[own], self.across[own]).astype(np.int8),
        )

    def volume_ml(self, *names: str) -> float:
        """Volume that the surface of the named tissues encloses, by the divergence theorem."""
        return float(_cones(self._centred, self.of(*names)).sum()) / 1000.0

    def cut(self) -> Bool[np.ndarray, " t"]:
        """Triangles on the label map's rim, where it cuts through a tissue."""
        into = np.linalg.inv(self.affine)
        voxels = self.vertices @ into[:3, :3].T + into[:3, 3]
        found = np.zeros(len(self.triangles), dtype=bool)
        for rim in (np.full(3, -0.5), np.array(self.shape) - 0.5):
            on_rim = np.abs(voxels[self.triangles] - rim) < 1e-6
            found |= np.any(np.all(on_rim, axis=1), axis=1)
        return found

    @cached_property
    def _centred(self) -> Float64[np.ndarray, "v 3"]:
        """Vertices around 0, where the divergence theorem loses no digits."""
        return self.vertices - self.vertices.mean(axis=0) if len(self.vertices) else self.vertices


def _cones(vertices: np.ndarray, triangles: np.ndarray) -> Float64[np.ndarray, " t"]:
    """Signed volumes of the tetrahedra from 0 to each triangle."""
    a, b, c = (vertices[triangles[:, n]] for n in range(3))
    return np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0


def surface_of(label_map: LabelMap) -> Surface:
    """The surface of a label map from its voxels only: as smooth as they allow, volumes those of the voxels.

    The vertices minimise the surface's bending within their cells, so that every voxel's centre stays inside
    its own tissue; then each label's border moves along its normals by a bias of the label's own until all
    volumes are those of the voxels.
    """
    return surface_with(label_map, lambda _, relaxed: relaxed)


def surface_with(label_map: LabelMap, move: Callable[[Any, Points], Points]) -> Surface:
    """The surface whose vertices (voxels) are where `move` puts those that a kernel's mesher has relaxed.

    Several vertices in one cell may get into each other's way. Around such a cell they stay as relaxed; if
    that is not enough one vertex has to do there: the tissue touches itself, which the proof reports, but
    nothing crosses.
    """
    if not label_map.array.any():
        raise AnatomicaError("the label map has no tissue, so there is no surface to make")
    if len(label_map.table) > MOST_LABELS:
        raise AnatomicaError(
            f"the label map's table has {len(label_map.table)} labels, a mesh at most {MOST_LABELS}; map "
            "them to fewer tissues with --anatomy and --labels"
        )
    labels = np.ascontiguousarray(label_map.table.index[label_map.array], dtype=np.uint8)
    spacing = tuple(label_map.spacing_mm.tolist())
    pinned: set[int] = set()
    left: set[int] = set()
    while True:
        mesher = _kernel.Mesher(labels, sorted(pinned))
        relaxed = mesher.relax(mesher.start, ROUNDS, ROUNDS)
        moved = move(mesher, relaxed)
        while True:
            around = _around(mesher.start, left, label_map.shape)
            points = np.where(around[:, None], relaxed, moved)
            *made, tangled = mesher.triangulate(points, spacing, CORRECTIONS)
            if moved is relaxed or left.issuperset(tangled):
                break
            left.update(tangled)
        if not tangled:
            return _in_mm(label_map, *made)
        pinned.update(tangled)


def _around(start: Points, cells: set[int], shape: tuple[int, int, int]) -> Bool[np.ndarray, " p"]:
    """Vertices that start in some of the cells (numbers of the kernel's grid) or in cells beside them."""
    if not cells:
        return np.zeros(len(start), dtype=bool)
    size = np.array(shape) + 1
    centres = np.stack(np.unravel_index(sorted(cells), size), axis=1) - 0.5
    return np.asarray(KDTree(centres).query(start, p=np.inf)[0]) < BESIDE


def _in_mm(
    label_map: LabelMap,
    points: Points,
    triangles: Int32[np.ndarray, "t 3"],
    between: UInt8[np.ndarray, "t 2"],
    axis: Int8[np.ndarray, " t"],
) -> Surface:
    """What the kernel made, with label ids, background outside, normals outwards in the label map's frame."""
    lattice = np.round(points.astype(np.float64) * LATTICE) / LATTICE
    vertices = lattice @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
    turned = between[:, 0] < between[:, 1]
    ids = np.array(label_map.table.ids, dtype=np.int32)
    sides = ids[np.where(turned[:, None], between[:, ::-1], between)]
    mirrored = bool(np.linalg.det(label_map.affine[:3, :3]) < 0)
    triangles = np.where((turned ^ mirrored)[:, None], triangles[:, ::-1], triangles)
    across = np.where(axis < 3, axis + 1, 0) * np.where(turned, -1, 1)
    return Surface(
        np.ascontiguousarray(vertices),
        np.ascontiguousarray(triangles, dtype=np.int32),
        np.ascontiguousarray(sides, dtype=np.int32),
        across.astype(np.int8),
        label_map.affine.astype(np.float64),
        label_map.shape,
        label_map.table,
    )
