"""Any folder of label maps: multi-label NIfTI files anywhere below it, with a mapping to our tissues."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import Anatomy
from anatomica.data.prepare import Item, Loaded, case_id
from anatomica.errors import AnatomicaError


def items(
    root: Path, anatomy: Anatomy, mapping: nifti.Mapping = None, patient: str | None = None
) -> list[Item]:
    """One item per NIfTI file below the root.

    `patient` is a pattern whose first group (or whole match) in the file's path below the root is the
    patient; without it every file is a patient of its own.
    """
    try:
        pattern = None if patient is None else re.compile(patient)
    except re.error as error:
        raise AnatomicaError(f"--patient {patient!r} is not a regular expression: {error}") from None
    files = sorted(p for p in root.rglob("*.nii*") if nifti.is_nifti(p))
    if not files:
        raise AnatomicaError(f"{root}: no NIfTI file (.nii or .nii.gz) anywhere below")
    return [_item(path, root, anatomy, mapping, pattern) for path in files]


def _item(
    path: Path, root: Path, anatomy: Anatomy, mapping: nifti.Mapping, pattern: re.Pattern[str] | None
) -> Item:
    inner = path.relative_to(root)
    id = case_id(*inner.parent.parts, nifti.stem(path))
    patient = id
    if pattern is not None:
        found = pattern.search(inner.as_posix())
        if found is None:
            raise AnatomicaError(f"--patient {pattern.pattern!r} does not match {inner.as_posix()!r}")
        patient = found[1] if pattern.groups else found[0]
    return Item(id, patient, inner.as_posix(), (path,), partial(_load, path, anatomy, mapping))


def _load(path: Path, anatomy: Anatomy, mapping: nifti.Mapping) -> Loaded:
    return Loaded(nifti.load(path, anatomy, mapping))
