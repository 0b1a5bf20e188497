"""Files that other programs load. All points are RAS mm, except openCARP's, which are micrometres."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from anatomica.anatomy.labels import LabelTable
from anatomica.mesh.formats.by_meshio import write_by_meshio
from anatomica.mesh.formats.febio import write_febio
from anatomica.mesh.formats.gltf import write_gltf
from anatomica.mesh.formats.names import plain_names
from anatomica.mesh.formats.opencarp import write_opencarp
from anatomica.mesh.formats.ply import write_ply
from anatomica.mesh.formats.simvascular import write_simvascular
from anatomica.mesh.formats.stl import write_stl
from anatomica.mesh.formats.vtk_xml import write_vtp, write_vtu
from anatomica.mesh.surface import Surface
from anatomica.mesh.tetrahedra import Tetrahedra

SurfaceKind = Literal["stl", "ply", "vtp", "gltf"]
VolumeKind = Literal["vtu", "xdmf", "inp", "msh", "opencarp", "febio", "simvascular"]
SURFACES: tuple[str, ...] = get_args(SurfaceKind)
VOLUMES: tuple[str, ...] = get_args(VolumeKind)


def write_surface(folder: Path, name: str, surface: Surface, kind: SurfaceKind) -> list[Path]:
    """Write a surface as `name` with the kind's ending; one file per tissue for STL, which knows no
    tissues."""
    if kind == "stl":
        plain = plain_names(surface.table, surface.present())
        paths = {tissue: folder / f"{name}-{plain[tissue]}.stl" for tissue in plain}
        for tissue, path in paths.items():
            write_stl(path, surface.vertices, surface.of(tissue))
        return list(paths.values())
    path = folder / f"{name}.{'glb' if kind == 'gltf' else kind}"
    if kind == "ply":
        write_ply(path, surface)
    elif kind == "gltf":
        write_gltf(path, surface)
    else:
        inside, outside = np.ascontiguousarray(surface.sides.T)
        cells = {"inside": inside, "outside": outside}
        write_vtp(path, surface.vertices, surface.triangles, (), None, cells)
    return [path]


def write_volume(folder: Path, name: str, mesh: Tetrahedra, surface: Surface, kind: VolumeKind) -> list[Path]:
    """Write tetrahedra as `name` with the kind's ending; SimVascular's are a folder."""
    if kind == "opencarp":
        return write_opencarp(folder / name, mesh)
    if kind == "simvascular":
        write_simvascular(folder / f"{name}-simvascular", mesh, surface)
        return [folder / f"{name}-simvascular"]
    path = folder / f"{name}.{'feb' if kind == 'febio' else kind}"
    if kind == "febio":
        write_febio(path, mesh)
    elif kind == "vtu":
        write_vtu(path, mesh.vertices, mesh.tetrahedra, None, {"material": mesh.material})
    else:
        return write_by_meshio(path, mesh, kind)
    return [path]


def materials(table: LabelTable, present: tuple[str, ...]) -> dict[str, Any]:
    """What the numbers in a file mean, and in which space and unit its points are, for the side file."""
    named = [
        {"id": x.id, "name": x.name, "full_name": x.full_name, "colour": list(x.colour)}
        for x in table.labels
        if x.name in present
    ]
    return {"space": "RAS", "unit": "mm", "outside": 0, "materials": named}
