"""Aortic phantoms: one tree without loops, branches that leave where they should, variants."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.data.phantom_population import agree
from anatomica.data.phantoms import phantom
from anatomica.data.phantoms.aortic import WHOLE
from anatomica.data.phantoms.published import diameter
from anatomica.measurement.homology import betti_numbers

SEEDS = range(8)
PARENTS = [("BCT", "Ao"), ("LCCA", "Ao"), ("LSCA", "Ao"), ("RCCA", "BCT"), ("RSCA", "BCT")]


@pytest.fixture(scope="module")
def patients():
    return {seed: phantom("aortic", seed, 64) for seed in SEEDS}


def wrong(made) -> list[str]:
    return [
        f"{made.truth.seed} {name} {seen}"
        for name, stated in made.truth.betti.items()
        if (seen := list(betti_numbers(made.label_map.mask(*name.split("+"))))) != stated
    ]


def touch(label_map, a: str, b: str) -> bool:
    return bool((ndimage.binary_dilation(label_map.mask(a)) & label_map.mask(b)).any())


def test_a_seed_is_a_patient(patients):
    again = phantom("aortic", 3, 64)
    assert (again.label_map.array == patients[3].label_map.array).all()
    assert len({made.label_map.array.tobytes() for made in patients.values()}) == len(SEEDS)


def test_one_tree_without_loops(patients):
    assert [line for made in patients.values() for line in wrong(made)] == []
    assert patients[0].truth.betti[WHOLE] == [1, 0, 0]
    assert wrong(phantom("aortic", 1, 128)) == []


def test_the_same_patient_at_two_resolutions():
    for seed in (5,):
        both = agree(phantom("aortic", seed, 64), phantom("aortic", seed, 128))
        assert len(both) == 6
        assert min(both.values()) > 0.9, both


def test_branches_leave_their_parents(patients):
    for made in patients.values():
        bovine = made.truth.pathology == "bovine-arch"
        for child, parent in PARENTS:
            expected = "BCT" if bovine and child == "LCCA" else parent
            assert touch(made.label_map, child, expected), (made.truth.seed, child, expected)
        assert not touch(made.label_map, "RCCA", "Ao")
        assert not touch(made.label_map, "RSCA", "LCCA")


def test_a_bovine_arch_has_two_branches():
    for seed in range(2):
        made = phantom("aortic", seed, 64, "bovine-arch")
        assert touch(made.label_map, "LCCA", "BCT")
        assert not touch(made.label_map, "LCCA", "Ao")
        assert wrong(made) == []


def test_branches_are_in_order_and_on_their_sides(patients):
    for made in patients.values():
        ends = {name: np.array(line) for name, line in made.truth.centrelines_mm.items()}
        assert ends["BCT"][0, 1] > ends["LSCA"][0, 1]
        assert ends["RSCA"][-1, 0] > 40 > -40 > ends["LSCA"][-1, 0]
        assert ends["RCCA"][-1, 0] > ends["LCCA"][-1, 0]
        assert ends["Ao"][-1, 1] < ends["Ao"][0, 1]


def test_radii_are_those_of_the_label_map():
    for seed in (2,):
        made = phantom("aortic", seed, 128, "none")
        line = np.array(made.truth.centrelines_mm["Ao"])
        along = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])
        for at_mm in (55.0, 140.0, 200.0):
            true = 2 * np.interp(at_mm, along, made.truth.radii_mm["Ao"])
            assert diameter("Ao", "Ao", at_mm)(made) == pytest.approx(true, rel=0.12)


def test_pathologies_show():
    for seed in range(2):
        normal = phantom("aortic", seed, 64, "none")
        aneurysm = phantom("aortic", seed, 64, "aneurysm")
        assert max(aneurysm.truth.radii_mm["Ao"]) > 1.2 * max(normal.truth.radii_mm["Ao"])
        winding = phantom("aortic", seed, 64, "tortuous")

        def length_mm(made):
            line = np.array(made.truth.centrelines_mm["Ao"])
            return np.linalg.norm(np.diff(line, axis=0), axis=1).sum()

        assert length_mm(winding) > 1.03 * length_mm(normal)
        assert wrong(aneurysm) == wrong(winding) == []


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 128])
def test_two_hundred_patients(n):
    bad, maps = [], set()
    for seed in range(200):
        made = phantom("aortic", seed, n)
        bad += [seed] if wrong(made) else []
        maps.add(made.label_map.array.tobytes())
        assert set(made.label_map.present()) == set(made.label_map.table.tissues)
    assert len(bad) <= 2, bad
    assert len(maps) == 200
