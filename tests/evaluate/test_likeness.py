"""Telling phantoms from real cases: alike sets, shifted sets, and sets with other correlations."""

from __future__ import annotations

import numpy as np
import pytest

from anatomica.errors import AnatomicaError
from anatomica.evaluate.likeness import compare, correlations, frechet_and_floor, one_nna, one_nna_alike

STRUCTURES = ("LV", "RV")
F = 7 * len(STRUCTURES)


def drawn(count: int, seed: int, shift: float = 0.0, common: float = 0.6) -> np.ndarray:
    """Gaussian features of SD 1 that share a factor."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(count, 1))
    return 5.0 + shift + np.sqrt(common) * shared + np.sqrt(1 - common) * rng.normal(size=(count, F))


def test_alike_sets_are_not_told_apart():
    found = [one_nna(drawn(200, seed), drawn(20, 1000 + seed), draws=50).value for seed in range(10)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.06)
    alike = one_nna_alike(drawn(200, 0), 20, draws=300)
    assert alike.value == pytest.approx(0.5, abs=0.04)
    assert alike.low < 0.4 < 0.6 < alike.high


def test_the_same_cases_twice_are_never_told_apart():
    """Each case's nearest is its own copy in the other set."""
    real = drawn(12, 1)
    assert one_nna(real, real, draws=5).value == 0.0


def test_shifted_sets_are_told_apart():
    assert one_nna(drawn(200, 0, shift=4.0), drawn(12, 1), draws=100).value > 0.95


def test_units_do_not_matter():
    made, real = drawn(60, 2), drawn(10, 3)
    units = np.geomspace(0.01, 100, F)
    assert one_nna(made * units, real * units, draws=20) == pytest.approx(one_nna(made, real, draws=20))


def test_the_frechet_distance_of_alike_sets_is_the_floor():
    found = np.array(
        [
            [x.value for x in frechet_and_floor(drawn(300, seed), drawn(40, 100 + seed), draws=30)]
            for seed in range(12)
        ]
    )
    near, floor = found.mean(0)
    assert near == pytest.approx(floor, rel=0.25)
    far, _ = frechet_and_floor(drawn(300, 4, shift=3.0), drawn(200, 5), draws=30)
    # A shift by d in every feature adds F d^2.
    assert far.value == pytest.approx(9 * F, rel=0.25)


def test_correlations_that_differ_stand_out_of_the_noise():
    alike = correlations(drawn(400, 6), drawn(40, 7), 2)
    assert alike["rms_difference"] == pytest.approx(alike["noise"], rel=0.8)
    loose = correlations(drawn(400, 6, common=0.0), drawn(40, 7), 2)
    assert loose["rms_difference"] > 2 * loose["noise"]
    assert np.array(loose["volumes_real"]).shape == (2, 2)


def test_the_comparison_is_a_json_value_of_all_that():
    result = compare(drawn(100, 8, shift=1.0), drawn(9, 9), STRUCTURES, "hearts")
    assert len(result["features"]) == F
    assert result["features"][7]["structure"] == "RV"
    z = [x["z"] for x in result["features"]]
    assert result["rms_z"] == pytest.approx(np.sqrt(np.mean(np.square(z))), abs=0.001)
    assert result["largest_z"] == max(z, key=abs)
    assert result["source"] == "hearts"


def test_too_few_cases_are_refused():
    with pytest.raises(AnatomicaError, match="10 phantoms cannot be compared with 9 real cases"):
        compare(drawn(10, 0), drawn(9, 1), STRUCTURES)
    with pytest.raises(AnatomicaError, match="with 3 real cases"):
        compare(drawn(10, 0), drawn(3, 1), STRUCTURES)
