"""The image series that a DICOM object refers to: the patient's own CT, or a synthetic one marked as such."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from anatomica.anatomy.label_map import LabelMap, resample
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from pydicom import Dataset

MAKER = "anatomica"
LEAST_INSIDE = 0.97
"""Share of the tissue that must lie in the CT series; putting it there by nearest voxels changes a
percent."""
RAS_LPS = np.diag([-1.0, -1.0, 1.0])


def read_series(folder: Path) -> list[Dataset]:
    """The slices of the one image series in a folder, in order along their normal."""
    import pydicom
    from pydicom.errors import InvalidDicomError

    found: dict[str, list[Dataset]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith(".")):
        try:
            image = pydicom.dcmread(path)
        except InvalidDicomError:
            continue
        if "PixelData" in image and "ImagePositionPatient" in image:
            found.setdefault(str(image.SeriesInstanceUID), []).append(image)
    if len(found) != 1:
        raise AnatomicaError(f"{folder}: one DICOM series with images is needed, found {len(found)}")
    (images,) = found.values()
    normal = np.cross(*directions(images[0]))
    images.sort(key=lambda image: float(np.dot(normal, image.ImagePositionPatient)))
    along = [float(np.dot(normal, image.ImagePositionPatient)) for image in images]
    gaps = np.diff(along)
    if len(images) < 2 or gaps.min() < 1e-3 or gaps.max() - gaps.min() > 0.01 * gaps.mean() + 1e-3:
        raise AnatomicaError(f"{folder}: the slices are not evenly spaced, so they are no volume")
    return images


def directions(image: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Patient directions (LPS) of growing column and of growing row."""
    both = np.array(image.ImageOrientationPatient, dtype=float)
    return both[:3], both[3:]


def affine_of(images: Sequence[Dataset]) -> Float64[np.ndarray, "4 4"]:
    """(column, row, slice) -> RAS mm."""
    first, last = (np.array(image.ImagePositionPatient, dtype=float) for image in (images[0], images[-1]))
    across, down = directions(images[0])
    row_mm, column_mm = (float(x) for x in images[0].PixelSpacing)
    affine = np.eye(4)
    columns = [across * column_mm, down * row_mm, (last - first) / (len(images) - 1)]
    affine[:3, :3] = RAS_LPS @ np.stack(columns, axis=1)
    affine[:3, 3] = RAS_LPS @ first
    return affine


def on_series(label_map: LabelMap, images: Sequence[Dataset], source: Path) -> np.ndarray:
    """The label map's ids as (slice, row, column) of the series."""
    shape = (int(images[0].Columns), int(images[0].Rows), len(images))
    placed = resample(label_map, shape, affine_of(images), "nearest")
    volume = float(np.count_nonzero(placed.array)) * placed.voxel_ml
    before = float(np.count_nonzero(label_map.array)) * label_map.voxel_ml
    if volume < LEAST_INSIDE * before:
        raise AnatomicaError(
            f"{source}: only {100 * volume / before:.0f} % of the tissue lies in the CT series; is it "
            "that of this patient?"
        )
    return placed.array.transpose(2, 1, 0)


def synthetic_series(label_map: LabelMap, name: str) -> tuple[list[Dataset], np.ndarray]:
    """A CT series on the label map's own grid that says it is synthetic, all of it water, and the ids on
    it.

    The same label map under the same name has the same series: what refers to it stays true when it is
    written again.
    """
    import pydicom
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import UID, CTImageStorage, ExplicitVRLittleEndian, generate_uid

    content = hashlib.sha256(np.ascontiguousarray(label_map.array).tobytes())
    content.update(np.ascontiguousarray(label_map.affine, dtype=np.float64).tobytes())

    def uid(of: str) -> UID:
        return generate_uid(entropy_srcs=[MAKER, content.hexdigest(), name, of])

    # Columns grow to the left, rows to the back, as radiologists look at slices.
    array = label_map.array[::-1, ::-1]
    flip = np.diag([-1.0, -1.0, 1.0, 1.0])
    flip[:2, 3] = np.array(label_map.shape[:2]) - 1
    affine = np.diag([*np.diag(RAS_LPS), 1.0]) @ label_map.affine @ flip
    spacing = np.linalg.norm(affine[:3, :3], axis=0)
    across, down = affine[:3, 0] / spacing[0], affine[:3, 1] / spacing[1]
    study, series, frame = uid("study"), uid("series"), uid("frame")
    now = datetime.now(UTC)
    images = []
    for k in range(array.shape[2]):
        image = pydicom.Dataset()
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
        image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID = CTImageStorage
        image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID = uid(f"slice {k}")
        image.ImageType = ["DERIVED", "SECONDARY", "AXIAL"]
        image.SyntheticData = "YES"
        image.PatientName, image.PatientID = "SYNTHETIC^ANATOMICA", "SYNTHETIC"
        image.PatientBirthDate = image.PatientSex = image.AccessionNumber = image.ReferringPhysicianName = ""
        image.StudyID = image.KVP = image.AcquisitionNumber = ""
        image.StudyDescription = "Synthetic anatomy, no patient"
        image.SeriesDescription = "Synthetic: geometry only, all pixels are 0 HU"
        image.DerivationDescription = "Carries the grid of a generated label map; there was no scan."
        image.StudyInstanceUID, image.SeriesInstanceUID, image.FrameOfReferenceUID = study, series, frame
        image.StudyDate = image.ContentDate = now.strftime("%Y%m%d")
        image.StudyTime = image.ContentTime = now.strftime("%H%M%S")
        image.Modality, image.Manufacturer = "CT", MAKER
        image.PositionReferenceIndicator = ""
        image.SeriesNumber, image.InstanceNumber = 1, k + 1
        image.ImagePositionPatient = _decimals(affine[:3, 3] + k * affine[:3, 2])
        image.ImageOrientationPatient = _decimals([*across, *down])
        image.PixelSpacing = _decimals([spacing[1], spacing[0]])
        image.SliceThickness = _decimals([spacing[2]])[0]
        image.Rows, image.Columns = array.shape[1], array.shape[0]
        image.SamplesPerPixel, image.PhotometricInterpretation = 1, "MONOCHROME2"
        image.BitsAllocated, image.BitsStored, image.HighBit, image.PixelRepresentation = 16, 16, 15, 1
        image.RescaleIntercept, image.RescaleSlope = 0, 1
        image.PixelData = bytes(2 * array.shape[0] * array.shape[1])
        images.append(image)
    return images, array.transpose(2, 1, 0)


def _decimals(values: Any) -> list[str]:
    """Numbers in the 16 characters that DICOM's decimal strings have."""
    return [f"{float(x):.10g}"[:16] for x in values]
