"""Patients spoiled on purpose: what a rule of plausibility must notice. One function for each way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8
from scipy import ndimage

Labels = UInt8[np.ndarray, "n n n"]
Spoil = Callable[[Labels, np.random.Generator], Labels | None]
"""Label indices and a source of chance to spoiled label indices; None if a patient cannot be spoiled so."""

BALL = 0.05
"""Radius of pieces that are put somewhere, in edges of the cube: 3 voxels of 64^3."""
SHIFT = 0.12
"""How far an organ is shifted: 8 voxels of 64^3."""
LARGER = 1.5


def piece_inside_another(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A ball of one tissue around a point deep inside another."""
    host, guest = _two_tissues(labels, random)
    return None if host is None else _put(labels, guest, _deepest(labels == host), labels == host)


def blob_apart(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A ball of a tissue in the background, as far from everything as there is room."""
    margin = _radius(labels) + 1
    room = np.zeros(labels.shape, bool)
    room[margin:-margin, margin:-margin, margin:-margin] = True
    away = _depth(labels == 0) * room
    if away.max() <= margin + 1:
        return None
    centre = np.array(np.unravel_index(away.argmax(), labels.shape))
    return _put(labels, _tissue(labels, random), centre, labels == 0)


def labels_mixed(labels: Labels, random: np.random.Generator) -> Labels | None:
    """One half of a tissue carries another tissue's label."""
    first, second = _two_tissues(labels, random)
    if first is None:
        return None
    where = np.argwhere(labels == first)
    side = (where - where.mean(0)) @ random.normal(size=3) > 0
    spoiled = labels.copy()
    spoiled[tuple(where[side].T)] = second
    return spoiled


def branch_cut(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A slab across a tissue's long axis, and all tissue around it there, is gone."""
    where = np.argwhere(labels == _tissue(labels, random))
    _, _, axes = np.linalg.svd(where - where.mean(0), full_matrices=False)
    along = np.argwhere(labels > 0) - where.mean(0)
    thick = max(1.5, 0.025 * len(labels))
    reach = 1.5 * _radius(labels) + np.abs((where - where.mean(0)) @ axes[1]).max()
    gone = (np.abs(along @ axes[0]) < thick) & (np.linalg.norm(along, axis=1) < reach)
    spoiled = labels.copy()
    spoiled[tuple(np.argwhere(labels > 0)[gone].T)] = 0
    return spoiled


def tissue_too_large(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A tissue grown to 1.5 times its volume, over whatever lies there."""
    own = labels == _tissue(labels, random)
    distance = _depth(~own)
    nearest = np.argsort(distance, axis=None, kind="stable")[: round(LARGER * own.sum())]
    spoiled = labels.copy()
    spoiled.ravel()[nearest] = labels[own][0]
    return spoiled


def hole(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A tunnel through a tissue and whatever covers it, from background to background, the shortest way."""
    start = _deepest(labels == _tissue(labels, random))
    outside = np.argwhere(labels == 0)
    out = outside[np.linalg.norm(outside - start, axis=1).argmin()] - start
    away = np.argwhere(labels > 0) - start
    axis = out / np.linalg.norm(out)
    across = np.linalg.norm(away - (away @ axis)[:, None] * axis, axis=1)
    tunnel = (across < max(1.5, _radius(labels) / 2)) & (np.abs(away @ axis) <= 1.5 * np.linalg.norm(out) + 4)
    spoiled = labels.copy()
    spoiled[tuple((away[tunnel] + start).T)] = 0
    return spoiled


def tissue_missing(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A tissue is gone; of tissues in the table's order one in between, since a scan may end anywhere."""
    present = np.unique(labels[labels > 0])
    inner = present[1:-1] if len(present) > 2 else present
    spoiled = labels.copy()
    spoiled[labels == random.choice(inner)] = 0
    return spoiled


def organ_shifted(labels: Labels, random: np.random.Generator) -> Labels | None:
    """A tissue moved by an eighth of the cube, over whatever lies there."""
    own = labels == _tissue(labels, random)
    direction = random.normal(size=3)
    step = np.round(SHIFT * len(labels) * direction / np.linalg.norm(direction)).astype(int)
    where = np.argwhere(own) + step
    where = where[((where >= 0) & (where < len(labels))).all(1)]
    spoiled = np.where(own, 0, labels).astype(labels.dtype)
    spoiled[tuple(where.T)] = labels[own][0]
    return spoiled


WAYS: dict[str, Spoil] = {
    "piece inside another": piece_inside_another,
    "blob apart": blob_apart,
    "labels mixed": labels_mixed,
    "branch cut": branch_cut,
    "1.5 times too large": tissue_too_large,
    "hole": hole,
    "tissue missing": tissue_missing,
    "organ shifted": organ_shifted,
}


def _tissue(labels: Labels, random: np.random.Generator) -> int:
    """One of the tissues that is more than a speck."""
    found, counts = np.unique(labels[labels > 0], return_counts=True)
    large = found[counts >= min(counts.max(), 4 * (2 * _radius(labels)) ** 2)]
    return int(random.choice(large))


def _two_tissues(labels: Labels, random: np.random.Generator) -> tuple[int, int] | tuple[None, int]:
    first = _tissue(labels, random)
    others = [x for x in np.unique(labels[labels > 0]).tolist() if x != first]
    return (first, int(random.choice(others))) if others else (None, first)


def _radius(labels: Labels) -> int:
    return max(2, round(BALL * len(labels)))


def _depth(mask: Bool[np.ndarray, "n n n"]) -> Float[np.ndarray, "n n n"]:
    """Distance to the nearest voxel outside, in voxels."""
    return np.asarray(ndimage.distance_transform_edt(mask))


def _deepest(mask: Bool[np.ndarray, "n n n"]) -> Int[np.ndarray, " 3"]:
    return np.array(np.unravel_index(_depth(mask).argmax(), mask.shape))


def _ball(labels: Labels, centre: np.ndarray, radius: float) -> Bool[np.ndarray, "n n n"]:
    grid = np.indices(labels.shape)
    return ((grid - centre[:, None, None, None]) ** 2).sum(0) <= radius**2


def _put(labels: Labels, tissue: int, centre: np.ndarray, where: Bool[np.ndarray, "n n n"]) -> Labels:
    spoiled = labels.copy()
    spoiled[_ball(labels, centre, _radius(labels)) & where] = tissue
    return spoiled
