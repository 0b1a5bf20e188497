"""Nothing beyond the box: residual and derivative."""

from dataclasses import replace

import pytest
import torch

from anatomica.data.phantoms import phantom
from anatomica.guidance.field_jacobian import jacobian
from anatomica.guidance.outside import certified_outside_probe, outside_of_field, outside_probe
from anatomica.guidance.prediction import Prediction
from anatomica.measurement.placing import Resolved, resolve
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.yaml import parse_spec

SPEC = """
name: x
anatomy: cardiac
constraints:
- name: rv
  structure: [RV]
  domain: {family: box, grid: [8, 8, 8], centre_mm: [0, 0, 0], size_mm: [60, 60, 60]}
  outside: empty
  target: {volume_ml: 100}
  match: []
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("cardiac")


@pytest.fixture(scope="module")
def asked(model: Model) -> Resolved:
    (r,) = resolve(parse_spec(SPEC), model.frame)
    return r.to(model.scaler.mean)


def latent(model: Model, count: int = 2) -> torch.Tensor:
    return torch.randn(count, *model.latent_shape, generator=torch.Generator().manual_seed(3))


def test_free_has_no_residual(model: Model, asked: Resolved) -> None:
    now = Prediction.of(model, latent(model, 1))
    free = replace(asked, constraint=asked.constraint.model_copy(update={"outside": "free"}))
    assert outside_probe(now, free) == certified_outside_probe(now, free) == []
    assert outside_of_field(now, free) is None


def test_the_derivative_is_that_of_finite_differences(model: Model, asked: Resolved) -> None:
    z = latent(model)
    now = Prediction.of(model, z)
    (probe,) = outside_probe(now, asked)
    J = jacobian(now, probe, asked)
    along = J[:, 0].view_as(z)
    along = along / along.flatten(1).norm(dim=1).view(-1, 1, 1, 1, 1)
    step = 2e-2
    rho = [outside_probe(Prediction.of(model, z + sign * step * along), asked)[0].rho for sign in (1, -1)]
    slope = (rho[0] - rho[1])[:, 0] / (2 * step)
    torch.testing.assert_close(slope, J[:, 0].flatten(1).norm(dim=1), rtol=0.05, atol=0)


def test_what_is_certified_agrees_with_what_is_guided(model: Model, asked: Resolved) -> None:
    """The hard mass outside on two grids is nearly the same; the faces of the box lie between the points."""
    heart = phantom("cardiac", 5, model.n).label_map
    labels = torch.from_numpy(heart.table.index[heart.array])[None]
    with torch.no_grad():
        z = model.scaler.standardise(model.autoencoder.encode(labels).mean)
    now = Prediction.of(model, z)
    (hard,) = certified_outside_probe(now, asked)
    fine = outside_of_field(now, asked)
    assert fine is not None
    one_percent = 0.01 * float(asked.wanted.values["mass"].sum())
    assert float(hard.rho) == pytest.approx(fine / one_percent, rel=0.2)
