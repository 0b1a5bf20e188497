"""Aortic phantoms: one tree without loops, branches that leave where they should, variants."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.data.phantom_population import agree
from anatomica.data.phantoms import phantom
from anatomica.data.phantoms.aorta_truth import known as known_of
from anatomica.data.phantoms.aortic import WHOLE, draw
from anatomica.data.phantoms.published import diameter
from anatomica.data.phantoms.tree import Build, arteries
from anatomica.data.phantoms.warp import random_warp
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


LEVELS = (
    "sinotubular_junction",
    "mid_ascending",
    "distal_ascending",
    "mid_arch",
    "proximal_descending",
    "mid_descending",
)


def test_levels_have_the_diameters_of_the_truth():
    """The truth's ellipses after the deformation against sections of the label map; a voxel is 2 mm."""
    for seed in (2, 5):
        made = phantom("aortic", seed, 128)
        known = made.truth.parameters
        for level in LEVELS:
            across = diameter("Ao", "Ao", known[f"{level}_along_mm"])(made)
            assert across == pytest.approx(known[f"{level}_diameter_mm"], abs=0.7), (seed, level)
            assert known[f"{level}_min_diameter_mm"] <= known[f"{level}_max_diameter_mm"]
        for branch in ("BCT", "LCCA", "LSCA"):
            assert 30 < known[f"{branch}_takeoff_deg"] < 140
            ostium = np.array(made.truth.landmarks_mm[f"{branch} ostium"])
            index = np.round((ostium - made.label_map.affine[:3, 3]) / made.label_map.spacing_mm).astype(int)
            around = made.label_map.array[tuple(slice(i - 2, i + 3) for i in index)]
            assert made.label_map.table.id_of(branch) in around


def drawn(count: int) -> list[tuple[Build, dict[str, float]]]:
    """Parameters and truths of patients without a pathology; no label map is drawn."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng([7, seed])
        body = draw(rng, None)
        found.append((body, known_of(body, arteries(body, rng), random_warp(rng, 4.0, [(80.0, 4.0)]))[2]))
    return found


def test_the_population_is_as_published():
    """Arch types: Wang 2016; SDs: Hager 2002 and Yan; older aortas are wider, steeper and wind more."""
    patients = drawn(250)
    kinds = np.array([known["arch_type"] for _, known in patients])
    for kind, share in ((1, 0.565), (2, 0.328), (3, 0.108)):
        assert abs((kinds == kind).mean() - share) < 0.09
    ages = np.array([body.age_years for body, _ in patients])
    assert ages[kinds == 3].mean() > ages[kinds == 2].mean() > ages[kinds == 1].mean()
    winding = np.array([known["descending_tortuosity"] for _, known in patients])
    assert winding[ages >= 65].mean() > winding[ages < 65].mean() + 0.02
    assert 1.08 < winding.mean() < 1.14
    for name, mean, sd in (("mid_ascending", 30.9, 4.1), ("mid_descending", 23.9, 3.3)):
        found = np.array([known[f"{name}_diameter_mm"] for _, known in patients])
        assert abs(found.mean() - mean) < 0.4 * sd
        assert 0.7 < found.std() / sd < 1.3
    widths = np.array([[b.ascending_mm, b.descending_mm, b.bct_mm, b.lsca_mm] for b, _ in patients])
    linked = np.corrcoef(widths.T)
    assert linked[0, 1] > 0.6
    assert linked[0, 2] > 0.2
    assert linked[2, 3] > 0.2


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
