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
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from jaxtyping import UInt8
from nibabel.filebasedimages import ImageFileError
from nibabel.nifti1 import Nifti1Image
from nibabel.spatialimages import HeaderDataError
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from anatomica.anatomy.bounds import MOST_EDGE
from anatomica.anatomy.catalogue import Anatomy, from_card, to_card
from anatomica.anatomy.label_map import LabelMap, check_affine
from anatomica.errors import AnatomicaError, first_problem, naming, shown
from anatomica.files import DamagedError, read_sealed, write_sealed

Split = Literal["train", "validation"]
Half = Literal["development", "test"]
FORMAT = 1
TRAIN_SHARE = 0.8
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Case:
    """One label map of a cache. `volumes_ml` and `present` describe the cached cube, not the whole scan."""

    __pydantic_config__ = STRICT
    id: str
    patient: str
    split: Split
    source: str
    source_sha256: str
    affine: tuple[tuple[float, ...], ...]
    present: tuple[str, ...]
    volumes_ml: dict[str, float]
    sha256: str = ""
    """Of the case's file; caches of earlier versions have none, and rely on the file's own CRC."""
    truth_sha256: str = ""


@dataclass(frozen=True)
class Exclusion:
    """A case that was left out, and why."""

    __pydantic_config__ = STRICT
    id: str
    patient: str
    source: str
    source_sha256: str
    reason: str


R = TypeVar("R", Case, Exclusion)


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
        """One case as a label map with the anatomy's table; a damaged file is named."""
        path = self.path(case)
        try:
            array = read_case(self.folder, case)
        except DamagedError as error:
            raise AnatomicaError(
                f"{path}: damaged cache file ({error}); run the command that prepared the cache again, which "
                "makes this case anew"
            ) from None
        if array.shape != (self.n, self.n, self.n):
            raise AnatomicaError(f"{path}: {array.shape} voxels in a cache of {self.n}^3; prepare it again")
        return LabelMap(array, np.array(case.affine), self.anatomy.table)


def read_case(folder: Path, case: Case) -> UInt8[np.ndarray, "x y z"]:
    """The labels of a case's file, if it is the file that was written; else a DamagedError."""
    path = case_path(folder, case.id)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise DamagedError("it is not there") from None
    if case.sha256 and hashlib.sha256(data).hexdigest() != case.sha256:
        raise DamagedError("its checksum is not that of its record")
    try:
        image = Nifti1Image.from_bytes(gzip.decompress(data))
        return np.asarray(image.dataobj).astype(np.uint8, casting="safe")
    except (OSError, EOFError, ValueError, TypeError, zlib.error, ImageFileError, HeaderDataError) as error:
        raise DamagedError(" ".join(str(error).split())) from None


def is_whole(folder: Path, case: Case) -> bool:
    """Whether the files of a case are those that were written."""
    truth = truth_path(folder, case.id)
    if case.truth_sha256:
        found = truth.read_bytes() if truth.is_file() else b""
        if hashlib.sha256(found).hexdigest() != case.truth_sha256:
            return False
    try:
        read_case(folder, case)
    except DamagedError:
        return False
    return True


def split_of(patient: str) -> Split:
    """80/20 by a hash of the patient's id, so that a patient keeps its split when the data set grows."""
    share = int.from_bytes(hashlib.sha256(patient.encode()).digest()[:8], "big") / 2**64
    return "train" if share < TRAIN_SHARE else "validation"


def half_of(patient: str) -> Half:
    """Which held-out patients methods are tuned on and which only tables are made of, by another hash."""
    digest = hashlib.sha256(f"half of {patient}".encode()).digest()
    return "development" if digest[0] < 128 else "test"


def open_cache(path: str | Path) -> Cache:
    """Read a cache's manifest."""
    folder = Path(path)
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        hint = (
            "; its preparation was not finished, run it again" if (folder / "settings.json").is_file() else ""
        )
        raise AnatomicaError(f"{folder}: no cache here (no manifest.json){hint}")
    with naming(manifest):
        return _read_manifest(folder, manifest)


def _read_manifest(folder: Path, manifest: Path) -> Cache:
    try:
        content = read_sealed(manifest)
        version = content["format"]
        if version != FORMAT:
            raise AnatomicaError(
                f"{manifest}: cache format {shown(version)}, this version reads {FORMAT}; prepare it again"
            )
        found = from_card(content, str(manifest))
        names = tuple(content["labels"])
        if names != found.table.names:
            raise AnatomicaError(
                f"{manifest}: labels {shown(names)} are not those of the {found.name} anatomy; prepare again"
            )
        if not isinstance(content["settings"], dict):
            raise TypeError("its settings are not a mapping")
        return Cache(
            folder,
            found,
            EDGE.validate_python(content["n"], strict=True),
            tuple(case_from_json(x) for x in content["cases"]),
            tuple(exclusion_from_json(x) for x in content["excluded"]),
            content["settings"],
        )
    except ValidationError as error:
        reason = first_problem(error)
    except KeyError as error:
        reason = f"{error} is missing"
    except (TypeError, DamagedError) as error:
        reason = str(error)
    raise AnatomicaError(
        f"{manifest}: not a cache manifest ({reason}); run the command that prepared the cache again"
    )


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
    write_sealed(folder / "manifest.json", content)
    return open_cache(folder)


def read_record(folder: Path, id: str) -> Case | Exclusion | None:
    """What an earlier run wrote about a case; None where there is nothing, or not a whole case."""
    try:
        content = read_sealed(record_path(folder, id))
        if "reason" in content:
            return exclusion_from_json(content)
        case = case_from_json(content)
        return case if is_whole(folder, case) else None
    except (OSError, ValueError):  # pydantic's and our own errors of damage are ValueErrors
        return None


def write_record(folder: Path, record: Case | Exclusion) -> None:
    write_sealed(record_path(folder, record.id), asdict(record))


CASE, EXCLUSION = TypeAdapter(Case), TypeAdapter(Exclusion)
EDGE = TypeAdapter(Annotated[int, Field(ge=1, le=MOST_EDGE)])


def case_from_json(content: dict[str, Any]) -> Case:
    """A record, checked; its id is a file's name and nothing else."""
    case = CASE.validate_json(json.dumps(content), strict=True)
    if [len(row) for row in case.affine] != [4] * 4:
        raise DamagedError(f"the affine of {shown(case.id)} is not 4 x 4")
    with naming(shown(case.id)):
        check_affine(np.array(case.affine))
    return _with_a_name(case)


def exclusion_from_json(content: dict[str, Any]) -> Exclusion:
    return _with_a_name(EXCLUSION.validate_json(json.dumps(content), strict=True))


def _with_a_name(record: R) -> R:
    if record.id != Path(record.id).name or not record.id or "\0" in record.id:
        raise DamagedError(f"{shown(record.id)} is not the name of a case")
    return record


def case_path(folder: Path, id: str) -> Path:
    return folder / "cases" / f"{id}.nii.gz"


def truth_path(folder: Path, id: str) -> Path:
    return folder / "cases" / f"{id}.json"


def record_path(folder: Path, id: str) -> Path:
    return folder / "records" / f"{id}.json"
