"""Distributions: closed forms, truncation, and quantile functions that undo distribution functions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy import stats

from anatomica.cohort.distributions import Distribution
from anatomica.cohort.patients_csv import read_columns
from anatomica.errors import AnatomicaError

U = (np.arange(999) + 0.5) / 999


def test_quantiles_are_those_of_scipy() -> None:
    sigma2 = np.log1p((5 / 42) ** 2)
    pairs = [
        (Distribution(normal=(42, 5)), stats.norm(42, 5)),
        (
            Distribution(lognormal=(42, 5)),
            stats.lognorm(np.sqrt(sigma2), scale=np.exp(np.log(42) - sigma2 / 2)),
        ),
        (Distribution(uniform=(1.05, 1.35)), stats.uniform(1.05, 0.3)),
        (Distribution(normal=(42, 5), truncate=(34, 58)), stats.truncnorm(-1.6, 3.2, 42, 5)),
    ]
    for ours, theirs in pairs:
        assert np.allclose(ours.ppf(U), theirs.ppf(U), rtol=1e-9)
        assert np.allclose(ours.cdf(theirs.ppf(U)), U, atol=1e-9)
    assert stats.lognorm(np.sqrt(sigma2), scale=np.exp(np.log(42) - sigma2 / 2)).mean() == pytest.approx(42)


@given(st.floats(-50, 50), st.floats(0.1, 20), st.floats(-100, 100), st.floats(0.5, 60))
def test_truncated_values_lie_within_the_range(mean: float, sd: float, low: float, width: float) -> None:
    assume(np.diff(stats.norm(mean, sd).cdf([low, low + width]))[0] > 1e-6)
    x = Distribution(normal=(mean, sd), truncate=(low, low + width)).ppf(U)
    assert (np.diff(x) >= 0).all()
    assert low <= x[0]
    assert x[-1] <= low + width


def test_choices_have_their_shares() -> None:
    made = Distribution(choice={1: 1, 2: 3})
    assert np.mean(made.ppf(U) == 2) == pytest.approx(0.75, abs=2e-3)
    assert made.cdf(np.array([0.5, 1, 1.5, 2])).tolist() == [0, 0.25, 0.25, 1]
    cut = Distribution(choice=[1, 2, 3], truncate=(2, 3))
    assert np.unique(cut.ppf(U)).tolist() == [2, 3]
    between = Distribution(choice={1: 1, 2: 3, 3: 1}, truncate=(1.5, 2.5))
    assert between.ppf(np.array([0.0, 1.0])).tolist() == [2, 2], "never a number that is no choice"
    assert between.support == (2, 2)
    assert between.cdf(np.array([1.9, 2.0])).tolist() == [0, 1]
    assert Distribution.model_validate(7).support == (7, 7)


def test_empirical_values_come_back() -> None:
    seen = [3.0, 1.0, 2.0, 2.0, 10.0]
    made = Distribution(empirical=seen)
    assert made.support == (1, 10)
    assert made.ppf(np.array([0, 0.25, 0.5, 0.75, 1])).tolist() == sorted(seen)
    assert made.cdf(np.array([2.0])).tolist() == [0.5]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "exactly one"),
        ({"normal": [1, 2], "uniform": [0, 1]}, "exactly one"),
        ({"normal": [1, 0]}, "positive standard deviation"),
        ({"lognormal": [-1, 1]}, "positive mean"),
        ({"uniform": [2, 1]}, "ends above"),
        ({"choice": []}, "at least 1"),
        ({"choice": {1: -1}}, "positive share"),
        ({"normal": [0, 1], "truncate": [3, 2]}, "ends before it begins"),
        ({"uniform": [0, 1], "truncate": [2, 3]}, "nothing of the distribution"),
        ({"choice": [1, 2], "truncate": [3, 4]}, "nothing of the distribution"),
        ({"normal": [0, float("inf")]}, "finite"),
    ],
)
def test_impossible_distributions_get_a_sentence(given: dict, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Distribution.model_validate(given)


def test_a_table_with_a_gap_names_the_place(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [f"{i},{i * 2}" for i in range(9)]
    path.write_text("a,b\n" + "\n".join(rows) + "\n")
    assert read_columns(path, ["b"])[:, 0].tolist() == [2.0 * i for i in range(9)]
    assert Distribution(empirical="t.csv").read("b", tmp_path).support == (0, 16)
    path.write_text("a,b\n1,2\n3,\n" + "\n".join(rows))
    with pytest.raises(AnatomicaError, match=r"t\.csv, line 3, column b: a value is missing"):
        read_columns(path, ["a", "b"])
    assert len(read_columns(path, ["a"])) == 11
    path.write_text("a,b\n1,2\nx,4\n" + "\n".join(rows))
    with pytest.raises(AnatomicaError, match="line 3, column a: 'x' is no number"):
        read_columns(path, ["a"])
    with pytest.raises(AnatomicaError, match="has no column 'c'"):
        read_columns(path, ["c"])
    path.write_text("a\n1\n")
    with pytest.raises(AnatomicaError, match="at least 8"):
        read_columns(path, ["a"])
