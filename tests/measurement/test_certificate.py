"""Certificates: met, not met, and exact Betti numbers, on shapes with known answers."""

import numpy as np
import pytest

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.measurement.certificate import (
    Check,
    all_met,
    badness,
    certificate,
    not_placed,
    sentences_not_placed,
    worth_another,
)
from anatomica.measurement.placing import resolve
from anatomica.spec.yaml import parse_spec
from oracles import Ellipsoid, shell, torus, voxel_centres

N, EDGE_MM = 32, 256.0
TABLE = anatomy("cardiac").table
BALL = Ellipsoid((0.5, 0.5, 0.5), (0.3, 0.2, 0.2))


def heart(mask: np.ndarray, tissue: str = "RV") -> LabelMap:
    return LabelMap(mask.astype(np.uint8) * TABLE.id_of(tissue), cube_affine(EDGE_MM, N), TABLE)


def checks_of(cube: LabelMap, target: str, domain: str = f"{{family: global, grid: [{N}, {N}, {N}]}}"):
    spec = parse_spec(
        "name: x\nanatomy: cardiac\nconstraints:\n- name: ventricle\n  structure: [RV]\n  match: []\n"
        f"  domain: {domain}\n  target: {target}\n"
    )
    resolved = resolve(spec, Frame.of(cube, anatomy("cardiac")))
    return certificate(cube, resolved, anatomy("cardiac"))


def by_quantity(checks) -> dict[str, Check]:
    return {c.quantity: c for c in checks}


def test_an_ellipsoid_meets_its_own_closed_form() -> None:
    ml = BALL.mass * EDGE_MM**3 / 1000
    shape = np.diag(BALL.covariance) / np.trace(BALL.covariance)
    target = f"{{volume_ml: {ml}, centroid_mm: [0, 0, 0], shape: [{', '.join(map(str, shape))}, 0, 0, 0]}}"
    spread = EDGE_MM * np.sqrt(np.trace(BALL.covariance))
    target = f"{target[:-1]}, spread_mm: {spread}}}"
    checks = checks_of(heart(BALL.contains(voxel_centres(N))), target)
    assert [c.quantity for c in checks] == ["volume", "centroid", "shape", "spread"]
    assert all_met(checks)
    assert badness(checks)[0] == 0


def test_what_is_off_is_not_met_and_says_by_how_much() -> None:
    cube = heart(BALL.contains(voxel_centres(N)))
    ml = cube.volume_ml("RV")
    found = by_quantity(checks_of(cube, f"{{volume_ml: {ml / 1.05}, centroid_mm: [0, 1.5, 2]}}"))
    assert not found["volume"].met
    assert found["volume"].error == pytest.approx(5, abs=0.01)
    assert found["volume"].achieved == pytest.approx(ml)
    assert found["centroid"].error == pytest.approx(2.5, abs=0.01)
    assert found["centroid"].in_tolerances == pytest.approx(2.5, abs=0.01)
    assert not found["centroid"].met
    assert by_quantity(checks_of(cube, f"{{volume_ml: {ml / 1.019}}}"))["volume"].met
    wide = EDGE_MM * np.sqrt(np.trace(BALL.covariance)) * 1.1
    spread = by_quantity(checks_of(cube, f"{{spread_mm: {wide}}}"))["spread"]
    assert not spread.met
    assert spread.error == pytest.approx(100 * 0.1 / 1.1, abs=0.5)
    turned = by_quantity(checks_of(cube, "{shape: [0.25, 0.5, 0.25, 0, 0, 0]}"))["shape"]
    assert not turned.met
    assert turned.achieved == pytest.approx([9 / 17, 4 / 17, 4 / 17, 0, 0, 0], abs=0.02)


@pytest.mark.parametrize(
    ("mask", "betti"),
    [
        (BALL.contains(voxel_centres(N)), (1, 0, 0)),
        (torus(N), (1, 1, 0)),
        (shell(N, 0.5, 0.2, 0.35), (1, 0, 1)),
        (torus(N, (0.5, 0.5, 0.25)) | torus(N, (0.5, 0.5, 0.75)), (2, 2, 0)),
    ],
)
def test_betti_numbers_are_exact(mask: np.ndarray, betti: tuple[int, int, int]) -> None:
    b0, b1, b2 = betti
    assert all_met(checks_of(heart(mask), f"{{betti: {{b0: {b0}, b1: {b1}, b2: {b2}}}}}"))
    one_more = checks_of(heart(mask), f"{{betti: {{b0: {b0}, b1: {b1 + 1}}}}}")
    assert [(c.quantity, c.met, c.error) for c in one_more] == [("components", True, 0), ("loops", False, 1)]


def test_one_stray_voxel_is_one_component_too_many() -> None:
    mask = BALL.contains(voxel_centres(N))
    mask[0, 0, 0] = True
    (check,) = checks_of(heart(mask), "{betti: {b0: 1}}")
    assert (check.met, check.requested, check.achieved) == (False, 1, 2)


def test_a_structure_that_is_not_there_reaches_no_place() -> None:
    """Its centroid is the box's middle by convention, and that was asked for."""
    checks = checks_of(
        heart(BALL.contains(voxel_centres(N)), "LV"), "{volume_ml: 10, centroid_mm: [0, 0, 0]}"
    )
    assert not any(c.met for c in checks)
    assert by_quantity(checks)["centroid"].note == "no RV there"
    assert by_quantity(checks)["volume"].error == pytest.approx(100)


def test_a_constraint_without_a_place_is_not_met() -> None:
    """An atrium and a ventricle far apart have no interface."""
    mask = Ellipsoid((0.2, 0.5, 0.5), (0.1,) * 3).contains(voxel_centres(N))
    other = Ellipsoid((0.8, 0.5, 0.5), (0.1,) * 3).contains(voxel_centres(N))
    array = mask * TABLE.id_of("RA") + other * TABLE.id_of("RV")
    cube = LabelMap(array.astype(np.uint8), cube_affine(EDGE_MM, N), TABLE)
    spec = parse_spec(
        "name: x\nanatomy: cardiac\nconstraints:\n- name: valve\n  structure: [RV]\n"
        "  domain: {family: interface, grid: [4, 8, 8], first: [RV], second: [RA]}\n"
    )
    resolved = resolve(spec, Frame.of(cube, anatomy("cardiac")), cube)
    checks = certificate(cube, resolved, anatomy("cardiac"))
    assert not all_met(checks)
    assert not worth_another(checks), "no sample can meet it"
    (missing,) = not_placed(resolved)
    assert missing["constraint"] == "valve"
    (said,) = sentences_not_placed(resolved)
    assert said == f"valve could not be placed ({missing['reason']}), so it was not asked for and is not met"
    assert missing["reason"] in checks[0].note


@pytest.mark.parametrize(
    ("constraint", "valid"),
    [
        ("target: {volume_ml: 5}, match: []", True),
        ("target: {volume_ml: 5}, match: [mass]", True),
        ("target: {axes_mm: [3, 2, 1], spread_mm: 9}, match: [shape, spread]", True),
        ("target: {betti: {b0: 1}}, match: []", True),
        ("target: {volume_ml: 5}, match: [mass, centroid]", False),
        ("target: {betti: {b0: 1}}, match: [spread]", False),
    ],
)
@pytest.mark.parametrize("domain", ["global", "box, centre_mm: [0, 0, 0], size_mm: [90, 90, 90]"])
def test_a_reference_needs_a_structure_that_something_is_taken_from(constraint, valid, domain) -> None:
    cube = heart(BALL.contains(voxel_centres(N)), "LV")
    spec = parse_spec(
        "name: x\nanatomy: cardiac\nconstraints:\n"
        f"- {{name: x, structure: [RV], domain: {{family: {domain}, grid: [8, 8, 8]}}, {constraint}}}\n"
    )
    (r,) = resolve(spec, Frame.of(cube, anatomy("cardiac")), cube)
    assert bool(r.domains.valid.all()) == valid
    checks = certificate(heart(torus(N)), (r,), anatomy("cardiac"))
    assert (checks[0].quantity == "domains") != valid
    assert valid or not all_met(checks)


def test_fewer_unmet_checks_beat_a_smaller_error() -> None:
    ball = heart(BALL.contains(voxel_centres(N)))
    ml = ball.volume_ml("RV")
    one_far = checks_of(ball, f"{{volume_ml: {ml}, centroid_mm: [0, 0, 40]}}")
    two_near = checks_of(ball, f"{{volume_ml: {1.03 * ml}, centroid_mm: [0, 0, 1.5]}}")
    assert badness(one_far) < badness(two_near)
