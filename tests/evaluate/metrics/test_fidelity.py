"""Fidelity and precision on cases whose answer can be written down."""

import numpy as np
import pytest
import torch

from anatomica.evaluate.metrics.fidelity import fidelity
from anatomica.evaluate.metrics.precision import correct, counted, remove_specks
from anatomica.measurement.moments import Moments


def test_fidelity_is_the_l1_norm_averaged_over_valid_substructures() -> None:
    zero = Moments(torch.zeros(2, 3), torch.zeros(2, 3, 3), torch.zeros(2, 3, 3, 3))
    off = Moments(
        torch.tensor([[0.1, -0.3, 9.0], [0.2, 0.2, 0.2]]),
        torch.full((2, 3, 3), -0.5),
        torch.eye(3).expand(2, 3, 3, 3) * 0.2,
    )
    valid = torch.tensor([[True, True, False], [True, True, True]])
    found = fidelity(zero, off, valid)
    torch.testing.assert_close(found.mass, torch.tensor([0.2, 0.2]))
    torch.testing.assert_close(found.centroid, torch.tensor([1.5, 1.5]))
    torch.testing.assert_close(found.covariance, torch.tensor([0.6, 0.6]))
    assert fidelity(zero, off, torch.zeros(2, 3, dtype=torch.bool)).mass.isnan().all()


def test_what_is_not_there_has_no_centroid() -> None:
    """An empty domain's centroid is its centre, by chance near the target: it must not count as a hit."""
    target = Moments(torch.ones(1, 2), torch.zeros(1, 2, 3), torch.eye(3).expand(1, 2, 3, 3))
    found = Moments(torch.tensor([[1.0, 0.0]]), torch.full((1, 2, 3), 0.1), torch.eye(3).expand(1, 2, 3, 3))
    found.centroid[0, 1] = 0
    error = fidelity(target, found, torch.ones(1, 2, dtype=torch.bool))
    torch.testing.assert_close(error.centroid, torch.tensor([0.3]))
    torch.testing.assert_close(error.mass, torch.tensor([0.5]))


def test_specks_and_pockets_are_removed_and_nothing_else() -> None:
    mask = np.zeros((16, 16, 16), dtype=bool)
    mask[2:10, 2:10, 2:10] = True
    mask[5, 5, 5] = False
    mask[13:15, 13:15, 13:15] = True
    mask[13, 2:9, 13] = True
    raw, clean = counted(mask, voxels=8)
    assert raw == (3, 0, 1)
    assert clean == (2, 0, 0)
    assert (remove_specks(mask, 1) == mask).all()
    full = np.ones((4, 4, 4), dtype=bool)
    assert remove_specks(full, 8).all()


def test_a_corner_of_background_is_no_pocket() -> None:
    mask = np.ones((4, 4, 4), dtype=bool)
    mask[0, 0, 0] = False
    assert not remove_specks(mask, 8)[0, 0, 0]


def test_precision_counts_equal_numbers() -> None:
    hits = correct([(2, 0, 0), (1, 0, 1), (2, 3, 0)], (2, 0, None))
    assert [None if h is None else h.mean() for h in hits] == [
        pytest.approx(2 / 3),
        pytest.approx(2 / 3),
        None,
    ]
