"""Surfaces as the page draws them: closed, one per tissue, fine for looking and decimated for dragging."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from anatomica.anatomy.label_map import LabelMap
from anatomica.mesh.surface import Surface, surface_of
from anatomica.studio.frames import encode

CELL = 2.0
"""Edge in voxels of the cells whose vertices are joined for dragging: about a quarter of the triangles."""


def patient_frame(id: str, label_map: LabelMap) -> bytes:
    """A patient for the page: labels by their place in the table, all surfaces, fine and coarse."""
    arrays: dict[str, np.ndarray] = {"labels": label_map.table.index[label_map.array].astype(np.uint8)}
    tissues: list[str] = []
    if label_map.present():
        surface = surface_of(label_map)
        tissues = list(surface.present())
        arrays |= _meshes(surface, tissues, "fine")
        arrays |= _meshes(surface, tissues, "coarse", CELL * float(label_map.spacing_mm.min()))
    return encode({"type": "patient", "patient": id, **_grid(label_map), "tissues": tissues}, arrays)


def step_frame(job: str, seed: int, step: int, label_map: LabelMap) -> bytes:
    """The surface of a prediction while sampling: no labels, and only one mesh of each tissue."""
    tissues, arrays = [], {}
    if label_map.present():
        surface = surface_of(label_map)
        tissues = list(surface.present())
        arrays = _meshes(surface, tissues, "coarse")
    header = {"type": "surface", "job": job, "seed": seed, "step": step, "tissues": tissues}
    return encode(header | _grid(label_map), arrays)


def joined(
    vertices: Float[np.ndarray, "v 3"], triangles: Int[np.ndarray, "t 3"], cell_mm: float
) -> tuple[Float[np.ndarray, "w 3"], Int[np.ndarray, "s 3"]]:
    """Vertex clustering (Rossignac and Borrel 1993): the vertices of each cell become their mean."""
    cells = np.floor(vertices / cell_mm).astype(np.int64)
    _, owner, count = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    owner = owner.reshape(-1)
    means = np.stack([np.bincount(owner, vertices[:, k]) for k in range(3)], -1) / count[:, None]
    found = owner[triangles]
    whole = (found[:, 0] != found[:, 1]) & (found[:, 1] != found[:, 2]) & (found[:, 2] != found[:, 0])
    return means, found[whole]


def _meshes(
    surface: Surface, tissues: list[str], name: str, cell_mm: float | None = None
) -> dict[str, np.ndarray]:
    found = {}
    for tissue in tissues:
        triangles = surface.of(tissue)
        used, index = np.unique(triangles, return_inverse=True)
        vertices, triangles = surface.vertices[used], index.reshape(-1, 3)
        if cell_mm is not None:
            vertices, triangles = joined(vertices, triangles, cell_mm)
        found[f"{name}/{tissue}/vertices"] = vertices.astype(np.float32)
        found[f"{name}/{tissue}/triangles"] = triangles.astype(np.uint32)
    return found


def _grid(label_map: LabelMap) -> dict[str, Any]:
    return {"shape": list(label_map.shape), "affine": label_map.affine.tolist()}
