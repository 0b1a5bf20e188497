"""The table of quantities: each row against closed forms, its residuals against its tolerance."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.measurement.moments import Moments
from anatomica.spec.quantities import BY_KEY, QUANTITIES, Target, Tolerance

FRAME = Frame.model(anatomy("aortic"), 64)


@dataclass(frozen=True)
class Boxes:
    s: Tensor
    grid: tuple[int, int, int]


PLANE = Boxes(torch.tensor([[0.01, 0.2, 0.2]], dtype=torch.float64), (1, 32, 32))


def disc(radius: float) -> Moments:
    """A disc of this radius (cube units), seen by the plane's box, whose mass is area times thickness."""
    mass = torch.tensor([math.pi * radius**2 * 0.01], dtype=torch.float64)
    flat = torch.diag(torch.tensor([0.0, radius**2 / 4, radius**2 / 4], dtype=torch.float64))[None]
    return Moments(mass, torch.full((1, 3), 0.5, dtype=torch.float64), flat)


def test_the_diameter_of_a_disc_is_twice_its_radius() -> None:
    q = BY_KEY["diameter"]
    got = q.measured(disc(0.06), PLANE)
    assert q.for_people(got[0], FRAME) == pytest.approx(2 * 0.06 * 256)
    width, to_cube = q.asked["diameter_mm"]
    want = to_cube(torch.full((1, width), 40.0, dtype=torch.float64), FRAME)
    off = q.error(got, want, 256.0, 1e-6)
    assert float(off) == pytest.approx(abs(2 * 0.06 * 256 - 40))


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.key)
def test_a_residual_of_one_is_one_tolerance(q) -> None:
    """Moved by one tolerance along one number, the residual is 1 and the error is the tolerance."""
    m, tolerance = disc(0.06), Tolerance()
    wanted = q.measured(m, PLANE)
    scale = q.allowed(wanted, tolerance.of(q), 256.0, 1e-6)
    if q.key == "shape":
        wanted = wanted.clone()
        wanted[..., 1, 1] += tolerance.shape
    elif q.key == "centroid":
        wanted = wanted + torch.tensor([float(scale), 0, 0])
    else:
        share = tolerance.of(q) / 100 if q.error_unit == "%" else tolerance.of(q) / 256 / float(wanted)
        wanted = wanted * (1 + share)
        scale = q.allowed(wanted, tolerance.of(q), 256.0, 1e-6)
    rho = q.off(m, PLANE, wanted) / (scale[..., None] if isinstance(scale, Tensor) else scale)
    assert rho.abs().max() == pytest.approx(1, rel=0.03)
    error = float(q.error(q.measured(m, PLANE), wanted, 256.0, 1e-6))
    assert error == pytest.approx(tolerance.of(q), rel=0.03)


@pytest.mark.parametrize("q", [q for q in QUANTITIES if q.whole], ids=lambda q: q.key)
def test_columns_lead_back_to_the_value(q) -> None:
    value = q.measured(disc(0.06), PLANE)
    torch.testing.assert_close(q.from_columns(q.to_columns(value)[0]), value[0], atol=1e-9, rtol=1e-9)


def test_every_row_has_its_fields_in_target_and_tolerance() -> None:
    for q in QUANTITIES:
        assert q.asked.keys() <= Target.model_fields.keys()
        assert q.tolerance in Tolerance.model_fields
    assert Target(diameter_mm=45).given(BY_KEY["diameter"]) == ("diameter_mm", 45)
    assert Target().given(BY_KEY["diameter"]) is None


@pytest.mark.parametrize("q", QUANTITIES, ids=lambda q: q.key)
def test_residuals_pass_gradcheck(q) -> None:
    def off(mass: Tensor, centroid: Tensor, root: Tensor) -> Tensor:
        return q.off(Moments(mass, centroid, root @ root.mT), PLANE, wanted)

    m = disc(0.06)
    wanted = q.measured(m, PLANE) * 1.1
    root = (0.05 * torch.eye(3, dtype=torch.float64))[None]
    given = tuple(x.clone().requires_grad_() for x in (m.mass, m.centroid, root))
    assert torch.autograd.gradcheck(off, given)
