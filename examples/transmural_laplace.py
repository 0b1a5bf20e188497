"""How far through the heart's wall: a finite-element run on a mesh that anatomica exported.

A heart is drawn, its left ventricle and what bounds it filled with tetrahedra, and Laplace's equation solved
in the myocardium: 0 on the inner side, 1 on the outer, no flux towards the atrium and the aorta. The solution
is the transmural coordinate from which fibre directions are usually built. It must lie in [0, 1] and never
fall along a ray that crosses the wall from the cavity outwards; the script checks both. Around the base,
where inner and outer side meet, and where a ray runs along the wall rather than across it, no solution has to
grow along a ray: such rays are counted apart.

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
RAYS, POINTS = 2000, 240
OUTSIDE = 0
ROUNDING = 1e-9
"""A coordinate that falls by less does not fall. Where all corners of a tetrahedron lie on one side of the
wall it is constant, so "never falls" is all that linear elements can promise."""


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


def base(heart: Heart) -> np.ndarray:
    """Points of the wall's rim: where it meets the atrium or the aorta, or its inner side the outer."""
    touched = borders(heart)
    inner, outer = touched.pop(heart.ids["LV"]), touched.pop(OUTSIDE)
    return heart.points[np.unique(np.concatenate([np.intersect1d(inner, outer), *touched.values()]))]


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
    """The coordinate across the wall, and where (mm)."""

    values: np.ndarray
    points: np.ndarray

    @property
    def grows(self) -> bool:
        return bool((np.diff(self.values) > -ROUNDING).all())


def along_rays(heart: Heart, sampler: Sampler) -> list[Ray]:
    """Rays from the cavity's middle in all directions: those that go from the cavity through the wall to the
    outside."""
    cavity = heart.points[heart.tetrahedra[heart.material == heart.ids["LV"]]].mean(axis=(0, 1))
    n = np.arange(RAYS)
    height, turn = 1 - (2 * n + 1) / RAYS, np.pi * (1 + 5**0.5) * n
    flat = np.sqrt(1 - height**2)
    ways = np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1)
    wall = heart.points[np.unique(heart.tetrahedra[heart.material == heart.ids["Myo"]])]
    lengths = np.linspace(0, np.linalg.norm(wall - cavity, axis=1).max() + 2, POINTS)
    points = cavity + ways[:, None] * lengths[:, None]
    labels, values = (x.reshape(RAYS, POINTS) for x in sampler.at(points.reshape(-1, 3)))
    found = []
    for label, value, place in zip(labels, values, points, strict=True):
        starts = np.flatnonzero(np.diff(label, prepend=-1))  # where a run of one label begins
        if label[starts[:3]].tolist() == [heart.ids["LV"], heart.ids["Myo"], OUTSIDE]:
            found.append(Ray(value[starts[1] : starts[2]], place[starts[1] : starts[2]]))
    return found


def across(rim: np.ndarray, rays: list[Ray]) -> list[bool]:
    """Whether each ray crosses the wall away from the rim, by more than one thickness (the median), and on a
    way of less than two, which is less than 60 degrees off the shortest way through a flat wall."""
    if not rays:
        return []
    lengths = [float(np.linalg.norm(ray.points[-1] - ray.points[0])) for ray in rays]
    thickness = float(np.median(lengths))
    short = [length < 2 * thickness for length in lengths]
    if not len(rim):
        return short
    tree = KDTree(rim)
    far = [bool(np.min(tree.query(ray.points)[0]) > thickness) for ray in rays]
    return [a and b for a, b in zip(short, far, strict=True)]


def picture(path: Path, heart: Heart, sampler: Sampler) -> None:
    """Two cuts through the cavity's middle, coloured by the coordinate."""
    cavity = heart.points[heart.tetrahedra[heart.material == heart.ids["LV"]]].mean(axis=(0, 1))
    wall = heart.points[np.unique(heart.tetrahedra[heart.material == heart.ids["Myo"]])]
    low, high = wall.min(axis=0) - 3, wall.max(axis=0) + 3
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    for number, (up, name) in enumerate(((1, "anterior, mm"), (2, "superior, mm")), start=1):
        lines = [np.linspace(low[k], high[k], POINTS) for k in (0, up)]
        points = np.tile(cavity, (POINTS * POINTS, 1))
        points[:, 0], points[:, up] = (x.ravel() for x in np.meshgrid(*lines, indexing="ij"))
        image = sampler.at(points)[1].reshape(POINTS, POINTS)
        axes = figure.add_subplot(1, 2, number)
        extent = (low[0], high[0], low[up], high[up])
        shown = axes.imshow(image.T, origin="lower", extent=extent, cmap="viridis", vmin=0, vmax=1)
        axes.set_xlabel("right, mm")
        axes.set_ylabel(name)
        figure.colorbar(shown, ax=axes, label="0 inner side, 1 outer side", shrink=0.8)
    write_figure(path, figure, dpi=110)


def write_numbers(results: Path, numbers: dict[str, float]) -> None:
    """RESULTS/transmural.json and .md, with what made them."""
    falling = {key: numbers[f"{key}rays"] - numbers[f"{key}growing"] for key in ("", "other_")}
    text = (
        f"Laplace's equation across the myocardium of one heart (seed 0, {numbers['resolution']}^3, edges "
        f"of {numbers['edge_mm']:g} mm in the wall): {numbers['tetrahedra']:,} tetrahedra of the wall; the "
        f"coordinate lies in [{numbers['least']:.6f}, {numbers['most']:.6f}]. Of the rays from the cavity "
        f"through the wall to the outside, {numbers['other_rays']} pass within one thickness of the wall of "
        f"its base, or run through it for more than two; on {falling['other_']} of them the coordinate falls "
        f"somewhere. Of the other {numbers['rays']} it falls on {falling['']}.\n"
    )
    weights = {"cardiac": shipped_hash("cardiac")}
    write_bench(results, "transmural", dict(numbers), text, weights, module="mesh.export")


def main(
    out: Path = Path("out/transmural"),
    resolution: int = 64,
    edge_mm: float = 5.0,
    wall_edge_mm: float = 2.5,
    results: Path | None = None,
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    heart = exported_heart(out, resolution, edge_mm, wall_edge_mm)
    coordinate = transmural(heart)
    low, high = float(np.nanmin(coordinate)), float(np.nanmax(coordinate))
    count = int((heart.material == heart.ids["Myo"]).sum())
    print(f"{count} tetrahedra of the wall; coordinate from {low:.6f} to {high:.6f}")
    sampler = Sampler(heart, coordinate)
    rays = along_rays(heart, sampler)
    crossing = across(base(heart), rays)
    body = [ray.grows for ray, chosen in zip(rays, crossing, strict=True) if chosen]
    other = [ray.grows for ray, chosen in zip(rays, crossing, strict=True) if not chosen]
    print(f"it never falls along {sum(other)} of {len(other)} rays at the base or along the wall")
    print(f"it never falls along {sum(body)} of {len(body)} rays across the wall")
    if results is not None:
        numbers: dict[str, float] = {"resolution": resolution, "edge_mm": wall_edge_mm, "tetrahedra": count}
        numbers |= {"least": low, "most": high, "rays": len(body), "growing": sum(body)}
        write_numbers(results, numbers | {"other_rays": len(other), "other_growing": sum(other)})
    meshio.Mesh(heart.points, [("tetra", heart.tetrahedra)], {"transmural": coordinate}).write(
        out / "wall.vtu"
    )
    picture(out / "wall.png", heart, sampler)
    print(f"wrote {out / 'wall.vtu'} and {out / 'wall.png'}")
    if low < 0 or high > 1 or not body or not all(body):
        raise SystemExit("the coordinate leaves [0, 1], or falls along a ray across the wall")


if __name__ == "__main__":
    main(results=Path(sys.argv[1]) if len(sys.argv) > 1 else None)
