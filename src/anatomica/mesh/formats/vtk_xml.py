"""VTK's XML files: polygons and lines (.vtp), tetrahedra (.vtu), with arrays on points and cells.

Written here and not by meshio, which knows no .vtp and cannot say in which space the points are: in a .vtp
a field `SPACE` tells 3D Slicer that they are RAS. A .vtu has none: meshio, with which finite-element programs
read it, refuses files with a field of text.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from jaxtyping import Float64, Int

from anatomica.files import write_text

Arrays = Mapping[str, np.ndarray]
_TYPES = {"f8": "Float64", "f4": "Float32", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}
_TETRA = 10
_RAS = " ".join(str(c) for c in b"RAS\0")
_SPACE = (
    '<FieldData><DataArray type="String" Name="SPACE" NumberOfTuples="1" format="ascii">'
    f"{_RAS}</DataArray></FieldData>\n"
)


def write_vtp(
    path: Path,
    points: Float64[np.ndarray, "v 3"],
    triangles: Int[np.ndarray, "t 3"] | None = None,
    lines: Sequence[np.ndarray] = (),
    point_data: Arrays | None = None,
    cell_data: Arrays | None = None,
) -> None:
    """PolyData: triangles, or lines given by the indices of their points. Cell arrays have one row per
    line, then one per triangle, as VTK counts cells."""
    polys = (
        []
        if triangles is None
        else [(np.ascontiguousarray(triangles).ravel(), 3 * np.arange(1, len(triangles) + 1))]
    )
    ends = np.cumsum([len(line) for line in lines])
    drawn = [(np.concatenate(lines), ends)] if lines else []
    counts = f'NumberOfVerts="0" NumberOfStrips="0" NumberOfLines="{len(lines)}" '
    counts += f'NumberOfPolys="{0 if triangles is None else len(triangles)}"'
    body = [
        _arrays("PointData", point_data),
        _arrays("CellData", cell_data),
        _points(points),
        *(_connections("Lines", *x) for x in drawn),
        *(_connections("Polys", *x) for x in polys),
    ]
    _write(path, "PolyData", f'NumberOfPoints="{len(points)}" {counts}', body, _SPACE)


def write_vtu(
    path: Path,
    points: Float64[np.ndarray, "v 3"],
    tetrahedra: Int[np.ndarray, "m 4"],
    point_data: Arrays | None = None,
    cell_data: Arrays | None = None,
) -> None:
    """UnstructuredGrid of tetrahedra."""
    offsets = 4 * np.arange(1, len(tetrahedra) + 1)
    types = _array("types", np.full(len(tetrahedra), _TETRA, dtype=np.uint8))
    cells = _connections("Cells", np.ascontiguousarray(tetrahedra).ravel(), offsets, types)
    body = [_arrays("PointData", point_data), _arrays("CellData", cell_data), _points(points), cells]
    counts = f'NumberOfPoints="{len(points)}" NumberOfCells="{len(tetrahedra)}"'
    _write(path, "UnstructuredGrid", counts, body)


def _write(path: Path, kind: str, counts: str, body: Sequence[str], field: str = "") -> None:
    text = (
        f'<?xml version="1.0"?>\n<VTKFile type="{kind}" version="1.0" byte_order="LittleEndian" '
        f'header_type="UInt64">\n<{kind}>\n{field}<Piece {counts}>\n'
        + "\n".join(body)
        + f"\n</Piece>\n</{kind}>\n</VTKFile>\n"
    )
    write_text(path, text)


def _points(points: np.ndarray) -> str:
    return f"<Points>{_array('Points', np.asarray(points, dtype='<f8'))}</Points>"


def _arrays(name: str, arrays: Arrays | None) -> str:
    return f"<{name}>{''.join(_array(key, value) for key, value in (arrays or {}).items())}</{name}>"


def _connections(name: str, corners: np.ndarray, ends: np.ndarray, more: str = "") -> str:
    arrays = _array("connectivity", corners.astype(np.int64)) + _array("offsets", ends.astype(np.int64))
    return f"<{name}>{arrays}{more}</{name}>"


def _array(name: str, values: np.ndarray) -> str:
    """One array, base64 after the number of its bytes."""
    values = np.ascontiguousarray(values)
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    coded = base64.b64encode(np.uint64(len(data)).tobytes() + data).decode("ascii")
    components = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    kind = _TYPES[f"{values.dtype.kind}{values.dtype.itemsize}"]
    return f'<DataArray type="{kind}" Name={quoteattr(name)}{components} format="binary">{coded}</DataArray>'
