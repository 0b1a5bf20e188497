"""NIfTI in and out: label maps that 3D Slicer, ITK-SNAP, TotalSegmentator and nnU-Net users can open.

Reads one multi-label file, or a folder with one binary mask per structure. Writes the label names into the
header as TotalSegmentator does (a Caret LabelTable in a header extension) and colour tables beside the file.
"""

from __future__ import annotations

import gzip
import io
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from nibabel.nifti1 import Nifti1Extension, Nifti1Image

from anatomica.anatomy.bounds import MOST_VOXELS
from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.colour_tables import (
    Colours,
    Names,
    caret_xml,
    itksnap_labels,
    read_caret,
    slicer_colours,
)
from anatomica.anatomy.label_map import LabelMap, bounding_box, label_ids, ras_grid, to_ras
from anatomica.anatomy.labels import Label, LabelTable
from anatomica.anatomy.nifti_file import read_nifti
from anatomica.anatomy.vocabularies import UserMapping, Vocabulary, resolve, translate
from anatomica.errors import AnatomicaError
from anatomica.files import write_together

SUFFIXES = (".nii.gz", ".nii")
Mapping = str | Path | UserMapping | Vocabulary | None

_EXTENSION_CODE = 0  # what TotalSegmentator writes and reads; the registered Caret code is 30, we read both


def load(path: str | Path, anatomy: Anatomy | None = None, mapping: Mapping = None) -> LabelMap:
    """A label map from a multi-label NIfTI or a folder of binary masks, reoriented to RAS.

    With an anatomy, labels become that anatomy's tissues: by `mapping` (a vocabulary's name, a YAML file or a
    dict), else by the names in the header or of the masks, else by id. Without an anatomy, the labels stay
    what they are, with the names that the file brings.

    Where masks of a folder overlap, the structure with fewer voxels wins (a later one of the label table if
    equal), so that nested structures survive.
    """
    path = Path(path)
    if not path.exists():
        raise AnatomicaError(f"{path}: no such file or folder")
    if anatomy is None and mapping is not None:
        raise AnatomicaError(
            f"{path}: a label mapping needs an anatomy to map to; give one of {', '.join(ANATOMIES)}"
        )
    rules = resolve(mapping)
    return _load_folder(path, anatomy, rules) if path.is_dir() else _load_file(path, anatomy, rules)


def label_maps_in(path: Path, anatomy: Anatomy, mapping: Mapping = None) -> list[Path]:
    """The label maps of a folder of them; none for a file, or for a folder of masks named after tissues."""
    files = sorted(p for p in path.iterdir() if is_nifti(p)) if path.is_dir() else []
    names: dict[int, str | None] = {-i: stem(p) for i, p in enumerate(files, start=1)}
    if not names:
        return []
    try:
        tissues = translate(names, anatomy, resolve(mapping), str(path))
    except AnatomicaError:
        return files
    return [] if any(anatomy.table.id_of(t) for t in tissues.values()) else files


def is_nifti(path: Path) -> bool:
    """Whether the name says NIfTI (and is not a hidden or half-written file)."""
    return path.name.endswith(SUFFIXES) and not path.name.startswith(".")


def stem(path: Path) -> str:
    """File name without .nii or .nii.gz."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    raise AnatomicaError(f"{path}: a NIfTI file's name ends with .nii or .nii.gz")


@dataclass(frozen=True, eq=False)
class _Grid:
    """What a file holds before we know what its labels mean."""

    array: np.ndarray
    affine: np.ndarray
    names: Names
    colours: Colours


def _load_file(path: Path, anatomy: Anatomy | None, rules: Vocabulary | UserMapping | None) -> LabelMap:
    grid = read_grid(path)
    ids = [i for i in label_ids(grid.array) if i != 0]
    if any(i < 0 for i in ids):
        raise AnatomicaError(
            f"{path}: labels must not be negative; it holds {[i for i in ids if i < 0][:12]}"
        )
    if anatomy is None:
        return to_ras(LabelMap(grid.array, grid.affine, _own_table(grid, ids)))
    found = {i: grid.names.get(i) for i in ids}
    tissues = translate(found, anatomy, rules, str(path))
    ours = {id: anatomy.table.id_of(tissue) for id, tissue in tissues.items()}
    return to_ras(LabelMap(_relabelled(grid.array, ours, _dtype(anatomy.table)), grid.affine, anatomy.table))


def _relabelled(array: np.ndarray, ours: dict[int, int], dtype: type[np.integer]) -> np.ndarray:
    """Every id exchanged for ours."""
    if array.dtype.itemsize > 2:  # ids may be millions: no table of all of them
        out = np.zeros(array.shape, dtype, order="F")
        for id, our in ours.items():
            out[array == id] = our
        return out
    lookup = np.zeros(max(ours, default=0) + 1, dtype)
    lookup[list(ours)] = list(ours.values())
    # NIfTI arrays lie in memory with the first axis fastest; looking up along it is many times faster.
    return lookup[array.T].T


def _load_folder(path: Path, anatomy: Anatomy | None, rules: Vocabulary | UserMapping | None) -> LabelMap:
    files = sorted(p for p in path.iterdir() if is_nifti(p))
    if not files:
        raise AnatomicaError(f"{path}: the folder holds no NIfTI file (.nii or .nii.gz)")
    if anatomy is None:
        table = LabelTable.from_names({i: stem(p) for i, p in enumerate(files, start=1)})
        return load_masks({p: i for i, p in enumerate(files, start=1)}, table)
    # Masks have names but no ids; negative stand-ins keep a numeric line of a mapping from matching them.
    names = {-i: stem(p) for i, p in enumerate(files, start=1)}
    tissues = translate(names, anatomy, rules, str(path))
    ids = {p: anatomy.table.id_of(tissues[-i]) for i, p in enumerate(files, start=1)}
    return load_masks({p: id for p, id in ids.items() if id != 0}, anatomy.table)


def load_masks(files: dict[Path, int], table: LabelTable) -> LabelMap:
    """Binary masks on one grid, each with its label id, as one label map in RAS.

    One grid in space: how each file orders its axes does not matter.
    """
    first: _Grid | None = None
    first_path = Path()
    cuts: dict[int, _Cut] = {}
    for path, id in files.items():
        grid = read_grid(path)
        array, affine = ras_grid(grid.array, grid.affine)
        grid = replace(grid, array=array, affine=affine)
        if len(set(label_ids(grid.array)) - {0}) > 1:
            raise AnatomicaError(
                f"{path}: a mask has one value besides 0; it holds {label_ids(grid.array)[:12]}"
            )
        if first is None:
            first, first_path = grid, path
        elif grid.array.shape != first.array.shape or not np.allclose(grid.affine, first.affine, atol=1e-3):
            raise AnatomicaError(
                f"{path.parent}: masks must share one grid; {path.name} is {_extent(grid)} "
                f"but {first_path.name} is {_extent(first)}"
            )
        cuts[id] = _cut(grid.array != 0, cuts.get(id))
        if sum(cut.mask.size for cut in cuts.values()) > MOST_VOXELS:
            raise AnatomicaError(f"{path.parent}: its masks are too large together; crop them first")
    if first is None:
        raise AnatomicaError("no mask to read")
    array = np.zeros(first.array.shape, dtype=_dtype(table))
    order = [x.id for x in table.labels]
    # Large structures first: a smaller one painted later wins the voxels they share.
    for id in sorted(cuts, key=lambda i: (-int(cuts[i].mask.sum()), order.index(i))):
        array[cuts[id].box][cuts[id].mask] = id
    return LabelMap(array, first.affine, table)


class _Cut(NamedTuple):
    """A mask within its bounding box: a hundred structures fill a scan about once, not a hundred times."""

    box: tuple[slice, ...]
    mask: np.ndarray


def _cut(mask: np.ndarray, before: _Cut | None) -> _Cut:
    """The mask, joined with another one of the same grid."""
    if before is not None:
        mask[before.box] |= before.mask
    if not mask.any():
        return _Cut((slice(0),) * 3, mask[:0, :0, :0].copy())
    box = tuple(slice(a, b) for a, b in zip(*(x.tolist() for x in bounding_box(mask)), strict=True))
    return _Cut(box, mask[box].copy())


def read_grid(path: Path) -> _Grid:
    """Integers, affine and label names of one NIfTI file, every way it can be wrong said in a sentence."""
    if not path.is_file():
        raise AnatomicaError(f"{path}: no such file")
    stem(path)
    file = read_nifti(path)
    names, colours = read_caret(file.extensions)
    return _Grid(file.array, file.affine, names, colours)


def _own_table(grid: _Grid, ids: list[int]) -> LabelTable:
    """The file's own table; if it is one of our anatomies', that very table with its full names."""
    for anatomy in ANATOMIES.values():
        if grid.names and grid.names == {x.id: x.name for x in anatomy.table.labels[1:]}:
            return anatomy.table
    names = {i: f"label_{i}" for i in ids} | grid.names
    twice = {n for n, times in Counter(names.values()).items() if times > 1}
    table = LabelTable.from_names({i: f"{n}_{i}" if n in twice else n for i, n in names.items()})
    return LabelTable(
        tuple(Label(x.id, x.name, x.full_name, grid.colours.get(x.id, x.colour)) for x in table.labels)
    )


def save(label_map: LabelMap, path: str | Path) -> None:
    """Write a label map as NIfTI, with a 3D Slicer colour table and an ITK-SNAP label file beside it.

    sform and qform both hold the affine; the type is the smallest that fits the table's ids; the same label
    map gives the same bytes. `x.nii.gz` comes with `x_ColorTable.ctbl` and `x_itksnap.txt`.
    """
    path = Path(path)
    name = stem(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_together(
        {
            path.parent / f"{name}_ColorTable.ctbl": slicer_colours(label_map.table, name).encode(),
            path.parent / f"{name}_itksnap.txt": itksnap_labels(label_map.table).encode(),
            path: encode(label_map, compress=path.name.endswith(".gz")),
        }
    )


def encode(label_map: LabelMap, compress: bool = True) -> bytes:
    """The bytes of the NIfTI file."""
    image = Nifti1Image(label_map.array.astype(_dtype(label_map.table)), label_map.affine)
    image.header.set_xyzt_units("mm")
    image.set_sform(label_map.affine, code=1)
    image.set_qform(label_map.affine, code=1)
    image.header["descrip"] = b"label map"
    image.header.extensions.append(Nifti1Extension(_EXTENSION_CODE, caret_xml(label_map.table).encode()))
    data = image.to_bytes()
    if not compress:
        return data
    buffer = io.BytesIO()
    # No time and no name in the gzip header, so that equal label maps are equal files.
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=6, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def _dtype(table: LabelTable) -> type[np.integer]:
    """The smallest integer type that fits the table's ids (not the array's: one type for one vocabulary)."""
    top = max(table.ids)
    return np.uint8 if top < 2**8 else np.uint16 if top < 2**16 else np.int32


def _extent(grid: _Grid) -> str:
    shape = " x ".join(map(str, grid.array.shape))
    return f"{shape} at {np.round(grid.affine[:3, 3], 2).tolist()} mm"
