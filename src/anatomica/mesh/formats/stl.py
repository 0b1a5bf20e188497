"""Binary STL: one closed surface per file, RAS mm, which the header says as 3D Slicer reads it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int

from anatomica.files import write_atomic

HEADER = b"anatomica; mm; SPACE=RAS"
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def write_stl(path: Path, vertices: Float64[np.ndarray, "v 3"], triangles: Int[np.ndarray, "t 3"]) -> None:
    """Triangles with their normals, single precision as the format has it."""
    corners = vertices[triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
    records = np.zeros(len(triangles), dtype=_RECORD)
    records["normal"], records["corners"] = normal, corners
    count = np.uint32(len(triangles)).astype("<u4").tobytes()
    write_atomic(path, HEADER.ljust(80, b" ") + count + records.tobytes())
