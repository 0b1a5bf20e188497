"""DICOM structure sets (RTSTRUCT): the cuts of each tissue's surface by the slices of an image series."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import Label
from anatomica.errors import AnatomicaError
from anatomica.mesh.contours import contours, keyholed
from anatomica.mesh.dicom.series import MAKER, RAS_LPS, directions
from anatomica.mesh.surface import Surface
from anatomica.version import __version__

if TYPE_CHECKING:
    from pydicom import Dataset

PATIENT = ("PatientName", "PatientID", "PatientBirthDate", "PatientSex")
STUDY = ("StudyInstanceUID", "StudyDate", "StudyTime", "StudyID", "StudyDescription", "AccessionNumber")
SHARED = (*PATIENT, *STUDY, "ReferringPhysicianName", "FrameOfReferenceUID", "PositionReferenceIndicator")
"""What a structure set has in common with the series that it is drawn on."""


def structure_set(images: Sequence[Dataset], surface: Surface, label_map: LabelMap) -> Dataset:
    """One region of interest per tissue: the surface where each slice cuts it, holes by keyholes."""
    import pydicom
    from pydicom.dataset import FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, RTStructureSetStorage, generate_uid

    made = pydicom.Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.file_meta.MediaStorageSOPClassUID = made.SOPClassUID = RTStructureSetStorage
    made.file_meta.MediaStorageSOPInstanceUID = made.SOPInstanceUID = generate_uid()
    for name in SHARED:
        setattr(made, name, images[0].get(name, ""))
    if "SpecificCharacterSet" in images[0]:
        made.SpecificCharacterSet = images[0].SpecificCharacterSet
    if images[0].get("SyntheticData") == "YES":
        made.SyntheticData = "YES"
    now = datetime.now(UTC)
    made.Modality, made.SeriesInstanceUID, made.SeriesNumber = "RTSTRUCT", generate_uid(), 101
    made.SeriesDescription, made.OperatorsName, made.InstanceNumber = "Contours by anatomica", "", 1
    made.Manufacturer = made.ManufacturerModelName = MAKER
    made.SoftwareVersions = __version__
    made.StructureSetLabel = "ANATOMICA"
    made.StructureSetDate, made.StructureSetTime = now.strftime("%Y%m%d"), now.strftime("%H%M%S")
    made.ApprovalStatus = "UNAPPROVED"
    made.ReferencedFrameOfReferenceSequence = [_series_referred_to(images)]
    labels = [label for label in label_map.table.labels[1:] if label.name in label_map.present()]
    drawn = [_regions(images, surface, label) for label in labels]
    if not any(drawn):
        raise AnatomicaError("no slice of the series cuts a tissue, so there are no contours to write")
    made.StructureSetROISequence, made.ROIContourSequence, made.RTROIObservationsSequence = [], [], []
    for number, (label, regions) in enumerate(zip(labels, drawn, strict=True), start=1):
        made.StructureSetROISequence.append(_named(number, label, str(made.FrameOfReferenceUID)))
        made.ROIContourSequence.append(_contoured(number, label, regions))
        made.RTROIObservationsSequence.append(_observed(number, label))
    return made


def _regions(images: Sequence[Dataset], surface: Surface, label: Label) -> list[Dataset]:
    """One closed contour after another, each with the slice that it lies in."""
    import pydicom

    across, down = directions(images[0])
    normal = np.cross(across, down)
    origin, last = (np.array(image.ImagePositionPatient, dtype=float) for image in (images[0], images[-1]))
    steps = len(images) - 1
    apart = float((last - origin) @ normal) / steps if steps else float(images[0].SliceThickness)
    frame = np.stack([across, down, normal / apart])
    # Of a series whose slices come in falling order the frame is left-handed, and so are the triangles.
    triangles = surface.of(label.name)[:, :: 1 if apart > 0 else -1]
    inside = contours((surface.vertices @ RAS_LPS - origin) @ frame.T, triangles, len(images))
    made = []
    for k, (image, rings) in enumerate(zip(images, inside, strict=True)):
        for ring in keyholed(rings):
            points = origin + ring @ frame[:2] + k * apart * normal
            one = pydicom.Dataset()
            one.ContourImageSequence = [_referred_to(image)]
            one.ContourGeometricType = "CLOSED_PLANAR"
            one.NumberOfContourPoints = len(points)
            one.ContourData = [f"{x:.4f}" for x in points.ravel()]
            made.append(one)
    return made


def _referred_to(image: Dataset) -> Dataset:
    import pydicom

    one = pydicom.Dataset()
    one.ReferencedSOPClassUID, one.ReferencedSOPInstanceUID = image.SOPClassUID, image.SOPInstanceUID
    return one


def _series_referred_to(images: Sequence[Dataset]) -> Dataset:
    import pydicom
    from pydicom.uid import UID

    series, study, frame = pydicom.Dataset(), pydicom.Dataset(), pydicom.Dataset()
    series.SeriesInstanceUID = images[0].SeriesInstanceUID
    series.ContourImageSequence = [_referred_to(image) for image in images]
    # Detached Study Management, retired, but what the standard still names here.
    study.ReferencedSOPClassUID = UID("1.2.840.10008.3.1.2.3.1")
    study.ReferencedSOPInstanceUID = images[0].StudyInstanceUID
    study.RTReferencedSeriesSequence = [series]
    frame.FrameOfReferenceUID = images[0].FrameOfReferenceUID
    frame.RTReferencedStudySequence = [study]
    return frame


def _named(number: int, label: Label, frame: str) -> Dataset:
    import pydicom

    one = pydicom.Dataset()
    one.ROINumber, one.ReferencedFrameOfReferenceUID = number, frame
    one.ROIName, one.ROIDescription = label.name[:64], label.full_name
    one.ROIGenerationAlgorithm = "AUTOMATIC"
    return one


def _contoured(number: int, label: Label, regions: list[Dataset]) -> Dataset:
    import pydicom

    one = pydicom.Dataset()
    one.ReferencedROINumber, one.ROIDisplayColor = number, list(label.colour)
    if regions:
        one.ContourSequence = regions
    return one


def _observed(number: int, label: Label) -> Dataset:
    import pydicom

    one = pydicom.Dataset()
    one.ObservationNumber = one.ReferencedROINumber = number
    one.RTROIInterpretedType = one.ROIInterpreter = ""
    if label.snomed is not None:
        code = pydicom.Dataset()
        code.CodeValue, code.CodingSchemeDesignator = label.snomed, "SCT"
        code.CodeMeaning = label.full_name[:64]
        one.RTROIIdentificationCodeSequence = [code]
    return one
