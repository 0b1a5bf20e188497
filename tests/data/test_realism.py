"""Features of label maps: closed forms, any grid, any pose; phantom hearts beside the real statistics."""

from __future__ import annotations

import numpy as np
import pytest

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.anatomy.nifti import save
from anatomica.data import real_hearts
from anatomica.data.phantoms import phantom
from anatomica.data.phantoms.shapes import rotation
from anatomica.data.realism import FEATURES, Reference, differences, features, real_cases
from anatomica.errors import AnatomicaError

CARDIAC = anatomy("cardiac")
SEMI_MM = np.array([30.0, 22.0, 15.0])


def two_bodies(n: int, turn: np.ndarray | None = None, edge_mm: float = 128.0) -> LabelMap:
    """An ellipsoid (LV) and a ball of 12 mm (RA) 60 mm to its right, on an n^3 grid."""
    affine = cube_affine(edge_mm, n)
    index = np.moveaxis(np.indices((n, n, n)), 0, -1)
    points = index @ affine[:3, :3].T + affine[:3, 3]
    local = (points - [-20, 5, -8]) @ (np.eye(3) if turn is None else turn.T)
    array = np.zeros((n, n, n), dtype=np.uint8)
    array[((local / SEMI_MM) ** 2).sum(-1) < 1] = CARDIAC.table.id_of("LV")
    array[((points - [40, 5, -8]) ** 2).sum(-1) < 144] = CARDIAC.table.id_of("RA")
    return LabelMap(array, affine, CARDIAC.table)


@pytest.mark.parametrize("turn", [None, rotation([20, -35, 50])])
def test_an_ellipsoid_has_its_closed_form(turn):
    found = features(two_bodies(128, turn), ("LV", "RA")).reshape(2, len(FEATURES))
    volumes = 4 / 3 * np.pi * np.array([SEMI_MM.prod(), 12.0**3]) / 1000
    assert found[:, 0] == pytest.approx(volumes, rel=0.01)
    # The common centroid divides the 60 mm between the centres by the volumes.
    left, right = -60 * volumes[1] / volumes.sum(), 60 * volumes[0] / volumes.sum()
    assert found[:, 1:4] == pytest.approx(np.array([[left, 0, 0], [right, 0, 0]]), abs=0.15)
    assert found[0, 4:] == pytest.approx(SEMI_MM / np.sqrt(5), rel=0.01)
    assert found[1, 4:] == pytest.approx(12 / np.sqrt(5), rel=0.01)


def test_coarse_and_fine_grids_agree():
    """A box of whole voxels is the same body on every grid: nothing is left to the rounding of surfaces."""
    fine = LabelMap(np.zeros((32,) * 3, dtype=np.uint8), cube_affine(64.0, 32), CARDIAC.table)
    fine.array[4:12, 4:20, 8:16] = 1
    fine.array[20:28, 4:12, 4:8] = 3
    coarse = LabelMap(np.ascontiguousarray(fine.array[::4, ::4, ::4]), cube_affine(64.0, 8), CARDIAC.table)
    names = ("Myo", "LV")
    assert features(coarse, names) == pytest.approx(features(fine, names), abs=1e-9)
    sides = np.array([32.0, 16.0, 16.0])
    assert features(fine, names)[4:7] == pytest.approx(sides / np.sqrt(12))


def test_a_missing_structure_is_named():
    with pytest.raises(AnatomicaError, match="has no RV; all of LV, RV are compared"):
        features(two_bodies(32), ("LV", "RV"))


def test_differences_count_in_real_sds():
    reference = Reference("a book", 3, ("LV",), np.arange(7.0), np.full(7, 2.0))
    made = np.arange(7.0) + np.array([[1.0], [3.0], [5.0]])
    rows = differences(made, reference)
    assert [x["feature"] for x in rows] == list(FEATURES)
    assert [x["unit"] for x in rows] == ["mL"] + ["mm"] * 6
    assert {x["z"] for x in rows} == {1.5}
    assert {x["sd_ratio"] for x in rows} == {1.0}


def test_real_cases_are_read_from_a_folder(tmp_path):
    with pytest.raises(AnatomicaError, match="has 0 NIfTI files"):
        real_cases(tmp_path, CARDIAC)
    for seed in range(4):
        save(two_bodies(32), tmp_path / f"case-{seed}.nii.gz")
    cases = real_cases(tmp_path, CARDIAC)
    assert list(cases) == [f"case-{seed}.nii.gz" for seed in range(4)]
    assert cases["case-0.nii.gz"].shape == (128, 128, 128)


def population(count: int) -> list[dict]:
    reference = real_hearts.REFERENCE
    made = [features(phantom("cardiac", seed, 64).label_map, reference.structures) for seed in range(count)]
    return differences(np.stack(made), reference)


def test_a_few_phantom_hearts_are_near_the_real_ones():
    """The means of 16 patients scatter by a quarter of an SD around those of the population."""
    rows = population(16)
    z = np.array([x["z"] for x in rows])
    assert np.sqrt((z**2).mean()) < 0.5
    assert np.abs(z).max() < 1.2


@pytest.mark.slow
def test_phantom_hearts_are_like_the_real_ones():
    rows = population(200)
    assert max(abs(x["z"]) for x in rows) <= 0.5
    assert min(x["sd_ratio"] for x in rows) >= 0.7
    assert max(x["sd_ratio"] for x in rows) <= 1.4
