"""openCARP: points in micrometres (.pts), tetrahedra with a region (.elem), fibre directions (.lon)."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from anatomica.files import write_together
from anatomica.mesh.tetrahedra import Tetrahedra

MICROMETRES = 1000.0
"""openCARP's unit of length, in mm^-1."""


def write_opencarp(
    stem: Path, mesh: Tetrahedra, fibres: Float64[np.ndarray, "m 3"] | None = None
) -> list[Path]:
    """`stem`.pts, .elem and .lon. Regions are label ids.

    Without `fibres` every direction is (1, 0, 0): the mesh says nothing about fibres, and with equal
    conductivities in all directions openCARP does not use them.
    """
    paths = [stem.with_name(stem.name + suffix) for suffix in (".pts", ".elem", ".lon")]
    directions = np.tile([1.0, 0.0, 0.0], (len(mesh.tetrahedra), 1)) if fibres is None else fibres
    elements = np.column_stack([mesh.tetrahedra, mesh.material])
    tables = (
        (len(mesh.vertices), mesh.vertices * MICROMETRES, "%.6f"),
        (len(mesh.tetrahedra), elements, "Tt %d %d %d %d %d"),
        (1, directions, "%.6f"),
    )
    write_together({path: _lines(*table) for path, table in zip(paths, tables, strict=True)})
    return paths


def _lines(first: int, rows: np.ndarray, form: str) -> bytes:
    """A count, then one line per row."""
    text = io.StringIO()
    text.write(f"{first}\n")
    np.savetxt(text, rows, fmt=form)
    return text.getvalue().encode("ascii")
