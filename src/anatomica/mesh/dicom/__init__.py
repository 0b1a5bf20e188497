"""DICOM files of a label map: segmentations (SEG) and contours (RTSTRUCT), on the patient's own CT series or
on a synthetic one marked as such."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.files import write_together
from anatomica.mesh.dicom.segmentation import segmentation
from anatomica.mesh.dicom.series import on_series, read_series, synthetic_series
from anatomica.mesh.dicom.structures import structure_set
from anatomica.mesh.surface import Surface

if TYPE_CHECKING:
    from pydicom import Dataset

SEG, RTSTRUCT = "dicom-seg", "rtstruct"
KINDS = (SEG, RTSTRUCT)


def write_dicom(
    folder: Path,
    name: str,
    label_map: LabelMap,
    surface: Surface | None = None,
    kinds: Sequence[str] = (SEG,),
    ct: Path | None = None,
) -> dict[str, list[Path]]:
    """Write `name`-seg.dcm and `name`-rtstruct.dcm, as asked by `kinds`; returns each kind's files.

    Without a CT series the synthetic one that they refer to is written too, `name`-ct/. On a CT series the
    label map is put by nearest voxels; contours are cuts through the surface, which they need.
    """
    if not _has_pydicom():
        raise AnatomicaError("DICOM needs highdicom: pip install 'anatomica[dicom]'")
    if ct is None:
        images, array = synthetic_series(label_map, name)
    else:
        images = read_series(ct)
        array = on_series(label_map, images, ct)
    folder.mkdir(parents=True, exist_ok=True)
    series = {} if ct is not None else _slices(folder / f"{name}-ct", images)
    found: dict[str, dict[Path, bytes]] = {}
    if SEG in kinds:
        made = segmentation(images, array, label_map.table)
        found[SEG] = {folder / f"{name}-seg.dcm": _encoded(made)} | series
    if RTSTRUCT in kinds:
        assert surface is not None
        made = structure_set(images, surface, label_map)
        found[RTSTRUCT] = {folder / f"{name}-rtstruct.dcm": _encoded(made)} | series
    if series:
        (folder / f"{name}-ct").mkdir(exist_ok=True)
    write_together({path: data for files in found.values() for path, data in files.items()})
    return {kind: list(files) for kind, files in found.items()}


def _has_pydicom() -> bool:
    try:
        import pydicom  # noqa: F401
    except ImportError:
        return False
    return True


def _slices(folder: Path, images: Sequence[Dataset]) -> dict[Path, bytes]:
    return {folder / f"{number:04d}.dcm": _encoded(image) for number, image in enumerate(images, start=1)}


def _encoded(dataset: Dataset) -> bytes:
    file = io.BytesIO()
    dataset.save_as(file, enforce_file_format=True)
    return file.getvalue()
