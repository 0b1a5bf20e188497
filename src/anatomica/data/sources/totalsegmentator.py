"""TotalSegmentator's data set, version 2: `sNNNN/segmentations/<structure>.nii.gz`, one mask per structure.

Heart chambers come from the high-resolution heart model, as in the paper, where its output is there
(`sNNNN/heartchambers_highres/` with masks, or `sNNNN/heartchambers_highres.nii.gz` with labels 1-7);
otherwise from the data set's own masks (version 1 has them). Veins always come from the data set.
The data set's `meta.csv` is not needed: the split is ours, by patient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import cc3d
import numpy as np

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap, resample
from anatomica.anatomy.vocabularies import VOCABULARIES
from anatomica.data.prepare import Item, Loaded, case_id
from anatomica.errors import AnatomicaError

HIGHRES = "heartchambers_highres"


def items(root: Path, anatomy: Anatomy) -> list[Item]:
    """One item per subject's folder that has a `segmentations` folder."""
    if not VOCABULARIES["totalsegmentator"].tissues(anatomy):
        raise AnatomicaError(
            f"none of TotalSegmentator's structures is a tissue of {anatomy.name} anatomy "
            f"({', '.join(anatomy.table.tissues)}); name them as synonyms in its record"
        )
    subjects = sorted(p.parent for p in root.glob("*/segmentations") if p.is_dir())
    if not subjects:
        raise AnatomicaError(
            f"{root}: no folder sNNNN/segmentations here; give the folder that holds s0000, s0001, ..."
        )
    return [_item(subject, anatomy) for subject in subjects]


def _item(subject: Path, anatomy: Anatomy) -> Item:
    masks = {
        path: anatomy.table.id_of(tissue)
        for name, tissue in VOCABULARIES["totalsegmentator"].tissues(anatomy).items()
        for path in [_existing(subject / "segmentations", name)]
        if path is not None
    }
    highres = _highres(subject) if _chambers(anatomy) else ()
    id = case_id(subject.name)
    files = (*sorted(masks), *highres)
    load = partial(_load, subject, masks, bool(highres), anatomy)
    return Item(id, subject.name, subject.name, files, load)


def _existing(folder: Path, name: str) -> Path | None:
    for suffix in nifti.SUFFIXES:
        if (folder / (name + suffix)).is_file():
            return folder / (name + suffix)
    return None


def _highres(subject: Path) -> tuple[Path, ...]:
    """Files of the high-resolution heart model's output, none if it was not run."""
    folder = subject / HIGHRES
    if folder.is_dir():
        return tuple(sorted(p for p in folder.iterdir() if nifti.is_nifti(p)))
    path = _existing(subject, HIGHRES)
    return () if path is None else (path,)


def _chambers(anatomy: Anatomy) -> set[int]:
    """Ids of the heart chambers and the myocardium, where the anatomy has them; version 2 does not."""
    own = VOCABULARIES[HIGHRES].tissues(anatomy)
    return {anatomy.table.id_of(tissue) for name, tissue in own.items() if name.startswith("heart_")}


def _load(subject: Path, masks: dict[Path, int], highres: bool, anatomy: Anatomy) -> Loaded:
    if not masks and not highres:
        raise AnatomicaError(f"{subject.name}: none of the {anatomy.name} structures has a mask")
    chambers = _chambers(anatomy)
    if chambers and not highres and not chambers & {*masks.values()}:
        raise AnatomicaError(
            f"{subject.name}: no heart chambers; run TotalSegmentator --task {HIGHRES} "
            f"into {subject.name}/{HIGHRES}"
        )
    if not highres:
        return Loaded(largest_components(nifti.load_masks(masks, anatomy.table), anatomy.several_pieces))
    folder = subject / HIGHRES
    path = folder if folder.is_dir() else _existing(subject, HIGHRES)
    assert path is not None
    fine = nifti.load(path, anatomy, VOCABULARIES[HIGHRES])
    own = {*anatomy.table.ids_of(VOCABULARIES[HIGHRES].tissues(anatomy).values())}
    rest = {p: id for p, id in masks.items() if id not in own}
    both = _beneath(fine, nifti.load_masks(rest, anatomy.table)) if rest else fine
    return Loaded(largest_components(both, anatomy.several_pieces))


def _beneath(fine: LabelMap, coarse: LabelMap) -> LabelMap:
    """`fine`, and `coarse` where it is empty: the better source wins where the two overlap."""
    if coarse.shape != fine.shape or not np.allclose(coarse.affine, fine.affine, atol=1e-3):
        coarse = resample(coarse, fine.shape, fine.affine)
    return replace(fine, array=np.where(fine.array == 0, coarse.array, fine.array))


def largest_components(label_map: LabelMap, several_pieces: Sequence[str]) -> LabelMap:
    """Only the largest piece of every tissue that does not come in several pieces by nature.

    Pieces are 26-connected: thin vessels hang together by an edge here and there at 1.5 mm, and half a
    carotid must not be lost over that.
    """
    array = label_map.array.copy()
    for tissue in label_map.present():
        if tissue in several_pieces:
            continue
        mask = label_map.mask(tissue)
        pieces = cc3d.connected_components(mask, connectivity=26)
        sizes = np.bincount(pieces.ravel())
        if len(sizes) > 2:
            sizes[0] = 0
            array[mask & (pieces != sizes.argmax())] = 0
    return replace(label_map, array=array)
