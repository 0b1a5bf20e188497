"""Spines against keypoints: closed forms of the quantities, and columns drawn from the table of real ones."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from anatomica.data.phantoms import phantom, spine_statistics
from anatomica.data.phantoms.curve import Curve, draw_curve
from anatomica.data.spine_realism import (
    KINDS,
    NAMES,
    PAIRS,
    Columns,
    against_keypoints,
    compare,
    features,
    format_keypoints,
    moments,
    of_phantoms,
    read_keypoints,
    tilts_deg,
    trimmed,
)
from anatomica.errors import AnatomicaError


def write(path: Path, columns: Columns) -> Path:
    """A keypoint file in the axes of the data: x to the left, y to the back, z up; pedicles without level."""
    with gzip.open(path, "wt", newline="") as file:
        out = csv.writer(file)
        out.writerow(["scan", "kind", "level", "x_mm", "y_mm", "z_mm"])
        for scan in range(len(columns)):
            kinds = (("body", columns.bodies_mm), ("left", columns.left_mm), ("right", columns.right_mm))
            for kind, points in kinds:
                for name, (x, y, z) in zip(NAMES, points[scan], strict=True):
                    if np.isfinite(x):
                        out.writerow([f"s{scan}", kind, name if kind == "body" else "", -x, -y, z])
    return path


def drawn(count: int) -> Columns:
    """Columns straight from the table, pedicles about 12 mm to each side and 20 mm behind the centres."""
    rng = np.random.default_rng(0)
    bodies = np.stack([draw_curve(rng).centres_mm() for _ in range(count)])
    right = np.array([12.0, -20.0, 2.0]) + rng.normal(0, 0.5, bodies.shape)
    return Columns(bodies, bodies + right * [-1, 1, 1], bodies + right)


def test_a_curve_has_the_spacings_and_tilts_it_was_made_of():
    rng = np.random.default_rng(1)
    curve = Curve(rng.uniform(15, 35, 23), rng.uniform(-30, 30, 23), rng.uniform(-10, 10, 23), 0.0)
    segments = np.diff(curve.centres_mm(), axis=0)
    sagittal, coronal = tilts_deg(segments)
    assert np.allclose(np.linalg.norm(segments, axis=1), curve.spacing_mm)
    assert np.allclose(sagittal, curve.sagittal_deg)
    assert np.allclose(coronal, curve.coronal_deg)


def test_kyphosis_is_a_positive_turn():
    """Three centres on an arc that is convex to the back (y is to the front)."""
    bodies = np.full((1, 24, 3), np.nan)
    bodies[0, 10:13] = [[0, 0, 25], [0, -3, 0], [0, 0, -25]]
    turn = features(Columns(bodies, bodies, bodies))["sagittal turn"][0]
    assert np.isfinite(turn).sum() == 1
    assert turn[10] == pytest.approx(2 * np.degrees(np.arctan2(3, 25)))


def test_drawn_columns_have_the_moments_of_the_table():
    kinds = features(drawn(1500))
    tables = (spine_statistics.SPACING, spine_statistics.SAGITTAL_TURN, spine_statistics.CORONAL_TURN)
    for kind, table in zip(KINDS, tables, strict=False):
        _, mean, sd = moments(kinds[kind])
        for i, (name, _, real_mean, real_sd) in enumerate(table):
            assert abs(mean[i] - real_mean) < 0.15 * real_sd, (kind, name)
            if (kind, name) != ("coronal turn", "C2"):  # see spine_statistics
                assert 0.85 < sd[i] / real_sd < 1.1, (kind, name)


def test_the_correlations_are_correlations():
    for matrix in (
        spine_statistics.SPACING_CORRELATION,
        spine_statistics.SAGITTAL_TILT_CORRELATION,
        spine_statistics.CORONAL_TILT_CORRELATION,
    ):
        assert matrix.shape == (len(PAIRS), len(PAIRS))
        assert np.allclose(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > 0


def test_a_file_reads_back_with_its_pedicles(tmp_path: Path):
    columns = drawn(3)
    columns.bodies_mm[1, :9] = columns.left_mm[1, :9] = columns.right_mm[1, :9] = np.nan
    back = read_keypoints(write(tmp_path / "keypoints.csv.gz", columns))
    assert np.allclose(back.bodies_mm, columns.bodies_mm, equal_nan=True)
    assert np.allclose(back.left_mm[:, 9:], columns.left_mm[:, 9:])
    apart = features(back)["interpedicular"][:, 9:]
    assert np.allclose(apart, np.linalg.norm(columns.left_mm - columns.right_mm, axis=2)[:, 9:])


def test_columns_against_themselves_and_against_larger_ones():
    columns = drawn(80)
    same = compare(columns, columns)
    assert len(same["levels"]) == 23 + 22 + 22 + 24 + 24
    assert {x["z"] for x in same["levels"]} == {0.0}
    larger = Columns(1.1 * columns.bodies_mm, 1.1 * columns.left_mm, 1.1 * columns.right_mm)
    grown = compare(columns, larger)
    for x in grown["levels"]:
        if x["kind"] == "spacing":
            assert x["z"] == pytest.approx(0.1 * x["real_mean"] / x["real_sd"], rel=0.02)
            assert x["sd_ratio"] == pytest.approx(1.1, rel=0.01)
    assert "T8-T9" in format_keypoints(grown)


def test_phantoms_against_a_file(tmp_path: Path):
    path = write(tmp_path / "keypoints.csv.gz", drawn(80))
    result = against_keypoints(path, [phantom("spinal", seed, 32).truth for seed in range(6)])
    assert result["phantoms"] == 6
    assert result["real_columns"] == 80
    assert {x["kind"] for x in result["levels"]} == set(KINDS)


def test_slips_of_the_annotation_are_dropped():
    values = np.random.default_rng(2).normal(0, 1, (500, 2))
    values[0, 0] = 30.0
    kept = trimmed(values)
    assert np.isnan(kept[0, 0])
    assert np.isfinite(kept).sum() >= 998 - 2


def test_what_is_no_keypoint_file_is_said(tmp_path: Path):
    with pytest.raises(AnatomicaError, match="not a file"):
        read_keypoints(tmp_path / "nothing.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(AnatomicaError, match="no column kind"):
        read_keypoints(tmp_path / "other.csv")
    with pytest.raises(AnatomicaError, match="at least one"):
        of_phantoms([])
