"""Cuts of a closed surface by parallel planes: closed contours, holes joined to what surrounds them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int
from scipy.spatial.distance import cdist

from anatomica.errors import AnatomicaError

LEAST_MM2 = 1e-6
"""Contours of less area are where a corner of the surface just touches a plane."""

Contour = Float64[np.ndarray, "_ 2"]


def contours(
    points: Float64[np.ndarray, "v 3"], triangles: Int[np.ndarray, "t 3"], count: int
) -> list[list[Contour]]:
    """The contours in the planes z = 0, 1, ..., count - 1 of a closed surface with its normals outwards.

    Counter-clockwise around tissue, clockwise around holes. A point in a plane counts as above it, so that
    no plane has an open contour.
    """
    z = points[triangles, 2]
    first = np.maximum(np.floor(z.min(axis=1)) + 1, 0).astype(np.int64)
    last = np.minimum(np.floor(z.max(axis=1)), count - 1).astype(np.int64)
    number = np.maximum(last - first + 1, 0)
    own = np.repeat(np.arange(len(triangles)), number)
    plane = np.arange(len(own)) - np.repeat(np.cumsum(number) - number, number) + first[own]
    above = z[own] >= plane[:, None]
    after = np.roll(above, -1, axis=1)
    # Seen from outside, each triangle is entered where its rim comes down through the plane.
    entry, place = _crossed(points, triangles[own], plane, above & ~after)
    leave, _ = _crossed(points, triangles[own], plane, ~above & after)
    entries, leaves = np.argsort(entry, kind="stable"), np.argsort(leave, kind="stable")
    if (entry[entries] != leave[leaves]).any():
        raise AnatomicaError("the surface is not closed, so its contours are not")
    following = np.empty(len(own), dtype=np.int64)
    following[leaves] = entries
    found: list[list[Contour]] = [[] for _ in range(count)]
    for ring in _rings(following):
        if abs(area(place[ring])) > LEAST_MM2:
            found[plane[ring[0]]].append(place[ring])
    return found


def _crossed(
    points: np.ndarray, triangles: np.ndarray, plane: np.ndarray, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A key of the one edge of each triangle and its plane, and the point (x, y) where they meet."""
    n = edges.argmax(axis=1)
    rows = np.arange(len(triangles))
    a, b = triangles[rows, n], triangles[rows, (n + 1) % 3]
    low, high = np.minimum(a, b).astype(np.int64), np.maximum(a, b).astype(np.int64)
    share = (plane - points[low, 2]) / (points[high, 2] - points[low, 2])
    place = points[low, :2] + share[:, None] * (points[high, :2] - points[low, :2])
    return (plane * len(points) + low) * len(points) + high, place


def _rings(following: np.ndarray) -> list[np.ndarray]:
    """The cycles of a permutation."""
    steps, seen, found = following.tolist(), np.zeros(len(following), dtype=bool), []
    for start in range(len(steps)):
        if seen[start]:
            continue
        ring = [start]
        while (at := steps[ring[-1]]) != start:
            ring.append(at)
        seen[ring] = True
        found.append(np.array(ring))
    return found


def area(ring: Contour) -> float:
    """Positive if the contour goes counter-clockwise."""
    x, y = (ring - ring[0]).T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def keyholed(rings: Sequence[Contour]) -> list[Contour]:
    """The contours of one plane without holes: each hole is joined by a line, there and back, to the contour
    around it.

    The nearest hole goes first, so that no line crosses another hole.
    """
    outer = sorted((ring for ring in rings if area(ring) > 0), key=area)
    holes: list[list[Contour]] = [[] for _ in outer]
    for hole in (ring for ring in rings if area(ring) < 0):
        n = next((n for n, ring in enumerate(outer) if _is_around(ring, hole[0])), None)
        if n is not None:
            holes[n].append(hole)
    return [_joined(ring, own) for ring, own in zip(outer, holes, strict=True)]


def _is_around(ring: Contour, point: Float64[np.ndarray, " 2"]) -> bool:
    """Whether a ray from the point leaves the contour more often than it enters."""
    (x, y), (u, v) = (ring - point).T, (np.roll(ring, -1, axis=0) - point).T
    passed = (y > 0) != (v > 0)
    at = x[passed] - y[passed] * (u - x)[passed] / (v - y)[passed]
    return int((at > 0).sum()) % 2 == 1


def _joined(ring: Contour, holes: list[Contour]) -> Contour:
    holes = list(holes)
    while holes:
        apart = [cdist(ring, hole) for hole in holes]
        n = int(np.argmin([x.min() for x in apart]))
        i, j = np.unravel_index(apart[n].argmin(), apart[n].shape)
        hole = holes.pop(n)
        ring = np.concatenate([ring[: i + 1], hole[j:], hole[: j + 1], ring[i:]])
    return ring
