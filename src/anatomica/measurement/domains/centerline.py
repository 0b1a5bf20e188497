"""Centreline of a tubular structure: voxel graph -> longest middle path -> recentred smoothing spline.

Not a thinning skeleton: scikit-image's (Lee) erases straight pieces of exactly even width, such as a limb of
an aorta along an array axis, and leaves spurs to prune. A cheapest path through the voxels' own graph, where
voxels near the wall cost more, is ordered and unbranched from the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import cc3d
import numpy as np
from scipy import ndimage, sparse
from scipy.interpolate import splev, splprep

from anatomica.errors import AnatomicaError


@dataclass(frozen=True, eq=False)
class Centerline:
    """An ordered, unbranched curve, evenly spaced by arc length, in voxel indices of the mask."""

    points: np.ndarray  # (n, 3)
    tangents: np.ndarray  # (n, 3), unit
    radii: np.ndarray  # (n,), distance to the nearest background voxel


def centerline(
    mask: np.ndarray,
    start: np.ndarray,
    spacing: float = 0.5,
    ends: tuple[np.ndarray, np.ndarray | None] | None = None,
) -> Centerline:
    """The centreline of the mask's largest component, sampled every `spacing` voxels.

    The path's two ends, which bend into the rim of a cut vessel, are trimmed by about a radius; a smoothing
    spline follows, and three rounds of recentring on the tube's own cross-sections take out the voxel jitter.
    The end that lies further along the direction `start` comes first. `ends` are voxels between which the
    path runs, the first of them first (the second None: the voxel farthest from it); without, the two voxels
    farthest apart. Raises AnatomicaError if no curve is left.
    """
    low, tube = _largest_component(mask)
    radius_of = np.asarray(ndimage.distance_transform_edt(tube))
    inner = None if ends is None else tuple(None if x is None else x - low for x in ends)
    path = _trim(_middle_path(tube, radius_of, inner), radius_of)
    if len(path) < 4:
        raise AnatomicaError(f"no centreline: the structure is not a tube ({len(path)} voxels long)")
    points = _spline(path.astype(float), noise=0.6, spacing=spacing)
    for _ in range(3):
        points = _spline(_recentre(points, tube, radius_of, spacing), noise=0.015, spacing=spacing)
    if ends is None and (points[-1] - points[0]) @ start > 0:
        points = points[::-1]
    radii = ndimage.map_coordinates(radius_of, points.T, order=1, mode="nearest")
    return Centerline(points + low, _tangents(points), radii)


def _largest_component(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corner of the bounding box, a rim of one voxel included, and the largest component inside it."""
    if not mask.any():
        raise AnatomicaError("no centreline: the structure is empty")
    labels = np.asarray(cc3d.largest_k(mask.astype(np.uint8), k=1, connectivity=26)) > 0
    box = ndimage.find_objects(labels.astype(np.uint8))[0]
    return np.array([s.start for s in box]) - 1, np.pad(labels[box], 1)


def _middle_path(tube: np.ndarray, radius_of: np.ndarray, ends: tuple | None = None) -> np.ndarray:
    """Voxels of the path through the middle of the tube between its two ends, in order.

    The ends are given or the two voxels farthest apart inside the tube; the path between them is the cheapest
    where a voxel costs 1 / radius^4, which keeps it off the walls and out of side branches.
    """
    voxels = np.argwhere(tube)
    index = np.full(tube.shape, -1)
    index[tuple(voxels.T)] = np.arange(len(voxels))
    rows, columns, lengths = [], [], []
    for offset in [o for o in np.ndindex(3, 3, 3) if o > (1, 1, 1)]:
        step = np.array(offset) - 1
        neighbour = index[tuple((voxels + step).T)]  # the rim is empty, so a step never leaves the array
        found = np.flatnonzero(neighbour >= 0)
        rows.append(found)
        columns.append(neighbour[found])
        lengths.append(np.full(len(found), np.linalg.norm(step)))
    tail, head, length = (np.concatenate(x) for x in (rows, columns, lengths))
    size = (len(voxels), len(voxels))
    by_length = sparse.csr_matrix((length, (tail, head)), size)
    given = (None, None) if ends is None else ends
    first = _farthest(by_length, 0) if given[0] is None else _nearest(voxels, given[0])
    last = _farthest(by_length, first) if given[1] is None else _nearest(voxels, given[1])
    price = radius_of[tuple(voxels.T)] ** -4.0
    by_price = sparse.csr_matrix((length * (price[tail] + price[head]), (tail, head)), size)
    before = sparse.csgraph.dijkstra(by_price, directed=False, indices=first, return_predecessors=True)[1]
    path = [last]
    while path[-1] != first:
        path.append(int(before[path[-1]]))
    # Between given ends from the first to the second; otherwise the caller turns it.
    return voxels[path] if ends is None else voxels[path[::-1]]


def _nearest(voxels: np.ndarray, point: np.ndarray) -> int:
    return int(np.square(voxels - point).sum(1).argmin())


def _farthest(graph: sparse.csr_matrix, source: int) -> int:
    """The node farthest from `source` (the tube is one component, so all are reachable)."""
    return int(sparse.csgraph.dijkstra(graph, directed=False, indices=source).argmax())


def _trim(path: np.ndarray, radius_of: np.ndarray) -> np.ndarray:
    """Drop at each end as much length as the tube is wide there (its median radius)."""
    if len(path) < 8:
        return path
    radii = radius_of[tuple(path.T)]
    typical = float(np.median(radii))
    most = len(path) // 4
    cut = min(round(typical), most)
    return path[cut : len(path) - cut]


def _spline(points: np.ndarray, noise: float, spacing: float) -> np.ndarray:
    """Smoothing spline through points with the given RMS noise, resampled evenly by arc length."""
    chord = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    keep = np.concatenate([[True], np.diff(chord) > 1e-9])
    points, chord = points[keep], chord[keep]
    spline, _ = splprep(points.T, u=chord, s=len(points) * noise**2 * 3, k=3)
    fine = np.array(splev(np.linspace(0, chord[-1], 8 * len(points)), spline)).T
    arc = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(fine, axis=0), axis=1))])
    count = max(round(arc[-1] / spacing) + 1, 4)
    even = np.linspace(0, arc[-1], count)
    return np.stack([np.interp(even, arc, fine[:, axis]) for axis in range(3)], axis=1)


def _tangents(points: np.ndarray) -> np.ndarray:
    """Unit tangents by central differences (one-sided at the ends)."""
    difference = np.gradient(points, axis=0)
    return difference / np.linalg.norm(difference, axis=1, keepdims=True)


def _recentre(points: np.ndarray, tube: np.ndarray, radius_of: np.ndarray, spacing: float) -> np.ndarray:
    """Move every point to the centroid of the tube's cross-section around it.

    Only the disc of 1.6 local radii is looked at, so a neighbouring limb of an arch does not pull. The moves
    are smoothed along the curve over half a radius, since a section of voxels jitters.
    """
    tangents = _tangents(points)
    helper = np.where(np.abs(tangents[:, [2]]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    beta = np.cross(tangents, helper)
    beta /= np.linalg.norm(beta, axis=1, keepdims=True)
    gamma = np.cross(tangents, beta)
    radii = ndimage.map_coordinates(radius_of, points.T, order=1, mode="nearest").clip(1.0)
    line = (np.arange(21) - 10) / 10
    u, v = (w.ravel() for w in np.meshgrid(line, line, indexing="ij"))
    disc = u**2 + v**2 <= 1
    u, v = u[disc], v[disc]
    reach = 1.6 * radii[:, None, None]
    plane = points[:, None] + reach * (u[:, None] * beta[:, None] + v[:, None] * gamma[:, None])
    weight = ndimage.map_coordinates(tube.astype(np.float32), plane.reshape(-1, 3).T, order=1, mode="nearest")
    weight = weight.reshape(len(points), -1)
    mass = weight.sum(1, keepdims=True)
    moved = (weight[..., None] * plane).sum(1) / np.maximum(mass, 1e-9)
    move = np.where(mass > 1, moved - points, 0.0)
    return points + ndimage.gaussian_filter1d(
        move, float(np.median(radii)) / 2 / spacing, axis=0, mode="nearest"
    )
