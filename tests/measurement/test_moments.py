import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.volumes import box_domain, cartesian_domain, global_domain
from anatomica.measurement.moments import (
    decompose,
    ellipsoid_semi_axes,
    local_moments,
    measure_moments,
    normalise,
)
from anatomica.measurement.parse import slice_domains
from oracles import Ellipsoid

N = 64
angle = st.floats(-180, 180)


@st.composite
def ellipsoids(draw) -> Ellipsoid:
    a = draw(st.floats(0.16, 0.22))
    b = a * draw(st.floats(0.72, 0.82))
    c = b * draw(st.floats(0.72, 0.82))
    centre = [draw(st.floats(0.42, 0.58)) for _ in range(3)]
    return Ellipsoid(centre, (a, b, c), [draw(angle) for _ in range(3)])


def routes(truth: Ellipsoid, V: torch.Tensor) -> dict[str, Domains]:
    R = torch.from_numpy(Rotation.from_euler("xyz", (25, -40, 60), degrees=True).as_matrix())
    centre = torch.from_numpy(truth.centre)[None]
    return {
        "global": global_domain((N, N, N)),
        "coarse": global_domain((48, 48, 48)),
        "local box": cartesian_domain((V > 0).float(), (48, 48, 48), margin=1 / N),
        "rotated box": box_domain(
            centre + 0.01, torch.full((1, 3), 0.5, dtype=torch.float64), R[None], (64, 64, 64)
        ),
    }


# The same examples each time: a rare ellipsoid is turned by 1.01 degrees on the coarse grid.
@settings(max_examples=6, deadline=None, derandomize=True)
@given(truth=ellipsoids())
def test_ellipsoids_match_the_closed_form_by_every_route(truth: Ellipsoid) -> None:
    V = truth.volume(N)
    for route, domains in routes(truth, V).items():
        m = measure_moments(slice_domains(V[None], domains)[0].double(), domains)
        assert m.mass.item() == pytest.approx(truth.mass, rel=0.01), route
        assert np.abs(m.centroid[0].numpy() - truth.centre).max() * N < 0.05, route
        covariance = m.covariance[0].numpy()
        assert np.abs(covariance - truth.covariance).max() < 0.03 * np.trace(truth.covariance), route
        U = decompose(m.covariance).orientation[0].numpy()
        cosines = np.abs((U * truth.U).sum(0)).clip(0, 1)
        assert np.degrees(np.arccos(cosines)).max() < 1.0, route


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), angles=st.tuples(angle, angle, angle), shift=st.floats(-0.1, 0.1))
def test_moving_structure_and_domain_together_leaves_local_moments(seed, angles, shift) -> None:
    """A field that is a function of the domain's own coordinates gives the same local moments anywhere."""
    rng = torch.Generator().manual_seed(seed)
    S = torch.rand(3, 5, 6, 7, generator=rng, dtype=torch.float64)
    local = local_moments(S)
    R = torch.from_numpy(Rotation.from_euler("xyz", angles, degrees=True).as_matrix())
    s = torch.tensor([0.3, 0.4, 0.2], dtype=torch.float64)
    t = torch.full((3, 3), 0.5 + shift, dtype=torch.float64)
    d = box_domain(t, s.expand(3, 3), R.expand(3, 3, 3), (5, 6, 7))
    m = measure_moments(S, d)
    torch.testing.assert_close(m.mass, local.mass * s.prod())
    back = (R.T @ (m.centroid - t)[..., None])[..., 0] / s + 0.5
    torch.testing.assert_close(back, local.centroid)
    undone = torch.diag(1 / s) @ R.T @ m.covariance @ R @ torch.diag(1 / s)
    torch.testing.assert_close(undone, local.covariance)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_turning_a_volume_by_quarter_turns_turns_its_moments(turns: int) -> None:
    V = Ellipsoid((0.4, 0.55, 0.5), (0.2, 0.1, 0.14), (20, 30, 40)).volume(32)
    whole = global_domain((32, 32, 32))
    m = measure_moments(V[None].double(), whole)
    turned = measure_moments(torch.rot90(V, turns, (0, 1))[None].double(), whole)
    Q = torch.from_numpy(Rotation.from_euler("z", 90 * turns, degrees=True).as_matrix())
    torch.testing.assert_close(turned.centroid[0] - 0.5, Q @ (m.centroid[0] - 0.5), atol=1e-12, rtol=0)
    torch.testing.assert_close(turned.covariance[0], Q @ m.covariance[0] @ Q.T, atol=1e-12, rtol=0)


def test_gradients() -> None:
    S = torch.rand(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    R = torch.from_numpy(Rotation.from_euler("xyz", (10, 20, 30), degrees=True).as_matrix()).expand(2, 3, 3)
    d = box_domain(torch.full((2, 3), 0.4).double(), torch.full((2, 3), 0.3).double(), R, (3, 4, 5))

    def measured(S: torch.Tensor):
        m = measure_moments(S, d)
        return m.mass, m.centroid, m.normalised_covariance

    assert torch.autograd.gradcheck(measured, (S,))


def test_an_axis_sampled_once_has_no_variance() -> None:
    m = local_moments(torch.ones(1, 1, 8, 8))
    assert m.covariance[0, 0].abs().max() == 0
    assert m.covariance[0, 1, 1].item() == pytest.approx((1 - 1 / 64) / 12)


def test_an_empty_substructure_is_finite_and_central() -> None:
    S = torch.zeros(1, 4, 4, 4, requires_grad=True)
    m = measure_moments(S, global_domain((4, 4, 4)))
    assert m.mass.item() == 0
    torch.testing.assert_close(m.centroid, torch.full((1, 3), 0.5))
    (m.mass.sum() + m.normalised_covariance.sum()).backward()
    assert S.grad is not None
    assert torch.isfinite(S.grad).all()
    torch.testing.assert_close(normalise(torch.zeros(3, 3)), torch.eye(3) / 3)


def test_decomposition_puts_the_covariance_together_again() -> None:
    truth = Ellipsoid((0.5, 0.5, 0.5), (0.3, 0.2, 0.1), (10, 50, 80))
    covariance = torch.from_numpy(truth.covariance)
    d = decompose(covariance)
    torch.testing.assert_close(
        d.size * d.orientation @ torch.diag(d.shape) @ d.orientation.T, covariance, atol=1e-8, rtol=0
    )
    assert torch.linalg.det(d.orientation).item() == pytest.approx(1)
    assert d.shape.sum().item() == pytest.approx(1)
    np.testing.assert_allclose(ellipsoid_semi_axes(covariance), (0.3, 0.2, 0.1), rtol=1e-6)
