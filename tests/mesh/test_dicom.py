"""DICOM segmentations and contours, read back by highdicom, dcmqi's own converter and by filling
polygons."""

import shutil
import subprocess
import sys
from pathlib import Path

import highdicom as hd
import numpy as np
import pydicom
import pytest
import SimpleITK as sitk
from matplotlib.path import Path as Outline

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.mesh import surface_of
from anatomica.mesh.contours import area, contours, keyholed
from anatomica.mesh.dicom import KINDS, RTSTRUCT, SEG, write_dicom
from anatomica.mesh.dicom.series import read_series


@pytest.fixture
def arteries() -> LabelMap:
    """Three arteries on a skewed-free but uneven grid; two of them share a SNOMED CT code."""
    table = anatomy("aortic").table
    array = np.zeros((9, 8, 7), dtype=np.uint8)
    array[1:5, 1:5, 1:5] = table.id_of("Ao")
    array[6:8, 2:4, 2:6] = table.id_of("LCCA")
    array[6:8, 5:7, 1:4] = table.id_of("RCCA")
    affine = np.diag([1.5, 2.0, 2.5, 1.0])
    affine[:3, 3] = -40.0, 12.0, 7.0
    return LabelMap(array, affine, table)


def write_dicom_seg(folder: Path, name: str, label_map: LabelMap, ct: Path | None = None) -> list[Path]:
    return write_dicom(folder, name, label_map, kinds=(SEG,), ct=ct)[SEG]


def positions(label_map: LabelMap, id: int) -> np.ndarray:
    """Voxel centres of a label in LPS mm, sorted."""
    mm = np.argwhere(label_map.array == id) @ label_map.affine[:3, :3].T + label_map.affine[:3, 3]
    return np.sort((mm * [-1, -1, 1]).round(4), axis=0)


def dcmqi(path: Path, out: Path) -> dict[int, sitk.Image]:
    """Segments as dcmqi's segimage2itkimage writes them; it refuses what breaks the standard's rules."""
    tool = Path(sys.executable).with_name("segimage2itkimage")
    done = subprocess.run(
        [tool, "--inputDICOM", path, "--outputDirectory", out, "--outputType", "nii"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {int(p.name.split(".")[0]): sitk.ReadImage(str(p)) for p in out.glob("*.nii.gz")}


def test_synthetic_series(arteries, tmp_path) -> None:
    seg_path, *slices = write_dicom_seg(tmp_path, "patient", arteries)
    assert len(slices) == 7
    image = pydicom.dcmread(slices[0])
    assert image.SyntheticData == "YES"
    assert "Synthetic" in image.SeriesDescription
    assert not image.pixel_array.any()
    seg = hd.seg.segread(seg_path)
    assert seg.SyntheticData == "YES"
    assert [seg.get_segment_description(n).segment_label for n in seg.segment_numbers] == [
        "Ao",
        "LCCA",
        "RCCA",
    ]
    types = [seg.get_segment_description(n).segmented_property_type for n in seg.segment_numbers]
    assert [t.value for t in types] == ["15825003", "32062004", "32062004"]
    sides = [t.SegmentedPropertyTypeModifierCodeSequence[0].CodeMeaning for t in types[1:]]
    assert sides == ["Left", "Right"]
    assert "SegmentedPropertyTypeModifierCodeSequence" not in types[0]
    assert seg.get_segment_description(1).segmented_property_category.meaning == "Anatomical Structure"
    # Through highdicom's own geometry back to the patient.
    volume = seg.get_volume(combine_segments=True)
    for number, name in enumerate(("Ao", "LCCA", "RCCA"), start=1):
        found = np.argwhere(volume.array == number) @ volume.affine[:3, :3].T + volume.affine[:3, 3]
        expected = positions(arteries, arteries.table.id_of(name))
        np.testing.assert_allclose(np.sort(found.round(4), axis=0), expected, atol=1e-3)


def test_dcmqi_reads_it_back(arteries, tmp_path) -> None:
    seg_path, *_ = write_dicom_seg(tmp_path, "patient", arteries)
    (tmp_path / "back").mkdir()
    found = dcmqi(seg_path, tmp_path / "back")
    assert set(found) == {1, 2, 3}
    for number, name in enumerate(("Ao", "LCCA", "RCCA"), start=1):
        image = found[number]
        index = np.argwhere(sitk.GetArrayFromImage(image) > 0)[:, ::-1]
        mm = np.array([image.TransformIndexToPhysicalPoint(i.tolist()) for i in index])
        expected = positions(arteries, arteries.table.id_of(name))
        np.testing.assert_allclose(np.sort(mm.round(4), axis=0), expected, atol=1e-3)


def test_on_the_patients_own_series(arteries, tmp_path) -> None:
    """A series of twice the resolution, in a folder with other files: the tissue stays where it was."""
    fine = LabelMap(
        np.repeat(np.repeat(arteries.array, 2, 0), 2, 1),
        arteries.affine @ np.diag([0.5, 0.5, 1, 1]),
        arteries.table,
    )
    shift = np.eye(4)
    shift[:2, 3] = -0.375, -0.5
    fine = LabelMap(fine.array, shift @ fine.affine, fine.table)
    write_dicom_seg(tmp_path / "scan", "patient", fine)
    ct = tmp_path / "scan" / "patient-ct"
    (ct / "readme.txt").write_text("not DICOM")
    series = read_series(ct)
    seg_path, *others = write_dicom_seg(tmp_path / "out", "patient", arteries, ct)
    assert not others
    seg = hd.seg.segread(seg_path)
    assert seg.FrameOfReferenceUID == series[0].FrameOfReferenceUID
    assert seg.StudyInstanceUID == series[0].StudyInstanceUID
    volume = seg.get_volume(combine_segments=True)
    assert (volume.array > 0).sum() == 4 * (arteries.array > 0).sum()
    found = np.argwhere(volume.array == 1) @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    np.testing.assert_allclose(found.mean(0), positions(arteries, 1).mean(0), atol=1e-3)


def test_what_cannot_be_written_is_a_sentence(arteries, patient, tmp_path) -> None:
    with pytest.raises(AnatomicaError, match=r"'lumen' has no SNOMED CT code"):
        write_dicom_seg(tmp_path, "patient", patient)
    assert not list(tmp_path.iterdir())
    with pytest.raises(AnatomicaError, match="one DICOM series with images is needed, found 0"):
        write_dicom_seg(tmp_path, "patient", arteries, tmp_path)
    away = LabelMap(arteries.array, np.diag([1.5, 2.0, 2.5, 1.0]), arteries.table)
    write_dicom_seg(tmp_path / "scan", "other", away)
    with pytest.raises(AnatomicaError, match=r"only 0 % of the tissue lies in the CT series"):
        write_dicom_seg(tmp_path, "patient", arteries, tmp_path / "scan" / "other-ct")


@pytest.fixture
def scan(tmp_path) -> Path:
    """Five slices from a scanner, of 16 x 16 pixels: what pydicom's own tests read."""
    files = Path(pydicom.__file__).parent / "data" / "test_files" / "dicomdirtests" / "98892001" / "CT5N"
    if not files.is_dir():
        pytest.skip("this pydicom comes without its test files")
    folder = tmp_path / "scan"
    shutil.copytree(files, folder)
    return folder


def test_on_a_series_from_a_scanner(scan, tmp_path) -> None:
    series = read_series(scan)
    corner = np.array(series[0].ImagePositionPatient, dtype=float) * [-1, -1, 1]
    array = np.zeros((14, 14, 5), dtype=np.uint8)
    table = anatomy("aortic").table
    array[1:13, 1:13, 1:4] = table.id_of("Ao")
    affine = np.diag([0.49, 0.49, 2.5, 1.0])
    affine[:3, 3] = corner - [7.0, 7.0, 2.0]  # RAS: columns and rows of the scan grow to the left and back
    given = LabelMap(array, affine, table)
    made = write_dicom(tmp_path / "out", "patient", given, surface_of(given), KINDS, scan)
    assert [len(files) for files in made.values()] == [1, 1]
    seg = hd.seg.segread(made[SEG][0])
    assert (seg.PatientID, seg.StudyInstanceUID) == (series[0].PatientID, series[0].StudyInstanceUID)
    assert "SyntheticData" not in seg
    volume = seg.get_volume(combine_segments=True)
    found = np.argwhere(volume.array == 1) @ volume.affine[:3, :3].T + volume.affine[:3, 3]
    np.testing.assert_allclose(found.mean(0), positions(given, 1).mean(0), atol=1.3)  # half a slice
    (tmp_path / "back").mkdir()
    (image,) = dcmqi(made[SEG][0], tmp_path / "back").values()
    assert (sitk.GetArrayFromImage(image) > 0).sum() == len(found)
    drawn = filled(made[RTSTRUCT][0], series)
    assert 0.9 < drawn["Ao"].sum() / len(found) < 1.1


def filled(path: Path, series: list[pydicom.Dataset]) -> dict[str, np.ndarray]:
    """The pixels (slice, row, column) whose centres lie inside of a structure set's contours."""
    read = pydicom.dcmread(path)
    numbers = {image.SOPInstanceUID: k for k, image in enumerate(series)}
    names = {roi.ROINumber: roi.ROIName for roi in read.StructureSetROISequence}
    rows, columns = int(series[0].Rows), int(series[0].Columns)
    centres = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), -1).reshape(-1, 2)
    masks = {}
    for roi in read.ROIContourSequence:
        mask = np.zeros((len(series), rows * columns), dtype=bool)
        for contour in roi.ContourSequence:
            k = numbers[contour.ContourImageSequence[0].ReferencedSOPInstanceUID]
            image = series[k]
            points = np.array(contour.ContourData, dtype=float).reshape(-1, 3)
            assert len(points) == contour.NumberOfContourPoints >= 3
            away = points - np.array(image.ImagePositionPatient, dtype=float)
            across, down = np.array(image.ImageOrientationPatient, dtype=float).reshape(2, 3)
            assert np.abs(away @ np.cross(across, down)).max() < 1e-3  # in the slice's plane
            row_mm, column_mm = map(float, image.PixelSpacing)
            pixels = np.column_stack([away @ across / column_mm, away @ down / row_mm])
            mask[k] ^= Outline(pixels).contains_points(centres)
        masks[names[roi.ReferencedROINumber]] = mask.reshape(len(series), rows, columns)
    return masks


def test_contours_on_the_synthetic_series(arteries, tmp_path) -> None:
    made = write_dicom(tmp_path, "patient", arteries, surface_of(arteries), KINDS)
    read = pydicom.dcmread(made[RTSTRUCT][0])
    series = read_series(tmp_path / "patient-ct")
    assert (read.Modality, read.SyntheticData, read.PatientID) == ("RTSTRUCT", "YES", "SYNTHETIC")
    frame = read.ReferencedFrameOfReferenceSequence[0]
    listed = frame.RTReferencedStudySequence[0].RTReferencedSeriesSequence[0]
    assert listed.SeriesInstanceUID == series[0].SeriesInstanceUID
    assert len(listed.ContourImageSequence) == len(series) == 7
    codes = [x.RTROIIdentificationCodeSequence[0].CodeValue for x in read.RTROIObservationsSequence]
    assert codes == ["15825003", "32062004", "32062004"]
    # Every voxel's centre is inside its own tissue's surface, and so inside its contours.
    for name, mask in filled(made[RTSTRUCT][0], series).items():
        np.testing.assert_array_equal(mask, arteries.mask(name)[::-1, ::-1].transpose(2, 1, 0))
    seg = hd.seg.segread(made[SEG][0])
    assert seg.ReferencedSeriesSequence[0].SeriesInstanceUID == listed.SeriesInstanceUID
    # Written alone, later, it refers to the very same series.
    again = write_dicom(tmp_path, "patient", arteries, surface_of(arteries), (RTSTRUCT,))
    later = pydicom.dcmread(again[RTSTRUCT][0]).ReferencedFrameOfReferenceSequence[0]
    assert later.FrameOfReferenceUID == frame.FrameOfReferenceUID == seg.FrameOfReferenceUID


def test_holes_are_keyholes(arteries, tmp_path) -> None:
    """A tube with two channels and a rod in one of them: one contour with both holes, one of the rod."""
    ao, other = arteries.table.id_of("Ao"), arteries.table.id_of("LCCA")
    array = np.zeros((24, 14, 5), dtype=np.uint8)
    array[1:23, 1:13] = ao
    array[3:11, 3:11] = other
    array[6:8, 6:8] = ao
    array[14:21, 4:10] = 0
    given = LabelMap(array, np.diag([1.0, 1.0, 1.0, 1.0]), arteries.table)
    path = write_dicom(tmp_path, "patient", given, surface_of(given), (RTSTRUCT,))[RTSTRUCT][0]
    series = read_series(tmp_path / "patient-ct")
    read = pydicom.dcmread(path)
    assert len(read.ROIContourSequence[0].ContourSequence) == 2 * 5
    for name, mask in filled(path, series).items():
        np.testing.assert_array_equal(mask, given.mask(name)[::-1, ::-1].transpose(2, 1, 0))


def test_contours_of_a_ball_are_circles() -> None:
    n, radius = 30, 11.0
    away = np.linalg.norm(np.indices((n, n, n)) - 14.3, axis=0)
    given = LabelMap((away < radius).astype(np.uint8), np.eye(4), anatomy("aortic").table)
    surface = surface_of(given)
    rings = contours(surface.vertices, surface.of(given.present()[0]), n)
    for k, found in enumerate(rings):
        squared = radius**2 - (k - 14.3) ** 2
        if squared > 4:
            (ring,) = found
            assert area(ring) == pytest.approx(np.pi * squared, rel=0.06)
            assert keyholed(found)[0] is ring
        elif squared < -4:
            assert not found
    with pytest.raises(AnatomicaError, match="not closed"):
        contours(surface.vertices, surface.triangles[5:], n)


@pytest.mark.parametrize("name", ["cardiac", "aortic", "spinal", "coronary"])
def test_every_tissue_of_the_shipped_anatomies_has_a_code(name: str) -> None:
    assert all(label.snomed for label in anatomy(name).table.labels[1:])
