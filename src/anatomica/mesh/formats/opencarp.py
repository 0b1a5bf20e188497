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
    texts = (
        _lines(len(mesh.vertices), mesh.vertices * MICROMETRES, "%.6f"),
        _lines(len(elements), elements, "Tt %d %d %d %d %d"),
        _lines(1, directions, "%.6f"),  # one direction for each element
    )
    write_together(dict(zip(paths, texts, strict=True)))
    return paths


def _lines(first: int, rows: np.ndarray, form: str) -> bytes:
    text = io.BytesIO()
    text.write(f"{first}\n".encode())
    np.savetxt(text, rows, fmt=form)
    return text.getvalue()
