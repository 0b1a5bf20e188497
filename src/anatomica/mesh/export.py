"""Files for other programs from one label map, with their proof beside them.

`NAME-mesh.json`, written after each step, says what the other files are: materials, space, unit, proofs, and
from what and how each was made. A file that was made in the same way before is not made again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.nifti import is_nifti
from anatomica.errors import AnatomicaError
from anatomica.files import write_json
from anatomica.generation.latent import latent_path
from anatomica.mesh.case import Case, Field, FindModel, case_name, field_of, only, read_case, read_label_map
from anatomica.mesh.centreline import centrelines, write_centrelines
from anatomica.mesh.dicom import KINDS as DICOMS
from anatomica.mesh.dicom import RTSTRUCT, write_dicom
from anatomica.mesh.formats import (
    SURFACES,
    VOLUMES,
    SurfaceKind,
    VolumeKind,
    materials,
    write_surface,
    write_volume,
)
from anatomica.mesh.proof import Proof, prove
from anatomica.mesh.tetproof import TetProof, prove_tetrahedra
from anatomica.mesh.tetrahedra import TetOptions, tetrahedralize
from anatomica.version import __version__

KINDS = (*SURFACES, *VOLUMES, *DICOMS)
CENTRELINE = "centreline"
Tick = Callable[[str, float], None]
"""Is told what is being done, and for how many seconds if that is known."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """What to write (`kinds` of KINDS, tissues whose centrelines are wanted), of which tissues (default:
    all), how tetrahedra are made, the CT series under DICOM files, and whether what is there already is made
    again."""

    kinds: tuple[str, ...] = ()
    centrelines: tuple[str, ...] = ()
    tissues: tuple[str, ...] = ()
    tet: TetOptions = field(default_factory=TetOptions)
    ct: Path | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise AnatomicaError(f"unknown format {kind!r}; allowed: {', '.join(KINDS)}")
        if not self.kinds and not self.centrelines:
            raise AnatomicaError(
                f"nothing to write: give --to with one of {', '.join(KINDS)}, or --centreline"
            )
        if self.tet != TetOptions() and not self.of(VOLUMES):
            raise AnatomicaError(f"the options of tetrahedra need --to with one of {', '.join(VOLUMES)}")
        if self.ct is not None and not self.of(DICOMS):
            raise AnatomicaError(f"a CT series is for DICOM: add --to {' or '.join(DICOMS)}")
        if self.ct is not None and not self.ct.is_dir():
            raise AnatomicaError(f"{self.ct}: no such folder; give the one that holds the CT series")

    def of(self, kinds: Sequence[str]) -> list[str]:
        """Those of the kinds that are wanted."""
        return [kind for kind in kinds if kind in self.kinds]


@dataclass(frozen=True)
class Exported:
    """One case: its files, the proofs of what was made now, whether all of it was there before, and whether
    its proofs held then."""

    name: str
    files: tuple[Path, ...]
    surface: Proof | None = None
    tetrahedra: TetProof | None = None
    on_field: bool = False
    note: str = ""
    there_before: bool = False
    held_before: bool = True

    @property
    def holds(self) -> bool:
        """Whether all proofs hold, those of files that were there before included."""
        proofs = (self.surface, self.tetrahedra)
        return self.held_before and all(proof is None or proof.holds for proof in proofs)


def export(
    path: Path,
    out: Path,
    options: ExportOptions,
    about: Anatomy | None = None,
    mapping: str | None = None,
    find: FindModel = lambda _: None,
    tick: Tick = lambda *_: None,
) -> Exported:
    """Write what the options ask of one label map into a folder; `find` is asked for the latent's model."""
    if not path.exists():
        raise AnatomicaError(f"{path}: no such file or folder")
    name = case_name(path)
    own = field_of(path, find)
    book = _Book(out, name, _origin(path, about, mapping, options.tissues, own), options.overwrite)
    surface_kinds = book.missing("surface", {}, options.of(SURFACES))
    lines = book.missing(CENTRELINE, {"of": options.centrelines}, [CENTRELINE] if options.centrelines else [])
    volume_kinds = book.missing("tetrahedra", asdict(options.tet), options.of(VOLUMES))
    dicom = book.missing("dicom", {"ct": str(options.ct)}, options.of(DICOMS))
    if not (surface_kinds or lines or volume_kinds or dicom):
        return Exported(name, book.files(), there_before=True, held_before=book.held())
    case = proof = tet_proof = None
    if surface_kinds or lines or volume_kinds or RTSTRUCT in dicom:
        tick("surface", 0.0)
        case = read_case(path, about, mapping, options.tissues, own)
        tick("proof", 0.0)
        proof = prove(case.surface, case.label_map)
        files = {
            kind: write_surface(out, name, case.surface, cast("SurfaceKind", kind)) for kind in surface_kinds
        }
        book.keep("surface", files, _said(case, proof))
    if case is not None and lines:
        book.keep(CENTRELINE, {CENTRELINE: _centrelines(out, name, case, options.centrelines)}, {})
    if case is not None and volume_kinds:
        mesh, made = tetrahedralize(case.surface, options.tet, lambda seconds: tick("tetrahedra", seconds))
        tet_proof = prove_tetrahedra(mesh, case.surface, made)
        files = {
            kind: write_volume(out, name, mesh, case.surface, cast("VolumeKind", kind))
            for kind in volume_kinds
        }
        book.keep("tetrahedra", files, {"proof": tet_proof.to_dict()})
    if dicom:
        tick("DICOM", 0.0)
        label_map = read_label_map(path, about, mapping) if case is None else case.label_map
        label_map = only(label_map, options.tissues) if options.tissues else label_map
        surface = None if case is None else case.surface
        written = write_dicom(out, name, label_map, surface, dicom, options.ct)
        book.keep("dicom", written, materials(label_map.table, label_map.present()))
    on_field, note = (False, "") if case is None else (case.on_field, case.note)
    return Exported(name, book.files(), proof, tet_proof, on_field, note)


def _centrelines(out: Path, name: str, case: Case, tissues: tuple[str, ...]) -> list[Path]:
    found = centrelines(case.label_map, case.surface, tissues)
    path = out / f"{name}-centreline.vtp"
    write_centrelines(path, found, {x.tissue: case.label_map.table.id_of(x.tissue) for x in found})
    return [path]


def _said(case: Case, proof: Proof) -> dict[str, Any]:
    """What the side file says about a surface."""
    place = "the border of the field" if case.on_field else "the voxels"
    about = materials(case.label_map.table, case.label_map.present())
    return about | {"vertices_from": place, "proof": proof.to_dict()}


def _origin(
    path: Path, about: Anatomy | None, mapping: str | None, tissues: tuple[str, ...], own: Field | None
) -> dict[str, Any]:
    """From what a case is made: the bytes of its files, the field, and how the labels are read."""
    files = sorted(p for p in path.iterdir() if is_nifti(p)) if path.is_dir() else [path]
    if own is not None:
        files.append(latent_path(path))
    total = hashlib.sha256()
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return {
        "version": __version__,
        "source": path.name,
        "sha256": total.hexdigest()[:16],
        "model": None if own is None or own.model is None else own.model.hash,
        "anatomy": None if about is None else about.name,
        "labels": mapping,
        "tissues": list(tissues),
    }


class _Book:
    """The side file: for each step what it was made from and which files it wrote."""

    def __init__(self, out: Path, name: str, origin: dict[str, Any], afresh: bool) -> None:
        self.out, self.path, self.origin = out, out / f"{name}-mesh.json", origin
        self.said, self.afresh = self._read(), afresh
        self.how: dict[str, dict[str, Any]] = {}

    def _read(self) -> dict[str, Any]:
        """What was said before, of the same label map."""
        try:
            said = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) and said.get("origin") == self.origin else {}

    def missing(self, step: str, how: dict[str, Any], kinds: Sequence[str]) -> list[str]:
        """Kinds of a step that were not yet made in this way, or whose files are gone; afresh: all."""
        self.how[step] = json.loads(json.dumps(how))
        if kinds and (self.afresh or self.said.get(step, {}).get("how") != self.how[step]):
            self.said.pop(step, None)
        files = self.said.get(step, {}).get("files", {})
        return [k for k in kinds if k not in files or not all((self.out / x).exists() for x in files[k])]

    def keep(self, step: str, files: dict[str, list[Path]], more: dict[str, Any]) -> None:
        """Note what a step wrote, on the disk at once."""
        before = self.said.get(step, {}).get("files", {})
        names = {kind: [x.relative_to(self.out).as_posix() for x in paths] for kind, paths in files.items()}
        self.said[step] = {"how": self.how[step], "files": before | names} | more
        self.said["origin"] = self.origin
        write_json(self.path, self.said)

    def held(self) -> bool:
        """Whether all proofs in the side file hold."""
        return all(x["proof"]["holds"] for x in self.said.values() if "proof" in x)

    def files(self) -> tuple[Path, ...]:
        groups = (x.get("files", {}).values() for x in self.said.values())
        # Several kinds may share files: the synthetic series of DICOM.
        names = dict.fromkeys(name for kinds in groups for group in kinds for name in group)
        return (*(self.out / name for name in names), self.path)
