"""Crossing triangles: a linear program as the second implementation, and the cases that shared corners
make."""

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from anatomica import _kernel

APART = np.array([[0, 1, 2], [3, 4, 5]], dtype=np.int32)


def crossings(points: ArrayLike, triangles: ArrayLike = APART) -> int:
    return len(_kernel.crossings(np.array(points, dtype=np.float64), np.array(triangles, dtype=np.int32)))


def have_a_common_point(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether convex combinations of the corners of both can be equal."""
    equal = np.concatenate([np.concatenate([a.T, -b.T], axis=1), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]])
    return linprog(np.zeros(6), A_eq=equal, b_eq=[0, 0, 0, 1, 1], bounds=(0, 1)).status == 0


@pytest.mark.parametrize("seed", range(8))
def test_pairs_without_common_corners(seed: int) -> None:
    # Few lattice points: triangles touch, lie in one plane or miss each other by a hair.
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, 4, (40, 6, 3)).astype(float)
    for points in pairs:
        area = np.linalg.norm(np.cross(points[1::3] - points[::3], points[2::3] - points[::3]), axis=1)
        if area.min() > 0:
            assert crossings(points) == have_a_common_point(points[:3], points[3:])


def test_a_shared_edge_is_no_crossing_but_a_fold_is() -> None:
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, -1, 0], [0.5, 2, 0], [0.3, 1, 1e-4]]
    assert crossings(points, [[0, 1, 2], [1, 0, 3]]) == 0
    assert crossings(points, [[0, 1, 2], [1, 0, 4]]) == 1
    assert crossings(points, [[0, 1, 2], [1, 0, 5]]) == 0


def test_a_shared_corner_is_no_crossing_but_what_goes_through_is() -> None:
    points = [
        [0, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
        [-1, -1, 1],
        [1, 1, -1],
        [1, 1, 1],
        [2, 2, 1],
        [1, 0.9, 0],
        [0.9, 1, 0],
    ]
    assert crossings(points, [[0, 1, 2], [0, 3, 5]]) == 0
    assert crossings(points, [[0, 1, 2], [0, 4, 6]]) == 1
    assert crossings(points, [[0, 1, 2], [0, 7, 8]]) == 1  # one plane, one wedge in the other
    assert crossings(points, [[0, 1, 2], [2, 0, 1]]) == 1  # the same twice


def test_far_and_large_meshes() -> None:
    near = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.2, -1], [0.3, 0.2, 1], [0.2, 0.3, 1]])
    assert crossings(near) == 1
    assert crossings(near + 1e4) == 1
    assert crossings(near * 1e6) == 1
    assert crossings(near * 1e-3) == 1
    many = np.concatenate([near + np.array([3 * i, 0, 0]) for i in range(50)])
    assert crossings(many, np.arange(300).reshape(-1, 3)) == 50


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no point"):
        crossings(np.zeros((2, 3)), [[0, 1, 2]])
    with pytest.raises(ValueError, match="finite"):
        crossings([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]], [[0, 1, 2]])
