"""NIfTI files that are damaged, absurd or too large: one sentence, never other labels, never much memory."""

import errno
import gzip
import struct

import nibabel as nib
import numpy as np
import pytest
from nibabel.nifti1 import Nifti1Extension

from anatomica.anatomy import nifti
from anatomica.anatomy.bounds import MOST_LABELS, MOST_TRAILING_BYTES
from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.anatomy.nifti_file import read_nifti
from anatomica.errors import AnatomicaError

CARDIAC = ANATOMIES["cardiac"]
DTYPES = (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
FLOATS = (np.float32, np.float64)


def labels(shape=(7, 5, 3)) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 11, shape)


def heart(tmp_path):
    """A compressed label map, with its labels and affine."""
    path = tmp_path / "x.nii.gz"
    array = np.kron(labels((4, 4, 4)), np.ones((3, 3, 3))).astype(np.uint8)
    nifti.save(LabelMap(array, np.diag([2.0, 2, 2, 1]), CARDIAC.table), path)
    return path, nifti.load(path, CARDIAC)


@pytest.mark.parametrize("kind", [nib.Nifti1Image, nib.Nifti2Image])
@pytest.mark.parametrize("dtype", [*DTYPES, *FLOATS])
@pytest.mark.parametrize("order", ["<", ">"])
def test_any_type_and_byte_order_is_read_as_nibabel_reads_it(tmp_path, kind, dtype, order):
    header = kind.header_class(endianness=order)
    header.set_data_dtype(dtype)
    path = tmp_path / "x.nii"
    kind(labels().astype(dtype), np.diag([-2.0, 3, 0.5, 1]), header).to_filename(path)
    known = kind.from_filename(path)
    found = read_nifti(path)
    np.testing.assert_array_equal(found.array, np.asanyarray(known.dataobj))
    np.testing.assert_allclose(found.affine, known.affine)
    assert found.array.dtype == np.uint8


def test_scaled_integers_are_read_as_nibabel_reads_them(tmp_path):
    image = nib.Nifti1Image(labels().astype(np.uint8) * 2, np.eye(4))
    image.to_filename(tmp_path / "x.nii")
    data = bytearray((tmp_path / "x.nii").read_bytes())
    data[112:120] = struct.pack("<ff", 0.5, 3.0)
    (tmp_path / "x.nii").write_bytes(data)
    np.testing.assert_array_equal(read_nifti(tmp_path / "x.nii").array, labels() + 3)


def test_a_flipped_bit_of_a_compressed_file_never_gives_other_labels(tmp_path):
    path, known = heart(tmp_path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    told = 0
    for bit in rng.choice(8 * len(whole), 600, replace=False).tolist():
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            found = nifti.load(path, CARDIAC)
        except AnatomicaError as error:
            told += str(path) in str(error) and "\n" not in str(error)
            continue
        np.testing.assert_array_equal(found.array, known.array)  # a bit of the file's name or date
        np.testing.assert_array_equal(found.affine, known.affine)
        told += 1
    assert told == 600


def test_a_cut_file_is_refused_wherever_it_is_cut(tmp_path):
    path, _ = heart(tmp_path)
    whole = path.read_bytes()
    for end in (0, 1, 10, 100, len(whole) // 2, len(whole) - 8, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(AnatomicaError, match="not a readable NIfTI"):
            nifti.load(path, CARDIAC)
    path.write_bytes(whole + b"rest")
    with pytest.raises(AnatomicaError, match="not a readable NIfTI"):
        nifti.load(path, CARDIAC)


def test_a_disk_that_fails_is_not_the_files_fault(tmp_path, monkeypatch):
    path, _ = heart(tmp_path)

    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("gzip.GzipFile.read", broken)
    with pytest.raises(OSError, match="Input/output error") as stopped:
        nifti.load(path, CARDIAC)
    assert stopped.value.filename == str(path)


def raw(tmp_path, header: dict[int, bytes], data: bytes = bytes(64), extra: bytes = b"") -> str:
    """A file of 4 x 4 x 4 bytes with some bytes of its header replaced, compressed."""
    block = bytearray(nib.Nifti1Image(np.zeros((4, 4, 4), np.uint8), np.eye(4)).to_bytes()[:352])
    for at, value in header.items():
        block[at : at + len(value)] = value
    path = tmp_path / "x.nii.gz"
    path.write_bytes(gzip.compress(bytes(block) + data + extra))
    return path


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ({42: struct.pack("<3h", 32767, 32767, 32767)}, "32767 x 32767 x 32767 voxels"),
        ({42: struct.pack("<3h", 700, 700, 700)}, "700 x 700 x 700 voxels, the file is too short"),
        ({42: struct.pack("<3h", -4, 4, 4)}, "at least one voxel"),
        ({42: struct.pack("<3h", 0, 4, 4)}, "at least one voxel"),
        ({40: struct.pack("<h", 9)}, "not a readable|9 axes"),
        ({40: struct.pack("<h", -3)}, "not a readable|-3 axes"),
        ({108: struct.pack("<f", 1e12)}, "not a readable"),
        ({108: struct.pack("<f", np.nan)}, "not a readable"),
        ({70: struct.pack("<h", 12345)}, "not a readable"),
        ({344: b"ni1\0"}, "not a readable"),
        ({0: struct.pack("<i", 349)}, "does not begin as a NIfTI file"),
        ({280: struct.pack("<f", 1000.0)}, "voxels have 1000 x 1 x 1 mm"),
        ({280: struct.pack("<f", 1e-5)}, "voxels have 1e-05 x 1 x 1 mm"),
        ({292: struct.pack("<f", 1e30)}, "numbers beyond 100000 mm"),
    ],
)
def test_an_absurd_header_is_refused_before_anything_is_read(tmp_path, header, match):
    with pytest.raises(AnatomicaError, match=match) as error:
        nifti.load(raw(tmp_path, header), CARDIAC)
    assert "\n" not in str(error.value)


def test_a_file_that_unfolds_to_more_than_its_header_says_is_refused(tmp_path):
    assert nifti.load(raw(tmp_path, {}, extra=bytes(1000))).present() == ()
    with pytest.raises(AnatomicaError, match="goes on after the voxels"):
        nifti.load(raw(tmp_path, {}, extra=bytes(MOST_TRAILING_BYTES + 1)))


def test_labels_of_any_size_are_refused_or_mapped(tmp_path):
    for top, dtype in ((2**64 - 1, np.uint64), (2**40, np.int64), (2**31, np.uint32)):
        path = tmp_path / "x.nii.gz"
        nib.Nifti1Image(np.full((4, 4, 4), top, dtype), np.eye(4), dtype=dtype).to_filename(path)
        with pytest.raises(AnatomicaError, match=r"beyond 2\^31"):
            nifti.load(path, CARDIAC, {"*": "LV"})
    array = np.where(labels() > 5, 2**31 - 1, 7)
    nib.Nifti1Image(array.astype(np.int32), np.eye(4)).to_filename(path)
    found = nifti.load(path, CARDIAC, {7: "RV", "*": "LV"})
    np.testing.assert_array_equal(found.mask("LV"), array > 7)
    np.testing.assert_array_equal(found.mask("RV"), array == 7)


def test_an_image_is_not_taken_for_thousands_of_labels(tmp_path):
    array = np.arange(MOST_LABELS + 1, dtype=np.int16).reshape(-1, 1, 1)
    path = tmp_path / "x.nii.gz"
    nib.Nifti1Image(array, np.eye(4)).to_filename(path)
    with pytest.raises(AnatomicaError, match="different values; is this an image"):
        nifti.load(path)


def test_names_that_unfold_or_break_lines_are_harmless(tmp_path):
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 9))
    bomb = f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><LabelTable><Label Key="1">&l8;</Label></LabelTable>'
    lines = '<LabelTable><Label Key="1">a\n\x7fb</Label></LabelTable>'
    huge = '<LabelTable><Label Key="1" Red="1e999">a</Label></LabelTable>'
    for text, name in ((bomb, "label_1"), (lines, "a b"), (huge, "label_1")):
        image = nib.Nifti1Image(np.ones((2, 2, 2), np.uint8), np.eye(4))
        image.header.extensions.append(Nifti1Extension(0, text.encode()))
        nib.save(image, tmp_path / "x.nii.gz")
        assert nifti.load(tmp_path / "x.nii.gz").table.names == ("background", name)


def test_a_cube_does_not_grow_without_bound():
    """A heart that is given as a coronary artery would need a cube of thousands of voxels along its edge."""
    array = np.ones((16, 16, 16), np.uint8)
    for spacing, anatomy in ((10.0, "coronary"), (100.0, "cardiac")):
        about = ANATOMIES[anatomy]
        wide = LabelMap(array, np.diag([spacing] * 3 + [1.0]), about.table)
        with pytest.raises(AnatomicaError, match=rf"is it {anatomy} anatomy\?"):
            to_cube(wide, about, 128, grow=True)
    about = ANATOMIES["cardiac"]
    assert (
        to_cube(LabelMap(array, np.diag([20.0] * 3 + [1.0]), about.table), about, 32, grow=True).shape[0] > 32
    )
