"""DICOM segmentations (SEG): one binary segment per tissue with its SNOMED CT code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from anatomica.anatomy.labels import Label, LabelTable
from anatomica.errors import AnatomicaError
from anatomica.mesh.dicom.series import MAKER
from anatomica.version import __version__

if TYPE_CHECKING:
    from pydicom import Dataset

ABNORMAL = ("29483008",)
"""SNOMED CT codes of morphologically abnormal structures; all others are anatomical structures."""


def _highdicom():
    try:
        import highdicom
    except ImportError:
        raise AnatomicaError("DICOM needs highdicom: pip install 'anatomica[dicom]'") from None
    return highdicom


def segmentation(images: Sequence[Dataset], array: np.ndarray, table: LabelTable) -> Dataset:
    """The segmentation of a series by label ids on it, (slice, row, column)."""
    import pydicom.uid

    hd = _highdicom()
    labels = [label for label in table.labels[1:] if (array == label.id).any()]
    if not labels:
        raise AnatomicaError("the label map has no tissue on the series, so there is nothing to segment")
    number = np.zeros(max(table.ids) + 1, dtype=np.uint8)
    number[[label.id for label in labels]] = np.arange(1, len(labels) + 1)
    made = hd.seg.Segmentation(
        source_images=images,
        pixel_array=number[array],
        segmentation_type=hd.seg.SegmentationTypeValues.BINARY,
        segment_descriptions=[_described(n, label, labels) for n, label in enumerate(labels, start=1)],
        series_instance_uid=pydicom.uid.generate_uid(),
        series_number=100,
        sop_instance_uid=pydicom.uid.generate_uid(),
        instance_number=1,
        manufacturer=MAKER,
        manufacturer_model_name=MAKER,
        software_versions=__version__,
        device_serial_number="0",
        content_label="ANATOMICA",
        content_description="Label map of anatomica",
        series_description="Segmentation by anatomica",
    )
    if images[0].get("SyntheticData") == "YES":
        made.SyntheticData = "YES"
    return made


def _described(number: int, label: Label, labels: Sequence[Label]):
    """One segment: name, code, colour; `left` and `right` as a modifier where the code does not tell
    sides."""
    from pydicom.sr.codedict import codes

    hd = _highdicom()
    if label.snomed is None:
        raise AnatomicaError(
            f"tissue {label.name!r} has no SNOMED CT code; give --anatomy, or `snomed` in the record of your "
            "anatomy"
        )
    segment = hd.seg.SegmentDescription(
        segment_number=number,
        segment_label=label.name,
        segmented_property_category=codes.SCT.MorphologicallyAbnormalStructure
        if label.snomed in ABNORMAL
        else codes.SCT.AnatomicalStructure,
        segmented_property_type=hd.sr.CodedConcept(label.snomed, "SCT", label.full_name[:64]),
        algorithm_type=hd.seg.SegmentAlgorithmTypeValues.AUTOMATIC,
        algorithm_identification=hd.AlgorithmIdentificationSequence(
            MAKER, codes.DCM.ArtificialIntelligence, __version__
        ),
        display_color=hd.color.CIELabColor.from_rgb(*label.colour),
    )
    segment.SegmentDescription = label.full_name[:64]
    side = label.full_name.split()[0].lower()
    shared = sum(other.snomed == label.snomed for other in labels) > 1
    if side in ("left", "right") and shared:
        code = {"left": "7771000", "right": "24028007"}[side]
        modifier = hd.sr.CodedConcept(code, "SCT", side.capitalize())
        segment.SegmentedPropertyTypeCodeSequence[0].SegmentedPropertyTypeModifierCodeSequence = [modifier]
    return segment
