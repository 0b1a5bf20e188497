"""The cache: label maps in their anatomy's frame, ready for training, and a manifest of their origin.

    CACHE/manifest.json          anatomy (a user's with its record), resolution, label names, settings, cases,
                                 exclusions with reasons
    CACHE/cases/<id>.nii.gz      one label map (any NIfTI reader opens it)
    CACHE/cases/<id>.json        a phantom's truth, where there is one
    CACHE/records/<id>.json      what the manifest says of that case, written as soon as the case is done
    CACHE/settings.json          how the cache is made; another run must agree with it

Every file is written whole or not at all, a record after its case, the manifest last: a killed run leaves
nothing half-written and the next run goes on from the records.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from nibabel.nifti1 import Nifti1Image

from anatomica.anatomy.catalogue import Anatomy, from_card, to_card
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.files import write_json

Split = Literal["train", "validation"]
FORMAT = 1
TRAIN_SHARE = 0.8


@dataclass(frozen=True)
class Case:
    """One label map of a cache. `volumes_ml` and `present` describe the cached cube, not the whole scan."""

    id: str
    patient: str
    split: Split
    source: str
    source_sha256: str
    affine: tuple[tuple[float, ...], ...]
    present: tuple[str, ...]
    volumes_ml: dict[str, float]


@dataclass(frozen=True)
class Exclusion:
    """A case that was left out, and why."""

    id: str
    patient: str
    source: str
    source_sha256: str
    reason: str


@dataclass(frozen=True)
class Cache:
    """An opened cache: n^3 label maps of one anatomy, in order of their ids."""

    folder: Path
    anatomy: Anatomy
    n: int
    cases: tuple[Case, ...]
    excluded: tuple[Exclusion, ...]
    settings: dict[str, Any]

    @property
    def edge_mm(self) -> float:
        """Edge of the anatomy's cube."""
        return self.anatomy.edge_mm

    def path(self, case: Case) -> Path:
        return case_path(self.folder, case.id)

    def split(self, split: Split) -> tuple[Case, ...]:
        return tuple(c for c in self.cases if c.split == split)

    def load(self, case: Case) -> LabelMap:
        """One case as a label map with the anatomy's table."""
        path = self.path(case)
        try:
            image = Nifti1Image.from_bytes(gzip.decompress(path.read_bytes()))
        except (OSError, EOFError, ValueError) as error:
            raise AnatomicaError(
                f"{path}: damaged cache file ({error}); delete it and prepare again"
            ) from None
        array = np.asarray(image.dataobj)
        return LabelMap(array, np.array(case.affine), self.anatomy.table)


def split_of(patient: str) -> Split:
    """80/20 by a hash of the patient's id, so that a patient keeps its split when the data set grows."""
    share = int.from_bytes(hashlib.sha256(patient.encode()).digest()[:8], "big") / 2**64
    return "train" if share < TRAIN_SHARE else "validation"


def open_cache(path: str | Path) -> Cache:
    """Read a cache's manifest."""
    folder = Path(path)
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        hint = (
            "; its preparation was not finished, run it again" if (folder / "settings.json").is_file() else ""
        )
        raise AnatomicaError(f"{folder}: no cache here (no manifest.json){hint}")
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        version = content["format"]
        if version != FORMAT:
            raise AnatomicaError(
                f"{manifest}: cache format {version}, this version reads {FORMAT}; prepare it again"
            )
        found = from_card(content, str(manifest))
        names = tuple(content["labels"])
        if names != found.table.names:
            raise AnatomicaError(
                f"{manifest}: labels {names} are not those of the {found.name} anatomy; prepare again"
            )
        return Cache(
            folder,
            found,
            int(content["n"]),
            tuple(case_from_json(x) for x in content["cases"]),
            tuple(Exclusion(**x) for x in content["excluded"]),
            content["settings"],
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise AnatomicaError(f"{manifest}: not a cache manifest ({type(error).__name__}: {error})") from None


def write_manifest(
    folder: Path,
    of: Anatomy,
    n: int,
    settings: dict[str, Any],
    records: list[Case | Exclusion],
) -> Cache:
    """Write the manifest from the cases' records and open the cache."""
    cases = sorted((r for r in records if isinstance(r, Case)), key=lambda r: r.id)
    excluded = sorted((r for r in records if isinstance(r, Exclusion)), key=lambda r: r.id)
    content = {
        "format": FORMAT,
        **to_card(of),
        "n": n,
        "edge_mm": of.edge_mm,
        "labels": list(of.table.names),
        "settings": settings,
        "cases": [asdict(c) for c in cases],
        "excluded": [asdict(e) for e in excluded],
    }
    write_json(folder / "manifest.json", content)
    return open_cache(folder)


def read_record(folder: Path, id: str) -> Case | Exclusion | None:
    """What an earlier run wrote about a case; None where there is nothing, or not a whole case."""
    try:
        content = json.loads(record_path(folder, id).read_text(encoding="utf-8"))
        if "reason" in content:
            return Exclusion(**content)
        return case_from_json(content) if case_path(folder, id).is_file() else None
    except (OSError, json.JSONDecodeError, KeyError, TypeError):
        return None


def write_record(folder: Path, record: Case | Exclusion) -> None:
    write_json(record_path(folder, record.id), asdict(record))


def case_from_json(content: dict[str, Any]) -> Case:
    affine = tuple(tuple(float(v) for v in row) for row in content["affine"])
    return Case(**{**content, "affine": affine, "present": tuple(content["present"])})


def case_path(folder: Path, id: str) -> Path:
    return folder / "cases" / f"{id}.nii.gz"


def truth_path(folder: Path, id: str) -> Path:
    return folder / "cases" / f"{id}.json"


def record_path(folder: Path, id: str) -> Path:
    return folder / "records" / f"{id}.json"
