"""From files to surfaces: which label maps a path holds, and the field that each was decoded from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.nifti import is_nifti, label_maps_in, load, stem
from anatomica.errors import AnatomicaError
from anatomica.generation.latent import Latent, labels_hash, read_latent
from anatomica.mesh.margin import surface_of_latent
from anatomica.mesh.surface import Surface, surface_of
from anatomica.prior.zoo import Model

FindModel = Callable[[str], Model | None]
"""The model with this anatomy's name, None if there is none."""


def cases(source: Path, about: Anatomy | None, mapping: str | None) -> list[Path]:
    """The label maps to mesh: one file, one folder of masks, or each file of a folder of label maps.

    A folder that `anatomica generate` wrote holds label maps. Of any other folder the anatomy tells: files
    that are named after its tissues are masks.
    """
    if not source.exists():
        raise AnatomicaError(f"{source}: no such file or folder")
    if not source.is_dir():
        return [source]
    files = sorted(p for p in source.iterdir() if is_nifti(p))
    if not files:
        raise AnatomicaError(f"{source}: the folder holds no label map (.nii or .nii.gz)")
    if (source / "report.json").is_file():
        return files
    if about is None:
        raise AnatomicaError(
            f"{source} has no report.json of anatomica generate; give --anatomy, so that a folder of masks "
            "can be told from a folder of label maps"
        )
    return label_maps_in(source, about, mapping) or [source]


def case_name(path: Path) -> str:
    """What a case's files are called."""
    return path.name if path.is_dir() else stem(path)


@dataclass(frozen=True, eq=False)
class Case:
    """A label map and its surface, both of the chosen tissues only. `note` says why the vertices are not on
    the field's border, although there is a latent."""

    label_map: LabelMap
    surface: Surface
    on_field: bool
    note: str


class Field(NamedTuple):
    """The latent beside a label map, and the model that decodes it, if it is at hand."""

    latent: Latent
    model: Model | None


def field_of(path: Path, find: FindModel) -> Field | None:
    """The field of a label map's file; None if no latent lies beside it. A model of another hash is none."""
    latent = None if path.is_dir() else read_latent(path)
    if latent is None:
        return None
    model = find(latent.anatomy)
    return Field(latent, model if model is not None and model.hash == latent.model else None)


def read_label_map(path: Path, about: Anatomy | None, mapping: str | None) -> LabelMap:
    """Read a label map that has some tissue."""
    label_map = load(path, about, mapping)
    if not label_map.array.any():
        raise AnatomicaError(f"{path}: the label map has no tissue, so there is nothing to export")
    return label_map


def read_case(
    path: Path, about: Anatomy | None, mapping: str | None, tissues: tuple[str, ...], field: Field | None
) -> Case:
    """Read a label map and make its surface, on the border of the field if there is one."""
    label_map = read_label_map(path, about, mapping)
    part = only(label_map, tissues) if tissues else label_map
    note = "" if field is None else _note(field, label_map)
    if field is None or field.model is None or note:
        surface = surface_of(label_map)
    else:
        # The table of a file does not have an anatomy's codes; the label map is the model's, as just checked.
        table = field.model.table
        label_map, part = replace(label_map, table=table), replace(part, table=table)
        surface = surface_of_latent(label_map, field.model, field.latent.values)
    on_field = field is not None and not note
    return Case(part, surface.part(*tissues) if tissues else surface, on_field, note)


def _note(field: Field, label_map: LabelMap) -> str:
    """Why a latent cannot be used."""
    if labels_hash(label_map) != field.latent.labels:
        return "the label map is not the one that its latent was written with"
    if field.model is None:
        return f"its latent is of the {field.latent.anatomy} model {field.latent.model}; give it by --model"
    return ""


def only(label_map: LabelMap, tissues: tuple[str, ...]) -> LabelMap:
    """The label map with all but the named tissues made background."""
    wanted = tuple(label_map.table[name].name for name in tissues)
    missing = [name for name in wanted if name not in label_map.present()]
    if missing:
        there = ", ".join(label_map.present()) or "none"
        raise AnatomicaError(f"tissue {missing[0]!r} does not occur in the label map; there are: {there}")
    kept = label_map.mask(*wanted)
    return replace(label_map, array=np.where(kept, label_map.array, 0).astype(label_map.array.dtype))
