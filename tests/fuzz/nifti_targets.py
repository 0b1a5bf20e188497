"""Damaged NIfTI files, by every way in: one file, a folder of masks, an upload to the studio."""

from __future__ import annotations

import gzip
import random

import numpy as np

import fuzz.mutators as mutators
from anatomica.anatomy.bounds import MOST_MM
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.nifti import encode, load
from anatomica.studio.uploads import UnknownLabelsError, read_upload
from fuzz.made import CORONARY, Inputs, Refusing, Wrong, check_sentence

MOST_READ = 2**24
"""Voxels that the files here can have at most."""


def nifti_bytes(made: Inputs, rng: random.Random) -> bool:
    """A compressed file with damaged bytes: refused, or read as it was."""
    path = made.folder / "a.nii.gz"
    path.write_bytes(mutators.damage(made.nifti, rng))
    with Refusing(path.name) as answer:
        found = load(path, CORONARY)
        same = np.array_equal(found.array, made.label_map.array)
        if not same or not np.allclose(found.affine, made.label_map.affine):
            raise Wrong("other labels than were written")
    return answer.refused


def nifti_bits(made: Inputs, rng: random.Random) -> bool:
    """One flipped bit anywhere in a compressed file."""
    data = bytearray(made.nifti)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path = made.folder / "b.nii.gz"
    path.write_bytes(data)
    with Refusing(path.name) as answer:
        found = load(path, CORONARY)
        if not np.array_equal(found.array, made.label_map.array):
            raise Wrong("other labels than were written")
    return answer.refused


def nifti_header(made: Inputs, rng: random.Random) -> bool:
    """A file whose header says odd things: refused, or a label map within all bounds."""
    data = mutators.damage_header(made.plain, rng)
    name = rng.choice(("a.nii", "a.nii.gz"))
    path = made.folder / name
    path.write_bytes(gzip.compress(data, 1) if name.endswith("gz") else data)
    with Refusing(name) as answer:
        found = load(path, CORONARY, rng.choice((None, {"*": "Lu"})))
        known = set(np.unique(found.array)) <= set(CORONARY.table.ids)
        if not known or found.array.size > MOST_READ or not np.abs(found.affine).max() <= MOST_MM:
            raise Wrong("a label map out of bounds")
    return answer.refused


def nifti_masks(made: Inputs, rng: random.Random) -> bool:
    """A folder of masks, one of them damaged or of another grid: refused, or the masks that were written."""
    folder = made.folder / "masks"
    folder.mkdir(exist_ok=True)
    masks = {t: made.label_map.mask(t) for t in CORONARY.table.tissues}
    spoiled = rng.choice(sorted(masks))
    for tissue, mask in masks.items():
        mask_map = LabelMap(mask.astype(np.uint8), made.label_map.affine, CORONARY.table)
        data = encode(mask_map, compress=False)
        if tissue == spoiled:
            data = mutators.damage_header(data, rng)
        (folder / f"{tissue}.nii").write_bytes(data)
    with Refusing("masks") as answer:
        found = load(folder, CORONARY)
        if not set(np.unique(found.array)) <= set(CORONARY.table.ids) or found.array.size > MOST_READ:
            raise Wrong("a label map out of bounds")
    return answer.refused


def upload(made: Inputs, rng: random.Random) -> bool:
    """Bytes that a browser sends: refused, or a patient in the anatomy's cube."""
    kind = rng.randrange(3)
    if kind == 0:
        data = mutators.damage(made.nifti, rng)
    elif kind == 1:
        data = mutators.damage_header(made.plain, rng)
    else:
        data = gzip.compress(mutators.damage_header(made.plain, rng), 1)
    with Refusing("the file") as answer:
        try:
            found = read_upload(data, CORONARY, None)
        except UnknownLabelsError as error:  # the page asks for their names then
            check_sentence(str(error))
            return True
        if not found.present() or len(set(found.shape)) != 1:
            raise Wrong("not a patient in a cube")
        if kind == 0 and not made.label_map.present() == found.present():
            raise Wrong("other tissues than were sent")
    return answer.refused
