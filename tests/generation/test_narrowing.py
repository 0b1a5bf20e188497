"""Narrowing: a border that is too wide goes to where it is narrow; nothing else moves."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anatomica.generation.repair.narrowing import _touching_voxels, minimum_cut, narrow
from anatomica.measurement.pieces import contact_area

N = 24


def beads(count: int = 3) -> np.ndarray:
    """Cubes of 6^3 voxels in a row, labelled 1, 2, ..., each joined to the next by a stick of 2 x 2 x 2."""
    labels = np.zeros((N, N, N), np.uint8)
    for k in range(count):
        labels[8 * k : 8 * k + 6, 9:15, 9:15] = k + 1
        if k + 1 < count:
            labels[8 * k + 6 : 8 * k + 8, 11:13, 11:13] = k + 1
    return labels


WIDEST = np.array([0, 6, 6, 0]) / N**2


def test_a_border_through_a_bead_goes_to_the_stick() -> None:
    labels = beads()
    labels[4:6, 9:15, 9:15] = 2
    labels[6:8, 11:13, 11:13] = 2
    assert contact_area(labels, 4)[1, 2] == pytest.approx(36 / N**2)
    narrowed = narrow(labels, WIDEST)
    assert contact_area(narrowed, 4)[1, 2] == pytest.approx(4 / N**2)
    cubes = beads()
    sticks = (np.indices(cubes.shape)[0] % 8) >= 6
    np.testing.assert_array_equal(narrowed[~sticks], cubes[~sticks])


def test_halves_that_are_one_label_ahead_all_along_the_row() -> None:
    """A slice of all beads is labelled as the next bead: only the majority's labels are left."""
    labels = beads()
    left = np.indices(labels.shape)[1] < 10
    labels[left & (labels > 0)] += 1
    narrowed = narrow(labels, np.array([0, 6, 6, 6, 0]) / N**2)
    cubes = beads()
    sticks = (np.indices(cubes.shape)[0] % 8) >= 6
    np.testing.assert_array_equal(narrowed[~sticks], cubes[~sticks])


def test_a_border_as_wide_as_it_may_be_stays() -> None:
    labels = beads()
    labels[5, 9:15, 9:15] = 2
    labels[6:8, 11:13, 11:13] = 2
    np.testing.assert_array_equal(narrow(labels, np.array([0, 36, 6, 0]) / N**2), labels)


def test_a_tissue_is_not_given_up_for_a_narrow_border() -> None:
    """In a plain block there is no narrow place: the only cheaper border is none."""
    labels = np.zeros((N, N, N), np.uint8)
    labels[:6, 9:15, 9:15] = 1
    labels[:3, 9:15, 9:15] = 2
    np.testing.assert_array_equal(narrow(labels, WIDEST), labels)
    empty = np.zeros((4, 4, 4), np.uint8)
    np.testing.assert_array_equal(narrow(empty, WIDEST), empty)


@settings(max_examples=40, deadline=None)
@given(arrays(np.uint8, (N, 3, 3), elements=st.integers(0, 3)))
def test_only_labels_change_and_none_is_new(labels: np.ndarray) -> None:
    narrowed = narrow(labels, WIDEST)
    np.testing.assert_array_equal(narrowed > 0, labels > 0)
    inside = labels[labels > 0]
    if len(inside):
        assert narrowed[labels > 0].min() >= inside.min()
        assert narrowed.max() <= inside.max()


@settings(max_examples=60, deadline=None)
@given(arrays(bool, (3, 2, 2)), arrays(bool, (3, 2, 2)), st.sampled_from([0.2, 0.6, 1.1, 2.5]))
def test_the_cut_is_the_least_of_all(inside: np.ndarray, side: np.ndarray, price: float) -> None:
    """Against every way to part the voxels."""
    before = side[inside]
    pairs = _touching_voxels(inside)

    def cost(after: np.ndarray) -> float:
        return (after[pairs[0]] != after[pairs[1]]).sum() + price * (after != before).sum()

    every = (np.array(x, bool) for x in itertools.product((False, True), repeat=len(before)))
    least = min(cost(after) for after in every)
    assert np.isclose(cost(minimum_cut(before, pairs, price)), least)
