"""What of a structure lies outside its domains."""

import numpy as np
import pytest
import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.measurement.certificate import OUTSIDE, certificate, outside_ml
from anatomica.measurement.outside import in_a_domain, outside_mass
from anatomica.measurement.placing import resolve
from anatomica.spec.spec import CartesianDomain, Constraint
from anatomica.spec.yaml import parse_spec

CARDIAC = anatomy("cardiac")
N, EDGE_MM = 32, CARDIAC.edge_mm
VOXEL_ML = (EDGE_MM / N) ** 3 / 1000


def heart(*boxes: tuple[slice, slice, slice]) -> LabelMap:
    array = np.zeros((N, N, N), np.uint8)
    for box in boxes:
        array[box] = CARDIAC.table.id_of("RV")
    return LabelMap(array, cube_affine(EDGE_MM, N), CARDIAC.table)


BODY = (slice(8, 16), slice(8, 16), slice(8, 16))
HORN = (slice(16, 20), slice(10, 12), slice(10, 12))


def spec_of(more: str = "", domain: str = "{family: cartesian, grid: [32, 32, 32]}"):
    return parse_spec(
        f"name: x\nanatomy: cardiac\nconstraints:\n- name: rv\n  structure: [RV]\n  domain: {domain}\n{more}"
    )


def checks(cube: LabelMap, more: str = ""):
    reference = heart(BODY)
    resolved = resolve(spec_of(more), Frame.of(reference, CARDIAC), reference)
    return resolved, certificate(cube, resolved, CARDIAC)


def test_a_horn_beyond_the_box_is_certified() -> None:
    """The horn is 16 voxels; the box is the body's own."""
    resolved, found = checks(heart(BODY, HORN))
    (outside,) = [c for c in found if c.quantity == OUTSIDE]
    assert not outside.met
    assert outside.achieved == pytest.approx(16 * VOXEL_ML)
    assert outside.error == pytest.approx(100 * 16 / 8**3, rel=0.12)
    assert outside_ml(heart(BODY, HORN), resolved, CARDIAC) == {"rv": pytest.approx(16 * VOXEL_ML)}


def test_the_patient_itself_has_nothing_outside() -> None:
    _, found = checks(heart(BODY))
    assert [c.achieved for c in found if c.quantity == OUTSIDE] == [0.0]
    assert all(c.met for c in found)


def test_the_papers_outside_is_free() -> None:
    resolved, found = checks(heart(BODY, HORN), "  outside: free\n")
    assert OUTSIDE not in [c.quantity for c in found]
    assert outside_ml(heart(BODY, HORN), resolved, CARDIAC) == {"rv": pytest.approx(16 * VOXEL_ML)}


def test_a_wider_tolerance_allows_the_horn() -> None:
    _, found = checks(heart(BODY, HORN), "  tolerance: {outside_percent: 4}\n")
    assert [c.met for c in found if c.quantity == OUTSIDE] == [True]


def test_only_a_structures_own_box_asks_for_all_of_it() -> None:
    def default(**domain) -> str:
        grid = (8, 8, 8)
        return Constraint(name="x", structure=["RV"], domain=CartesianDomain(grid=grid, **domain)).outside_is

    assert default() == "empty"
    assert default(around=["RV"]) == "empty"
    assert default(around=["LV"]) == "free"
    assert spec_of(domain="{family: curvilinear, grid: [1, 8, 8]}").constraints[0].outside_is == "free"


def test_points_in_turned_boxes() -> None:
    """A box of 0.4 x 0.2 x 0.2 turned by 45 degrees about z."""
    reference = heart(BODY)
    box = "{family: box, grid: [8, 8, 8], centre_mm: [0, 0, 0], size_mm: [%s], rotation_deg: [0, 0, 45]}"
    size = ", ".join(f"{s * EDGE_MM:g}" for s in (0.4, 0.2, 0.2))
    target = "  target: {volume_ml: 10}\n  match: []\n"
    (r,) = resolve(spec_of(target, box % size), Frame.of(reference, CARDIAC), None)
    along = torch.tensor([1.0, 1.0, 0.0]).double() / 2**0.5
    across = torch.tensor([-1.0, 1.0, 0.0]).double() / 2**0.5
    points = 0.5 + torch.stack([0.19 * along, 0.21 * along, 0.09 * across, 0.11 * across])
    assert in_a_domain(points, r.domains).tolist() == [True, False, True, False]
    ones = torch.ones(N, N, N)
    assert outside_mass(ones, r.domains) == pytest.approx(1 - 0.4 * 0.2 * 0.2, abs=0.003)
