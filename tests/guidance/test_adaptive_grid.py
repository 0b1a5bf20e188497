"""Sampling where a function varies: within the tolerance, at a fraction of the points, same diagram."""

import pytest
import torch

from anatomica.guidance.adaptive_grid import sample_where_it_varies
from anatomica.guidance.gauss_newton import Settings
from anatomica.measurement.domains.volumes import global_domain
from anatomica.measurement.homology import Diagram, persistence

TOLERANCE = Settings().skip


def blobs(points):
    """Two balls and a ring as a probability: saturated far from their borders."""
    centres = torch.tensor([[0.3, 0.3, 0.3], [0.7, 0.6, 0.3]])
    balls = (0.15 - (points[:, None] - centres).norm(dim=-1)).amax(1)
    q = points - torch.tensor([0.5, 0.5, 0.75])
    ring = 0.07 - torch.stack([q[:, :2].norm(dim=-1) - 0.25, q[:, 2]], -1).norm(dim=-1)
    return torch.sigmoid(60 * torch.maximum(balls, ring))


@pytest.fixture
def grid():
    return global_domain((48, 48, 48)).points()[0].float()


@pytest.mark.parametrize(("coarsest", "share"), [(24, 0.6), (12, 0.5)])
def test_values_are_within_the_tolerance_and_most_points_are_left_out(grid, coarsest, share):
    seen = 0

    def counted(points):
        nonlocal seen
        seen += len(points)
        return blobs(points)

    sparse = sample_where_it_varies(counted, grid, TOLERANCE, coarsest)
    full = blobs(grid.reshape(-1, 3)).reshape(sparse.shape)
    assert (sparse - full).abs().max() <= TOLERANCE * 4 / 3
    assert seen < share * full.numel()


@pytest.mark.parametrize("coarsest", [24, 12])
def test_the_diagram_above_the_tolerance_is_the_full_grids(grid, coarsest):
    sparse = sample_where_it_varies(blobs, grid, TOLERANCE, coarsest)
    full = blobs(grid.reshape(-1, 3)).reshape(sparse.shape)

    def strong(volume):
        found = persistence(volume.numpy(), min_persistence=2 * TOLERANCE)
        assert isinstance(found, Diagram)
        return sorted(
            (int(d), float(b), float(e)) for d, b, e in zip(found.dim, found.birth, found.death, strict=True)
        )

    a, b = strong(sparse), strong(full)
    assert [d for d, *_ in a] == [d for d, *_ in b] == [0, 0, 0, 1]
    assert torch.allclose(torch.tensor(a), torch.tensor(b), atol=TOLERANCE * 4 / 3)


def test_without_tolerance_every_point_is_sampled(grid):
    full = blobs(grid.reshape(-1, 3)).reshape(grid.shape[:3])
    assert torch.equal(sample_where_it_varies(blobs, grid, 0.0, 12), full)
