"""Coronary phantoms: a lumen that runs through, a closed wall, calcium that can be counted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from anatomica.data.phantoms import Phantom, phantom
from anatomica.data.phantoms.coronary import PATHOLOGIES
from anatomica.measurement.homology.betti import betti_numbers


def wrong_topology(patient: Phantom) -> dict[str, tuple[list[int], list[int]]]:
    """Structures whose Betti numbers are not the stated ones: (stated, found)."""
    found = {}
    for name, stated in patient.truth.betti.items():
        betti = list(betti_numbers(patient.label_map.mask(*name.split("+"))))
        if betti != stated:
            found[name] = (stated, betti)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_stated_topology_holds_at_64(seed: int):
    assert wrong_topology(phantom("coronary", seed, 64)) == {}


@pytest.mark.parametrize("pathology", PATHOLOGIES)
def test_stated_topology_holds_in_every_pathology(pathology: str):
    patient = phantom("coronary", 11, 64, pathology)
    assert patient.truth.pathology == pathology
    assert wrong_topology(patient) == {}


def test_the_same_patient_at_64_and_128():
    coarse, fine = phantom("coronary", 3, 64), phantom("coronary", 3, 128)
    assert coarse.truth == fine.truth
    for id in (1, 2, 3):
        mask = coarse.label_map.array == id
        share = (fine.label_map.array == id).reshape(64, 2, 64, 2, 64, 2).mean((1, 3, 5)) >= 0.5
        assert 2 * (mask & share).sum() / (mask.sum() + share.sum()) > 0.9


def test_a_seed_is_a_patient():
    first, again, other = (phantom("coronary", s, 32).label_map.array for s in (7, 7, 8))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("seed", range(4))
def test_lumen_runs_through_and_the_wall_is_closed(seed: int):
    array = phantom("coronary", seed, 64).label_map.array
    assert ((array == 1).any((0, 1))).all()
    # Free space never touches the lumen, except where a branch leaves the cube.
    lumen = array == 1
    for axis in range(3):
        a, b = np.moveaxis(array, axis, 0)[:-1], np.moveaxis(array, axis, 0)[1:]
        assert not ((a == 1) & (b == 0)).any()
        assert not ((a == 0) & (b == 1)).any()
    assert lumen.any()


def test_calcium_lies_in_the_wall():
    patient = phantom("coronary", 3, 128)
    array = patient.label_map.array
    assert (array == 2).any()
    for axis in range(3):
        a, b = np.moveaxis(array, axis, 0)[:-1], np.moveaxis(array, axis, 0)[1:]
        assert not ((a == 2) & (b == 0)).any()
        assert not ((a == 0) & (b == 2)).any()
    inverse = np.linalg.inv(patient.label_map.affine)
    for name, point in patient.truth.landmarks_mm.items():
        if name.startswith("calcium"):
            index = tuple(np.round((inverse @ np.append(point, 1.0))[:3]).astype(int))
            assert array[index] == 2


def test_the_lumen_has_the_stated_area():
    seed = next(s for s in range(20) if phantom("coronary", s, 32).truth.parameters["side_branch"] == 0)
    patient = phantom("coronary", seed, 128)
    area_mm2 = (patient.label_map.array == 1).sum((0, 1)) * 0.1**2
    assert area_mm2.mean() == pytest.approx(patient.truth.parameters["mean_lumen_area_mm2"], rel=0.02)
    assert area_mm2.min() == pytest.approx(patient.truth.parameters["minimum_lumen_area_mm2"], rel=0.05)


def test_walls_do_not_pinch_and_calcium_keeps_inside():
    """At 64^3 two voxels of wall lie between lumen and free space, and one between calcium and free space."""
    for seed in range(12):
        array = phantom("coronary", seed, 64).label_map.array
        # Beyond the cube the vessel goes on.
        free = np.pad(array == 0, 1, mode="edge")
        away = np.asarray(ndimage.distance_transform_edt(~free))[1:-1, 1:-1, 1:-1]
        assert away[array == 1].min() >= 2.0, seed
        assert away[array == 2].min(initial=9.0) > 1.0, seed


def test_calcium_and_areas_are_as_stated():
    """The sheets' integrals against counts of voxels, 0.1 mm each."""
    checked = 0
    for seed in range(9):
        known = phantom("coronary", seed, 32).truth.parameters
        if known["side_branch"] or not known["deposits"] or checked == 3:
            continue
        patient, checked = phantom("coronary", seed, 128), checked + 1
        array, truth = patient.label_map.array, patient.truth
        calcium = array == 2
        assert calcium.sum() * 0.1**3 == pytest.approx(known["calcium_volume_mm3"], rel=0.05)
        assert calcium.any((0, 1)).sum() * 0.1 == pytest.approx(known["calcium_length_mm"], abs=0.15)
        assert widest_deg(array) == pytest.approx(known["calcium_max_angle_deg"], abs=7.0)
        for tissue, mask in (("Lu", array == 1), ("Ve", array > 0)):
            area = mask.sum((0, 1)) * 0.1**2
            stated = np.pi * np.array(truth.radii_mm[tissue]) ** 2
            middle = (stated[1:] + stated[:-1]) / 2
            assert np.abs(area / middle - 1).max() < 0.06
        burden = 1 - (array == 1).sum() / (array > 0).sum()
        assert burden == pytest.approx(known["atheroma_volume_share"], abs=0.01)
    assert checked == 3


def widest_deg(array: np.ndarray) -> float:
    """The largest angle that a frame's calcium covers around the centroid of its lumen."""
    widest = 0.0
    for frame in np.moveaxis(array, 2, 0):
        if (frame == 2).any():
            away = np.argwhere(frame == 2) - np.argwhere(frame == 1).mean(0)
            turns = np.degrees(np.arctan2(away[:, 1], away[:, 0])) % 360
            widest = max(widest, 2.0 * len(np.unique((turns / 2).astype(int))))
    return widest


def test_severe_stenosis_is_severe():
    narrow = [
        phantom("coronary", s, 32, "severe-stenosis").truth.parameters["area_stenosis"] for s in range(12)
    ]
    usual = [phantom("coronary", s, 32, "none").truth.parameters["area_stenosis"] for s in range(6)]
    assert np.mean(narrow) > np.mean(usual) + 0.15


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 128])
def test_two_hundred_patients(n: int):
    """The stated topology in at least 99 %, all different, every count of deposits from 0 to 4."""
    wrong, seen, counts = [], set(), set()
    for seed in range(200):
        patient = phantom("coronary", seed, n)
        seen.add(patient.label_map.array.tobytes())
        counts.add(patient.truth.betti["Ca"][0])
        if wrong_topology(patient):
            wrong.append(seed)
    assert len(wrong) <= 2, wrong
    assert len(seen) == 200
    assert counts == {0, 1, 2, 3, 4}
