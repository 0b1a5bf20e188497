"""Specs of sweeps, content hashes and tables."""

from pathlib import Path

import pytest

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments import identity
from anatomica.evaluate.experiments.catalogue import EXPERIMENTS, experiment
from anatomica.evaluate.experiments.plan import (
    GRADIENT_L,
    GRADIENT_V,
    NEWTON_L,
    UNCONDITIONAL,
    at_scale,
    changed,
    profile,
    resampled,
    reweighted,
)
from anatomica.evaluate.experiments.tables import largest, markdown, shown, smallest
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.spec.tasks import task


def test_sweeps_change_what_they_say_and_nothing_else() -> None:
    spec = task("mitral-valve")
    heavier = reweighted(spec, geometric=10.0, centroid=0.0)
    assert [c.weights.geometric for c in heavier.constraints] == [10.0, 10.0]
    assert [c.weights.centroid for c in heavier.constraints] == [0.0, 0.0]
    assert [c.weights.mass for c in heavier.constraints] == [1e9, 1e9]
    assert spec == task("mitral-valve")
    assert changed(spec, temperature=2.0).constraints[1].temperature == 2.0
    assert resampled(task("right-ventricle"), 16).constraints[0].domain.grid == (16, 16, 16)


def test_cubes_of_points_scale_with_the_model_and_thin_domains_do_not() -> None:
    assert at_scale(task("right-ventricle"), 64).constraints[0].domain.grid == (32, 32, 32)
    assert at_scale(task("right-ventricle"), 128) == task("right-ventricle")
    assert at_scale(task("aortic-trunk"), 64) == task("aortic-trunk")


def test_profiles_scale() -> None:
    here = profile("here")
    assert (here.count(UNCONDITIONAL), here.count(UNCONDITIONAL, sweep=True), here.count(GRADIENT_L)) == (
        128,
        64,
        16,
    )
    assert profile("paper").steps == 100
    scaled = profile("here", samples=3, steps=7)
    assert (scaled.samples, scaled.slow, scaled.sweep, scaled.steps) == (3, 3, 3, 7)
    with pytest.raises(AnatomicaError, match="allowed: quick, here, paper"):
        profile("fast")
    with pytest.raises(AnatomicaError, match="geometric"):
        experiment("geometry")
    assert all(e.summary for e in EXPERIMENTS.values())


def test_methods_are_told_apart() -> None:
    identities = [str(m.identity()) for m in (UNCONDITIONAL, GRADIENT_L, GRADIENT_V, NEWTON_L)]
    assert len(set(identities)) == 4


def test_the_code_version_sees_code_and_not_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "PACKAGE", tmp_path)

    def version(text: str, other: str = "x = 1\n") -> str:
        (tmp_path / "part.py").write_text(text)
        (tmp_path / "other.py").write_text(other)
        for kept in (identity.code_version, identity._tree, identity._imports_of):
            kept.cache_clear()
        return identity.code_version("part")

    first = version('"""A."""\n\ndef f(x):\n    """Doc."""\n    return x + 1\n')
    assert version("# why\ndef f(x):\n    return (x\n        + 1)\n") == first
    assert version("def f(x):\n    return x + 2\n") != first
    # What is imported counts too, also inside a function.
    lazy = "def f(x):\n    from anatomica.other import x\n    return x\n"
    assert version(lazy) == version(lazy)
    assert version(lazy, "x = 2\n") != version(lazy)
    assert version("y = 1\n", "x = 2\n") == version("y = 1\n")
    for kept in (identity.code_version, identity._tree, identity._imports_of):
        kept.cache_clear()


def test_the_code_that_draws_includes_the_solver_and_the_kernel() -> None:
    drawn = identity._imported(identity.DRAWING)
    assert {"guidance.gauss_newton", "prior.sampler", "measurement.homology.persistence"} <= drawn
    assert not any(name.startswith(("cli", "report")) for name in drawn)


def test_numbers_as_shown() -> None:
    assert shown(Interval(17.53, 16.0, 19.04), 17.5) == "17.5 [16, 19] (paper 17.5)"
    assert shown(Interval(0.5, 0.4, 0.6), best=True) == "**0.5** [0.4, 0.6]"
    assert shown(Interval(12345.6, 1.0, 2.0)) == "12346 [1, 2]"
    assert shown(Interval(float("nan"), float("nan"), float("nan"))) == "-"
    assert (smallest([3.0, float("nan"), 1.0]), largest([3.0, 1.0])) == (1, 3)
    assert smallest([]) != smallest([])
    assert markdown(("a", "b"), [("1", "2")]) == "| a | b |\n|---|---|\n| 1 | 2 |\n"
