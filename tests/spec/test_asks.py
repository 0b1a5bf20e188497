"""Asks as text: what each way to ask becomes, and what a mistake is told."""

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.errors import AnatomicaError
from anatomica.spec.asks import Bound, ask, parse_ask
from anatomica.spec.spec import Spec
from anatomica.spec.yaml import dump_spec, parse_spec

HEART, AORTA, SPINE = ANATOMIES["cardiac"], ANATOMIES["aortic"], ANATOMIES["spinal"]


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("lv.volume_ml = 140", 140, 140),
        ("lv.volume_ml=140", 140, 140),
        ("LV.Volume_mL == 0.14 L", 140, 140),
        ("ao.stj.diameter_mm = 3.2 cm", 32, 32),
        ("lv.mass_g = 90..120", 90, 120),
        ("lv.long_axis_mm = 8..9 cm", 80, 90),
        ("90 <= lv.mass_g <= 120", 90, 120),
        ("120 >= lv.mass_g >= 90", 90, 120),
        ("lv.sphericity <= 0.5", None, 0.5),
        ("lv.sphericity < 0.5", None, 0.5),
        ("0.5 >= lv.sphericity", None, 0.5),
        ("lv.sphericity >= 0.3", 0.3, None),
        ("septum.defects = 1", 1, 1),
    ],
)
def test_numbers_and_ranges(text: str, low: float | None, high: float | None) -> None:
    found = parse_ask(text, HEART)
    assert (found.low, found.high) == tuple(None if x is None else Bound("number", x) for x in (low, high))
    assert found.equal == (low == high)
    assert found.right is None


def test_other_ways_to_ask() -> None:
    assert parse_ask("lv.volume_ml = p90", HEART).low == Bound("percentile", 90)
    assert parse_ask("lv.volume_ml = p10..p90", HEART).high == Bound("percentile", 90)
    assert parse_ask("lv.volume_ml = +10 %", HEART).low == Bound("share", 10)
    assert parse_ask("lv.long_axis_mm = -0.3 cm", HEART).low == Bound("difference", -3)
    assert parse_ask("kyphosis_deg = -5", SPINE).low == Bound("number", -5)
    assert parse_ask("bovine = true", AORTA).low == Bound("number", 1)
    assert parse_ask("lv.volume_ml = 140 ± 2", HEART).tolerance == (2, "mL")
    assert parse_ask("lv.volume_ml = 140 +- 1 %", HEART).tolerance == (1, "%")
    cobb = parse_ask("cobb_deg[T5,T12] <= 40", SPINE)
    assert cobb.left.keys == ("cobb_deg[T5,T12]",)
    disc = parse_ask("disc.L1-L2.height_mm = 8", SPINE)
    assert disc.left.keys == ("disc.L1-L2.height_mm",)


def test_relations_of_two_quantities() -> None:
    found = parse_ask("rv.volume_ml <= 1.2 * lv.volume_ml", HEART)
    assert found.keys == ("rv.volume_ml", "lv.volume_ml")
    assert (found.low, found.high) == (None, Bound("number", 0.0))
    assert found.right is not None
    assert found.right.value({"lv.volume_ml": 100.0}) == pytest.approx(120.0)
    ratio = parse_ask("rv.volume_ml / lv.volume_ml = 0.9..1.1", HEART)
    assert ratio.left.unit == "1"
    assert ratio.left.value({"rv.volume_ml": 90.0, "lv.volume_ml": 100.0}) == pytest.approx(0.9)
    mean = parse_ask("(lv.volume_ml + rv.volume_ml) / 2 - la.volume_ml >= 10 mL", HEART)
    values = {"lv.volume_ml": 100.0, "rv.volume_ml": 120.0, "la.volume_ml": 60.0}
    assert mean.left.value(values) == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lv.volum_ml = 140", "did you mean 'lv.volume_ml'?"),
        ("ao.mid_ascending.diamter_mm = 40", "unknown quantity"),
        ("lv.volume_ml = 140 mm", "'mm' is not a unit of this quantity; allowed: mL"),
        ("lv.sphericity = 0.5 mm", "has no unit"),
        ("lv.volume_ml <= lv.mass_g", "has the unit mL, lv.mass_g has g"),
        ("lv.volume_ml + lv.mass_g <= 3", "only quantities of one unit"),
        ("lv.volume_ml", "is not an ask"),
        ("lv.volume_ml =", "is not an ask"),
        ("3 <= 4", "names no quantity"),
        ("lv.mass_g = 120..90", "ends before it begins"),
        ("lv.mass_g <= 90..120", "a range takes '='"),
        ("lv.volume_ml / rv.volume_ml = p90", "of one quantity"),
        ("lv.volume_ml = p101", "p0 to p100"),
        ("lv.volume_ml = 140 ± 0", "a positive number"),
        ("lv.volume_ml = {}", "is not understood"),
        ("(lv.volume_ml = 3", "closing bracket"),
    ],
)
def test_a_mistake_is_one_sentence(text: str, told: str) -> None:
    with pytest.raises(AnatomicaError) as caught:
        parse_ask(text, HEART)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_relations_of_tissues() -> None:
    apart = parse_ask("left ventricle does not touch RV", HEART)
    assert apart.left.keys == ("touch[LV,RV].area_mm2",)
    assert apart.equal
    assert parse_ask("LA touches LV over 1 cm2", HEART).low == Bound("number", 100)
    assert parse_ask("Myo encloses LV", HEART).left.keys == ("uncovered[Myo,LV].area_mm2",)
    assert parse_ask("Myo in one piece", HEART).low == Bound("number", 1)
    box = parse_ask("LA inside (-40..40, -50..20.5, -30..60)", HEART)
    assert box.left.keys == ("outside[LA,-40,40,-50,20.5,-30,60].volume_ml",)
    with pytest.raises(AnatomicaError, match="unknown tissue"):
        parse_ask("LV touches XX", HEART)
    with pytest.raises(AnatomicaError, match="one tissue twice"):
        parse_ask("LV touches LV", HEART)


def test_python_and_yaml_say_the_same() -> None:
    wanted = ask(
        {"lv.volume_ml": 140, "lv.mass_g": (90, 120), "la.volume_ml": (None, 80), "ra.volume_ml": "<=p90"}
    )
    assert wanted.texts == (
        "lv.volume_ml = 140",
        "lv.mass_g = 90..120",
        "la.volume_ml <= 80",
        "ra.volume_ml <=p90",
    )
    text = (
        "name: big\nanatomy: cardiac\nplace: prediction\n"
        "ask: {lv.volume_ml: 140, lv.mass_g: [90, 120], la.volume_ml: '<= 80', ra.volume_ml: <=p90}\n"
    )
    spec = parse_spec(text)
    assert spec.ask == wanted.texts
    assert parse_spec(dump_spec(spec)) == spec
    both = text + "constraints:\n- {name: a, structure: [LV], domain: {family: global, grid: [8, 8, 8]}}\n"
    assert len(parse_spec(both).constraints) == 1
    with pytest.raises(AnatomicaError, match=r"line 4 .*\): unknown quantity 'lv.mass_kg'"):
        parse_spec(text.replace("lv.mass_g", "lv.mass_kg"))
    with pytest.raises(AnatomicaError, match=r"line 4 .*\): 'lv.mass_g = 120..90': the range ends"):
        parse_spec(text.replace("[90, 120]", "[120, 90]"))
    with pytest.raises(AnatomicaError, match="asks for something"):
        parse_spec("name: nothing\nanatomy: cardiac\n")
    with pytest.raises(ValueError, match="mapping of quantities"):
        Spec.model_validate({"name": "x", "anatomy": "cardiac", "ask": 3})
