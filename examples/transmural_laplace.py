"""How far through the heart's wall: a finite-element run on a mesh that anatomica exported.

A heart is drawn, its left ventricle and what bounds it filled with tetrahedra, and Laplace's equation solved
in the myocardium: 0 on the inner side, 1 on the outer, no flux towards the atrium and the aorta. The solution
is the transmural coordinate from which fibre directions are usually built. It must lie in [0, 1] and not fall
along rays across the wall; the script checks both. The rays are all that start in the middle of a face of the
inner side, along its normal, and leave the wall through its outer side; none is left out. A fall counts if it
is deeper than linear elements can tell (`resolution`).

pip install 'anatomica[mesh,tet]' scikit-fem
python examples/transmural_laplace.py
python examples/transmural_laplace.py results     # the numbers into results/transmural.md as well
"""

import sys
from pathlib import Path
from typing import NamedTuple

import meshio
import numpy as np
from matplotlib.figure import Figure
from scipy.spatial import KDTree
from skfem import Basis, ElementTetP1, MeshTet, condense, solve
from skfem.models.poisson import laplace

from anatomica import Options, generate, load_model, save
from anatomica.evaluate.bench.writing import write_bench
from anatomica.files import write_figure
from anatomica.generation.latent import save_latent
from anatomica.mesh.export import ExportOptions, export
from anatomica.mesh.tetrahedra import TetOptions
from anatomica.prior.zoo import shipped_hash

TISSUES = ("Myo", "LV", "LA", "Ao")
RAYS = 2000
"""The most rays; of more faces every second, third, ... one has a ray."""
STEPS = 10
"""Points along a ray for each edge length."""
FARTHEST_MM = 60.0
"""No wall is as thick, along whatever ray."""
PIXELS = 240
OUTSIDE = 0
ROUNDING = 1e-9
"""A coordinate that falls by less does not fall."""


class Heart(NamedTuple):
    """Tetrahedra in mm, the label id of each, and what the ids are called."""

    points: np.ndarray
    tetrahedra: np.ndarray
    material: np.ndarray
    ids: dict[str, int]


def exported_heart(out: Path, resolution: int, edge_mm: float, wall_edge_mm: float) -> Heart:
    """Draw a heart, export four of its tissues, and read the file as any other program would."""
    model = load_model("cardiac")
    (sample,) = generate(model, seeds=[0], options=Options(resolution=resolution))
    path = out / "heart.nii.gz"
    save(sample.label_map, path)
    save_latent(path, sample, model)  # for vertices on the field's own border
    tet = TetOptions(edge_mm=edge_mm, fine=("Myo",), fine_edge_mm=wall_edge_mm)
    options = ExportOptions(kinds=("vtu",), tissues=TISSUES, tet=tet)
    made = export(path, out, options, find=lambda _: model)
    print(f"exported: {'the proofs hold' if made.holds else 'A PROOF DOES NOT HOLD'}")
    read = meshio.read(out / "heart.vtu")
    material = np.concatenate(read.cell_data["material"])
    ids = {name: model.table.id_of(name) for name in TISSUES}
    return Heart(read.points, read.cells_dict["tetra"], material, ids)


def borders(heart: Heart) -> dict[int, np.ndarray]:
    """The points that the myocardium shares with each other tissue and with the outside, by label id."""
    whole = MeshTet(heart.points.T.copy(), heart.tetrahedra.T.copy())
    # The labels on both sides of each face; the second tetrahedron of a face on the outside is number -1.
    pair, faces = np.append(heart.material, OUTSIDE)[whole.f2t], np.asarray(whole.facets)
    ours = pair == heart.ids["Myo"]
    other = np.where(ours[0], pair[1], pair[0])
    wanted = [OUTSIDE, *(i for i in heart.ids.values() if i != heart.ids["Myo"])]
    return {i: np.unique(faces[:, ours.any(axis=0) & (other == i)]) for i in wanted}


def transmural(heart: Heart) -> np.ndarray:
    """The coordinate at every point of the mesh; NaN at points that the myocardium does not have."""
    touched = borders(heart)
    inner = touched[heart.ids["LV"]]
    outer = np.setdiff1d(touched[OUTSIDE], inner)
    used, index = np.unique(heart.tetrahedra[heart.material == heart.ids["Myo"]].T, return_inverse=True)
    basis = Basis(MeshTet(heart.points[used].T.copy(), index.reshape(4, -1)), ElementTetP1())
    given = np.where(np.isin(used, outer), 1.0, 0.0)
    fixed = np.flatnonzero(np.isin(used, np.concatenate([inner, outer])))
    found = np.full(len(heart.points), np.nan)
    found[used] = np.asarray(solve(*condense(laplace.assemble(basis), x=given, D=fixed)))
    return found


class Sampler:
    """Finds the tetrahedron around a point."""

    def __init__(self, heart: Heart, coordinate: np.ndarray) -> None:
        corners = heart.points[heart.tetrahedra]
        self.heart, self.coordinate = heart, coordinate
        self.centres, self.first = corners.mean(axis=1), corners[:, 0]
        self.radii = np.linalg.norm(corners - self.centres[:, None], axis=2).max(axis=1)
        self.barycentric = np.linalg.inv(np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2))

    def at(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The label id at each of (n, 3) points, and the coordinate, NaN outside the myocardium.

        Every tetrahedron is asked for the points in its ball. To ask every point for the tetrahedra with the
        nearest centres would miss large ones beside small ones.
        """
        label, value = np.full(len(points), OUTSIDE), np.full(len(points), np.nan)
        tree = KDTree(points)
        for one, inside in enumerate(tree.query_ball_point(self.centres, self.radii + 1e-6)):
            near = np.asarray(inside, dtype=int)
            rest = (points[near] - self.first[one]) @ self.barycentric[one].T
            weights = np.column_stack([1 - rest.sum(axis=1), rest])
            hit = (weights > -1e-9).all(axis=1)
            label[near[hit]] = self.heart.material[one]
            wall = self.heart.material[one] == self.heart.ids["Myo"]
            corners = self.coordinate[self.heart.tetrahedra[one]]
            value[near[hit]] = weights[hit] @ corners if wall else np.nan
        return label, value


class Ray(NamedTuple):
    """The coordinate across the wall, and the way through it in mm."""

    values: np.ndarray
    length_mm: float

    @property
    def fall(self) -> float:
        """How far the coordinate falls below what it was nearer to the cavity."""
        return float((np.maximum.accumulate(self.values) - self.values).max())


def resolution(edge_mm: float, thickness_mm: float) -> float:
    """What linear elements can tell of the coordinate: between nodes at a distance h a function is off by at
    most h^2 / 8 times its second derivative, and the coordinate's is about 1 / thickness^2."""
    return (edge_mm / thickness_mm) ** 2 / 8


def inner_faces(heart: Heart) -> tuple[np.ndarray, np.ndarray]:
    """Middles of the faces between cavity and wall, and their normals, out of the cavity."""
    whole = MeshTet(heart.points.T.copy(), heart.tetrahedra.T.copy())
    pair = np.append(heart.material, OUTSIDE)[whole.f2t]
    between = (pair == heart.ids["LV"]).any(axis=0) & (pair == heart.ids["Myo"]).any(axis=0)
    inner = np.flatnonzero(between)
    corners = heart.points[np.asarray(whole.facets)[:, inner]]
    normals = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    wall = np.where(pair[0, inner] == heart.ids["Myo"], *whole.f2t[:, inner])
    middles = corners.mean(axis=0)
    into = heart.points[heart.tetrahedra[wall]].mean(axis=1) - middles
    return middles, normals * np.sign((normals * into).sum(axis=1, keepdims=True))


def along_rays(heart: Heart, sampler: Sampler, edge_mm: float) -> tuple[list[Ray], int]:
    """The rays that leave the wall through its outer side, and how many leave it elsewhere."""
    middles, normals = inner_faces(heart)
    every = -(-len(middles) // RAYS)
    middles, normals = middles[::every], normals[::every]
    way = np.arange(0.5, FARTHEST_MM * STEPS / edge_mm) * edge_mm / STEPS
    points = middles[:, None] + normals[:, None] * way[:, None]
    labels, values = (x.reshape(len(middles), -1) for x in sampler.at(points.reshape(-1, 3)))
    found = []
    for label, value in zip(labels, values, strict=True):
        last = int(np.argmax(label != heart.ids["Myo"]))  # where the ray leaves the wall
        if last and label[last] == OUTSIDE:
            found.append(Ray(value[:last], float(way[last])))
    return found, len(middles) - len(found)


def picture(path: Path, heart: Heart, sampler: Sampler) -> None:
    """Two cuts through the cavity's middle, coloured by the coordinate."""
    cavity = heart.points[heart.tetrahedra[heart.material == heart.ids["LV"]]].mean(axis=(0, 1))
    wall = heart.points[np.unique(heart.tetrahedra[heart.material == heart.ids["Myo"]])]
    low, high = wall.min(axis=0) - 3, wall.max(axis=0) + 3
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for number, (up, name) in enumerate(((1, "anterior, mm"), (2, "superior, mm")), start=1):
        lines = [np.linspace(low[k], high[k], PIXELS) for k in (0, up)]
        points = np.tile(cavity, (PIXELS * PIXELS, 1))
        points[:, 0], points[:, up] = (x.ravel() for x in np.meshgrid(*lines, indexing="ij"))
        image = sampler.at(points)[1].reshape(PIXELS, PIXELS)
        axes = figure.add_subplot(1, 2, number)
        extent = (low[0], high[0], low[up], high[up])
        shown = axes.imshow(image.T, origin="lower", extent=extent, cmap="viridis", vmin=0, vmax=1)
        axes.set_xlabel("right, mm")
        axes.set_ylabel(name)
        figure.colorbar(shown, ax=axes, label="0 inner side, 1 outer side", shrink=0.8)
    write_figure(path, figure, dpi=110)


def write_numbers(results: Path, numbers: dict[str, float]) -> None:
    """RESULTS/transmural.json and .md, with what made them."""
    text = (
        f"Laplace's equation across the myocardium of one heart (seed 0, {numbers['resolution']}^3, edges "
        f"of {numbers['edge_mm']:g} mm in the wall): {numbers['tetrahedra']:,} tetrahedra of the wall; the "
        f"coordinate lies in [{numbers['least']:.6f}, {numbers['most']:.6f}]. Rays start at faces of the "
        f"inner side along their normals; {numbers['rays']} leave the wall through the outer side, "
        f"{numbers['elsewhere']} elsewhere. Along {numbers['growing']} of the {numbers['rays']} the "
        f"coordinate never falls. Along {numbers['falling']} it falls by more than linear elements of this "
        f"edge can tell, {numbers['tolerance']:.3f} (edge^2 / 8 thickness^2, with the rays' median way of "
        f"{numbers['thickness_mm']:.1f} mm); the deepest fall is {numbers['deepest']:.3f}.\n"
    )
    weights = {"cardiac": shipped_hash("cardiac")}
    write_bench(results, "transmural", dict(numbers), text, weights, module="mesh.export")


def main(
    out: Path = Path("out/transmural"),
    resolution_voxels: int = 64,
    edge_mm: float = 5.0,
    wall_edge_mm: float = 2.5,
    results: Path | None = None,
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    heart = exported_heart(out, resolution_voxels, edge_mm, wall_edge_mm)
    coordinate = transmural(heart)
    low, high = float(np.nanmin(coordinate)), float(np.nanmax(coordinate))
    count = int((heart.material == heart.ids["Myo"]).sum())
    print(f"{count} tetrahedra of the wall; coordinate from {low:.6f} to {high:.6f}")
    sampler = Sampler(heart, coordinate)
    rays, elsewhere = along_rays(heart, sampler, wall_edge_mm)
    thickness = float(np.median([ray.length_mm for ray in rays]))
    falls, tolerance = np.array([ray.fall for ray in rays]), resolution(wall_edge_mm, thickness)
    growing, falling = int((falls < ROUNDING).sum()), int((falls > tolerance).sum())
    print(f"{len(rays)} rays across the wall, {elsewhere} leave it elsewhere; thickness {thickness:.1f} mm")
    print(f"never falls along {growing}, falls by more than {tolerance:.3f} along {falling}")
    if results is not None:
        numbers: dict[str, float] = {"resolution": resolution_voxels, "edge_mm": wall_edge_mm}
        numbers |= {"tetrahedra": count, "least": low, "most": high, "rays": len(rays), "growing": growing}
        numbers |= {"elsewhere": elsewhere, "falling": falling, "tolerance": tolerance}
        write_numbers(results, numbers | {"thickness_mm": thickness, "deepest": float(falls.max())})
    meshio.Mesh(heart.points, [("tetra", heart.tetrahedra)], {"transmural": coordinate}).write(
        out / "wall.vtu"
    )
    picture(out / "wall.png", heart, sampler)
    print(f"wrote {out / 'wall.vtu'} and {out / 'wall.png'}")
    if low < 0 or high > 1 or falling:
        raise SystemExit("the coordinate leaves [0, 1], or falls along a ray across the wall")


if __name__ == "__main__":
    main(results=Path(sys.argv[1]) if len(sys.argv) > 1 else None)
