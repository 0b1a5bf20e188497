"""The proof of a surface: what the label map's certificate says, measured again on the triangles."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from rich.table import Table

from anatomica import _kernel  # pyright: ignore[reportAttributeAccessIssue]
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.homology import Betti, betti_numbers
from anatomica.mesh.surface import Surface
from anatomica.mesh.topology import topology

LARGE_ML = 1.0
"""Tissues above this volume may differ by ALLOWED_LARGE, smaller ones by ALLOWED_SMALL, as shares."""
ALLOWED_LARGE, ALLOWED_SMALL = 0.005, 0.02
MOST_PLACES = 20
"""Of those where a tissue's surface is no manifold, in the proof of a tissue."""


@dataclass(frozen=True)
class TissueProof:
    """One tissue's closed surface beside its voxels.

    `open_edges` are edges whose triangles do not come in pairs of opposite direction; `pinched_edges` and
    `pinched_vertices` are where the surface touches itself (a label map in which two tissues cross diagonally
    allows nothing else); `where_mm` are the first of these places. `betti` is None if the surface is not
    closed.
    """

    name: str
    voxels_ml: float
    mesh_ml: float
    triangles: int
    open_edges: int
    pinched_edges: int
    pinched_vertices: int
    betti: Betti | None
    betti_voxels: Betti
    where_mm: tuple[tuple[float, ...], ...] = ()

    @property
    def volume_error(self) -> float:
        return abs(self.mesh_ml / self.voxels_ml - 1.0)

    @property
    def allowed_error(self) -> float:
        return ALLOWED_LARGE if self.voxels_ml > LARGE_ML else ALLOWED_SMALL

    @property
    def manifold(self) -> bool:
        return self.open_edges == self.pinched_edges == self.pinched_vertices == 0

    @property
    def holds(self) -> bool:
        closed = self.open_edges == 0 and self.betti == self.betti_voxels
        return closed and self.volume_error <= self.allowed_error


@dataclass(frozen=True)
class Proof:
    """The whole surface. `one_sided` counts triangles that have not just two owners: the same label on both
    sides, or another triangle with the same corners; `turned` those that face against their voxels' face;
    `crossings` pairs of triangles that cross or overlap, exactly."""

    tissues: tuple[TissueProof, ...]
    vertices: int
    triangles: int
    one_sided: int
    turned: int
    crossings: int
    smallest_angle_deg: float

    @property
    def holds(self) -> bool:
        """All tissues closed and oriented, with the voxels' volumes and Betti numbers; conforming, nothing
        turned over, nothing crossing. Touching itself is reported, not refused."""
        return not (self.one_sided or self.turned or self.crossings) and all(t.holds for t in self.tissues)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self) | {"holds": self.holds}
        found["tissues"] = [
            asdict(t) | {"volume_error": t.volume_error, "manifold": t.manifold, "holds": t.holds}
            for t in self.tissues
        ]
        return found


def prove(surface: Surface, label_map: LabelMap) -> Proof:
    """Measure a surface against the label map that it was made from."""
    a, b, c = (surface.vertices[surface.triangles[:, n]] for n in range(3))
    sides = surface.sides
    corners = np.unique(np.sort(surface.triangles, axis=1), axis=0)
    return Proof(
        tissues=tuple(_tissue(surface, label_map, name) for name in label_map.present()),
        vertices=len(surface.vertices),
        triangles=len(surface.triangles),
        one_sided=int((sides[:, 0] == sides[:, 1]).sum()) + len(surface.triangles) - len(corners),
        turned=_turned(surface, np.cross(b - a, c - a)),
        crossings=len(crossings(surface)),
        smallest_angle_deg=float(angles_deg(a, b, c).min()),
    )


def _tissue(surface: Surface, label_map: LabelMap, name: str) -> TissueProof:
    triangles = surface.of(name)
    found = topology(surface.vertices, triangles)
    return TissueProof(
        name=name,
        voxels_ml=label_map.volume_ml(name),
        mesh_ml=surface.volume_ml(name),
        triangles=len(triangles),
        open_edges=found.open_edges,
        pinched_edges=found.pinched_edges,
        pinched_vertices=found.pinched_vertices,
        betti=found.betti,
        betti_voxels=betti_numbers(label_map.mask(name)),
        where_mm=tuple(
            tuple(place) for place in surface.vertices[list(found.where[:MOST_PLACES])].round(3).tolist()
        ),
    )


def _turned(surface: Surface, normal: Float64[np.ndarray, "t 3"]) -> int:
    """Triangles whose normal does not point along the way from one voxel to the other."""
    placed = surface.across != 0
    axis = np.abs(surface.across[placed]) - 1
    way = surface.affine[:3, :3].T[axis] * np.sign(surface.across[placed])[:, None]
    return int((np.einsum("ij,ij->i", normal[placed], way) <= 0).sum())


def crossings(surface: Surface):
    """Pairs of triangles (indices) that have more in common than shared corners and edges, (k, 2)."""
    into = np.linalg.inv(surface.affine)
    voxels = surface.vertices @ into[:3, :3].T + into[:3, 3]
    return _kernel.crossings(np.ascontiguousarray(voxels), surface.triangles)


def angles_deg(
    a: Float64[np.ndarray, "t 3"], b: Float64[np.ndarray, "t 3"], c: Float64[np.ndarray, "t 3"]
) -> Float64[np.ndarray, "t 3"]:
    """The triangles' angles at their corners."""

    def between(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        sine = np.linalg.norm(np.cross(u, v), axis=1)
        return np.degrees(np.arctan2(sine, np.einsum("ij,ij->i", u, v)))

    return np.stack([between(b - a, c - a), between(c - b, a - b), between(a - c, b - c)], axis=1)


HEAD = (
    "tissue",
    "voxels mL",
    "mesh mL",
    "error / allowed %",
    "closed",
    "components loops voids",
    "touches itself",
)


def proof_rows(proof: Proof) -> list[list[str]]:
    """One row per tissue under HEAD: what the report shows."""
    return [_row(t) for t in proof.tissues]


def _row(t: TissueProof) -> list[str]:
    betti = "-" if t.betti is None else " ".join(map(str, t.betti))
    if t.betti != t.betti_voxels:
        betti += f" (voxels {' '.join(map(str, t.betti_voxels))})"
    first = ", ".join(f"{x:.1f}" for x in t.where_mm[0]) if t.where_mm else ""
    touches = f"{t.pinched_edges} edges, {t.pinched_vertices} vertices; first at ({first}) mm"
    return [
        t.name,
        f"{t.voxels_ml:.4g}",
        f"{t.mesh_ml:.4g}",
        f"{100 * t.volume_error:.4f} / {100 * t.allowed_error:g}",
        "yes" if t.open_edges == 0 else f"no, {t.open_edges} open edges; first at ({first}) mm",
        betti,
        touches if t.pinched_edges or t.pinched_vertices else "no",
    ]


def proof_sentence(proof: Proof) -> str:
    """The whole surface in one line."""
    return (
        f"{proof.triangles:,} triangles, {proof.vertices:,} vertices; every triangle between two tissues: "
        f"{'yes' if not proof.one_sided else f'no, {proof.one_sided} not'}; turned over: {proof.turned}; "
        f"crossing pairs: {proof.crossings}; smallest angle {proof.smallest_angle_deg:.1f} degrees; "
        f"{'the proof holds' if proof.holds else 'THE PROOF DOES NOT HOLD'}"
    )


def proof_table(proof: Proof) -> Table:
    """For the terminal."""
    table = Table(title="surface against label map", caption=proof_sentence(proof))
    for name in HEAD:
        table.add_column(name, justify="left" if name == "tissue" else "right")
    for t, row in zip(proof.tissues, proof_rows(proof), strict=True):
        table.add_row(*row, style=None if t.holds else "red")
    return table


def proof_html(proof: Proof) -> str:
    """For a page: one table and the sentence."""
    cells = [[html.escape(x) for x in row] for row in (HEAD, *proof_rows(proof))]
    head = "".join(f"<th>{x}</th>" for x in cells[0])
    body = "".join("<tr>" + "".join(f"<td>{x}</td>" for x in row) + "</tr>" for row in cells[1:])
    return f"<table><tr>{head}</tr>{body}</table><p>{html.escape(proof_sentence(proof))}</p>"
