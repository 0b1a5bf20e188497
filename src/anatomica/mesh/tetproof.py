"""What is true of tetrahedra: nothing missing, nothing inverted, volumes, and how good their shapes are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64
from rich.table import Table
from scipy.spatial import KDTree

from anatomica.mesh.surface import Surface
from anatomica.mesh.tetrahedra import FACES, Tetrahedra, labels_at
from anatomica.mesh.tetwild import Made

ALLOWED = 0.01
"""Share by which a tissue's volume may differ from that of its surface."""
FLAT_DEG = 5.0
"""Tetrahedra with a dihedral angle below this are counted."""
ALLOWED_FLAT = 0.001
"""The share of them that may be."""
STRAY_VOXELS = 0.5
BINS_DEG = (0, 5, 10, 20, 30, 40, 50, 60, 71)
"""Of the histogram of smallest dihedral angles; a regular tetrahedron has 70.5 degrees."""


@dataclass(frozen=True)
class LayerProof:
    """One tissue. `strays` are tetrahedra whose centre is inside another tissue, by more than
    STRAY_VOXELS."""

    name: str
    surface_ml: float
    mesh_ml: float
    tetrahedra: int
    strays: int

    @property
    def volume_error(self) -> float:
        return abs(self.mesh_ml / self.surface_ml - 1.0)

    @property
    def holds(self) -> bool:
        return self.tetrahedra > 0 and self.strays == 0 and self.volume_error <= ALLOWED


@dataclass(frozen=True)
class TetProof:
    """`missing_faces` are faces of the filled box that only one tetrahedron has and that are not on the
    box: each is the side of a hole. `histogram` counts tetrahedra by smallest dihedral angle, in the bins
    BINS_DEG."""

    layers: tuple[LayerProof, ...]
    vertices: int
    tetrahedra: int
    inverted: int
    missing_faces: int
    smallest_dihedral_deg: float
    flat_share: float
    histogram: tuple[int, ...]
    seconds: float
    cpu_seconds: float
    peak_mb: float

    @property
    def holds(self) -> bool:
        whole = not (self.inverted or self.missing_faces) and self.flat_share <= ALLOWED_FLAT
        return whole and all(x.holds for x in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self) | {"holds": self.holds, "bins_deg": list(BINS_DEG)}
        found["layers"] = [asdict(x) | {"volume_error": x.volume_error} for x in self.layers]
        return found


def prove_tetrahedra(mesh: Tetrahedra, surface: Surface, made: Made) -> TetProof:
    """Measure tetrahedra against the surface that they fill. `made` is all that fTetWild gave."""
    dihedral = smallest_dihedral_deg(mesh)
    strays = _strays(mesh, surface)
    layers = []
    for name in surface.present():
        own = mesh.material == surface.table.id_of(name)
        volume = surface.volume_ml(name)
        layers.append(LayerProof(name, volume, mesh.volume_ml(name), int(own.sum()), int(strays[own].sum())))
    return TetProof(
        layers=tuple(layers),
        vertices=len(mesh.vertices),
        tetrahedra=len(mesh.tetrahedra),
        inverted=int((mesh.volumes_mm3() <= 0).sum()),
        missing_faces=missing_faces(made),
        smallest_dihedral_deg=float(dihedral.min()),
        flat_share=float((dihedral < FLAT_DEG).mean()),
        histogram=tuple(np.histogram(dihedral, BINS_DEG)[0].tolist()),
        seconds=made.seconds,
        cpu_seconds=made.cpu_seconds,
        peak_mb=made.peak_mb,
    )


def _strays(mesh: Tetrahedra, surface: Surface) -> Bool[np.ndarray, " m"]:
    """Tetrahedra whose centre lies in another tissue and not just beside the border."""
    centre = mesh.vertices[mesh.tetrahedra].mean(axis=1)
    strays = labels_at(surface, centre) != mesh.material
    if strays.any():
        corners = surface.vertices[surface.triangles]
        border = KDTree(np.concatenate([corners.reshape(-1, 3), corners.mean(axis=1)]))
        voxel = np.linalg.norm(surface.affine[:3, :3], axis=0).min()
        strays[strays] = border.query(centre[strays])[0] > STRAY_VOXELS * voxel
    return strays


def missing_faces(made: Made) -> int:
    """Faces of one tetrahedron only that do not lie on the box that all of them fill."""
    corners = np.sort(made.tetrahedra[:, FACES].reshape(-1, 3), axis=1)
    face, count = np.unique(corners, axis=0, return_counts=True)
    single = made.vertices[face[count == 1]]
    low, high = made.vertices.min(axis=0), made.vertices.max(axis=0)
    near = 1e-9 * (high - low).max()
    on_box = (np.abs(single - low) < near).all(axis=1) | (np.abs(single - high) < near).all(axis=1)
    wrong = int((count > 2).sum())
    return int((~on_box.any(axis=1)).sum()) + wrong


def smallest_dihedral_deg(mesh: Tetrahedra) -> Float64[np.ndarray, " m"]:
    """The smallest of each tetrahedron's six dihedral angles."""
    p = mesh.vertices[mesh.tetrahedra]
    normals = []
    for a, b, c in FACES:
        n = np.cross(p[:, b] - p[:, a], p[:, c] - p[:, a])
        normals.append(n / np.linalg.norm(n, axis=1, keepdims=True))
    pairs = [(i, j) for i in range(4) for j in range(i)]
    cosine = np.stack([-np.einsum("ij,ij->i", normals[i], normals[j]) for i, j in pairs])
    return np.degrees(np.arccos(np.clip(cosine, -1, 1))).min(axis=0)


def tet_sentence(proof: TetProof) -> str:
    """The whole mesh in one line."""
    return (
        f"{proof.tetrahedra:,} tetrahedra, {proof.vertices:,} vertices; inverted: {proof.inverted}; "
        f"faces at holes: {proof.missing_faces}; smallest dihedral angle "
        f"{proof.smallest_dihedral_deg:.1f} degrees, {100 * proof.flat_share:.3f} % below {FLAT_DEG:g}; "
        f"{proof.seconds / 60:.1f} minutes ({proof.cpu_seconds / 60:.1f} of a core), "
        f"{proof.peak_mb:,.0f} MB; {'the proof holds' if proof.holds else 'THE PROOF DOES NOT HOLD'}"
    )


def tet_table(proof: TetProof) -> Table:
    """For the terminal: one row per tissue, then the histogram of smallest dihedral angles."""
    table = Table(title="tetrahedra against surface", caption=tet_sentence(proof))
    for name in ("tissue", "surface mL", "tetrahedra mL", "error / allowed %", "tetrahedra", "strays"):
        table.add_column(name, justify="left" if name == "tissue" else "right")
    for x in proof.layers:
        error = f"{100 * x.volume_error:.3f} / {100 * ALLOWED:g}"
        row = [x.name, f"{x.surface_ml:.4g}", f"{x.mesh_ml:.4g}", error, f"{x.tetrahedra:,}", str(x.strays)]
        table.add_row(*row, style=None if x.holds else "red")
    return table


def histogram_lines(proof: TetProof) -> list[str]:
    """Smallest dihedral angles, one line per bin."""
    most = max(proof.histogram)
    bins = zip(BINS_DEG, BINS_DEG[1:], proof.histogram, strict=False)
    return [f"{a:2d} to {b:2d} degrees {count:9,d} {'#' * round(40 * count / most)}" for a, b, count in bins]
