import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage

from anatomica.measurement.homology.betti import betti_numbers, euler_number
from oracles import box, components, double_torus, shell, torus

N = 40


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (np.zeros((4, 4, 4), bool), (0, 0, 0)),
        (np.ones((1, 1, 1), bool), (1, 0, 0)),
        (shell(N, 0.5, 0.0, 0.3), (1, 0, 0)),
        (shell(N, 0.5, 0.2, 0.35), (1, 0, 1)),
        (torus(N), (1, 1, 0)),
        (double_torus(N), (1, 2, 0)),
        (box(N, 0.1, 0.3) | box(N, 0.6, 0.9), (2, 0, 0)),
        (torus(N)[:, :, N // 2 : N // 2 + 1], (1, 1, 0)),
    ],
    ids=["empty", "voxel", "ball", "shell", "torus", "double torus", "two boxes", "ring in a plane"],
)
def test_known_shapes(mask: np.ndarray, expected: tuple[int, int, int]) -> None:
    assert betti_numbers(mask) == expected


def test_touching_cubes_are_one_and_diagonal_ones_two() -> None:
    mask = np.zeros((4, 4, 4), bool)
    mask[:2, :2, :2] = True
    face, edge, corner = mask.copy(), mask.copy(), mask.copy()
    face[2:, :2, :2] = edge[2:, 2:, :2] = corner[2:, 2:, 2:] = True
    assert [betti_numbers(m).b0 for m in (face, edge, corner)] == [1, 2, 2]


@settings(max_examples=150, deadline=None)
@given(arrays(bool, st.tuples(*[st.integers(1, 6)] * 3)))
def test_components_voids_and_euler_number_fit_together(mask: np.ndarray) -> None:
    b = betti_numbers(mask)
    six = ndimage.generate_binary_structure(3, 1)
    assert b.b0 == components(mask, six)[1]
    cavities = components(np.pad(~mask, 1, constant_values=True), np.ones((3, 3, 3)))[1] - 1
    assert b.b2 == cavities
    assert b.b0 - b.b1 + b.b2 == euler_number(mask)
    assert b.b1 >= 0
    assert betti_numbers(mask.transpose(2, 0, 1)[::-1]) == b
