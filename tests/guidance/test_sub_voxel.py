"""The grids of the sub-voxel measurement: never coarser than the output, whatever the domain."""

from dataclasses import replace

import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.guidance.polish import SUB_VOXEL
from anatomica.guidance.sub_voxel import fine_domains
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.placing import Resolved, resolve
from anatomica.spec.yaml import parse_spec


def whole_cube(grid: str) -> Resolved:
    text = f"""
name: x
anatomy: cardiac
constraints:
  - name: all of it
    structure: [RV]
    domain: {{family: global, grid: {grid}}}
    match: []
    target: {{volume_ml: 150}}
"""
    (r,) = resolve(parse_spec(text), Frame.model(anatomy("cardiac"), 64), None)
    return r


def with_boxes(r: Resolved, sizes: list[float], grid: tuple[int, int, int], valid: list[bool]) -> Resolved:
    k = len(sizes)
    domains = Domains(
        torch.eye(3, dtype=torch.float64).expand(k, 3, 3).clone(),
        torch.tensor(sizes, dtype=torch.float64)[:, None].expand(k, 3).clone(),
        torch.full((k, 3), 0.5, dtype=torch.float64),
        grid,
        torch.tensor(valid),
        ("",) * k,
    )
    return replace(r, domains=domains)


def test_a_domain_as_large_as_the_cube_has_twice_the_output_grid() -> None:
    """However few points the spec has, and whatever the output."""
    for own in ("[16, 16, 16]", "[64, 64, 64]"):
        r = whole_cube(own)
        for n in (64, 128):
            assert min(fine_domains(r, n).grid) >= 2 * n
            assert min(fine_domains(r, n, SUB_VOXEL, SUB_VOXEL).grid) >= 1.5 * n


def test_certificate_and_polish_have_no_points_in_common() -> None:
    r = whole_cube("[64, 64, 64]")
    assert fine_domains(r, 64).grid != fine_domains(r, 64, SUB_VOXEL, SUB_VOXEL).grid


def test_a_thin_domain_keeps_its_own_points_and_a_plane_stays_one() -> None:
    r = with_boxes(whole_cube("[64, 64, 64]"), [2 / 64], (1, 4, 8), [True])
    assert fine_domains(r, 64).grid == (1, 8, 16)


def test_a_domain_that_has_no_place_does_not_count() -> None:
    """Its size is the whole cube's by convention, and would make the others' grids enormous."""
    r = with_boxes(whole_cube("[64, 64, 64]"), [4 / 64, 1.0], (8, 8, 8), [True, False])
    assert fine_domains(r, 64).grid == (16, 16, 16)
