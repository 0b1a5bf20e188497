"""Exports of a cohort: plain files, meshes, and data sets as training programs read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from anatomica.anatomy.nifti import save
from anatomica.cohort.exports.bids import export_bids
from anatomica.cohort.exports.monai import export_monai
from anatomica.cohort.exports.nnunet import export_nnunet
from anatomica.cohort.exports.patients import cases, label_maps
from anatomica.cohort.spec import Export
from anatomica.cohort.summary import Cohort
from anatomica.errors import AnatomicaError


def export(cohort: Cohort, kinds: Iterable[Export], out: Path, images: bool = False) -> list[Path]:
    """Write the kept patients in each of the asked ways; returns the folders."""
    if not cohort.kept:
        raise AnatomicaError(f"{cohort.folder} has no patient that is kept, so there is nothing to export")
    written = []
    for kind in dict.fromkeys(kinds):
        if kind == "nifti":
            written.append(_nifti(cohort, out / "nifti"))
        elif kind == "mesh":
            written.append(_mesh(cohort, out / "mesh"))
        elif kind == "bids":
            written.append(export_bids(cohort, out))
        elif kind == "nnunet":
            written.append(export_nnunet(cohort, out, images))
        else:
            written.append(export_monai(cohort, out, images))
    return written


def _nifti(cohort: Cohort, folder: Path) -> Path:
    """Label maps with colour tables, as `anatomica generate` writes them."""
    for case, label_map in label_maps(cohort, cases(cohort)):
        save(label_map, folder / f"{case.name}.nii.gz")
    return folder


def _mesh(cohort: Cohort, folder: Path) -> Path:
    """Conforming surfaces of all tissues, one VTP file per patient."""
    from anatomica.mesh.formats import write_surface
    from anatomica.mesh.surface import surface_of

    folder.mkdir(parents=True, exist_ok=True)
    for case, label_map in label_maps(cohort, cases(cohort)):
        write_surface(folder, case.name, surface_of(label_map), "vtp")
    return folder
