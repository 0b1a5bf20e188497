"""Numbers of a spec: finite, within bounds, and such that some anatomy could have them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anatomica.errors import AnatomicaError
from anatomica.spec.spec import Spec
from anatomica.spec.strict import MOST_CONSTRAINTS
from anatomica.spec.yaml import parse_spec

HEAD = "name: heart\nanatomy: cardiac\nconstraints:\n"


def constraint(target="{}", domain="{family: global, grid: [16, 16, 16]}", more="", name="LV") -> str:
    return f"  - {{name: {name}, structure: [LV], domain: {domain}, target: {target}{more}}}\n"


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf", "1e200", "-1e200", "1e400", "true", "1e-320"])
@pytest.mark.parametrize(
    "field",
    [
        "target: {volume_ml: X}",
        "target: {volume_ml: [1, X]}",
        "target: {mass: X}",
        "target: {centroid_mm: [0, 0, X]}",
        "target: {shape: [X, 0.3, 0.3, 0, 0, 0]}",
        "target: {spread_mm: X}",
        "target: {diameter_mm: X}",
        "target: {axes_mm: [X, 1, 1]}",
        "target: {axes_mm: [1, 1, 1], rotation_deg: [X, 0, 0]}",
        "tolerance: {mass_percent: X}",
        "tolerance: {shape: X}",
        "weights: {mass: X}",
        "temperature: X",
        "calibre_mm: X",
    ],
)
def test_what_is_no_number_of_an_anatomy_is_refused(field, number):
    harmless = number == "1e-320" and not any(
        x in field for x in ("spread", "diameter", "axes_mm: [X", "tolerance", "temperature", "shape")
    )
    if harmless:  # next to nothing of a volume or of a distance is nothing
        return
    text = f"{HEAD}  - {{name: LV, structure: [LV], domain: {{family: global, grid: [8, 8, 8]}}, {field}}}\n"
    with pytest.raises(AnatomicaError, match=r"x\.yaml, line 4") as raised:
        parse_spec(text.replace("X", number), "x.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (constraint("{volume_ml: -5}"), "volume_ml: .*greater than or equal to 0, found -5"),
        (constraint("{mass: 1.5}"), r"mass: .*less than or equal to 1, found 1\.5"),
        (constraint("{centroid: [0.5, 0.5, 2]}"), r"centroid\.2: .*less than or equal to 1"),
        (constraint("{shape: [1, 1, 1, 0, 0, 0]}"), "shape: not a covariance of trace 1: .* is 3"),
        (constraint("{shape: [0.4, 0.3, 0.3, 0.9, 0, 0]}"), "its smallest eigenvalue is -0.551"),
        (constraint("{betti: {b0: -1}}"), r"betti\.b0: .*greater than or equal to 0"),
        (constraint("{betti: {b0: 1000000000}}"), r"betti\.b0: .*less than or equal to 10000"),
        (constraint("{betti: {b0: 0, b1: 2}}"), "no loops and no voids"),
        (constraint("{volume_ml: 100, betti: {b0: 0}}"), "volume_ml asks for some .* for none"),
        (constraint("{mass: 0, betti: {b0: 2}}"), "mass asks for none .* for some"),
        (constraint(domain="{family: global, grid: [600, 600, 600]}"), r"grid\.0: .*512, found 600"),
        (constraint(domain="{family: global, grid: [512, 512, 512]}"), "points together"),
        (constraint(domain="{family: spherical, grid: [4, 4, 4], rays: 1000000}"), "rays: .*1024"),
        (constraint(domain="{family: curvilinear, grid: [1, 4, 4], planes: 100000}"), "planes: .*1024"),
        (
            constraint(domain="{family: cylindrical, grid: [4, 4, 4], levels: 1000, angles: 1000}"),
            "levels times angles",
        ),
        (
            constraint(
                domain="{family: interface, grid: [4, 4, 4], first: [LV], second: [LA], dilation: 1000000000}"
            ),
            "dilation: .*128",
        ),
        (constraint(domain="{family: spherical, grid: [4, 4, 4], reference: [0, 0, 0]}"), "direction"),
        (
            constraint(domain="{family: box, grid: [4, 4, 4], centre_mm: [0, 0, 0], size_mm: [0, 1, 1]}"),
            "size",
        ),
        ("".join(constraint() for _ in range(MOST_CONSTRAINTS + 1)), "at most 128 items"),
        (constraint(name='"a\\nb"'), "name: .*pattern"),
        (constraint(name="a" * 300), "name: .*200 characters"),
        (constraint().replace("[LV]", "[background]"), "the background is not a tissue"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(text, reason):
    with pytest.raises(AnatomicaError, match=reason) as raised:
        parse_spec(HEAD + text, "x.yaml")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 500


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-5, 5), min_size=9, max_size=9))
def test_every_covariance_is_a_shape(numbers):
    factor = np.array(numbers).reshape(3, 3)
    covariance = factor @ factor.T + 1e-3 * np.eye(3)
    covariance /= np.trace(covariance)
    pairs = itertools.chain(((i, i) for i in range(3)), itertools.combinations(range(3), 2))
    listed = [round(float(covariance[i, j]), 4) for i, j in pairs]
    parsed = parse_spec(HEAD + constraint(f"{{shape: {listed}}}"), "x.yaml")
    assert parsed.constraints[0].target.shape == pytest.approx(tuple(listed))


def test_python_is_held_to_the_same_bounds():
    domain = {"family": "global", "grid": (8, 8, 8)}
    with pytest.raises(ValueError, match="finite"):
        Spec.model_validate(
            {
                "name": "x",
                "anatomy": "cardiac",
                "constraints": [
                    {"name": "a", "structure": ["LV"], "domain": domain, "target": {"mass": float("nan")}}
                ],
            }
        )
