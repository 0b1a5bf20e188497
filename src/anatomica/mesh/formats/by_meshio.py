"""Tetrahedra in the files that meshio writes: XDMF, Abaqus (.inp) and Gmsh's .msh."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from anatomica.errors import AnatomicaError
from anatomica.files import write_together
from anatomica.mesh.formats.names import plain_names
from anatomica.mesh.tetrahedra import Tetrahedra


def write_by_meshio(path: Path, mesh: Tetrahedra, kind: str) -> list[Path]:
    """`kind` is xdmf, inp or msh. Materials are label ids: a cell array, element sets, physical groups.

    XDMF keeps its arrays in an .h5 beside it, as FEniCS reads them. The .msh is version 2.2 in text, which
    every reader knows.
    """
    try:
        import h5py  # noqa: F401  what meshio writes XDMF with
        import meshio
    except ImportError as error:
        raise AnatomicaError(f".{kind} needs {error.name}: pip install 'anatomica[mesh]'") from None
    cells: Any = [("tetra", mesh.tetrahedra)]
    made = meshio.Mesh(mesh.vertices, cells, **_materials(mesh, kind))
    options: dict[str, Any] = {"xdmf": {}, "inp": {}, "msh": {"binary": False}}[kind]
    form = {"xdmf": "xdmf", "inp": "abaqus", "msh": "gmsh22"}[kind]
    with TemporaryDirectory() as folder:
        meshio.write(Path(folder, path.name), made, file_format=form, **options)
        written = {path.with_name(x.name): x.read_bytes() for x in sorted(Path(folder).iterdir())}
    write_together(written)
    return [path, *(x for x in written if x != path)]


def _materials(mesh: Tetrahedra, kind: str) -> dict[str, Any]:
    """The materials as each format has them, in meshio's words."""
    if kind == "xdmf":
        return {"cell_data": {"material": [mesh.material]}}
    names = plain_names(mesh.table, mesh.present())
    ids = {plain: mesh.table.id_of(name) for name, plain in names.items()}
    if kind == "inp":
        return {"cell_sets": {name: [np.flatnonzero(mesh.material == id)] for name, id in ids.items()}}
    return {
        "cell_data": {"gmsh:physical": [mesh.material], "gmsh:geometrical": [mesh.material]},
        "field_data": {name: np.array([id, 3]) for name, id in ids.items()},
    }
