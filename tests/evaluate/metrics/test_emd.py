"""The Sinkhorn divergence against POT's exact transport, its bound, and farthest points."""

import numpy as np
import ot
import pytest
import torch

from anatomica.evaluate.metrics.clouds import farthest_points, tissue_clouds
from anatomica.evaluate.metrics.emd import emd, sliced_bound
from anatomica.evaluate.metrics.nearest import nearest_distances


def balls(count: int, seed: int, points: int = 256) -> torch.Tensor:
    """Ellipsoids of random place and axes, filled at random: as different as tissues of two patients are."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, points, 3, generator=g)
    x = x / x.norm(dim=-1, keepdim=True) * torch.rand(count, points, 1, generator=g) ** (1 / 3)
    axes = 0.1 + 0.1 * torch.rand(count, 1, 3, generator=g)
    return 0.5 + x * axes + 0.06 * torch.randn(count, 1, 3, generator=g)


def exact(x: torch.Tensor, y: torch.Tensor) -> np.ndarray:
    return np.array(
        [
            ot.emd2([], [], ot.dist(a.double().numpy(), b.double().numpy(), metric="euclidean"))
            for a, b in zip(x, y, strict=True)
        ]
    )


def test_agrees_with_exact_transport() -> None:
    x, y = balls(24, 0), balls(24, 1)
    truth = exact(x, y)
    found = emd(x, y).numpy()
    assert np.corrcoef(found, truth)[0, 1] > 0.999
    np.testing.assert_allclose(found, truth, rtol=0.12)
    # The debiased value is below the exact one, and the gap closes with the blur.
    sharp = emd(x, y, blur=2e-4).numpy()
    assert np.abs(sharp / truth - 1).mean() < np.abs(found / truth - 1).mean() / 3
    np.testing.assert_allclose(sharp, truth, rtol=0.03)


def test_a_shift_costs_its_length_and_equal_clouds_nothing() -> None:
    x = balls(3, 2)
    torch.testing.assert_close(emd(x, x), torch.zeros(3), atol=1e-6, rtol=0)
    shift = torch.tensor([0.3, 0.0, 0.4])
    torch.testing.assert_close(emd(x, x + shift), torch.full((3,), 0.5), rtol=0.06, atol=0)
    one = x[:, :1].expand(-1, 8, -1)
    torch.testing.assert_close(emd(one, one + shift), torch.full((3,), 0.5), rtol=1e-4, atol=0)


def test_clouds_of_different_size() -> None:
    x, y = balls(4, 3), balls(4, 4, points=100)
    np.testing.assert_allclose(emd(x, y, blur=2e-4), exact(x, y), rtol=0.04)


def test_bound_is_below_the_exact_distance() -> None:
    x, y = balls(8, 5), balls(8, 6)
    bound = sliced_bound(x, y).diagonal().numpy()
    truth = exact(x, y)
    assert (bound <= truth + 1e-6).all()
    assert (bound > 0.3 * truth).all()


def test_nearest_search_finds_what_all_pairs_find() -> None:
    g = torch.Generator().manual_seed(0)
    all_pairs = torch.rand(30, 30, generator=g)
    all_pairs = (all_pairs + all_pairs.T).fill_diagonal_(torch.inf)
    bound = all_pairs * (0.3 + 0.7 * torch.rand(30, 30, generator=g))
    bound = torch.minimum(bound, bound.T)
    asked = []

    def distance(i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        asked.append(len(i))
        return all_pairs[i, j]

    found = nearest_distances(bound, distance, symmetric=True)
    torch.testing.assert_close(found.argmin(1), all_pairs.argmin(1))
    assert sum(asked) < 30 * 29 / 2


def test_farthest_points_of_a_line_and_of_few_points() -> None:
    line = np.stack([np.linspace(0, 1, 65), np.zeros(65), np.zeros(65)], 1)
    chosen = np.sort(farthest_points(line, 5)[:, 0])
    np.testing.assert_allclose(chosen, [0, 0.25, 0.5, 0.75, 1])
    few = farthest_points(line[:3], 256)
    assert [np.isclose(few[:, 0], v).sum() for v in line[:3, 0]] == [pytest.approx(256 / 3, abs=1)] * 3


def test_clouds_of_a_map() -> None:
    labels = torch.zeros(8, 8, 8, dtype=torch.uint8)
    labels[4:, :, :] = 2
    clouds = tissue_clouds(labels, 3, 16)
    assert np.isnan(clouds[0]).all()
    assert clouds[1, :, 0].min() == pytest.approx(4.5 / 8)
    assert clouds[1, :, 1].max() == pytest.approx(7.5 / 8)
