"""Constraints that get in each other's way are named; those that do not are left in peace."""

import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.errors import AnatomicaError
from anatomica.generation.conflicts import conflicts
from anatomica.measurement.placing import resolve
from anatomica.measurement.possible import refuse_impossible
from anatomica.spec.yaml import parse_spec

FRAME = Frame.model(ANATOMIES["cardiac"], 32)


def placed(*rows: str):
    text = "name: x\nanatomy: cardiac\nconstraints:\n" + "".join(f"- {{{row}}}\n" for row in rows)
    return resolve(parse_spec(text), FRAME, None)


def whole(name: str, tissues: str, target: str) -> str:
    return (
        f"name: {name}, structure: [{tissues}], domain: {{family: global, grid: [16, 16, 16]}}, "
        f"target: {{{target}}}"
    )


def test_two_numbers_for_one_quantity_conflict_beyond_their_tolerances() -> None:
    (said,) = conflicts(
        placed(whole("a", "LV", "volume_ml: 100"), whole("b", "LV", "volume_ml: 120")), FRAME
    )[:1]
    assert "'a' and 'b' ask for the same volume in the same place" in said
    near = placed(whole("a", "LV", "volume_ml: 100"), whole("b", "LV", "volume_ml: 101"))
    assert conflicts(near, FRAME) == []
    counts = placed(whole("a", "LV", "betti: {b0: 1}"), whole("b", "LV", "betti: {b0: 2}"))
    assert "different Betti numbers" in conflicts(counts, FRAME)[0]


def test_a_union_is_as_large_as_its_tissues() -> None:
    """100 + 50 mL, but the union is to have 200 mL: 50 mL less the tolerances of 2 % cannot be."""
    parts = whole("left", "LV", "volume_ml: 100"), whole("right", "RV", "volume_ml: 50")
    (said,) = conflicts(placed(*parts, whole("both", "LV, RV", "volume_ml: 200")), FRAME)
    missing = 200 - 150 - 0.02 * 350
    assert f"at least {missing:.4g} mL off" in said
    assert conflicts(placed(*parts, whole("both", "LV, RV", "volume_ml: 151")), FRAME) == []


def test_nothing_is_more_compact_than_a_ball() -> None:
    """A ball of 100 mL has a radius of 28.8 mm and a spread of 22.3 mm."""
    assert conflicts(placed(whole("a", "LV", "volume_ml: 100, spread_mm: 23")), FRAME) == []
    (said,) = conflicts(placed(whole("a", "LV", "volume_ml: 100, spread_mm: 15")), FRAME)
    assert "at least 22.3" in said


BOX = "domain: {family: box, grid: [8, 8, 8], centre_mm: [0, 0, 0], size_mm: [20, 20, 20]}"


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("volume_ml: 9", "asks for 9 mL in a domain of 8 mL"),
        ("centroid_mm: [15, 0, 0]", "lies 5 mm outside"),
        ("spread_mm: 18", "spread of 18 mm in a domain where it is at most 17.32 mm"),
        ("betti: {b0: 5000}", "asks for 5000 components"),
    ],
)
def test_what_does_not_fit_into_a_domain_is_refused(target: str, reason: str) -> None:
    asked = placed(f"name: a, structure: [LV], {BOX}, target: {{{target}}}")
    with pytest.raises(AnatomicaError, match="constraint 'a'") as refused:
        refuse_impossible(asked, FRAME)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("centre", "volume", "reason"),
    [
        (500.0, 1.0, "its domain lies outside of the cube"),
        (FRAME.edge_mm / 2, 6.0, "asks for 6 mL in a domain of 4.5 mL"),
    ],
)
def test_only_what_a_box_has_in_the_cube_can_be_filled(centre: float, volume: float, reason: str) -> None:
    box = BOX.replace("centre_mm: [0, 0, 0]", f"centre_mm: [{centre}, 0, 0]")
    with pytest.raises(AnatomicaError, match=reason):
        refuse_impossible(placed(f"name: a, structure: [LV], {box}, target: {{volume_ml: {volume}}}"), FRAME)
    half = box.replace("[500.0", f"[{FRAME.edge_mm / 2}")
    refuse_impossible(placed(f"name: a, structure: [LV], {half}, target: {{volume_ml: 4}}"), FRAME)


def test_what_fits_is_not_refused() -> None:
    target = "volume_ml: 8, centroid_mm: [9, 9, -9], spread_mm: 17, betti: {b0: 3}"
    refuse_impossible(placed(f"name: a, structure: [LV], {BOX}, target: {{{target}}}"), FRAME)
