"""CTSpine1K and VerSe: one multi-label file per scan, ids 1-24 for C1-L5.

CTSpine1K: `raw_data/labels/<subset>/<scan>_seg.nii.gz`, one scan per patient.
VerSe: `derivatives/sub-<patient>/sub-<patient>[_dir-..|_split-..]_seg-vert_msk.nii.gz`; also the first
release's flat `verse004_seg.nii.gz`. A patient may have several scans, which stay in one split.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.vocabularies import VOCABULARIES
from anatomica.data.prepare import Item, Loaded, case_id
from anatomica.errors import AnatomicaError


def ctspine1k_items(root: Path, anatomy: Anatomy) -> list[Item]:
    """One item per `*_seg.nii.gz` file anywhere below the root."""
    _check(anatomy, "CTSpine1K", "ctspine1k")
    files = _files(root, "CTSpine1K", ("_seg",), "labels/<subset>/<scan>_seg.nii.gz")
    return [_item(path, root, nifti.stem(path).removesuffix("_seg"), anatomy, "ctspine1k") for path in files]


def verse_items(root: Path, anatomy: Anatomy) -> list[Item]:
    """One item per vertebra mask anywhere below the root; the patient is the name's `sub-` part."""
    _check(anatomy, "VerSe", "verse")
    files = _files(root, "VerSe", ("_seg-vert_msk", "_seg"), "sub-.../sub-..._seg-vert_msk.nii.gz")
    return [_item(path, root, _verse_patient(path), anatomy, "verse") for path in files]


def _verse_patient(path: Path) -> str:
    found = re.match(r"(?:sub-)?([^_]+)", path.name)
    return nifti.stem(path) if found is None else found[1]


def _check(anatomy: Anatomy, what: str, vocabulary: str) -> None:
    if not VOCABULARIES[vocabulary].tissues(anatomy):
        raise AnatomicaError(f"{what} gives vertebrae, not tissues of {anatomy.name} anatomy")


def _files(root: Path, what: str, endings: tuple[str, ...], layout: str) -> list[Path]:
    files = sorted(p for p in root.rglob("*.nii*") if nifti.is_nifti(p) and nifti.stem(p).endswith(endings))
    if not files:
        raise AnatomicaError(f"{root}: no {what} label file ({layout}) anywhere below")
    return files


def _item(path: Path, root: Path, patient: str, anatomy: Anatomy, vocabulary: str) -> Item:
    id, load = case_id(nifti.stem(path)), partial(_load, path, anatomy, vocabulary)
    return Item(id, patient, path.relative_to(root).as_posix(), (path,), load)


def _load(path: Path, anatomy: Anatomy, vocabulary: str) -> Loaded:
    return Loaded(nifti.load(path, anatomy, VOCABULARIES[vocabulary]))
