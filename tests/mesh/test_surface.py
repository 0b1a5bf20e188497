"""The conforming surface: closed forms, random label maps, and what it promises of every one of them."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError
from anatomica.measurement.homology import betti_numbers
from anatomica.mesh import surface_of
from anatomica.mesh.topology import topology

TABLE = LabelTable.from_names({1: "a", 2: "b", 3: "c", 7: "d"})
CENTRE = np.array([31.3, 31.7, 31.1])


def grid(n: int = 64) -> np.ndarray:
    return np.stack(np.meshgrid(*[np.arange(float(n))] * 3, indexing="ij"), -1) - CENTRE


def label_map(array: np.ndarray, affine: np.ndarray | None = None) -> LabelMap:
    return LabelMap(array.astype(np.uint8), np.eye(4) if affine is None else affine, TABLE)


def random_map(seed: int, shape: tuple[int, int, int] | None = None) -> LabelMap:
    """White noise of labels for odd seeds, smooth blobs for even ones: every way in which voxels can
    touch."""
    rng = np.random.default_rng(seed)
    shape = shape or tuple(rng.integers(2, 8, 3).tolist())
    ids = [0, 1, 2, 3, 7][: int(rng.integers(2, 6))]
    if seed % 2:
        array = rng.choice(ids, shape)
    else:
        smooth = [ndimage.gaussian_filter(rng.standard_normal(shape), 0.7) for _ in ids]
        array = np.array(ids)[np.argmax(smooth, 0)]
    array[0, 0, 0] = 1
    return label_map(array)


@pytest.mark.parametrize(
    ("distance", "allowed"),
    [
        (lambda x: np.linalg.norm(x, axis=-1) - 20, 0.06),
        (lambda x: (np.linalg.norm(x / [28, 9, 16], axis=-1) - 1) * 12, 0.09),
        (lambda x: np.abs(x @ [0.1, 0.03, 1]) - 6, 0.12),
    ],
    ids=["sphere", "ellipsoid", "plane"],
)
def test_relaxation_finds_the_shape_behind_the_voxels(distance, allowed) -> None:
    rim = np.abs(grid()).max(-1) < 29
    made = surface_of(label_map((distance(grid()) < 0) & rim))
    x = made.vertices - CENTRE
    x = x[np.abs(x).max(1) < 24]
    # First order: the field over the length of its gradient.
    slope = np.stack([distance(x + h) - distance(x - h) for h in 1e-4 * np.eye(3)], -1) / 2e-4
    away = distance(x) / np.linalg.norm(slope, axis=1)
    assert np.sqrt((away**2).mean()) < allowed


@pytest.mark.parametrize("seed", range(60))
def test_every_label_map_has_a_closed_surface_of_its_topology_and_volumes(seed: int) -> None:
    given = random_map(seed)
    made = surface_of(given)
    assert (made.sides[:, 0] != made.sides[:, 1]).all()
    assert len(np.unique(np.sort(made.triangles, axis=1), axis=0)) == len(made.triangles)
    for name in given.present():
        found = topology(made.vertices, made.of(name))
        assert found.closed
        assert found.betti == betti_numbers(given.mask(name))
        assert made.volume_ml(name) == pytest.approx(given.volume_ml(name), rel=1e-4)


def test_unions_drop_the_faces_inside() -> None:
    array = np.zeros((12, 12, 12), int)
    array[2:10, 2:10, 2:6], array[2:10, 2:10, 6:10] = 1, 2
    made = surface_of(label_map(array))
    assert made.volume_ml("a", "b") == pytest.approx(made.volume_ml("a") + made.volume_ml("b"))
    assert len(made.of("a", "b")) < len(made.of("a")) + len(made.of("b"))
    assert topology(made.vertices, made.of("a", "b")).betti == (1, 0, 0)


def test_normals_point_out_of_the_first_side_in_any_frame() -> None:
    array = np.zeros((10, 11, 12), int)
    array[3:7, 3:8, 3:9] = 7
    for affine in (np.diag([1.0, 2.0, 0.5, 1.0]), np.diag([-1.0, 1.0, 1.0, 1.0]), np.eye(4)[[2, 0, 1, 3]]):
        affine = affine.copy()
        affine[:3, 3] = 5.0, -40.0, 300.0
        given = label_map(array, affine)
        made = surface_of(given)
        assert made.present() == ("d",)
        assert set(made.sides[:, 0]) == {7}
        assert set(made.sides[:, 1]) == {0}
        assert made.volume_ml("d") == pytest.approx(given.volume_ml("d"), rel=1e-5)
        centre = affine[:3, :3] @ [4.5, 5.0, 5.5] + affine[:3, 3]
        np.testing.assert_allclose(made.vertices.mean(0), centre, atol=0.1)


def test_what_the_volume_cuts_is_cut_flat() -> None:
    disc = np.linalg.norm(grid(40)[..., :2] + CENTRE[:2] - 19.7, axis=-1) < 8
    made = surface_of(label_map(disc))
    z = made.vertices[:, 2]
    assert z.min() == -0.5
    assert z.max() == 39.5
    area = np.pi * 8**2
    a, b, c = (made.vertices[made.triangles[made.cut(), n]] for n in range(3))
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2 == pytest.approx(2 * area, rel=0.02)
    rim = np.isclose(z, -0.5)
    radius = np.linalg.norm(made.vertices[rim][:, :2] - 19.7, axis=1)
    assert radius.max() == pytest.approx(8, abs=0.25)  # the outlet is not rounded off


def test_nothing_to_mesh_is_an_error() -> None:
    with pytest.raises(AnatomicaError, match="no tissue"):
        surface_of(label_map(np.zeros((4, 4, 4))))
