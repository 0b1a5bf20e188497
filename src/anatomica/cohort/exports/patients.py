"""What all exports share: the kept patients of a cohort, split into training and test by patient."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from nibabel.nifti1 import Nifti1Image

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.nifti import load
from anatomica.cohort.store import Store
from anatomica.cohort.summary import Cohort


@dataclass(frozen=True)
class Case:
    """A kept patient with its place in an export."""

    name: str
    key: str
    seed: int
    test: bool
    record: dict[str, Any]


def cases(cohort: Cohort) -> list[Case]:
    """All kept patients. A patient's own key decides its part, so that a grown cohort moves nobody."""
    share = cohort.plan.spec.test_share
    return [Case(cohort.name(r), r["key"], int(r["seed"]), _place(r["key"]) < share, r) for r in cohort.kept]


def label_maps(cohort: Cohort, chosen: list[Case]) -> Iterator[tuple[Case, LabelMap]]:
    """One label map at a time, as it lies in the store."""
    store = Store(cohort.folder)
    for case in chosen:
        yield case, load(store.map_path(case.key))


def consecutive(label_map: LabelMap) -> np.ndarray:
    """Labels as 0, 1, 2, ... in the table's order, which training programs expect."""
    return label_map.table.index[label_map.array].astype(np.uint8)


def nifti_bytes(array: np.ndarray, affine: np.ndarray) -> bytes:
    """A compressed NIfTI file; equal arrays give equal bytes."""
    image = Nifti1Image(array, affine)
    image.header.set_xyzt_units("mm")
    image.set_sform(affine, code=1)
    image.set_qform(affine, code=1)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=6, mtime=0) as file:
        file.write(image.to_bytes())
    return packed.getvalue()


def folders(*wanted: Path) -> None:
    for folder in wanted:
        folder.mkdir(parents=True, exist_ok=True)


def _place(key: str) -> float:
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) / 2**32
