"""Neighbours in a row that have grown together are parted where they touch most widely."""

import numpy as np
import pytest

from anatomica.generation.repair.parting import part
from anatomica.measurement.pieces import contact_area


def column() -> np.ndarray:
    """Two bodies that have grown together over 64 faces, and behind them a joint of 4."""
    labels = np.zeros((16, 16, 16), np.uint8)
    labels[2:10, 2:10, 2:8], labels[2:10, 2:10, 8:14] = 1, 2
    labels[12:14, 2:4, 2:8], labels[12:14, 2:4, 8:14] = 1, 2
    return labels


def test_bodies_are_parted_and_joints_stay() -> None:
    labels = column()
    parted = part(labels, np.array([0, 10, 0]) / 256)
    assert contact_area(labels, 3)[1, 2] * 256 == pytest.approx(68)
    assert contact_area(parted, 3)[1, 2] * 256 == pytest.approx(4)
    changed = np.argwhere(parted != labels)
    assert len(changed) == 64
    assert set(changed[:, 2]) == {8}
    assert not parted[tuple(changed.T)].any()


def test_a_border_that_is_no_wider_than_patients_have_stays() -> None:
    labels = column()
    np.testing.assert_array_equal(part(labels, np.array([0, 68, 0]) / 256), labels)
    np.testing.assert_array_equal(part(np.zeros_like(labels), np.array([0, 1, 0]) / 256), 0)
