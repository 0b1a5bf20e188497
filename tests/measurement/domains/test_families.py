import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from anatomica.measurement.domains.centerline import centerline
from anatomica.measurement.domains.curvilinear import curvilinear_domains
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.interface import interface_domains
from anatomica.measurement.domains.rays import cylindrical_domains, spherical_domains
from anatomica.measurement.domains.volumes import cartesian_domain
from anatomica.measurement.moments import measure_moments
from anatomica.measurement.parse import slice_domains
from oracles import Ellipsoid, arch, box, helix, occupancy, shell, tube, voxel_centres


def as_map(mask: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(mask.astype(np.float32))


def assert_frames(domains: Domains) -> None:
    eye = torch.eye(3, dtype=torch.float64).expand_as(domains.R)
    torch.testing.assert_close(domains.R.mT @ domains.R, eye, atol=1e-9, rtol=0)
    assert (torch.linalg.det(domains.R) > 0).all()


def test_cartesian_box_has_its_limits_at_voxel_faces() -> None:
    S = torch.zeros(10, 20, 30)
    S[2:5, 4:8, 29] = 1
    d = cartesian_domain(S, (4, 4, 4))
    torch.testing.assert_close(d.t[0] - d.s[0] / 2, torch.tensor([0.2, 0.2, 29 / 30], dtype=torch.float64))
    torch.testing.assert_close(d.t[0] + d.s[0] / 2, torch.tensor([0.5, 0.4, 1.0], dtype=torch.float64))


def test_an_empty_structure_makes_invalid_domains_with_a_reason() -> None:
    empty, extent = torch.zeros(8, 8, 8), torch.full((3,), 0.1).double()
    made = [
        cartesian_domain(empty, (2, 2, 2)),
        curvilinear_domains(empty, (1, 2, 2), extent, 5),
        spherical_domains(empty, (2, 2, 4), extent, 4),
        cylindrical_domains(empty, (2, 2, 4), extent, 2, 3),
        *interface_domains(empty, empty, (2, 4, 4), extent),
    ]
    assert [d.count for d in made] == [1, 5, 4, 6, 1, 1]
    for d in made:
        assert not d.valid.any()
        assert all("empty" in reason for reason in d.reasons)
        assert torch.isfinite(d.points()).all()


def test_interface_of_two_blocks_lies_on_their_common_face() -> None:
    n = 40
    A, B = as_map(box(n, (0.2, 0.3, 0.3), (0.5, 0.7, 0.7))), as_map(box(n, (0.5, 0.3, 0.3), (0.9, 0.7, 0.7)))
    extent = torch.tensor([0.1, 0.5, 0.5], dtype=torch.float64)
    first, second = interface_domains(A, B, (4, 16, 16), extent, k_dil=3)
    for d in (first, second):
        assert_frames(d)
        torch.testing.assert_close(
            d.R[0, :, 0], torch.tensor([1.0, 0, 0], dtype=torch.float64), atol=1e-6, rtol=0
        )
        torch.testing.assert_close(d.t[0, 1:], torch.full((2,), 0.5, dtype=torch.float64), atol=1e-6, rtol=0)
    assert 0.46 < first.t[0, 0] < 0.5 < second.t[0, 0] < 0.54
    apart = interface_domains(
        A, as_map(box(n, (0.7, 0.3, 0.3), (0.9, 0.7, 0.7))), (4, 16, 16), extent, k_dil=3
    )
    assert [d.reasons[0] for d in apart] == ["the two structures do not touch"] * 2


@pytest.mark.parametrize("curve", [arch(), helix()], ids=["arch", "helix"])
def test_tube_sections_have_the_right_area_and_direction(curve: np.ndarray) -> None:
    n, radius, planes = 72, 0.08, 7
    distance, _ = KDTree(curve).query(voxel_centres(2 * n).reshape(-1, 3), distance_upper_bound=2 * radius)
    S = occupancy((distance <= radius).reshape(2 * n, 2 * n, 2 * n), n)
    extent = torch.tensor([1 / n, 0.26, 0.26], dtype=torch.float64)
    # The path, and with it the sections, comes from voxels that are wholly inside, areas from the soft map.
    d = curvilinear_domains(S, (1, 48, 48), extent, planes)
    assert d.valid.all()
    assert_frames(d)
    area = measure_moments(slice_domains(S[None], d)[0].double(), d).mass * n
    assert (area / (np.pi * radius**2) - 1).abs().max() < 0.03
    tangent = np.gradient(curve, axis=0)
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    _, nearest = KDTree(curve).query(d.t.numpy())
    cosine = np.abs((tangent[nearest] * d.R[:, :, 0].numpy()).sum(1)).clip(0, 1)
    assert np.degrees(np.arccos(cosine)).max() < 2.0


def test_the_centreline_ignores_side_branches_and_specks() -> None:
    n = 64
    clean = tube(arch(), 0.06, n)
    dirty = clean.copy()
    for y in (0.4, 0.5, 0.6):  # three short neck vessels on the arch, and dust
        dirty |= tube(np.linspace([0.5, y, 0.8], [0.5, y, 0.95], 200), 0.025, n)
    dirty |= box(n, (0.05, 0.05, 0.05), (0.09, 0.09, 0.09))
    start = np.array([0.0, 1.0, 0.0])
    a, b = centerline(clean, start).points, centerline(dirty, start).points
    assert abs(len(a) - len(b)) < 0.05 * len(a)
    offset, _ = KDTree(a).query(b)
    assert np.percentile(offset, 90) < 1.0
    assert a[0, 1] > a[-1, 1]


def test_a_straight_tube_of_even_width_has_a_centreline() -> None:
    """Lee's thinning in scikit-image erases this one."""
    mask = np.zeros((16, 16, 40), bool)
    mask[4:8, 4:8, 2:38] = True
    line = centerline(mask, np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(line.points[:, :2], 5.5, atol=0.05)
    assert line.points[0, 2] > line.points[-1, 2]


def test_shell_wall_thickness_along_rays() -> None:
    n, inner, outer = 64, 0.2, 0.3
    S = as_map(shell(n, 0.5, inner, outer))
    extent = torch.tensor([2 / n, 2 / n, 0.25], dtype=torch.float64)
    d = spherical_domains(S, (2, 2, 64), extent, 24)
    assert d.valid.all()
    assert_frames(d)
    thickness = measure_moments(slice_domains(S[None], d)[0].double(), d).mass / (2 / n) ** 2
    assert ((thickness - (outer - inner)).abs() * n).max() < 0.5
    torch.testing.assert_close(
        (d.t - 0.5).norm(dim=1),
        torch.full((24,), (inner + outer) / 2, dtype=torch.float64),
        atol=0.5 / n,
        rtol=0,
    )


def test_a_ray_that_misses_is_invalid_and_named() -> None:
    S = as_map(shell(48, 0.5, 0.2, 0.3))
    S[:, :, 24:] = 0  # a bowl: rays upwards from its centroid find nothing
    d = spherical_domains(S, (2, 2, 8), torch.full((3,), 0.1).double(), 32)
    assert d.valid.any()
    assert not d.valid.all()
    missed = [reason for reason, valid in zip(d.reasons, d.valid.tolist(), strict=True) if not valid]
    assert set(missed) == {"the ray misses the structure"}


@pytest.mark.parametrize("axis", ["centroid", "cube"])
def test_cylinder_wall_thickness(axis: str) -> None:
    n = 64
    x, y, _ = np.moveaxis(voxel_centres(2 * n), -1, 0)
    radius = np.hypot(x - 0.55, y - 0.48)
    S = occupancy((radius >= 0.15) & (radius <= 0.25), n)
    extent = torch.tensor([2 / n, 2 / n, 0.3], dtype=torch.float64)
    d = cylindrical_domains(S, (2, 2, 96), extent, 3, 8, axis=axis)
    assert d.valid.all()
    thickness = measure_moments(slice_domains(S[None], d)[0].double(), d).mass / (2 / n) ** 2 * n
    worst = 0.5 if axis == "centroid" else 1.2  # rays from off the axis cross the wall at a slant
    assert (thickness - 0.1 * n).abs().max() < worst
    assert sorted(set(d.t[:, 2].tolist())) == pytest.approx([1 / 6, 1 / 2, 5 / 6])


def test_spherical_rays_start_at_the_centroid() -> None:
    truth = Ellipsoid((0.4, 0.5, 0.6), (0.2, 0.2, 0.2))
    d = spherical_domains(truth.volume(32), (2, 2, 8), torch.full((3,), 0.1).double(), 12)
    toward = d.t - torch.tensor([0.4, 0.5, 0.6], dtype=torch.float64)
    along = (toward / toward.norm(dim=1, keepdim=True) * d.R[:, :, 2]).sum(1)
    assert along.min() > 0.99
