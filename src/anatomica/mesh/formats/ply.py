"""Binary PLY: the whole surface, each face with its two tissues and the colour of the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from anatomica.files import write_atomic
from anatomica.mesh.formats.names import plain_names
from anatomica.mesh.surface import Surface

_FACE = np.dtype(
    [("count", "u1"), ("corners", "<i4", 3), ("inside", "<i4"), ("outside", "<i4"), ("colour", "u1", 3)]
)


def write_ply(path: Path, surface: Surface) -> None:
    """RAS mm in double precision; `inside` and `outside` are label ids, named in comments."""
    present = plain_names(surface.table, surface.present())
    names = [f"comment label {surface.table.id_of(name)} {plain}" for name, plain in present.items()]
    header = "\n".join(
        [
            "ply",
            "format binary_little_endian 1.0",
            "comment mm SPACE=RAS",
            *names,
            f"element vertex {len(surface.vertices)}",
            *(f"property double {axis}" for axis in "xyz"),
            f"element face {len(surface.triangles)}",
            "property list uchar int vertex_indices",
            "property int inside",
            "property int outside",
            *(f"property uchar {channel}" for channel in ("red", "green", "blue")),
            "end_header\n",
        ]
    )
    palette = np.zeros((max(surface.table.ids) + 1, 3), dtype=np.uint8)
    for x in surface.table.labels:
        palette[x.id] = x.colour
    faces = np.zeros(len(surface.triangles), dtype=_FACE)
    faces["count"], faces["corners"] = 3, surface.triangles
    faces["inside"], faces["outside"] = surface.sides.T
    faces["colour"] = palette[surface.sides[:, 0]]
    data = surface.vertices.astype("<f8").tobytes() + faces.tobytes()
    write_atomic(path, header.encode("ascii", "replace") + data)
