"""Tetrahedra in the files that meshio writes: XDMF, Abaqus (.inp) and Gmsh's .msh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from anatomica.errors import AnatomicaError
from anatomica.mesh.tetrahedra import Tetrahedra


def write_by_meshio(path: Path, mesh: Tetrahedra, kind: str) -> None:
    """`kind` is xdmf, inp or msh. Materials are label ids: a cell array, element sets, physical groups."""
    try:
        import h5py  # noqa: F401  what meshio writes XDMF with
        import meshio
    except ImportError as error:
        raise AnatomicaError(f".{kind} needs {error.name}: pip install 'anatomica[mesh]'") from None
    names = {name: mesh.table.id_of(name) for name in mesh.present()}
    cells: Any = [("tetra", mesh.tetrahedra)]
    if kind == "xdmf":
        # The arrays go into an .h5 beside it, as FEniCS reads them.
        data: Any = {"material": [mesh.material]}
        made = meshio.Mesh(mesh.vertices, cells, cell_data=data)
        meshio.write(path, made, file_format="xdmf")
    elif kind == "inp":
        sets: Any = {name: [np.flatnonzero(mesh.material == id)] for name, id in names.items()}
        meshio.write(path, meshio.Mesh(mesh.vertices, cells, cell_sets=sets), file_format="abaqus")
    else:
        data: Any = {"gmsh:physical": [mesh.material], "gmsh:geometrical": [mesh.material]}
        groups = {name: np.array([id, 3]) for name, id in names.items()}
        made = meshio.Mesh(mesh.vertices, cells, cell_data=data, field_data=groups)
        meshio.write(path, made, file_format="gmsh22", binary=False)
