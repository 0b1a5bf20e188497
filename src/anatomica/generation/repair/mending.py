"""Mending: a piece of a tissue in a place where no patient has it becomes part of what it touches.

A decoder that wavers between two labels writes crumbs of the one into the other. What belongs together is
learned from the training patients: which tissues touch and how widely, which come in one piece, and how
little of each there can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8
from scipy import ndimage

from anatomica.anatomy.label_map import LabelMap
from anatomica.generation.repair.bridging import bridge
from anatomica.generation.repair.narrowing import narrow
from anatomica.generation.repair.parting import part
from anatomica.measurement.pieces import Pieces, find_pieces
from anatomica.prior.neighbours import BEYOND, Neighbours
from anatomica.prior.zoo import Model


@dataclass(frozen=True, eq=False)
class Repaired:
    """A repaired label map, and how many voxels have another label than before."""

    label_map: LabelMap
    changed: int


def repair(model: Model, label_map: LabelMap) -> Repaired:
    """The label map without misplaced pieces, by what the model's training patients show of neighbours."""
    if model.neighbours is None:
        return Repaired(label_map, 0)
    mended = model.label_map(mend(label_map.table.index[label_map.array], model.neighbours))
    changed = int((mended.array != label_map.array).sum())
    return Repaired(mended if changed else label_map, changed)


def mend(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices without misplaced pieces and gaps; of tissues in a row, no border is too wide."""
    mended = close_gaps(join_misplaced(labels, neighbours), neighbours)
    if not neighbours.in_a_row:
        return mended
    widest = BEYOND * np.append(np.diag(neighbours.contact, 1), 0.0)
    narrowed = narrow(mended, widest)
    if not np.array_equal(narrowed, mended):
        narrowed = join_misplaced(narrowed, neighbours)
    return part(narrowed, widest)


def as_in_patients(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """What the label map should become: mended, and in one piece if all patients are."""
    mended = mend(labels, neighbours)
    return bridge(mended) if neighbours.joined else mended


def join_misplaced(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices whose misplaced pieces have become part of the larger piece they share most faces with.

    A piece (voxels of one tissue, joined by faces) is misplaced if most of its faces to other tissues are to
    ones that its tissue touches in no patient, if it is a crumb of a tissue that comes in one piece, or if it
    belongs to a trace: a tissue that patients may lack, in less volume than any of them has. The smallest
    goes first, and what it changes counts for the next. A trace that touches nothing becomes background;
    otherwise the border with the background stays.
    """
    number, pieces = find_pieces(labels)
    changed = True
    while changed:
        changed = False
        for i in sorted(pieces.alive(), key=lambda i: pieces.size[i]):
            if pieces.owner[i] == i and _misplaced(pieces, i, neighbours, labels.size):
                larger = {k: f for k, f in pieces.faces[i].items() if pieces.size[k] > pieces.size[i]}
                if larger:
                    pieces.join(i, max(larger, key=lambda k: (larger[k], pieces.size[k])))
                    changed = True
    for i in pieces.alive():
        if not pieces.faces[i] and _is_trace(pieces, i, neighbours, labels.size):
            pieces.owner[i] = 0
    return np.array([pieces.tissue[pieces.root(i)] for i in range(len(pieces.owner))], labels.dtype)[number]


def close_gaps(labels: UInt8[np.ndarray, "x y z"], neighbours: Neighbours) -> UInt8[np.ndarray, "x y z"]:
    """Label indices in which no tissue is laid open that other tissues cover in all patients.

    A lumen's voxels that touch the background become part of what covers it most, the wall.
    """
    contact = neighbours.contact
    covers = np.where(contact[0] > 0, contact, 0.0)
    covered = (contact[0] == 0) & (covers.max(1) > 0)
    covered[0] = False
    if not covered.any():
        return labels
    open_air = ndimage.binary_dilation(labels == 0) & covered[labels]
    out = labels.copy()
    out[open_air] = covers.argmax(1)[labels[open_air]]
    return out


def _misplaced(pieces: Pieces, i: int, neighbours: Neighbours, voxels: int) -> bool:
    tissue, faces = pieces.tissue[i], pieces.faces[i]
    strange = sum(f for k, f in faces.items() if not neighbours.touching[tissue, pieces.tissue[k]])
    crumb = bool(neighbours.whole[tissue]) and pieces.is_crumb(i)
    return 2 * strange > faces.total() or crumb or _is_trace(pieces, i, neighbours, voxels)


def _is_trace(pieces: Pieces, i: int, neighbours: Neighbours, voxels: int) -> bool:
    tissue = pieces.tissue[i]
    volume = sum(pieces.size[k] for k in pieces.of_tissue[tissue]) / voxels
    return bool(volume < neighbours.least[tissue] / BEYOND)
