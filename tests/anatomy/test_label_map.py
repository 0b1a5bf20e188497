"""Label maps on grids: reorienting, resampling and framing keep the anatomy where and as large as it is."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import (
    LabelMap,
    bounding_box,
    centre_mm,
    check_affine,
    cube_affine,
    label_ids,
    regrid,
    resample,
    to_cube,
    to_ras,
)
from anatomica.anatomy.labels import LabelTable
from anatomica.errors import AnatomicaError

TABLE = LabelTable.from_names({1: "a", 2: "b", 3: "c"})
CARDIAC = ANATOMIES["cardiac"]


def points_mm(shape, affine):
    index = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    return index @ affine[:3, :3].T + affine[:3, 3]


def ellipsoid(shape, affine, centre=(0, 0, 0), axes_mm=(30, 20, 25), table=TABLE, id=1):
    unit = (points_mm(shape, affine) - centre) / np.array(axes_mm)
    return LabelMap(((unit**2).sum(-1) < 1).astype(np.uint8) * np.uint8(id), affine, table)


def centroid_mm(label_map, id=1):
    index = np.argwhere(label_map.array == id).mean(0)
    return label_map.affine[:3, :3] @ index + label_map.affine[:3, 3]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("signs", list(itertools.product((1, -1), repeat=3)))
def test_to_ras_undoes_any_order_and_direction_of_axes(order, signs):
    rng = np.random.default_rng(0)
    array = rng.integers(0, 4, (3, 4, 5)).astype(np.uint8)
    affine = np.diag([1.0, 2.0, 3.0, 1.0])
    affine[:3, 3] = 5, -6, 7
    step = np.zeros((4, 4))
    step[3, 3] = 1
    turned = array.transpose(order)[tuple(slice(None, None, s) for s in signs)]
    for new, (old, sign) in enumerate(zip(order, signs, strict=True)):
        step[old, new] = sign
        step[old, 3] = 0 if sign == 1 else array.shape[old] - 1
    back = to_ras(LabelMap(turned, affine @ step, TABLE))
    np.testing.assert_array_equal(back.array, array)
    np.testing.assert_allclose(back.affine, affine, atol=1e-12)


def test_resampling_to_the_same_grid_changes_nothing():
    rng = np.random.default_rng(1)
    label_map = LabelMap(rng.integers(0, 4, (9, 8, 7)).astype(np.uint8), np.diag([2.0, 1, 3, 1]), TABLE)
    for method in ("linear", "nearest"):
        same = resample(label_map, label_map.shape, label_map.affine, method)
        np.testing.assert_array_equal(same.array, label_map.array)


@pytest.mark.parametrize("spacing", [(1, 1, 1), (2, 2, 2), (3, 3, 3), (0.8, 1.1, 2.5)])
@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_volume_and_place_survive_resampling(spacing, method):
    shape = tuple(int(100 / s) for s in spacing)
    affine = np.diag([*spacing, 1.0])
    affine[:3, 3] = [-(n - 1) / 2 * s for n, s in zip(shape, spacing, strict=True)]
    source = ellipsoid(shape, affine, centre=(3.3, -2.1, 1.7))
    # An oblique target grid that still holds everything.
    angle = 0.5
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    target = np.eye(4)
    target[:3, :3] = turn * 1.5
    target[:3, 3] = -target[:3, :3] @ np.full(3, 35.5)
    out = resample(source, (72, 72, 72), target, method)
    exact = 4 / 3 * np.pi * 30 * 20 * 25 / 1000
    assert out.volume_ml("a") == pytest.approx(source.volume_ml("a"), rel=0.01)
    assert out.volume_ml("a") == pytest.approx(exact, rel=0.015)
    np.testing.assert_allclose(centroid_mm(out), (3.3, -2.1, 1.7), atol=0.25)


@pytest.mark.parametrize("factor", [2, 4])
def test_ties_at_whole_ratios_do_not_shrink_tissues(factor):
    source = ellipsoid((128,) * 3, cube_affine(128.0, 128), axes_mm=(24, 24, 24))
    out = regrid(source, 128 // factor)
    assert out.volume_ml("a") == pytest.approx(source.volume_ml("a"), rel=0.01)


def test_no_gap_opens_where_tissues_meet():
    affine = cube_affine(64.0, 64)
    where = points_mm((64,) * 3, affine)
    angle = np.arctan2(where[..., 1], where[..., 0])
    sector = np.digitize(angle, [-np.pi / 3, np.pi / 3]).astype(np.uint8) + 1
    inside = (where**2).sum(-1) < 28**2
    out = regrid(LabelMap(sector * inside.astype(np.uint8), affine, TABLE), 29)
    deep = (points_mm(out.shape, out.affine) ** 2).sum(-1) < 25**2
    assert (out.array[deep] > 0).all()
    assert label_ids(out.array) == [0, 1, 2, 3]


def test_outside_the_source_is_background():
    full = LabelMap(np.ones((4, 4, 4), np.uint8), np.eye(4), TABLE)
    out = resample(
        full, (12, 12, 12), np.array([[1, 0, 0, -4], [0, 1, 0, -4], [0, 0, 1, -4], [0, 0, 0, 1.0]])
    )
    assert out.array.sum() == 64
    np.testing.assert_array_equal(np.argwhere(out.array).min(0), [4, 4, 4])
    away = np.eye(4)
    away[:3, 3] = 1000
    assert resample(full, (5, 5, 5), away).array.max() == 0


def test_regrid_keeps_the_box():
    source = ellipsoid((30, 40, 20), np.diag([2.0, 1.5, 3.0, 1.0]), centre=(29, 29, 28), axes_mm=(20, 20, 20))
    out = regrid(source, 24)
    low, high = (out.affine @ [*corner, 1] for corner in ((-0.5,) * 3, (23.5,) * 3))
    np.testing.assert_allclose(low[:3], source.affine[:3, :3] @ np.full(3, -0.5))
    np.testing.assert_allclose(high[:3], source.affine[:3, :3] @ np.array([29.5, 39.5, 19.5]))
    np.testing.assert_allclose(centroid_mm(out), centroid_mm(source), atol=0.2)


@pytest.mark.parametrize("grow", [False, True])
def test_a_cube_of_the_frame_is_kept_as_it_is(grow):
    # Off centre and touching the border: recentring or growing it would change the patient.
    label_map = ellipsoid((32,) * 3, cube_affine(256.0, 32), (80, 40, -90), (60, 50, 60), CARDIAC.table, 3)
    assert to_cube(label_map, CARDIAC, 32, grow=grow) is label_map


@pytest.mark.parametrize("grow", [False, True])
def test_a_cube_of_the_frame_at_another_resolution_keeps_its_cube(grow):
    centre = np.array([10.0, 20.0, 30.0])
    label_map = ellipsoid(
        (64,) * 3, cube_affine(256.0, 64, centre), (40, 60, -20), (50, 40, 60), CARDIAC.table, 3
    )
    out = to_cube(label_map, CARDIAC, 32, grow=grow)
    np.testing.assert_allclose(out.affine, cube_affine(256.0, 32, centre))
    assert out.volume_ml("LV") == pytest.approx(label_map.volume_ml("LV"), rel=0.01)


def test_to_cube_centres_on_the_anatomys_tissues():
    affine = np.diag([3.0, 3.0, 3.0, 1.0])
    label_map = ellipsoid((120, 100, 110), affine, (150, 150, 150), (45, 30, 30), CARDIAC.table, 3)
    array = label_map.array.copy()
    array[5:8, 5:8, 5:8] = CARDIAC.table.id_of("IVC")  # far away, and not a chamber
    out = to_cube(replace(label_map, array=array), CARDIAC, 64)
    assert out.shape == (64, 64, 64)
    np.testing.assert_allclose(out.spacing_mm, 4.0)
    np.testing.assert_allclose(centre_mm(out, ("LV",)), (150, 150, 150), atol=2.1)
    assert "IVC" not in out.present()


def test_growing_holds_every_voxel_at_the_same_voxel_size():
    affine = np.diag([3.0, 3.0, 3.0, 1.0])
    label_map = ellipsoid((120, 100, 110), affine, (150, 150, 150), (45, 30, 30), CARDIAC.table, 3)
    array = label_map.array.copy()
    far = ellipsoid(label_map.shape, affine, (40, 40, 40), (30, 30, 30), CARDIAC.table, 8)
    array[far.array > 0] = CARDIAC.table.id_of("IVC")
    label_map = replace(label_map, array=array)
    out = to_cube(label_map, CARDIAC, 64, grow=True)
    np.testing.assert_allclose(out.spacing_mm, 4.0)
    assert out.shape[0] > 64
    for tissue in ("LV", "IVC"):
        assert out.volume_ml(tissue) == pytest.approx(label_map.volume_ml(tissue), rel=0.02)


def test_an_empty_label_map_cannot_be_framed():
    with pytest.raises(AnatomicaError, match="does not occur"):
        to_cube(LabelMap(np.zeros((4, 4, 4), np.uint8), np.eye(4), CARDIAC.table), CARDIAC)


def test_bounding_box_and_ids():
    array = np.zeros((5, 6, 7), np.uint16)
    array[1, 2:4, 3:7] = 300
    low, high = bounding_box(array > 0)
    assert (low.tolist(), high.tolist()) == ([1, 2, 3], [2, 4, 7])
    assert label_ids(array) == [0, 300]
    assert label_ids(array.astype(np.int64) - 1) == [-1, 299]


@pytest.mark.parametrize(
    ("affine", "match"),
    [
        (np.full((4, 4), np.nan), "finite"),
        (np.eye(3), "4x4"),
        (np.diag([1.0, 0, 1, 1]), "zero length"),
        (np.array([[1, 0.2, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]]), "sheared"),
    ],
)
def test_bad_affines_are_refused(affine, match):
    with pytest.raises(AnatomicaError, match=match):
        check_affine(affine)


def test_a_label_map_refuses_what_it_cannot_hold():
    with pytest.raises(AnatomicaError, match="3 axes"):
        LabelMap(np.zeros((2, 2), np.uint8), np.eye(4), TABLE)
    with pytest.raises(AnatomicaError, match="integers"):
        LabelMap(np.zeros((2, 2, 2)), np.eye(4), TABLE)
    with pytest.raises(AnatomicaError, match=r"\[9\]"):
        LabelMap(np.full((2, 2, 2), 9, np.uint8), np.eye(4), TABLE)
