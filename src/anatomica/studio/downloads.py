"""Files of a patient, made in memory or in a folder that is gone afterwards."""

from __future__ import annotations

import io
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from anatomica.anatomy.nifti import encode
from anatomica.errors import AnatomicaError
from anatomica.generation.sample import Sample
from anatomica.mesh.formats import write_surface
from anatomica.mesh.surface import surface_of
from anatomica.report.write import write_report
from anatomica.studio.patients import Patient, Run, Shelf

KINDS = ("nifti", "gltf", "stl", "report", "recipe")


class File(NamedTuple):
    name: str
    media_type: str
    data: bytes


def download(patient: Patient, kind: str, shelf: Shelf) -> File:
    """A patient as NIfTI or mesh, or the report and the recipe of the job that made it."""
    stem = f"{patient.about.name}-{patient.id}"
    if kind == "nifti":
        return File(f"{stem}.nii.gz", "application/gzip", encode(patient.label_map))
    if kind in ("gltf", "stl"):
        return _mesh(patient, stem, kind)
    if kind in ("report", "recipe"):
        return _report(*_made(patient, shelf), kind)
    raise AnatomicaError(f"unknown kind of file {kind[:40]!r}; there are: {', '.join(KINDS)}")


def _made(patient: Patient, shelf: Shelf) -> tuple[Run, list[Sample]]:
    if patient.run is None:
        raise AnatomicaError("only a generated patient has a report and a recipe; this one was loaded")
    made = [p.sample for p in shelf.of_run(patient.run.job)]
    return patient.run, [s for s in made if s is not None]


def _report(run: Run, samples: list[Sample], kind: str) -> File:
    """The page, or the numbers with the recipe, of the job's samples."""
    with tempfile.TemporaryDirectory(prefix="anatomica-studio-") as folder:
        write_report(Path(folder), samples, run.spec, run.resolved, run.recipe, run.comparisons)
        name, media = (
            ("report.json", "application/json") if kind == "recipe" else ("report.html", "text/html")
        )
        return File(name, media, (Path(folder) / name).read_bytes())


def _mesh(patient: Patient, stem: str, kind: str) -> File:
    surface = surface_of(patient.label_map)
    with tempfile.TemporaryDirectory(prefix="anatomica-studio-") as folder:
        if kind == "gltf":
            (path,) = write_surface(Path(folder), stem, surface, "gltf")
            return File(f"{stem}.glb", "model/gltf-binary", path.read_bytes())
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in write_surface(Path(folder), stem, surface, "stl"):
                archive.write(path, path.name)
        return File(f"{stem}-stl.zip", "application/zip", buffer.getvalue())
