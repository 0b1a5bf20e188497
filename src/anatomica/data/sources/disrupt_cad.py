"""DISRUPT-CAD: optical coherence tomography pullbacks of coronary arteries, one multi-label file a pullback.

The data set is not public, so its layout here is the plainest one: NIfTI files anywhere below the root with
the frames along the third axis and labels 1 lumen, 2 calcium, 3 vessel wall (another numbering by a YAML
mapping). The patient is the first folder below the root, or the file's name where there is none.
As in the paper, x and y are resampled to n, frames are kept, and windows of 128 consecutive frames are drawn
at random; the draw depends on the patient and file alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from anatomica import nifti
from anatomica.data.prepare import Item, Loaded, case_id
from anatomica.errors import AnatomicaError
from anatomica.labels import ANATOMIES, PAPER_GRID, Anatomy
from anatomica.volume import LabelMap, regrid

CROPS = 3
"""Windows a pullback: the paper draws about 360 from 120 patients."""


def items(root: Path, anatomy: Anatomy, mapping: nifti.Mapping = None, crops: int = CROPS) -> list[Item]:
    """`crops` items a pullback."""
    if anatomy.name != "coronary":
        raise AnatomicaError(f"DISRUPT-CAD gives coronary cases, not {anatomy.name}")
    if crops < 1:
        raise AnatomicaError(f"the number of crops must be at least 1, not {crops}")
    files = sorted(p for p in root.rglob("*.nii*") if nifti.is_nifti(p))
    if not files:
        raise AnatomicaError(f"{root}: no NIfTI file anywhere below")
    return [_item(path, root, mapping, crop, crops) for path in files for crop in range(crops)]


def _item(path: Path, root: Path, mapping: nifti.Mapping, crop: int, crops: int) -> Item:
    inner = path.relative_to(root)
    patient = inner.parts[0] if len(inner.parts) > 1 else nifti.stem(path)
    scan = case_id(*inner.parent.parts, nifti.stem(path))
    load = partial(_load, path, scan, mapping, crop, crops)
    return Item(f"{scan}_crop{crop}", patient, inner.as_posix(), (path,), load, frame)


def _load(path: Path, scan: str, mapping: nifti.Mapping, crop: int, crops: int) -> Loaded:
    pullback = nifti.load(path, ANATOMIES["coronary"], "disrupt-cad" if mapping is None else mapping)
    starts = window_starts(scan, pullback.shape[2], crops)
    if crop >= len(starts):
        raise AnatomicaError(
            f"{path}: its {pullback.shape[2]} frames hold {len(starts)} different windows of {PAPER_GRID}, "
            f"not {crop + 1}"
        )
    return Loaded(frames(pullback, starts[crop], PAPER_GRID))


def window_starts(scan: str, count: int, crops: int) -> list[int]:
    """First frames of `crops` different random windows, the same for the same scan on any machine."""
    positions = count - PAPER_GRID + 1
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


def frame(window: LabelMap, anatomy: Anatomy, n: int) -> LabelMap:
    """x and y to n, and the window's frames to n (kept as they are at the paper's n = 128)."""
    return regrid(window, n)
