"""Spoiled patients are spoiled in the way that is said, and nothing else changes."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench.plausibility import CLEAN, called_implausible
from anatomica.evaluate.spoil import LARGER, SHIFT, WAYS
from anatomica.prior.zoo import load_model


@pytest.fixture(scope="module")
def heart() -> np.ndarray:
    made = phantom("cardiac", 3, 64).label_map
    return made.table.index[made.array]


def spoiled(way: str, labels: np.ndarray, seed: int = 1) -> np.ndarray:
    made = WAYS[way](labels.copy(), np.random.default_rng(seed))
    assert made is not None
    assert made.shape == labels.shape
    assert made.dtype == labels.dtype
    return made


def pieces(mask: np.ndarray) -> int:
    return int(ndimage.label(mask)[1])  # type: ignore[index]


@pytest.mark.parametrize("way", WAYS)
def test_something_changes_and_the_input_stays(way: str, heart: np.ndarray) -> None:
    before = heart.copy()
    made = spoiled(way, heart)
    assert (made != heart).sum() > 20
    np.testing.assert_array_equal(heart, before)
    assert set(np.unique(made)) <= set(np.unique(heart))


def test_a_piece_lies_inside_another_tissue(heart: np.ndarray) -> None:
    made = spoiled("piece inside another", heart)
    changed = made != heart
    assert len(np.unique(heart[changed])) == len(np.unique(made[changed])) == 1
    assert pieces(changed) == 1
    assert heart[changed][0] != 0


def test_a_blob_is_apart(heart: np.ndarray) -> None:
    made = spoiled("blob apart", heart)
    assert pieces(made > 0) == pieces(heart > 0) + 1


def test_a_tissue_is_too_large(heart: np.ndarray) -> None:
    made = spoiled("1.5 times too large", heart)
    grown = np.bincount(made.ravel(), minlength=20) / np.maximum(np.bincount(heart.ravel(), minlength=20), 1)
    assert grown[1:].max() == pytest.approx(LARGER, abs=0.01)


def test_a_hole_goes_through(heart: np.ndarray) -> None:
    gone = (heart > 0) & (spoiled("hole", heart) == 0)
    reach = np.argwhere(gone)
    assert pieces(gone | (heart == 0)) <= pieces(heart == 0)
    assert np.ptp(reach, axis=0).max() > 8


def test_a_tissue_is_missing(heart: np.ndarray) -> None:
    assert len(np.unique(spoiled("tissue missing", heart))) == len(np.unique(heart)) - 1


def test_an_organ_is_shifted(heart: np.ndarray) -> None:
    made = spoiled("organ shifted", heart)
    moved = 0.0
    for tissue in np.unique(heart[heart > 0]):
        if (made == tissue).any():
            centres = [np.argwhere(x == tissue).mean(0) for x in (heart, made)]
            moved = max(moved, float(np.linalg.norm(centres[1] - centres[0])))
    assert moved == pytest.approx(SHIFT * len(heart), abs=2)


def test_most_spoiled_patients_are_noticed_and_most_patients_pass() -> None:
    """The shipped model of coronaries; `anatomica bench plausibility` has the numbers."""
    found = called_implausible(load_model("coronary"), 4)
    assert found[CLEAN][0] <= 1
    caught, of = (sum(x) for x in zip(*(found[way] for way in WAYS), strict=True))
    assert caught / of > 0.6
