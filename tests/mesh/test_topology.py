"""Topology of triangle surfaces whose Betti numbers are known, touching ones among them."""

import numpy as np
import pytest

from anatomica.measurement.homology import Betti, betti_numbers
from anatomica.mesh.topology import topology

CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
SIDES = np.array([t for a, b, c, d in FACES for t in ((a, b, c), (a, c, d))])


def boundary(voxels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bare faces of voxels as triangles, corners shared, normals outwards."""
    points, triangles = [], []
    for at in np.argwhere(voxels):
        for n, face in enumerate(SIDES.reshape(6, 2, 3)):
            step = np.zeros(3, int)
            step[n // 2] = (-1, 1)[n % 2]
            beside = at + step
            inside = (beside >= 0).all() and (beside < voxels.shape).all() and voxels[tuple(beside)]
            if not inside:
                triangles += [[len(points) + k for k in range(3 * i, 3 * i + 3)] for i in range(2)]
                points += [CUBE[c] + at for triangle in face for c in triangle]
    vertices, index = np.unique(points, axis=0, return_inverse=True)
    return vertices, index.ravel()[np.array(triangles)]


def ring(*holes: tuple[int, int, int], shape=(3, 3, 3)) -> np.ndarray:
    voxels = np.ones(shape, bool)
    for hole in holes:
        voxels[hole] = False
    return voxels


@pytest.mark.parametrize(
    ("voxels", "betti", "pinched"),
    [
        (ring(), (1, 0, 0), (0, 0)),
        (ring((1, 1, 1)), (1, 0, 1), (0, 0)),
        (ring((1, 1, 0), (1, 1, 1), (1, 1, 2)), (1, 1, 0), (0, 0)),
        (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]], bool), (2, 0, 0), (0, 1)),  # two voxels at a corner
        (np.array([[[1, 0], [0, 1]]], bool), (2, 0, 0), (1, 2)),  # at an edge
        (np.array([[[0, 1], [1, 1]], [[1, 1], [1, 0]]], bool), (1, 1, 0), (0, 1)),  # a ring around a corner
    ],
    ids=["block", "hollow", "pierced", "corner", "edge", "tunnel"],
)
def test_known_shapes(voxels, betti, pinched) -> None:
    found = topology(*boundary(voxels))
    assert found.betti == Betti(*betti) == betti_numbers(voxels)
    assert (found.pinched_edges, found.pinched_vertices) == pinched
    assert found.manifold == (pinched == (0, 0)) == (not found.where)


def test_where_a_surface_is_no_manifold() -> None:
    vertices, triangles = boundary(np.array([[[1, 0], [0, 1]]], bool))  # two voxels with a common edge
    found = topology(vertices, triangles)
    np.testing.assert_array_equal(np.sort(vertices[list(found.where)], axis=0), [[0, 1, 1], [1, 1, 1]])
    block, faces = boundary(ring())
    assert sorted(topology(block, faces[1:]).where) == sorted(faces[0])


@pytest.mark.parametrize("seed", range(30))
def test_bare_voxels_have_the_voxels_betti_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    voxels = rng.random(rng.integers(2, 6, 3)) < rng.uniform(0.2, 0.9)
    voxels[0, 0, 0] = True
    assert topology(*boundary(voxels)).betti == betti_numbers(voxels)


def test_open_and_badly_oriented_surfaces_are_found() -> None:
    vertices, triangles = boundary(ring())
    assert topology(vertices, triangles[1:]).open_edges == 3
    turned = triangles.copy()
    turned[5] = turned[5, ::-1]
    assert topology(vertices, turned).open_edges == 3
    assert topology(vertices, turned).betti is None
