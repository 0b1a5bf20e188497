"""Residuals of named quantities are those of the label map, and their derivative is that of the field."""

import pytest
import torch

from anatomica.generation.draw import decode
from anatomica.generation.resolve import resolve_for
from anatomica.guidance.asks import Certified, Follower, measure_goal, placed_on, readings, rows
from anatomica.guidance.prediction import Prediction
from anatomica.measurement.certificate import certificate
from anatomica.measurement.goals import Goal, goals_in, place, residual, sides
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.asks import ask
from tiny_prior import save_tiny_model

ASKS = (
    "outside[Ve,-100,0,-100,100,-100,100].volume_ml = 0.1",
    "touch[Ve,Lu].area_mm2 >= 40",
    "touch[Ve,Lu].area_mm2 <= 1.5 * touch[Ve,Ca].area_mm2",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Model:
    return load_model(save_tiny_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def z() -> torch.Tensor:
    return torch.randn(1, 3, 4, 4, 4, generator=torch.Generator().manual_seed(5))


def asked(model: Model, *texts: str) -> tuple[Goal, ...]:
    return goals_in(resolve_for(model, ask(texts)))


def test_the_derivative_is_that_of_the_field(model: Model, z: torch.Tensor) -> None:
    goals = asked(model, *ASKS)
    (label_map,) = decode(model, z, model.n)
    s = Subject(label_map, model.about)
    placed = [place(goal, s) for goal in goals]
    read = readings(placed, Prediction.of(model, z))
    now = rows(Prediction.of(model, z), placed, read, "sum")
    way = torch.randn(z.shape, generator=torch.Generator().manual_seed(1))
    h = 1e-2
    ahead, behind = (
        rows(Prediction.of(model, z + step * way), placed, read, "sum").rho[0].double() for step in (h, -h)
    )
    slope = (ahead - behind) / (2 * h)
    found = now.J[0].double() @ way.flatten().double()
    acting = slope.abs() > 1e-3
    assert acting.any()
    torch.testing.assert_close(found[acting], slope[acting], rtol=0.05, atol=0.02 * float(slope.abs().max()))


def test_residuals_are_the_certificates(model: Model, z: torch.Tensor) -> None:
    goals = asked(model, *ASKS)
    (label_map,) = decode(model, z, model.n)
    now = Prediction.of(model, z)
    voxels, *_ = Certified.of(now, goals, model.n).rows(now)
    checks = certificate(label_map, goals, model.about)
    equal, *bounded = checks
    assert voxels.rho[0, 0].abs().item() == pytest.approx(equal.error / equal.tolerance, rel=1e-3)
    for rho, check in zip(voxels.rho[0, 1:].tolist(), bounded, strict=True):
        # Beyond 1 is outside of the bound, by as many tolerances as the residual is beyond 1.
        outside = max(abs(rho) - 1, 0.0)
        assert outside == pytest.approx(check.error / check.tolerance, rel=1e-3, abs=1e-4)


def test_the_field_itself_is_measured(model: Model, z: torch.Tensor) -> None:
    (goal,) = asked(model, ASKS[0])
    (label_map,) = decode(model, z, model.n)
    (finer,) = decode(model, z, 4 * model.n)
    found = measure_goal(Prediction.of(model, z), goal, Subject(label_map, model.about))
    assert found is not None
    (value,) = found.values()
    s = Subject(finer, model.about)
    (true,) = place(goal, s).values([s.parse(piece) for piece in place(goal, s).pieces]).values()
    coarse = Subject(label_map, model.about)
    (voxels,) = place(goal, coarse).values([coarse.parse(p) for p in place(goal, coarse).pieces]).values()
    assert value == pytest.approx(float(true), rel=0.03)
    assert abs(value - float(true)) <= abs(float(voxels) - float(true)) + 0.01 * float(true)


def test_held_bounds_have_no_residual(model: Model) -> None:
    (goal,) = asked(model, "touch[Ve,Lu].area_mm2 = 40..80")
    for left, wanted in ((60.0, 0.0), (39.0, -3.0), (40.0, -1.0), (80.5, 2.0)):
        both = sides(goal.ask, {goal.ask.left.keys[0]: torch.tensor(left)})
        assert float(residual(goal, both, 0.5)) == pytest.approx(wanted)


def test_levels_follow_and_freeze(model: Model, z: torch.Tensor) -> None:
    follower = Follower([asked(model, ASKS[0])])
    now = Prediction.of(model, z)
    assert follower.rows(now, torch.tensor([50.0]), "sum") is None
    for sigma in (4.0, 0.5):
        found = follower.rows(now, torch.tensor([sigma]), "sum")
        assert found is not None
        assert found.rho.shape == (1, 1)
    course = follower.courses[0]
    assert course.frozen
    assert course.sigma == pytest.approx(0.5)
    before = course.found
    follower.rows(now, torch.tensor([0.1]), "sum")
    assert follower.courses[0].found is before


def test_what_cannot_be_placed_leaves_the_latent_as_it_is(model: Model, z: torch.Tensor) -> None:
    (goal,) = asked(model, "uncovered[Ve,Ca].area_mm2 <= 5")
    now = Prediction.of(model, z)
    without = Subject(model.label_map(torch.zeros(8, 8, 8, dtype=torch.uint8).numpy()), model.about)
    assert placed_on(without, [goal]) == [None]
    nothing = Certified([], [], ([], [])).rows(now)
    assert [x.rho.shape for x in nothing] == [(1, 0)]
    assert nothing[0].J.shape == (1, 0, z[0].numel())
