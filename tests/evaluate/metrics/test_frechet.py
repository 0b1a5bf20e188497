"""FMD against closed forms of Gaussians, and its features against a box."""

import numpy as np
import pytest
import torch

from anatomica.evaluate.metrics.diversity import spread
from anatomica.evaluate.metrics.frechet import fmd, frechet_distance, morphology, standardise


def gaussian(mean: np.ndarray, covariance: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draws whose sample mean and covariance are exactly those asked for."""
    x = np.random.default_rng(seed).standard_normal((count, len(mean)))
    x -= x.mean(0)
    x = x @ np.linalg.inv(np.linalg.cholesky(np.cov(x.T))).T
    return mean + x @ np.linalg.cholesky(covariance).T


def test_distance_of_commuting_gaussians() -> None:
    """|mu|^2 + sum (sqrt a - sqrt b)^2 in the common eigenbasis."""
    turn, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))
    a, b, shift = np.array([1.0, 4.0, 9.0, 0.25]), np.array([4.0, 1.0, 9.0, 1.0]), np.arange(4.0)
    first = gaussian(np.zeros(4), turn @ np.diag(a) @ turn.T, 60, 1)
    second = gaussian(shift, turn @ np.diag(b) @ turn.T, 80, 2)
    expected = (shift**2).sum() + ((np.sqrt(a) - np.sqrt(b)) ** 2).sum()
    assert frechet_distance(first, second) == pytest.approx(expected, rel=1e-6)


def test_distance_of_gaussians_that_do_not_commute() -> None:
    """In two dimensions tr sqrt(A B) = sqrt(tr(A B) + 2 sqrt(det A det B))."""
    A, B = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.7], [-0.7, 3.0]])
    cross = np.sqrt(np.trace(A @ B) + 2 * np.sqrt(np.linalg.det(A) * np.linalg.det(B)))
    found = frechet_distance(gaussian(np.zeros(2), A, 50, 1), gaussian(np.ones(2), B, 50, 2))
    assert found == pytest.approx(2 + np.trace(A + B) - 2 * cross, rel=1e-6)


def test_units_of_the_features_do_not_matter_and_constant_ones_are_left_out() -> None:
    rng = np.random.default_rng(0)
    real, drawn = rng.standard_normal((40, 3)), rng.standard_normal((40, 3)) + 0.5
    scale = np.array([1.0, 1e-3, 50.0])
    assert fmd(drawn * scale, real * scale) == pytest.approx(fmd(drawn, real))
    constant = np.ones((40, 1))
    wide = fmd(np.concatenate([drawn, constant], 1), np.concatenate([real, constant], 1))
    assert wide == pytest.approx(fmd(drawn, real))
    assert spread(real, real) == pytest.approx(1)
    assert spread(2 * real, real) == pytest.approx(4)


def test_morphology_of_a_box_and_of_an_absent_tissue() -> None:
    labels = torch.zeros(2, 16, 16, 16, dtype=torch.uint8)
    labels[0, 0:8, 4:8, 6:10] = 1
    found = morphology(labels, 3)
    # Variance of m cells of width h is (m^2 - 1) h^2 / 12.
    variance = np.array([63.0, 15.0, 15.0])
    expected = [8 * 4 * 4 / 16**3, 4 / 16, 6 / 16, 8 / 16, *(variance / variance.sum())]
    np.testing.assert_allclose(found[0, :7], expected, rtol=1e-5)
    assert found[0, 7] == 0
    assert np.isnan(found[0, 8:]).all()
    assert not np.isnan(standardise(found, found)).any()
