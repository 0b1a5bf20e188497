"""Asks that nothing can hold are refused, with the nearest values that can be held."""

import numpy as np
import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.errors import AnatomicaError
from anatomica.generation.feasible_asks import limits_of, refuse_infeasible
from anatomica.measurement.goals import resolve_asks
from anatomica.prior.percentiles import Percentiles, percentiles_of
from anatomica.spec.asks import parse_ask

HEART = ANATOMIES["cardiac"]


@pytest.fixture
def population() -> Percentiles:
    rows = [{"lv.volume_ml": float(x), "rv.volume_ml": float(x) + 20} for x in np.linspace(60, 160, 41)]
    return percentiles_of(rows, "a test")


def check(population: Percentiles | None, *texts: str) -> None:
    asks = [parse_ask(text, HEART) for text in texts]
    values = population.value if population is not None else lambda key, percent: 0.0
    refuse_infeasible(resolve_asks(asks, HEART, None, False, values), population)


def test_what_can_be_held_is_not_refused(population: Percentiles) -> None:
    assert limits_of("lv.volume_ml", population) == pytest.approx((48, 192))
    check(population, "lv.volume_ml = 190")
    check(population, "lv.volume_ml = p99", "rv.volume_ml <= 1.2 * lv.volume_ml")
    check(population, "lv.volume_ml >= 100", "lv.volume_ml <= 120")
    check(population, "lv.mass_g = 5000")  # the population does not know it
    check(None, "lv.volume_ml = 5000")


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("lv.volume_ml = 400",), "the nearest feasible value is 192"),
        (("lv.volume_ml <= 10",), "the nearest feasible value is 48"),
        (("lv.volume_ml = 100", "lv.volume_ml >= 120"), "contradict each other"),
        (("lv.volume_ml = 60", "rv.volume_ml >= 4 * lv.volume_ml"), "rv.volume_ml = 216, lv.volume_ml = 60"),
        (("rv.volume_ml / lv.volume_ml >= 9",), "out of reach"),
    ],
)
def test_what_cannot_be_held_is_said(population: Percentiles, texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(AnatomicaError) as caught:
        check(population, *texts)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (
            ("lv.wall_thickness_mm.mean = 12", "lv.wall_thickness_mm.max = 9"),
            "with lv.wall_thickness_mm.mean = 12 the nearest feasible lv.wall_thickness_mm.max is 12",
        ),
        (("av.annulus.area_mm2 = 400", "av.annulus.diameter_mm = 30"), "av.annulus.diameter_mm is 22."),
        (("lv.volume_ml = 100", "lv.long_axis_mm = 80", "lv.sphericity = 0.8"), "lv.sphericity is 0.3"),
        (("mv.annulus.perimeter_mm <= 60", "mv.annulus.diameter_mm >= 30"), "cannot be held together"),
    ],
)
def test_definitions_are_not_broken(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(AnatomicaError) as caught:
        check(None, *texts)
    assert told in str(caught.value)


def test_what_definitions_allow_is_not_refused() -> None:
    check(None, "lv.wall_thickness_mm.mean = 9", "lv.wall_thickness_mm.max = 12")
    check(None, "lv.wall_thickness_mm.mean <= 12", "lv.wall_thickness_mm.max >= 9")
    check(None, "av.annulus.area_mm2 = 400", "av.annulus.diameter_mm = 22.5")
    check(None, "lv.volume_ml = 100", "lv.long_axis_mm = 80")


def test_the_nearest_value_is_one_that_the_definition_has() -> None:
    known = percentiles_of([{"ao.tortuosity": x} for x in np.linspace(1.05, 1.4, 41).tolist()], "a test")
    assert limits_of("ao.tortuosity", known, ANATOMIES["aortic"])[0] == 1.0


def test_relations_count_for_definitions() -> None:
    about = ANATOMIES["coronary"]
    texts = (
        "lumen.mean_diameter_mm = 2.4",
        "vessel.area_mm2 = 14.5..18.4",
        "wall.thickness_mm <= 0.33 * lumen.mean_diameter_mm",
    )
    goals = resolve_asks([parse_ask(x, about) for x in texts], about, None, False, lambda key, percent: 0.0)
    with pytest.raises(AnatomicaError, match="about the area of the circle of"):
        refuse_infeasible(goals, None)
    refuse_infeasible([goals[0], goals[2]], None)
    wider = resolve_asks(
        [parse_ask("wall.thickness_mm <= 0.45 * lumen.mean_diameter_mm", about)],
        about,
        None,
        False,
        lambda key, percent: 0.0,
    )
    refuse_infeasible([*goals[:2], *wider], None)
