"""Cardiac phantoms: the same patient everywhere, the stated topology, valves that meet, sizes of adults."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.data.phantom_population import agree
from anatomica.data.phantoms import pathologies, phantom
from anatomica.data.phantoms.published import diameter
from anatomica.errors import AnatomicaError
from anatomica.measurement.homology import betti_numbers

SEEDS = range(6)


@pytest.fixture(scope="module")
def patients():
    return {seed: phantom("cardiac", seed, 64) for seed in SEEDS}


def interface_mm2(label_map, a: str, b: str) -> float:
    """Area of the voxel faces at which two tissues meet."""
    faces, one, other = 0, label_map.mask(a), label_map.mask(b)
    for axis in range(3):
        first, second = (np.take(x, range(x.shape[axis] - 1), axis) for x in (one, other))
        after_first, after_second = (np.take(x, range(1, x.shape[axis]), axis) for x in (one, other))
        faces += int((first & after_second).sum() + (second & after_first).sum())
    return faces * float(label_map.spacing_mm[0]) ** 2


def wrong(made) -> list[str]:
    return [
        f"{made.truth.seed} {name} {seen}"
        for name, stated in made.truth.betti.items()
        if (seen := list(betti_numbers(made.label_map.mask(*name.split("+"))))) != stated
    ]


def test_a_seed_is_a_patient(patients):
    again = phantom("cardiac", 3, 64)
    assert (again.label_map.array == patients[3].label_map.array).all()
    assert again.truth == patients[3].truth
    maps = {made.label_map.array.tobytes() for made in patients.values()}
    assert len(maps) == len(SEEDS)


def test_topology_is_as_stated(patients):
    assert [line for made in patients.values() for line in wrong(made)] == []
    assert wrong(phantom("cardiac", 1, 128)) == []


def test_the_same_patient_at_two_resolutions():
    for seed in (5,):
        both = agree(phantom("cardiac", seed, 64), phantom("cardiac", seed, 128))
        assert len(both) == 10
        assert min(both.values()) > 0.9, both


def test_valves_are_where_tissues_meet(patients):
    for made in patients.values():
        for a, b, least_mm2 in [("LA", "LV", 500), ("RA", "RV", 400), ("LV", "Ao", 200), ("RV", "PA", 150)]:
            assert interface_mm2(made.label_map, a, b) > least_mm2, (made.truth.seed, a, b)


def test_landmarks_lie_on_their_interfaces(patients):
    for made in patients.values():
        label_map = made.label_map
        for valve, a, b in [("mitral valve", "LA", "LV"), ("tricuspid valve", "RA", "RV")]:
            near = ndimage.binary_dilation(label_map.mask(a)) & label_map.mask(b)
            places = np.argwhere(near) @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
            off = np.linalg.norm(places.mean(0) - made.truth.landmarks_mm[valve])
            assert off < 14, (made.truth.seed, valve, off)


def test_atria_keep_a_voxel_between_them(patients):
    for made in patients.values():
        around = ndimage.binary_dilation(made.label_map.mask("LA"))
        assert not (around & made.label_map.mask("RA")).any()


def test_the_heart_lies_as_hearts_do(patients):
    """Apex to the left, front and below; the right heart right; the descending aorta behind, on the left."""
    for made in patients.values():
        points = {k: np.array(v) for k, v in made.truth.landmarks_mm.items()}
        axis = points["LV apex"] - points["mitral valve"]
        assert axis[0] < -20
        assert axis[1] > 15
        assert axis[2] < -10
        assert points["tricuspid valve"][0] > points["mitral valve"][0]
        assert points["pulmonary valve"][1] > points["aortic valve"][1]
        low = np.array(made.truth.centrelines_mm["aorta"])[45]
        assert low[1] < points["mitral valve"][1] - 30
        assert low[0] < points["tricuspid valve"][0]


def test_the_cube_is_centred_on_the_chambers(patients):
    for made in patients.values():
        inside = np.argwhere(made.label_map.mask("LA", "LV", "RA", "RV"))
        centre = (inside.min(0) + inside.max(0)) / 2
        assert np.abs(centre - 31.5).max() <= 1.0


def test_pathologies_show():
    normal = phantom("cardiac", 4, 64, "none")
    for name, tissue, factor in [
        ("dilated-rv", "RV", 1.15),
        ("dilated-lv", "LV", 1.2),
        ("hypertrophy", "Myo", 1.3),
        ("enlarged-la", "LA", 1.25),
    ]:
        sick = phantom("cardiac", 4, 64, name)
        assert sick.truth.pathology == name
        assert sick.label_map.volume_ml(tissue) > factor * normal.label_map.volume_ml(tissue), name
    wide, aneurysm = diameter("Ao", "aorta", 12), phantom("cardiac", 4, 64, "root-aneurysm")
    assert wide(aneurysm) > wide(normal) + 5
    assert aneurysm.truth.parameters["la"] == normal.truth.parameters["la"]


def test_wishes_that_cannot_be_met_are_named():
    with pytest.raises(AnatomicaError, match="allowed: none, dilated-rv"):
        phantom("cardiac", 0, 64, "broken")
    with pytest.raises(AnatomicaError, match="multiple of 16"):
        phantom("cardiac", 0, 50)
    with pytest.raises(AnatomicaError, match="unknown anatomy 'liver'"):
        phantom("liver", 0)
    assert sum(pathologies("cardiac").values()) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [64, 128])
def test_two_hundred_patients(n):
    bad, maps, rates = [], set(), 0
    for seed in range(200):
        made = phantom("cardiac", seed, n)
        bad += [seed] if wrong(made) else []
        maps.add(made.label_map.array.tobytes())
        rates += made.truth.pathology is not None
        assert set(made.label_map.present()) == set(made.label_map.table.tissues)
        assert interface_mm2(made.label_map, "LA", "LV") > 300
    assert len(bad) <= 2, bad
    assert len(maps) == 200
    assert abs(rates / 200 - sum(pathologies("cardiac").values())) < 0.1
