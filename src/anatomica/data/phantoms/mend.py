"""Keep the raster's topology that of the shape: drop crumbs, close pinholes, all within a voxel or two.

A smooth shape sampled at voxel centres can gain a loop where its surface folds within a voxel (a crotch, a
sharp rim). The stated Betti numbers are the shape's, so the raster follows: 6-connected foreground,
26-connected background.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import ndimage

from anatomica.measurement.homology.betti import betti_numbers, euler_number

Array = np.ndarray
_CROSS, _EDGE, _FULL = (ndimage.generate_binary_structure(3, k) for k in (1, 2, 3))


def _label(mask: Array, connectivity: Array) -> tuple[Array, int]:
    """Connected components by number, and how many there are (scipy's stub knows no types)."""
    parts, found = cast(Any, ndimage).label(mask, connectivity)
    return parts, int(found)


def keep_largest(array: Array, id: int, count: int = 1) -> None:
    """Drop crumbs of a tissue: all but its `count` largest 6-connected components become background."""
    parts, found = _label(array == id, _CROSS)
    if found <= count:
        return
    sizes = np.bincount(parts.ravel())
    sizes[0] = 0
    crumbs = np.argsort(sizes)[::-1][count:]
    array[np.isin(parts, crumbs[sizes[crumbs] > 0])] = 0


def mend(array: Array, id: int, want: list[int]) -> None:
    """Give a tissue its stated Betti numbers by adding or dropping as few voxels as do, if that works."""
    keep_largest(array, id, want[0])
    found = ndimage.find_objects((array == id).astype(np.uint8))
    if not found or list(betti_numbers(array[found[0]] == id)) == want:
        return
    window = array[_grown(found[0], array.shape)]
    mask = window == id
    for candidate in _candidates(mask, window == 0, want):
        if list(betti_numbers(candidate)) == want:
            window[mask & ~candidate] = 0
            window[candidate] = id
            return


def mend_union(array: Array, want: list[int]) -> None:
    """Close the pinholes between tissues that meet: each voxel added gets the label of its neighbours."""
    mask = array > 0
    if list(betti_numbers(mask)) == want:
        return
    box = _grown(ndimage.find_objects(mask.astype(np.uint8))[0], array.shape)
    window, mask = array[box], mask[box]
    for candidate in _candidates(mask, ~mask, want):
        if list(betti_numbers(candidate)) == want and candidate[mask].all():
            new = candidate & ~mask
            nearest = ndimage.distance_transform_edt(~mask, return_distances=False, return_indices=True)
            window[new] = window[tuple(np.asarray(nearest)[:, new])]
            return


def _grown(box: tuple[slice, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The box and two voxels around it."""
    return tuple(slice(max(s.start - 2, 0), min(s.stop + 2, n)) for s, n in zip(box, shape, strict=True))


def _candidates(mask: Array, free: Array, want: list[int]):
    """Masks near the given one, the smallest change first; only background is taken over.

    An opening may cut a thin vessel in two, so one that costs more than a few voxels is not offered.
    """
    yield _plugged(mask, free, want)
    for element in (_CROSS, _EDGE, _FULL):
        closed = np.asarray(ndimage.binary_closing(np.pad(mask, 2), element), dtype=bool)[2:-2, 2:-2, 2:-2]
        yield mask | (closed & free)
        yield _plugged(mask | (closed & free), free, want)
    opened = np.asarray(ndimage.binary_opening(mask, _CROSS), dtype=np.uint8)
    keep_largest(opened, 1, want[0])
    if opened.sum() > 0.97 * mask.sum():
        yield opened.astype(bool)
        yield _plugged(opened.astype(bool), free, want)


def _plugged(mask: Array, free: Array, want: list[int], most: int = 24) -> Array:
    """The mask with single voxels added one by one, each of which closes a loop (raises the Euler number)."""
    mask = np.pad(mask, 1)
    free = np.pad(free, 1)
    goal = want[0] - want[1] + want[2]
    for _ in range(most):
        if euler_number(mask) >= goal:
            break
        touched = sum(np.roll(mask, step, axis).astype(np.int8) for axis in range(3) for step in (-1, 1))
        for at in np.argwhere(free & ~mask & (np.asarray(touched) >= 2)):
            around = tuple(slice(i - 1, i + 2) for i in at)
            before = mask[around]
            after = before.copy()
            after[1, 1, 1] = True
            if euler_number(after) > euler_number(before):
                mask[tuple(at)] = True
                break
        else:
            break
    return mask[1:-1, 1:-1, 1:-1]
