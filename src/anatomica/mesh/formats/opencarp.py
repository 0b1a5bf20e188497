"""openCARP: points in micrometres (.pts), tetrahedra with a region (.elem), fibre directions (.lon)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float64

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
    with paths[0].open("w", encoding="ascii") as file:
        file.write(f"{len(mesh.vertices)}\n")
        np.savetxt(file, mesh.vertices * MICROMETRES, fmt="%.6f")
    with paths[1].open("w", encoding="ascii") as file:
        file.write(f"{len(mesh.tetrahedra)}\n")
        np.savetxt(file, np.column_stack([mesh.tetrahedra, mesh.material]), fmt="Tt %d %d %d %d %d")
    directions = np.tile([1.0, 0.0, 0.0], (len(mesh.tetrahedra), 1)) if fibres is None else fibres
    with paths[2].open("w", encoding="ascii") as file:
        file.write("1\n")
        np.savetxt(file, directions, fmt="%.6f")
    return paths
