import numpy as np
import pytest
from PIL import Image

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, cube_affine
from anatomica.report.render import Camera, contact_sheet, mid_slices, render
from anatomica.report.wires import focus
from oracles import Ellipsoid, components, voxel_centres

TABLE = ANATOMIES["cardiac"].table


def ball(centre=(0.5, 0.5, 0.5), radius=0.2, n=32) -> LabelMap:
    inside = Ellipsoid(centre, (radius,) * 3).contains(voxel_centres(n))
    return LabelMap(inside.astype(np.uint8) * TABLE.id_of("RV"), cube_affine(100.0, n), TABLE)


def test_a_ball_covers_its_disc_at_its_depth() -> None:
    picture = render(ball(), Camera(30, 20), size=120)
    covered = np.isfinite(picture.depth_mm).mean()
    shown = 2 * picture.half_mm
    assert covered == pytest.approx(np.pi * 20**2 / shown**2, rel=0.06)
    assert picture.depth_mm[60, 60] == pytest.approx(-20, abs=2)


@pytest.mark.parametrize(
    ("azimuth", "mm", "side"),
    [(0, (-30, 0, 0), "right"), (180, (-30, 0, 0), "left"), (90, (0, 30, 0), "left")],
)
def test_patient_left_is_on_the_right_from_the_front(azimuth: float, mm: tuple, side: str) -> None:
    picture = render(ball(np.array(mm) / 100 + 0.5, 0.1), Camera(azimuth, 0), size=64)
    columns = np.flatnonzero(np.any(np.isfinite(picture.depth_mm), axis=0))
    assert (columns.mean() > 32) == (side == "right")
    column, row, _ = picture.project(np.array(mm, float))
    assert abs(column - columns.mean()) < 2
    assert abs(row - 31.5) < 2


@pytest.mark.parametrize("step", [(1, 0, 0), (1, 1, 0)])
def test_a_line_one_voxel_wide_is_drawn_without_a_gap(step: tuple[int, int, int]) -> None:
    """Voxels that share a face or an edge are one component, and look like one."""
    array = np.zeros((32, 32, 32), np.uint8)
    for i in range(8, 24):
        array[tuple(np.array((8, 8, 8)) + (i - 8) * np.array(step))] = TABLE.id_of("RV")
    drawn = np.isfinite(render(LabelMap(array, cube_affine(100.0, 32), TABLE), Camera(20, 20), 160).depth_mm)
    assert drawn.any()
    assert components(drawn, np.ones((3, 3)))[1] == 1


def test_hidden_tissue_is_not_drawn_and_a_ghost_is_pale() -> None:
    assert not np.isfinite(render(ball(), size=32, hide=["RV"]).depth_mm).any()
    solid, ghost = render(ball(), size=32).image[16, 16], render(ball(), size=32, ghost=["RV"]).image[16, 16]
    assert ghost.mean() > solid.mean()
    assert ghost.min() < 255


def test_focus_keeps_every_voxel_in_place() -> None:
    lone = ball((0.3, 0.6, 0.5), 0.1)
    near = focus(lone)
    assert near.volume_ml("RV") == lone.volume_ml("RV")
    a = np.argwhere(lone.array) @ lone.affine[:3, :3].T + lone.affine[:3, 3]
    b = np.argwhere(near.array) @ near.affine[:3, :3].T + near.affine[:3, 3]
    np.testing.assert_allclose(a, b)


def test_sheet_and_slices_are_images(tmp_path) -> None:
    contact_sheet([render(ball(), size=40).image] * 3, tmp_path / "sheet.png", ["a", "b", "c"], columns=2)
    with Image.open(tmp_path / "sheet.png") as image:
        assert image.size[0] == 80
    assert mid_slices(ball(), 40).shape == (40, 120, 3)
