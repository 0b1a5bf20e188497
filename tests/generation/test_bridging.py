"""Bridges join what lies apart, and nothing else changes."""

import numpy as np
from scipy import ndimage

from anatomica.generation.repair.bridging import bridge


def tube(gap: slice | None = None) -> np.ndarray:
    labels = np.zeros((64, 64, 64), np.uint8)
    labels[4:28, 14:18, 14:18] = 1
    labels[16:20, 18:28, 14:18] = 2
    if gap is not None:
        labels[16:20, gap, 14:18] = 0
    return labels


def parts(labels: np.ndarray) -> int:
    return ndimage.label(labels > 0, np.ones((3, 3, 3)))[1]  # type: ignore[misc]


def test_what_is_in_one_piece_stays() -> None:
    assert np.array_equal(bridge(tube()), tube())


def test_a_gap_is_filled_with_the_tissues_at_its_ends() -> None:
    broken = tube(slice(20, 23))
    assert parts(broken) == 2
    joined = bridge(broken)
    assert parts(joined) == 1
    new = joined != broken
    assert 0 < new.sum() < 100
    assert set(joined[new]) == {2}
    assert (broken[new] == 0).all(), "only background changes"


def test_a_gap_between_two_tissues_is_shared() -> None:
    joined = bridge(tube(slice(18, 21)))
    assert parts(joined) == 1
    assert set(joined[joined != tube(slice(18, 21))]) == {1, 2}


def test_specks_go_and_far_parts_stay() -> None:
    labels = tube()
    labels[0, 0, 0] = 1
    assert np.array_equal(bridge(labels), tube())
    far = tube(slice(18, 26))
    assert np.array_equal(bridge(far), far)
