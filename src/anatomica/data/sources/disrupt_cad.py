"""DISRUPT-CAD: optical coherence tomography of coronary arteries, one multi-label file per pullback.

The data set is not public, so its layout here is the plainest one: NIfTI files anywhere below the root with
the frames along the third axis and labels 1 lumen, 2 calcium, 3 vessel wall (another numbering by a YAML
mapping). The patient is the first folder below the root, or the file's name where there is none.
As in the paper, windows of consecutive frames are drawn at random; the draw depends only on the patient and
the file. The paper takes 128 frames and stretches x and y to n, whatever that is in mm. We take the frames
that fill the anatomy's cube of 12.8 mm (128 at 0.1 mm per frame) and crop x and y to it around the vessel,
because every volume, diameter and length in mm that the model is asked for is measured in that cube.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from anatomica.anatomy import nifti
from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.vocabularies import VOCABULARIES
from anatomica.data.prepare import Item, Loaded, case_id
from anatomica.errors import AnatomicaError

CROPS = 3
"""Windows per pullback: the paper draws about 360 from 120 patients."""
COARSEST_MM = 0.5
"""Wider pixels or frames are not optical coherence tomography (0.01 to 0.4 mm): the header is not in mm."""


def items(root: Path, anatomy: Anatomy, mapping: nifti.Mapping = None, crops: int = CROPS) -> list[Item]:
    """`crops` items per pullback."""
    if mapping is None and not VOCABULARIES["disrupt-cad"].tissues(anatomy):
        raise AnatomicaError(
            f"DISRUPT-CAD gives lumen, calcium and vessel wall, not tissues of {anatomy.name} anatomy"
        )
    if crops < 1:
        raise AnatomicaError(f"the number of crops must be at least 1, not {crops}")
    files = sorted(p for p in root.rglob("*.nii*") if nifti.is_nifti(p))
    if not files:
        raise AnatomicaError(f"{root}: no NIfTI file anywhere below")
    return [_item(path, root, anatomy, mapping, crop, crops) for path in files for crop in range(crops)]


def _item(path: Path, root: Path, anatomy: Anatomy, mapping: nifti.Mapping, crop: int, crops: int) -> Item:
    inner = path.relative_to(root)
    patient = inner.parts[0] if len(inner.parts) > 1 else nifti.stem(path)
    scan = case_id(*inner.parent.parts, nifti.stem(path))
    load = partial(_load, path, scan, anatomy, mapping, crop, crops)
    return Item(f"{scan}_crop{crop}", patient, inner.as_posix(), (path,), load)


def _load(path: Path, scan: str, anatomy: Anatomy, mapping: nifti.Mapping, crop: int, crops: int) -> Loaded:
    pullback = nifti.load(path, anatomy, "disrupt-cad" if mapping is None else mapping)
    if pullback.spacing_mm.max() > COARSEST_MM:
        spacing = " x ".join(f"{s:.4g}" for s in pullback.spacing_mm)
        raise AnatomicaError(
            f"{path}: voxels of {spacing} mm are not optical coherence tomography (at most {COARSEST_MM} "
            "mm); give the file its true spacing in mm"
        )
    length = window_length(pullback.spacing_mm[2], anatomy.edge_mm)
    starts = window_starts(scan, pullback.shape[2], length, crops)
    if crop >= len(starts):
        raise AnatomicaError(
            f"{path}: its {pullback.shape[2]} frames hold {len(starts)} different windows of {length} "
            f"({anatomy.edge_mm} mm), not {crop + 1}"
        )
    return Loaded(frames(pullback, starts[crop], length))


def window_length(frame_mm: float, edge_mm: float) -> int:
    """How many frames fill the cube; headers in single precision may not cost one more."""
    return math.ceil(edge_mm / frame_mm - 1e-3)


def window_starts(scan: str, count: int, length: int, crops: int) -> list[int]:
    """First frames of `crops` different random windows, the same for the same scan on any machine."""
    positions = count - length + 1
    if positions < 1:
        return []
    seed = int.from_bytes(hashlib.sha256(scan.encode()).digest()[:8], "big")
    chosen = np.random.default_rng(seed).permutation(positions)[:crops]
    return chosen.tolist()


def frames(pullback: LabelMap, start: int, count: int) -> LabelMap:
    """`count` consecutive frames of a pullback, where they are in space."""
    affine = pullback.affine.copy()
    affine[:3, 3] += affine[:3, 2] * start
    return replace(pullback, array=pullback.array[:, :, start : start + count], affine=affine)
