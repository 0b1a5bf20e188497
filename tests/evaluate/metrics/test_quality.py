"""1-NNA, memorisation, diversity and intervals on populations that are equal, disjoint or copied."""

import numpy as np
import pytest
import torch

from anatomica.evaluate.metrics.bootstrap import distance_interval, mean_interval, share_interval
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.diversity import dissimilarity
from anatomica.evaluate.metrics.memorisation import Known, nearest_training
from anatomica.evaluate.metrics.nna import correctness, distances_within, one_nna
from anatomica.evaluate.metrics.overlap import pairwise_dice
from anatomica.prior.training.losses import hard_dice
from tiny_prior import ellipsoids


def clouds(count: int, seed: int, shift: float = 0.0, points: int = 64) -> np.ndarray:
    """Two tissues, a ball each of random place and size."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, 2, points, 3))
    x *= rng.random((count, 2, points, 1)) ** (1 / 3) / np.linalg.norm(x, axis=-1, keepdims=True)
    place = 0.05 * rng.standard_normal((count, 2, 1, 3)) + shift
    return (place + x * (0.1 + 0.05 * rng.random((count, 2, 1, 1)))).astype(np.float32)


def test_half_of_a_population_cannot_be_told_from_the_other_half() -> None:
    scores = one_nna(clouds(48, 0), clouds(48, 1))
    assert scores.shape == (96,)
    assert scores.mean() == pytest.approx(0.5, abs=0.12)


def test_disjoint_populations_are_told_apart() -> None:
    assert one_nna(clouds(12, 0), clouds(12, 1, shift=1.0)).mean() == 1
    assert one_nna(clouds(12, 0), 3 * clouds(12, 1)).mean() > 0.9


def test_copies_fool_the_classifier() -> None:
    """A sample that is a real case has it as nearest neighbour, so a memorising model falls below 0.5."""
    real = clouds(12, 0)
    assert one_nna(real.copy(), real).mean() == 0


def test_absent_tissues() -> None:
    """A tissue speaks for the cases that have it, and for no others."""
    a, b = clouds(10, 0), clouds(10, 1)
    a[:, 1], b[:, 1] = np.nan, np.nan
    assert one_nna(a, b) == pytest.approx(one_nna(a[:, :1], b[:, :1]))
    a[::2, 1], b[::2, 1] = clouds(5, 2)[:, 1], clouds(5, 3, shift=1.0)[:, 1]
    first, both = one_nna(a[:, :1], b[:, :1]), one_nna(a, b)
    assert both[1::2] == pytest.approx(first[1::2])
    assert both[::2] == pytest.approx((first[::2] + 1) / 2)
    a[0] = np.nan
    assert np.isnan(one_nna(a, b)[0])


def test_the_only_one_that_has_a_tissue_is_told_apart() -> None:
    assert correctness(distances_within(clouds(1, 0)[:, 0]), torch.tensor([True])) == 1


def test_pairwise_dice_is_dice() -> None:
    a, b = ellipsoids(3, seed=1), ellipsoids(2, seed=2)
    b[0][b[0] == 3] = 0
    a[1][a[1] == 3] = 0
    found = pairwise_dice(a, b, 5)
    for i in range(3):
        for j in range(2):
            one = hard_dice(a[i].flatten().long(), b[j].flatten().long(), 5)[1:].nanmean()
            assert found[i, j] == pytest.approx(one.item(), abs=1e-5)


def test_memorised_samples_are_found() -> None:
    training, fresh = ellipsoids(8, seed=3), ellipsoids(3, seed=4)
    drawn = torch.cat([training[[5, 2]], fresh])
    points = [np.stack([tissue_clouds(m, 4, 64) for m in x]) for x in (drawn, training)]
    found = nearest_training(drawn, points[0], Known.of(training, points[1]))
    assert found.dice[:2] == pytest.approx(1)
    assert found.emd[:2] == pytest.approx(0, abs=1e-6)
    assert found.by_dice[:2].tolist() == [5, 2]
    assert found.by_emd[:2].tolist() == [5, 2]
    assert (found.dice[2:] < 0.99).all()
    assert (found.emd[2:] > 1e-3).all()


def test_the_promising_candidates_hold_the_nearest() -> None:
    training, drawn = ellipsoids(30, seed=6), ellipsoids(6, seed=7)
    points = [np.stack([tissue_clouds(m, 4, 64) for m in x]) for x in (drawn, training)]
    known = Known.of(training, points[1])
    few, all_of_them = (nearest_training(drawn, points[0], known, count) for count in (8, 30))
    assert few.by_emd.tolist() == all_of_them.by_emd.tolist()
    assert few.emd == pytest.approx(all_of_them.emd, rel=0.01)


def test_neighbours_share_at_least_half_of_the_tissues() -> None:
    """Training case 0 is the query without two of its three tissues; case 1 is another patient with all."""
    query = clouds(1, 0)[:, [0, 1, 1]]
    query[0, 2] += 1.0
    training = np.concatenate([query, query + 0.2])
    training[0, 1:] = np.nan
    maps = torch.zeros(3, 4, 4, 4, dtype=torch.uint8)
    found = nearest_training(maps[:1], query, Known.of(maps[1:], training))
    assert found.by_emd.tolist() == [1]
    assert found.emd[0] == pytest.approx(0.2 * 3**0.5, rel=0.05)
    training[1, 1:] = np.nan
    assert np.isnan(nearest_training(maps[:1], query, Known.of(maps[1:], training)).emd[0])


def test_diversity_of_copies_is_zero() -> None:
    maps = ellipsoids(4, seed=5)
    assert dissimilarity(maps[[0, 0, 0]], 4) == pytest.approx(0, abs=1e-6)
    assert (dissimilarity(maps, 4) > 0.01).all()


def test_interval_of_a_mean_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    draws = [mean_interval(rng.normal(3, 1, 40), draws=300, seed=i) for i in range(200)]
    covered = np.mean([i.low <= 3 <= i.high for i in draws])
    assert 0.88 <= covered <= 0.99
    assert np.isnan(mean_interval([]).value)
    assert mean_interval([1.0, float("nan")]).value == 1


def test_interval_of_a_distance() -> None:
    """The mean of 100 numbers about e^2 with relative SD 1: its logarithm has an SD of a tenth."""
    x = np.random.default_rng(0).gamma(1, np.exp(2), 100)
    found = distance_interval(lambda rows: float(x[rows].mean()), 100)
    assert found.value == pytest.approx(x.mean())
    assert found.high / found.value == pytest.approx(found.value / found.low)
    assert np.log(found.high / found.low) == pytest.approx(2 * 1.96 / 10, rel=0.25)
    assert found.low > 0


def test_interval_of_a_share() -> None:
    """Wilson's interval of 32 of 32 and of 31 of 32, as in any table of it."""
    assert share_interval([True] * 32) == pytest.approx((1.0, 0.893, 1.0), abs=1e-3)
    assert share_interval([True] * 31 + [False]) == pytest.approx((31 / 32, 0.843, 0.994), abs=1e-3)
    assert np.isnan(share_interval([]).value)
