"""SimVascular's `mesh-complete` folder: the volume, its outside, and each face of it as a file of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int32
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from anatomica.mesh.formats.vtk_xml import write_vtp, write_vtu
from anatomica.mesh.surface import Surface
from anatomica.mesh.tetrahedra import Tetrahedra

NEAR_VOXELS = 0.3
"""A face is part of a cut through a vessel if all its corners are this near to the label map's rim."""


def write_simvascular(folder: Path, mesh: Tetrahedra, surface: Surface) -> dict[str, int]:
    """Write the folder; returns the faces by name with their ModelFaceID.

    `wall` is where tissue meets the background, `cap_1`, `cap_2`, ... are the flat cuts at the rim of the
    label map, and a face between two of the mesh's tissues is no face of the model. Lengths are mm.
    """
    outer = folder / "mesh-surfaces"
    outer.mkdir(parents=True, exist_ok=True)
    corners, sides, owner = mesh.faces()
    outside = sides[:, 1] == 0
    corners, owner = corners[outside], owner[outside]
    face = _faces(mesh.vertices, corners, surface)
    names = {"wall": 1} | {f"cap_{n - 1}": n for n in range(2, int(face.max()) + 1)}
    node = np.arange(1, len(mesh.vertices) + 1, dtype=np.int32)
    element = np.arange(1, len(mesh.tetrahedra) + 1, dtype=np.int32)
    write_vtu(
        folder / "mesh-complete.mesh.vtu",
        mesh.vertices,
        mesh.tetrahedra,
        {"GlobalNodeID": node},
        {"GlobalElementID": element, "ModelRegionID": mesh.material},
    )

    def write(path: Path, chosen: np.ndarray) -> None:
        used, index = np.unique(corners[chosen], return_inverse=True)
        cells = {"GlobalElementID": element[owner[chosen]], "ModelFaceID": face[chosen]}
        triangles = index.reshape(-1, 3).astype(np.int32)
        write_vtp(path, mesh.vertices[used], triangles, (), {"GlobalNodeID": node[used]}, cells)

    write(folder / "mesh-complete.exterior.vtp", np.ones(len(face), dtype=bool))
    write(folder / "walls_combined.vtp", face == 1)
    for name, number in names.items():
        write(outer / f"{name}.vtp", face == number)
    return names


def _faces(
    vertices: Float64[np.ndarray, "v 3"], corners: Int32[np.ndarray, "f 3"], surface: Surface
) -> Int32[np.ndarray, " f"]:
    """1 for the wall, 2 and more for the connected pieces of cuts at the label map's rim."""
    into = np.linalg.inv(surface.affine)
    voxels = vertices @ into[:3, :3].T + into[:3, 3]
    face = np.ones(len(corners), dtype=np.int32)
    for axis in range(3):
        for rim in (-0.5, surface.shape[axis] - 0.5):
            cut = np.flatnonzero((np.abs(voxels[corners, axis] - rim) < NEAR_VOXELS).all(axis=1))
            if len(cut):
                face[cut] = face.max() + 1 + _pieces(corners[cut])
    return face


def _pieces(corners: np.ndarray) -> np.ndarray:
    """The connected piece of each of some triangles."""
    a, b = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]]]).T
    size = int(corners.max()) + 1
    graph = coo_matrix((np.ones(len(a), dtype=bool), (a, b)), shape=(size, size))
    return np.unique(connected_components(graph, directed=False)[1][corners[:, 0]], return_inverse=True)[1]
