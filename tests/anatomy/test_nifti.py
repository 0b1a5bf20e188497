"""NIfTI in and out, read back by nibabel and SimpleITK; every bad file is one clear sentence."""

import gzip
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
import SimpleITK as sitk
import TPTBox
from hypothesis import given, settings
from hypothesis import strategies as st
from nibabel.nifti1 import Nifti1Extension
from scipy.spatial.transform import Rotation

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.colour_tables import caret_xml
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.anatomy.labels import Label, LabelTable
from anatomica.errors import AnatomicaError

CARDIAC, SPINAL = ANATOMIES["cardiac"], ANATOMIES["spinal"]
REAL = Path(TPTBox.__file__).parent / "tests"
REAL_CT = REAL / "sample_ct" / "sub-ct_seg-vert_label-22_msk.nii.gz"
REAL_MR = REAL / "sample_mri" / "sub-mri_seg-vert_label-6_msk.nii.gz"


def some_map(affine=None, table=CARDIAC.table, shape=(7, 8, 9)):
    rng = np.random.default_rng(3)
    ids = np.array(table.ids)
    array = ids[rng.integers(0, len(ids), shape)].astype(np.int32)
    return LabelMap(array, np.diag([1.5, 2.0, 2.5, 1.0]) if affine is None else affine, table)


def write_raw(path, array, affine=None, names=None):
    image = nib.Nifti1Image(array, np.eye(4) if affine is None else affine)
    if names:
        xml = caret_xml(LabelTable.from_names(names))
        image.header.extensions.append(Nifti1Extension(0, xml.encode()))
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(image, path)
    return path


def oblique(angles, spacing, offset):
    affine = np.eye(4)
    affine[:3, :3] = Rotation.from_euler("xyz", angles, degrees=True).as_matrix() * np.array(spacing)
    affine[:3, 3] = offset
    return affine


@settings(max_examples=20, deadline=None)
@given(
    angles=st.tuples(*[st.floats(-20, 20)] * 3),
    spacing=st.tuples(*[st.floats(0.1, 5)] * 3),
    offset=st.tuples(*[st.floats(-300, 300)] * 3),
)
def test_round_trip_by_nibabel_and_simpleitk(tmp_path_factory, angles, spacing, offset):
    path = tmp_path_factory.mktemp("nifti") / "x.nii.gz"
    label_map = some_map(oblique(angles, spacing, offset))
    nifti.save(label_map, path)

    image = nib.Nifti1Image.from_filename(path)
    np.testing.assert_array_equal(np.asarray(image.dataobj), label_map.array)
    for affine, code in (image.get_sform(coded=True), image.get_qform(coded=True)):
        assert code == 1
        np.testing.assert_allclose(affine, label_map.affine, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(image.get_sform(), label_map.affine.astype(np.float32))

    itk = sitk.ReadImage(str(path))
    np.testing.assert_array_equal(sitk.GetArrayFromImage(itk).T, label_map.array)
    index = (3, 5, 7)
    lps = np.array(itk.TransformIndexToPhysicalPoint(index))
    np.testing.assert_allclose(lps * [-1, -1, 1], (label_map.affine @ [*index, 1])[:3], atol=2e-3)

    again = nifti.load(path)
    assert again.table == CARDIAC.table
    np.testing.assert_array_equal(again.array, label_map.array)


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_same_label_map_same_bytes_and_nothing_else_in_the_folder(tmp_path, name):
    for folder in ("a", "b"):
        nifti.save(some_map(), tmp_path / folder / name)
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == sorted(
        [name, "x_ColorTable.ctbl", "x_itksnap.txt"]
    )


def test_the_type_is_the_smallest_that_fits_the_table(tmp_path):
    for top, dtype in ((255, np.uint8), (256, np.uint16), (70000, np.int32)):
        table = LabelTable.from_names({1: "one", top: "top"})
        nifti.save(some_map(table=table), tmp_path / "x.nii.gz")
        assert nib.Nifti1Image.from_filename(tmp_path / "x.nii.gz").get_data_dtype() == dtype
        assert nifti.load(tmp_path / "x.nii.gz").table == table


def test_any_table_comes_back_with_names_and_colours(tmp_path):
    labels = (
        Label(0, "background", "background", (0, 0, 0)),
        Label(4, 'a "]]>" <b> & ü', "x", (1, 127, 254)),
    )
    table = LabelTable(labels)
    nifti.save(some_map(table=table), tmp_path / "x.nii.gz")
    back = nifti.load(tmp_path / "x.nii.gz").table
    assert [(x.id, x.name, x.colour) for x in back.labels] == [(x.id, x.name, x.colour) for x in labels]


def test_colour_tables_beside_the_file(tmp_path):
    nifti.save(some_map(), tmp_path / "x.nii.gz")
    slicer = [r.split() for r in (tmp_path / "x_ColorTable.ctbl").read_text().splitlines() if r[0] != "#"]
    snap = [r for r in (tmp_path / "x_itksnap.txt").read_text().splitlines() if r[0] != "#"]
    assert len(slicer) == len(snap) == 11
    for label, row, line in zip(CARDIAC.table.labels, slicer, snap, strict=True):
        assert row[:2] == [str(label.id), label.full_name.replace(" ", "_")]
        assert tuple(map(int, row[2:5])) == label.colour
        numbers, name = line.split('"')[:2]
        assert tuple(map(float, numbers.split()))[:4] == (label.id, *label.colour)
        assert name == ("Clear Label" if label.id == 0 else label.full_name)


def test_a_failed_write_leaves_the_old_file_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "x.nii.gz"
    nifti.save(some_map(), path)
    before = path.read_bytes()

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(OSError, match="disk full"):
        nifti.save(replace(some_map(), array=some_map().array * 0), path)
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_real_masks_of_any_orientation_keep_their_volumes():
    raw = nib.Nifti1Image.from_filename(REAL_CT)
    assert raw.affine is not None
    assert nib.aff2axcodes(raw.affine) == ("P", "I", "R")
    counts = np.bincount(np.asarray(raw.dataobj).ravel().astype(int))
    voxel_ml = abs(np.linalg.det(raw.affine[:3, :3])) / 1000
    label_map = nifti.load(REAL_CT, SPINAL, "verse")
    assert nib.aff2axcodes(label_map.affine) == ("R", "A", "S")
    assert label_map.present() == ("L2", "L3", "L4")
    cube = to_cube(label_map, SPINAL, 128, grow=True)
    for tissue, id in (("L2", 21), ("L3", 22), ("L4", 23)):
        assert label_map.volume_ml(tissue) == pytest.approx(counts[id] * voxel_ml)
        # L3 is whole; the scan cuts L2 and L4 by flat faces, which a grid can only keep to the nearest voxel.
        assert cube.volume_ml(tissue) == pytest.approx(counts[id] * voxel_ml, rel=0.01 if id == 22 else 0.015)
    itk = sitk.DICOMOrient(
        sitk.ReadImage(str(REAL_CT)), "LPS"
    )  # ITK's LPS counts up to the left: flip to RAS
    np.testing.assert_array_equal(sitk.GetArrayFromImage(itk).T[::-1, ::-1], label_map.array + 0)


def test_real_masks_with_labels_of_another_kind_need_a_mapping():
    with pytest.raises(AnatomicaError, match="105, 106, 205, 206, 207"):
        nifti.load(REAL_MR, SPINAL)
    label_map = nifti.load(REAL_MR, SPINAL, {5: "C5", 6: "C6", 7: "C7", "*": "background"})
    assert label_map.present() == ("C5", "C6", "C7")
    assert nifti.load(REAL_MR).table.names[-1] == "label_207"


def test_floats_and_scaled_and_trailing_axis(tmp_path):
    array = some_map().array
    for data in (array.astype(np.float64), array.astype(np.float32)[..., None]):
        back = nifti.load(write_raw(tmp_path / "x.nii.gz", data), CARDIAC)
        np.testing.assert_array_equal(back.array, array)
        assert back.array.dtype == np.uint8


def test_a_file_with_totalsegmentators_names(tmp_path):
    array = np.zeros((4, 4, 4), np.uint8)
    array[0], array[1], array[2] = 1, 7, 9
    names = {1: "spleen", 7: "aorta", 9: "brachiocephalic_trunk", 11: "brain"}
    path = write_raw(tmp_path / "x.nii.gz", array, names=names)
    label_map = nifti.load(path, ANATOMIES["aortic"])
    assert label_map.present() == ("Ao", "BCT")
    assert nifti.load(path).table.names == ("background", *names.values())


@pytest.mark.parametrize("damage", [b"<LabelTable", b"<LabelTable><Label Key='x'>a</Label></LabelTable>"])
def test_a_damaged_name_table_is_no_name_table(tmp_path, damage):
    image = nib.Nifti1Image(np.ones((2, 2, 2), np.uint8), np.eye(4))
    image.header.extensions.append(Nifti1Extension(0, damage))
    nib.save(image, tmp_path / "x.nii.gz")
    assert nifti.load(tmp_path / "x.nii.gz").table.names == ("background", "label_1")


def masks(folder, **where):
    for name, box in where.items():
        array = np.zeros((8, 8, 8), np.uint8)
        array[box] = 1
        write_raw(folder / f"{name}.nii.gz", array)
    return folder


def test_a_folder_of_masks(tmp_path):
    folder = masks(tmp_path / "seg", aorta=np.s_[:4], liver=np.s_[6:], brachiocephalic_trunk=np.s_[4:5])
    (folder / "statistics.json").write_text("{}")
    label_map = nifti.load(folder, ANATOMIES["aortic"])
    assert (label_map.volume_ml("Ao"), label_map.volume_ml("BCT")) == (4 * 64 / 1000, 64 / 1000)
    plain = nifti.load(folder)
    assert plain.table.tissues == ("aorta", "brachiocephalic_trunk", "liver")
    mapped = nifti.load(folder, CARDIAC, {"liver": "LV", "aorta": "Ao", "*": "background"})
    assert mapped.present() == ("LV", "Ao")


def test_where_masks_overlap_the_smaller_wins_and_two_masks_can_be_one_tissue(tmp_path):
    folder = masks(tmp_path / "seg", big=np.s_[:6], small=np.s_[4:6, :4], more=np.s_[7:])
    label_map = nifti.load(folder, CARDIAC, {"big": "PV", "small": "Myo", "more": "PV"})
    assert (label_map.array[4:6, :4] == CARDIAC.table.id_of("Myo")).all()
    assert label_map.volume_ml("PV", "Myo") == pytest.approx(7 * 64 / 1000)


def test_a_numeric_line_of_a_mapping_never_means_a_mask(tmp_path):
    folder = masks(tmp_path / "seg", one=np.s_[:4])
    with pytest.raises(AnatomicaError, match="names none of its labels; the file has one"):
        nifti.load(folder, CARDIAC, {1: "LV", -1: "LV"})


SHEARED = np.array([[1, 0.3, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
CUBE = np.ones((4, 4, 4), np.uint8)


def truncated(path):
    rng = np.random.default_rng(0)
    write_raw(path, rng.integers(0, 3, (20, 20, 20)).astype(np.uint8))
    path.write_bytes(path.read_bytes()[:-500])
    return path


def nan_affine(path):
    data = bytearray(nib.Nifti1Image(CUBE, np.eye(4)).to_bytes())
    data[280:284] = np.float32(np.nan).tobytes()  # the sform's first number
    path.write_bytes(gzip.compress(bytes(data)))
    return path


def text(path, content=b"not an image"):
    path.write_bytes(content)
    return path


def other_grid(folder):
    write_raw(folder / "aorta.nii.gz", CUBE)
    write_raw(folder / "heart_atrium_left.nii.gz", CUBE, np.diag([2.0, 1, 1, 1]))
    return folder


def empty(folder):
    folder.mkdir()
    (folder / "readme.txt").write_text("nothing")
    return folder


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda d: d / "none.nii.gz", r"none\.nii\.gz: no such file or folder"),
        (lambda d: text(d / "x.nii.gz"), r"x\.nii\.gz: not a readable NIfTI"),
        (lambda d: text(d / "x.nii", b""), r"x\.nii: not a readable NIfTI"),
        (lambda d: text(d / "x.png"), r"ends with \.nii or \.nii\.gz"),
        (lambda d: truncated(d / "x.nii.gz"), "not a readable NIfTI"),
        (lambda d: write_raw(d / "x.nii.gz", np.ones((4, 4, 4, 3), np.uint8)), "3 axes, this file has 4"),
        (lambda d: write_raw(d / "x.nii.gz", np.ones((4, 4), np.uint8)), "3 axes, this file has 2"),
        (lambda d: write_raw(d / "x.nii.gz", np.full((4, 4, 4), 1.5)), r"not integers, such as 1\.5"),
        (lambda d: write_raw(d / "x.nii.gz", np.full((4, 4, 4), np.nan)), "NaN"),
        (lambda d: write_raw(d / "x.nii.gz", np.full((4, 4, 4), 1e12)), r"beyond 2\^31"),
        (lambda d: write_raw(d / "x.nii.gz", np.full((4, 4, 4), 1j)), "holds complex"),
        (lambda d: write_raw(d / "x.nii.gz", np.full((4, 4, 4), -3, np.int16)), r"negative; it holds \[-3\]"),
        (lambda d: write_raw(d / "x.nii.gz", CUBE * 77), "77; name their vocabulary"),
        (lambda d: write_raw(d / "x.nii.gz", CUBE, SHEARED), r"x\.nii\.gz: the affine is sheared"),
        (lambda d: nan_affine(d / "x.nii.gz"), "finite"),
        (lambda d: other_grid(d / "seg"), r"share one grid; heart_atrium_left\.nii\.gz .* aorta\.nii\.gz"),
        (
            lambda d: write_raw(d / "seg" / "aorta.nii.gz", CUBE + np.arange(4, dtype=np.uint8)).parent,
            "one value",
        ),
        (lambda d: masks(d / "seg", blob=np.s_[:]), r"these labels are: blob; name"),
        (lambda d: empty(d / "seg"), "holds no NIfTI file"),
    ],
)
def test_bad_input_is_one_clear_sentence(tmp_path, make, match):
    with pytest.raises(AnatomicaError, match=match) as error:
        nifti.load(make(tmp_path), CARDIAC)
    assert "\n" not in str(error.value)


def test_other_refusals(tmp_path):
    path = write_raw(tmp_path / "x.nii.gz", CUBE)
    with pytest.raises(AnatomicaError, match="needs an anatomy"):
        nifti.load(path, None, "verse")
    with pytest.raises(AnatomicaError, match="names none of its labels"):
        nifti.load(path, CARDIAC, {9: "LV"})
    with pytest.raises(AnatomicaError, match="ends with"):
        nifti.save(some_map(), tmp_path / "x.img")
