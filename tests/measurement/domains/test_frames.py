import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from anatomica.measurement.domains.domain import template
from anatomica.measurement.domains.frames import (
    X_AXIS,
    Z_AXIS,
    cylindrical_lattice,
    fibonacci_lattice,
    orthonormalize,
    parallel_transport,
)
from oracles import helix

unit = st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)


def assert_rotation(*columns: torch.Tensor) -> None:
    R = torch.stack(columns, dim=-1)
    eye = torch.eye(3, dtype=R.dtype).expand_as(R)
    torch.testing.assert_close(R.mT @ R, eye, atol=1e-9, rtol=0)
    torch.testing.assert_close(torch.linalg.det(R), torch.ones(R.shape[:-2], dtype=R.dtype))


@given(direction=unit)
def test_orthonormalization_completes_any_direction(direction) -> None:
    U0 = torch.tensor(direction, dtype=torch.float64)
    U0 = U0 / U0.norm()
    assert_rotation(U0, *orthonormalize(U0))


@pytest.mark.parametrize("reference", [X_AXIS, Z_AXIS])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_aligned_reference_is_replaced(reference: torch.Tensor, sign: float) -> None:
    U0 = sign * reference
    assert_rotation(U0, *orthonormalize(U0, reference))


def test_parallel_transport_on_a_straight_line_keeps_the_frame() -> None:
    F1 = Z_AXIS.expand(10, 3)
    F2_0, F3_0 = orthonormalize(Z_AXIS, X_AXIS)
    F2, F3 = parallel_transport(F1, F2_0, F3_0)
    torch.testing.assert_close(F2, F2_0.expand(10, 3))
    torch.testing.assert_close(F3, F3_0.expand(10, 3))


def test_parallel_transport_does_not_twist() -> None:
    """Between neighbours the frame turns by the tangent's angle and no more (the minimal rotation)."""
    curve = torch.from_numpy(helix(count=400))
    F1 = torch.diff(curve, dim=0)
    F1 = F1 / F1.norm(dim=1, keepdim=True)
    F2, F3 = parallel_transport(F1, *orthonormalize(F1[0]))
    assert_rotation(F1, F2, F3)
    turn = torch.acos((F1[1:] * F1[:-1]).sum(1).clamp(-1, 1))
    R = torch.stack([F1, F2, F3], dim=-1)
    trace = (R[1:] @ R[:-1].mT).diagonal(dim1=-2, dim2=-1).sum(-1)
    whole = torch.acos(((trace - 1) / 2).clamp(-1, 1))
    torch.testing.assert_close(whole, turn, atol=1e-6, rtol=1e-4)


def test_parallel_transport_around_a_flat_circle_comes_back() -> None:
    angle = torch.linspace(0, 2 * math.pi, 200, dtype=torch.float64)
    F1 = torch.stack([-angle.sin(), angle.cos(), torch.zeros_like(angle)], dim=-1)
    F2, _ = parallel_transport(F1, *orthonormalize(F1[0]))
    torch.testing.assert_close(F2[-1], F2[0], atol=1e-9, rtol=0)


def test_fibonacci_rays_are_unit_and_even() -> None:
    rays = fibonacci_lattice(64)
    torch.testing.assert_close(rays.norm(dim=1), torch.ones(64, dtype=torch.float64))
    assert rays.mean(0).norm() < 0.02
    cosine = rays @ rays.T - 2 * torch.eye(64)
    nearest = torch.acos(cosine.max(dim=1).values)
    ideal = math.sqrt(4 * math.pi / 64)
    assert nearest.min() > 0.6 * ideal


def test_cylindrical_lattice_has_every_angle_at_every_height() -> None:
    heights, directions = cylindrical_lattice(2, 4)
    assert heights.tolist() == [0.25] * 4 + [0.75] * 4
    expected = torch.tensor([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]] * 2, dtype=torch.float64)
    torch.testing.assert_close(directions, expected, atol=1e-12, rtol=0)


def test_template_points_are_cell_centres_and_a_single_one_is_the_centre() -> None:
    X = template((1, 2, 4))
    assert X.shape == (1, 2, 4, 3)
    assert X[0, :, 0, 0].tolist() == [0, 0]
    assert X[0, :, 0, 1].tolist() == [-0.25, 0.25]
    assert X[0, 0, :, 2].tolist() == [-0.375, -0.125, 0.125, 0.375]
