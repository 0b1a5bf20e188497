"""What real segmentations do: walls without blood, carotids that lean on the trunk, scans that are long."""

import numpy as np
import pytest
from scipy import ndimage

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, affordable
from anatomica.data.phantoms import phantom
from anatomica.measurement.vocabulary.statistics import find, statistics
from anatomica.measurement.vocabulary.subject import Subject

HEART = ANATOMIES["cardiac"]
OF_THE_AORTA = ("av.annulus.diameter_mm", "ao.sinus.diameter_mm", "ao.stj.diameter_mm")


@pytest.fixture(scope="module")
def heart() -> LabelMap:
    return phantom("cardiac", 100_001, 64).label_map


def hollow(heart: LabelMap, tissue: str) -> LabelMap:
    """The same heart with only the outermost voxels of a vessel."""
    array = heart.array.copy()
    array[np.asarray(ndimage.binary_erosion(heart.mask(tissue)), dtype=bool)] = 0
    return LabelMap(array, heart.affine, heart.table)


def test_a_vessels_wall_is_no_vessel(heart: LabelMap) -> None:
    whole = Subject(heart, HEART)
    assert all(find(whole, key).value is not None for key in (*OF_THE_AORTA, "pa.diameter_mm"))
    walls = Subject(hollow(heart, "Ao"), HEART)
    for key in OF_THE_AORTA:
        found = find(walls, key)
        assert found.value is None
        assert "only its wall labelled" in found.reason
    assert find(walls, "pa.diameter_mm").value == find(whole, "pa.diameter_mm").value
    assert find(walls, "mv.annulus.diameter_mm").value == find(whole, "mv.annulus.diameter_mm").value
    assert "only its wall" in find(Subject(hollow(heart, "PA"), HEART), "pa.diameter_mm").reason


def test_a_carotid_that_leans_on_the_trunk_leaves_the_aorta() -> None:
    # Of this phantom, whose carotid leaves the aorta, it touches the trunk over a larger area.
    leaning = phantom("aortic", 100_020, 128)
    assert find(Subject(leaning.label_map, ANATOMIES["aortic"]), "bovine").value == 0
    common = phantom("aortic", 100_000, 128)
    assert find(Subject(common.label_map, ANATOMIES["aortic"]), "bovine").value == 1


def test_a_long_scan_is_measured_with_larger_voxels() -> None:
    about = ANATOMIES["spinal"]
    array = np.zeros((60, 60, 290), np.uint8)
    array[20:40, 20:40, 5:285] = about.table.id_of("T9")
    long = LabelMap(array, np.diag([1.0, 1.0, 1.0, 1.0]), about.table)
    assert affordable(long, about, 128, 64) == 96
    s, found = statistics(long, about, keys=["T9.volume_ml"])
    assert s.voxel_mm == pytest.approx(about.edge_mm / 96)
    assert found[0].value == pytest.approx(20 * 20 * 280 / 1000, rel=0.01)
    short = LabelMap(array[:, :, :200], long.affine, about.table)
    assert affordable(short, about, 128, 64) == 128
