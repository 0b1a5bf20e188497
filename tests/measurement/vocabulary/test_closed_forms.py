"""Quantities of shapes whose measures are known: boxes, balls, cylinders."""

import numpy as np
import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.goals import Goal, allowed, error, measured, met, resolve_asks, sides
from anatomica.measurement.vocabulary.shapes import section
from anatomica.measurement.vocabulary.statistics import find
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.asks import parse_ask

HEART = ANATOMIES["cardiac"]
N = 32
H = HEART.edge_mm / N


def subject(*parts: tuple[str, np.ndarray], n: int = N) -> Subject:
    """A label map in which each tissue is where its mask is; later ones win."""
    array = np.zeros((n, n, n), np.uint8)
    for name, mask in parts:
        array[mask] = HEART.table.id_of(name)
    return Subject(LabelMap(array, Frame.model(HEART, n).affine, HEART.table), HEART)


def box(x: slice, y: slice, z: slice, n: int = N) -> np.ndarray:
    mask = np.zeros((n, n, n), bool)
    mask[x, y, z] = True
    return mask


def ball(centre: float, radius: float, n: int = N) -> np.ndarray:
    at = np.stack(np.meshgrid(*[np.arange(n) + 0.5] * 3, indexing="ij"), -1)
    return np.linalg.norm(at - centre, axis=-1) < radius


def value(s: Subject, key: str) -> float:
    found = find(s, key).value
    assert found is not None, find(s, key).reason
    return found


def test_contact_of_two_boxes() -> None:
    one, other = box(slice(4, 10), slice(4, 12), slice(4, 9)), box(slice(10, 20), slice(6, 12), slice(4, 30))
    s = subject(("LV", one), ("RV", other))
    # Six by five faces of one side touch.
    assert value(s, "touch[LV,RV].area_mm2") == pytest.approx(6 * 5 * H**2)
    assert value(s, "touch[RV,LV].area_mm2") == pytest.approx(6 * 5 * H**2)
    assert value(s, "touch[LV,LA].area_mm2") == 0
    faces = 2 * (6 * 8 + 6 * 5 + 8 * 5)
    assert value(s, "uncovered[RV,LV].area_mm2") == pytest.approx((faces - 30) * H**2)
    assert value(s, "pieces[LV]") == 1


def test_a_shell_encloses() -> None:
    s = subject(("Myo", ball(16, 12)), ("LV", ball(16, 8)))
    assert value(s, "uncovered[Myo,LV].area_mm2") == 0
    opened = subject(
        ("Myo", ball(16, 12)), ("LV", ball(16, 8)), ("LA", box(slice(2, 20), slice(14, 18), slice(14, 18)))
    )
    assert value(opened, "uncovered[Myo,LV].area_mm2") > 0


def test_what_lies_outside_a_box() -> None:
    s = subject(("LA", box(slice(8, 24), slice(8, 24), slice(8, 24))))
    half = HEART.edge_mm / 2
    assert value(s, f"outside[LA,0,{half},-{half},{half},-{half},{half}].volume_ml") == pytest.approx(
        8 * 16 * 16 * H**3 / 1000
    )
    assert value(s, f"outside[LA,-{half},{half},-{half},{half},-{half},{half}].volume_ml") == 0


def test_volumes_and_mass() -> None:
    s = subject(("Myo", ball(32, 24, 64)), ("LV", ball(32, 16, 64)), n=64)
    h = HEART.edge_mm / 64
    cavity, whole = (4 / 3 * np.pi * (r * h) ** 3 / 1000 for r in (16, 24))
    assert value(s, "lv.volume_ml") == pytest.approx(cavity, rel=0.01)
    assert value(s, "lv.mass_g") == pytest.approx(1.05 * (whole - cavity), rel=0.01)


def test_a_tilted_cylinders_section() -> None:
    n, way = 64, np.array([1.0, 2.0, 5.0]) / np.sqrt(30)
    at = np.stack(np.meshgrid(*[np.arange(n) + 0.5 - n / 2] * 3, indexing="ij"), -1)
    away = np.linalg.norm(at - (at @ way)[..., None] * way, axis=-1)
    s = subject(("Ao", away < 7), n=n)
    h, middle = HEART.edge_mm / n, np.full(3, HEART.edge_mm / 2)
    cut = section(s, ("Ao",), middle, way, 7 * h)
    assert s.hard(cut.plan("diameter_mm")) == pytest.approx(14 * h, abs=h / 4)
    assert s.hard(cut.plan("area_mm2")) == pytest.approx(np.pi * (7 * h) ** 2, rel=0.03)
    assert s.hard(cut.plan("max_diameter_mm")) == pytest.approx(14 * h, abs=h / 2)


def goal(text: str) -> Goal:
    return resolve_asks([parse_ask(text, HEART)], HEART, None, False, lambda key, percent: percent)[0]


def test_goals_are_held_or_not() -> None:
    s = subject(("LV", ball(16, 8)), ("RV", box(slice(0, 6), slice(2, 20), slice(2, 20))))
    lv, rv = value(s, "lv.volume_ml"), s.cube.volume_ml("RV")
    for text, held in (
        (f"lv.volume_ml = {lv * 1.019}", True),
        (f"lv.volume_ml = {lv * 1.03}", False),
        (f"lv.volume_ml = {lv * 1.03} ± 5 %", True),
        (f"lv.volume_ml <= {lv * 0.999}", False),
        (f"lv.volume_ml = {lv * 0.9}..{lv * 1.1}", True),
        ("LV touches RV", False),
    ):
        one = goal(text)
        values = measured(one, s)
        both = sides(one.ask, values)
        assert met(one, error(one, both), allowed(one, values)) == held, text
    ratio = goal("outside[RV,0,1,0,1,0,1].volume_ml / lv.volume_ml = 1")
    values = measured(ratio, s)
    assert float(sides(ratio.ask, values).left) == pytest.approx(rv / lv, rel=0.01)
    # The share of a ratio's tolerance that each of its quantities brings.
    outside = goal("outside[RV,0,1,0,1,0,1].volume_ml = 1")
    own = outside.entries[0].tolerance / lv + 0.02 * rv / lv
    assert allowed(ratio, values) == pytest.approx(own, rel=0.02)
