"""Sections are told in mm2 and mm, walls on rays in mm."""

import numpy as np
import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.certificate import certificate
from anatomica.measurement.measure import domain_dict, measure
from anatomica.measurement.placing import resolve
from anatomica.spec.yaml import parse_spec

HEART = ANATOMIES["cardiac"]
N = 64
H = HEART.edge_mm / N
SECTIONS = """
name: sections
anatomy: cardiac
constraints:
- {name: trunk, structure: [Ao], domain: {family: curvilinear, grid: [1, 48, 48], planes: 3}, match: [mass]}
"""
WALL = """
name: wall
anatomy: cardiac
constraints:
- name: wall
  structure: [Myo]
  domain: {family: cylindrical, grid: [4, 4, 32], levels: 2, angles: 4}
  match: [mass]
"""


def cylinder(inner: float, outer: float, tissue: str) -> LabelMap:
    """A tube along z around the cube's middle; radii in voxels."""
    at = np.arange(N) + 0.5 - N / 2
    away = np.hypot(*np.meshgrid(at, at, indexing="ij"))
    mask = np.repeat(((away >= inner) & (away < outer))[:, :, None], N, axis=2)
    array = np.where(mask, HEART.table.id_of(tissue), 0).astype(np.uint8)
    return LabelMap(array, Frame.model(HEART, N).affine, HEART.table)


def test_a_section_has_area_and_diameter() -> None:
    label_map = cylinder(0, 7, "Ao")
    result = measure(label_map, parse_spec(SECTIONS), N)
    (trunk,) = result.measured
    middle = domain_dict(trunk, 1, result.frame)
    assert middle["area_mm2"] == pytest.approx(np.pi * (7 * H) ** 2, rel=0.03)
    assert middle["diameter_mm"] == pytest.approx(14 * H, abs=H / 4)
    checks = certificate(label_map, resolve(result.spec, result.frame, label_map), HEART)
    assert {(c.quantity, c.unit) for c in checks} == {("volume", "mm2")}
    assert checks[1].achieved == pytest.approx(middle["area_mm2"], rel=1e-3)
    assert all(c.met for c in checks)


def test_a_wall_on_a_ray_has_a_thickness() -> None:
    label_map = cylinder(10, 15, "Myo")
    result = measure(label_map, parse_spec(WALL), N)
    (wall,) = result.measured
    for k in range(wall.domains.count):
        assert domain_dict(wall, k, result.frame)["thickness_mm"] == pytest.approx(5 * H, rel=0.08)
    checks = certificate(label_map, resolve(result.spec, result.frame, label_map), HEART)
    assert {c.unit for c in checks} == {"mm"}
