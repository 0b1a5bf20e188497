"""Tetrahedra with material tags that fill a conforming surface, by fTetWild.

fTetWild (Hu et al. 2020) fills the whole box around the surface and keeps the surface's triangles within a
tolerance as faces of tetrahedra. Nothing is filtered out there, because its own filter loses tetrahedra
between layers; each tetrahedron gets the label in which its centre is, by winding numbers, and the
background is dropped here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int32
from scipy.spatial import KDTree

from anatomica import _kernel  # pyright: ignore[reportAttributeAccessIssue]
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError
from anatomica.mesh.balance import balanced
from anatomica.mesh.surface import Surface
from anatomica.mesh.tetwild import Made, run

FACES = ((1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1))
"""Corners of a tetrahedron's faces, each opposite to one corner, normals outwards if its volume is
positive."""
LONGEST_MM = 1000.0
"""Of an edge; no anatomy is longer."""
MOST_TETRAHEDRA = 2e7
"""Of one mesh; a heart with edges of 1 mm has about 5 million, and fTetWild takes 1 kB or more for each."""


@dataclass(frozen=True)
class TetOptions:
    """How fine and how true. Lengths in mm; what is not given comes from the label map's voxel edge.

    `edge_mm` is the edge length to aim at (default 3 voxels), `tolerance_mm` how far the surface may move
    (default 0.15 voxels). Near the tissues `fine` the edges are `fine_edge_mm` (default half of `edge_mm`).
    Optimisation ends when the worst tetrahedron has the energy `energy` (AMIPS, 3 for a regular one) or
    after `rounds`.
    """

    edge_mm: float | None = None
    tolerance_mm: float | None = None
    fine: tuple[str, ...] = ()
    fine_edge_mm: float | None = None
    energy: float = 10.0
    rounds: int = 80
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("edge_mm", "tolerance_mm", "fine_edge_mm"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= LONGEST_MM:
                raise AnatomicaError(f"{name} is above 0 and at most {LONGEST_MM:g} mm, not {value:g}")
        if self.fine_edge_mm is not None and not self.fine:
            raise AnatomicaError("fine_edge_mm is the edge length near a tissue: name the tissue (--fine)")


@dataclass(frozen=True, eq=False)
class Tetrahedra:
    """Tetrahedra in RAS mm, all of positive volume; `material` is the label id of each. Tissues share the
    faces between them."""

    vertices: Float64[np.ndarray, "v 3"]
    tetrahedra: Int32[np.ndarray, "m 4"]
    material: Int32[np.ndarray, " m"]
    table: LabelTable

    def present(self) -> tuple[str, ...]:
        found = set(np.unique(self.material).tolist())
        return tuple(x.name for x in self.table.labels[1:] if x.id in found)

    def of(self, *names: str) -> Tetrahedra:
        """The named tissues only, with the vertices that they use."""
        kept = np.isin(self.material, self.table.ids_of(names))
        return _compact(self.vertices, self.tetrahedra[kept], self.material[kept], self.table)

    def volumes_mm3(self) -> Float64[np.ndarray, " m"]:
        return volumes(self.vertices, self.tetrahedra)

    def volume_ml(self, *names: str) -> float:
        chosen = np.isin(self.material, self.table.ids_of(names))
        return float(self.volumes_mm3()[chosen].sum()) / 1000.0

    def faces(self) -> tuple[Int32[np.ndarray, "f 3"], Int32[np.ndarray, "f 2"], Int32[np.ndarray, " f"]]:
        """Faces where the material changes: corners, the label ids that the normal points out of and into
        (0: the outside), and the tetrahedron that each is the outer face of."""
        corners = self.tetrahedra[:, FACES].reshape(-1, 3)
        owner = np.repeat(np.arange(len(self.tetrahedra)), 4)
        order, first, count = _grouped(corners)
        one, two = order[first], order[np.minimum(first + 1, len(order) - 1)]
        inner = count == 2
        a = self.material[owner[one]]
        b = np.where(inner, self.material[owner[two]], 0)
        kept = a != b
        # Out of the later label of the table into the earlier, as the surface has it.
        rank = self.table.index
        swap = rank[a] < rank[b]
        face = np.where(swap, two, one)[kept]
        sides = np.where(swap[:, None], np.stack([b, a], 1), np.stack([a, b], 1))[kept]
        return corners[face], sides.astype(np.int32), owner[face].astype(np.int32)


def _grouped(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Faces with the same corners side by side: order, where each group begins, how large it is."""
    key = np.sort(corners, axis=1).astype(np.int64)
    size = int(key.max()) + 1
    code = (key[:, 0] * size + key[:, 1]) * size + key[:, 2] if size < 2_000_000 else None
    if code is None:
        code = np.unique(key, axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(code, kind="stable")
    _, first, count = np.unique(code[order], return_index=True, return_counts=True)
    return order, first, count


def tetrahedralize(
    surface: Surface, options: TetOptions = TetOptions(), tick: Callable[[float], None] | None = None
) -> tuple[Tetrahedra, Made]:
    """Fill a surface. Returns the tetrahedra of all tissues and what fTetWild made before the background
    went."""
    voxel = float(np.linalg.norm(surface.affine[:3, :3], axis=0).min())
    edge = options.edge_mm or 3.0 * voxel
    tolerance = options.tolerance_mm or 0.15 * voxel
    if not 0 < tolerance < edge:
        raise AnatomicaError(
            f"the tolerance of {tolerance:g} mm must be above 0 and below the edge length of {edge:g} mm"
        )
    _refuse_too_fine(surface, options, edge)
    diagonal = float(np.linalg.norm(np.ptp(surface.vertices, axis=0)))
    made = run(
        {
            "vertices": surface.vertices,
            "faces": surface.triangles,
            "edge_length_abs": edge,
            "epsilon": tolerance / diagonal,
            "stop_energy": options.energy,
            "num_opt_iter": options.rounds,
            "num_threads": options.threads,
            "disable_filtering": True,
            "vtk_ordering": True,
            "quiet": True,
            **(_sizes(surface, options, edge) if options.fine else {}),
        },
        tick,
    )
    material = labels_at(surface, made.vertices[made.tetrahedra].mean(axis=1))
    kept = material != 0
    mesh = _compact(made.vertices, made.tetrahedra[kept], material[kept], surface.table)
    return _balanced(mesh, surface), made


def _refuse_too_fine(surface: Surface, options: TetOptions, edge: float) -> None:
    """An error if the lengths ask for more tetrahedra than a machine holds; a regular one is edge^3 / 8.5."""
    fine = options.fine_edge_mm or 0.5 * edge
    if options.fine and fine >= edge:
        raise AnatomicaError(f"the fine edges of {fine:g} mm must be shorter than the others, {edge:g} mm")
    box = float(np.prod(np.ptp(surface.vertices, axis=0)))  # fTetWild fills all of it
    near = 1000.0 * surface.volume_ml(*options.fine) if options.fine else 0.0
    for what, length, volume in (("edges", edge, box), ("fine edges", fine, near)):
        count = 8.5 * volume / length**3
        if count > MOST_TETRAHEDRA:
            least = (8.5 * volume / MOST_TETRAHEDRA) ** (1 / 3)
            raise AnatomicaError(
                f"{what} of {length:g} mm would need about {count:.2g} tetrahedra; at most "
                f"{MOST_TETRAHEDRA:.0g} are made, with edges of {least:.2g} mm"
            )


def _balanced(mesh: Tetrahedra, surface: Surface) -> Tetrahedra:
    """Volumes as the surface's, unless a tetrahedron would lose half of its own; then as near as that
    allows."""
    names = mesh.present()
    wanted = {surface.table.id_of(name): 1000.0 * surface.volume_ml(name) for name in names}
    corners, sides, _ = mesh.faces()
    target = balanced(mesh.vertices, corners, sides, wanted)
    before = mesh.volumes_mm3()
    for share in (1.0, 0.5, 0.25, 0.0):
        vertices = mesh.vertices + share * (target - mesh.vertices)
        if (volumes(vertices, mesh.tetrahedra) > 0.5 * before).all():
            break
    return replace(mesh, vertices=vertices)


def labels_at(surface: Surface, points: Float64[np.ndarray, "p 3"]) -> Int32[np.ndarray, " p"]:
    """The label id at points in mm: the one around which its surface winds."""
    sides = np.ascontiguousarray(surface.table.index[surface.sides], dtype=np.uint8)
    triangles = np.ascontiguousarray(surface.triangles)
    found = _kernel.labels_at(np.ascontiguousarray(points), surface.vertices, triangles, sides)
    if (found < 0).any():
        raise AnatomicaError("the surface is not closed, so it does not say which tissue a point is in")
    return np.array(surface.table.ids, dtype=np.int32)[found]


def volumes(
    vertices: Float64[np.ndarray, "v 3"], tetrahedra: Int32[np.ndarray, "m 4"]
) -> Float64[np.ndarray, " m"]:
    """Signed volumes: positive if the fourth corner is on the side that the first three's normal points
    to."""
    a, b, c, d = (vertices[tetrahedra[:, n]] for n in range(4))
    return np.einsum("ij,ij->i", b - a, np.cross(c - a, d - a)) / 6.0


def _compact(
    vertices: np.ndarray, tetrahedra: np.ndarray, material: np.ndarray, table: LabelTable
) -> Tetrahedra:
    used, index = np.unique(tetrahedra, return_inverse=True)
    corners = index.reshape(-1, 4).astype(np.int32)
    return Tetrahedra(vertices[used], corners, material.astype(np.int32), table)


GRID = 24
"""Cells along the longest edge of the grid that carries the sizes."""


def _sizes(surface: Surface, options: TetOptions, edge: float) -> dict[str, np.ndarray]:
    """A coarse grid of tetrahedra with the wanted edge length at its points: the fine one inside the fine
    tissues, growing to the coarse one over four coarse edges around them."""
    for name in options.fine:
        if surface.table[name].name not in surface.present():
            there = ", ".join(surface.present())
            raise AnatomicaError(f"--fine {name}: the tissue does not occur; there are: {there}")
    fine = options.fine_edge_mm or edge / 2
    low, high = surface.vertices.min(axis=0) - edge, surface.vertices.max(axis=0) + edge
    counts = np.maximum(2, np.ceil(GRID * (high - low) / (high - low).max()).astype(int))
    lines = [np.linspace(low[k], high[k], counts[k] + 1) for k in range(3)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, 3)
    inside = np.isin(labels_at(surface, points), surface.table.ids_of(options.fine))
    away = KDTree(surface.vertices[np.unique(surface.of(*options.fine))]).query(points)[0]
    share = np.clip(np.where(inside, 0.0, away) / (4 * edge), 0.0, 1.0)
    return {"bg_vertices": points, "bg_tets": _grid_tets(counts), "bg_values": fine + share * (edge - fine)}


def _grid_tets(counts: np.ndarray) -> Int32[np.ndarray, "m 4"]:
    """Six tetrahedra for each cell of a grid, along its diagonal (Kuhn's subdivision)."""
    _, ny, nz = (int(n) + 1 for n in counts)
    x, y, z = (a.ravel() for a in np.meshgrid(*[np.arange(n) for n in counts], indexing="ij"))
    first = (x * ny + y) * nz + z
    steps = np.array([ny * nz, nz, 1])
    tets = []
    for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2), (2, 1, 0), (0, 2, 1)):
        way = np.cumsum([0, steps[a], steps[b], steps[c]])
        turned = (a, b, c) in ((1, 0, 2), (2, 1, 0), (0, 2, 1))
        tets.append(first[:, None] + (way[[0, 2, 1, 3]] if turned else way))
    return np.concatenate(tets).astype(np.int32)
