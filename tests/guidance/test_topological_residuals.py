"""Counts are pushed until they hold, and polished with their borders moved as the certificate moves them."""

import pytest
import torch

from anatomica.guidance.sub_voxel import conditions
from anatomica.guidance.topological_residuals import (
    certified_topological_probe,
    moved_borders,
    topological_probe,
)
from anatomica.measurement.homology import betti_numbers
from anatomica.spec.quantities import BettiPrior

N = 14


def grid(n: int = N) -> torch.Tensor:
    r = (torch.arange(n) + 0.5) / n
    return torch.stack(torch.meshgrid(r, r, r, indexing="ij"), dim=-1)


def blobs(seed: int) -> torch.Tensor:
    noise = torch.randn(1, 1, N, N, N, generator=torch.Generator().manual_seed(seed))
    smooth = torch.nn.functional.avg_pool3d(noise, 5, 1, 2)[0, 0]
    return torch.sigmoid(20 * smooth)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reach", [0.4, 0.5, 1.1])
def test_a_moved_border_is_the_certificates(seed: int, reach: float) -> None:
    """Distances of the certificate, extremes over a ball of the polish: the same sets and counts."""
    S, spacing = blobs(seed), (1.0, 1.0, 1.0)
    _, inwards, outwards = (betti for _, betti in conditions((S > 0.5).numpy(), spacing, reach))
    eroded, dilated = moved_borders(S, spacing, reach)
    assert betti_numbers((eroded.S > 0.5).numpy()) == inwards
    assert betti_numbers((dilated.S > 0.5).numpy()) == outwards
    for moved in (eroded, dilated):
        assert torch.equal(S.flatten()[moved.source], moved.S.flatten())


def test_a_narrow_bridge_has_residuals_only_where_the_border_moves() -> None:
    """Two cubes joined by a bar two voxels wide: one component, but not with the border moved inwards."""
    S = torch.full((N, N, N), 0.3)
    S[2:6, 4:10, 4:10] = S[8:12, 4:10, 4:10] = 0.99
    S[6:8, 6:8, 6:8] = 0.9
    prior = BettiPrior(b0=1, b1=None, b2=None)
    X = grid()[None]
    assert certified_topological_probe(S[None], X, prior).rho.shape[1] == 0
    eroded, dilated = moved_borders(S, (1.0, 1.0, 1.0), 0.5)
    assert certified_topological_probe(dilated.S[None], X, prior, dilated.source).rho.shape[1] == 0
    probe = certified_topological_probe(eroded.S[None], X, prior, eroded.source)
    assert (probe.rho < -1).any()
    # What must rise is the background that the smallest value was found in, not the bar.
    x, y, z = (probe.points[0][probe.rho[0] < -1] * N).long().unbind(-1)
    assert (S[x, y, z] < 0.5).all()


def test_a_count_that_holds_is_not_pushed() -> None:
    S = torch.full((N, N, N), 0.02)
    S[2:5, 2:5, 2:5] = S[9:12, 9:12, 9:12] = 0.7
    X, two = grid()[None], BettiPrior(b0=2, b1=0, b2=0)
    assert topological_probe(S[None], X, two).rho.shape[1] == 0
    assert topological_probe(S[None], X, BettiPrior(b0=1, b1=0, b2=0)).rho.abs().max() > 1
    S[2:5, 2:5, 2:5] = 0.55  # there, but not for sure
    assert topological_probe(S[None], X, two).rho.abs().max() > 1
