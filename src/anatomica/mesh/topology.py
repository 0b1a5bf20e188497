"""Topology of a closed triangle surface, read off the triangles: open edges, pinches, Betti numbers of the
inside.

A surface may touch itself along an edge or at a vertex. Its inside is then taken as the open set that it
is: not joined across the touch, and with a tunnel where what is around it touches itself through it
(6-connected inside, 26-connected outside, as `homology.betti_numbers` counts voxels).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from anatomica.measurement.homology import Betti

ASIDE = np.array([0.4082, 0.1715, 0.8966]) / np.linalg.norm([0.4082, 0.1715, 0.8966])
"""A direction in which no voxel lies: ways on a sphere lead over it, since opposite points have no shortest
way."""


class Topology(NamedTuple):
    """Of one closed surface: undirected edges that are open or badly oriented, edges with more than two
    triangles, vertices at which the surface touches itself, Betti numbers of the inside (None if the
    surface is not closed), and where it is no manifold: indices of those vertices and of the edges' ends."""

    open_edges: int
    pinched_edges: int
    pinched_vertices: int
    betti: Betti | None
    where: tuple[int, ...] = ()

    @property
    def closed(self) -> bool:
        return self.open_edges == 0

    @property
    def manifold(self) -> bool:
        return self.closed and self.pinched_edges == 0 and self.pinched_vertices == 0


def topology(vertices: Float64[np.ndarray, "v 3"], triangles: Int[np.ndarray, "t 3"]) -> Topology:
    """Topology of the surface of the triangles, whose normals point outwards."""
    used, flat = np.unique(triangles, return_inverse=True)
    corners = flat.reshape(-1, 3)
    vertices = vertices[used]
    partner, open_edges, pinched_edges, ends = _partners(vertices, corners)
    if open_edges:
        return Topology(open_edges, pinched_edges, 0, None, tuple(used[ends].tolist()))
    # A half-edge is 3 t + n, from corner n of triangle t to the next; corners have the same numbers.
    half = np.arange(corners.size)
    following = half - half % 3 + (half + 1) % 3
    # Corners around one vertex that are joined through triangles with a common edge are a fan.
    fans, fan = _joined(
        corners.size, np.concatenate([half, following]), np.concatenate([following[partner], partner])
    )
    vertex_of_fan = np.empty(fans, dtype=np.int64)
    vertex_of_fan[fan] = corners.ravel()
    many = np.flatnonzero(np.bincount(vertex_of_fan, minlength=len(vertices)) > 1)
    tubes = [pair for v in many.tolist() for pair in _tubes(vertices, corners, fan, v)]
    pieces, piece = _joined(len(corners), half // 3, partner // 3)
    betti = _betti(vertices, corners, fan, vertex_of_fan, pieces, piece, tubes)
    where = tuple(used[np.union1d(ends, many)].tolist())
    return Topology(0, pinched_edges, len(many), betti, where)


def _joined(count: int, a: np.ndarray, b: np.ndarray) -> tuple[int, np.ndarray]:
    """Number of components of a graph and the component of each of its nodes."""
    return connected_components(
        coo_matrix((np.ones(len(a), bool), (a, b)), shape=(count, count)), directed=False
    )


def _partners(vertices: np.ndarray, corners: np.ndarray) -> tuple[np.ndarray, int, int, np.ndarray]:
    """For every half-edge the one that it is glued to; numbers of open and of pinched edges; their ends.

    Where four or more triangles meet, those are glued that bound the same wedge of the inside.
    """
    tail, head = corners.ravel(), np.roll(corners, -1, axis=1).ravel()
    low, high = np.minimum(tail, head), np.maximum(tail, head)
    key = low.astype(np.int64) * (len(vertices) + 1) + high
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    forward = np.add.reduceat((tail < head)[order].astype(np.int64), first)
    wrong = 2 * forward != count
    partner = np.full(len(key), -1)
    two = first[(count == 2) & (forward == 1)]
    partner[order[two]], partner[order[two + 1]] = order[two + 1], order[two]
    pinched = np.flatnonzero((count > 2) & ~wrong)
    for e in pinched:
        around = order[first[e] : first[e] + count[e]]
        a, b = _wedges(vertices, corners, around, tail)
        partner[a], partner[b] = b, a
    odd = order[first[wrong | (count > 2)]]
    return partner, int(wrong.sum()), len(pinched), np.union1d(tail[odd], head[odd])


def _wedges(
    vertices: np.ndarray, corners: np.ndarray, around: np.ndarray, tail: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Half-edges of one edge in pairs that bound a wedge of the inside, by the triangles' angles around
    it."""
    t, n = around // 3, around % 3
    ends = vertices[corners[t, n]], vertices[corners[t, (n + 1) % 3]]
    up = tail[around] == tail[around].min()
    start, stop = (ends[0][up][0], ends[1][up][0])
    axis = (stop - start) / np.linalg.norm(stop - start)
    arm = vertices[corners[t, (n + 2) % 3]] - start
    arm -= (arm @ axis)[:, None] * axis
    x = arm[0] / np.linalg.norm(arm[0])
    angle = np.arctan2(arm @ np.cross(axis, x), arm @ x)
    turn = np.argsort(angle)
    # Going around the axis, the inside begins behind a triangle that runs down the edge and ends at one
    # that runs up.
    if up[turn[0]]:
        turn = np.roll(turn, -1)
    return around[turn[0::2]], around[turn[1::2]]


def _tubes(vertices: np.ndarray, corners: np.ndarray, fan: np.ndarray, v: int) -> list[tuple[int, int]]:
    """Pairs of fans at a vertex between which the inside goes around: as if a thin tube of the outside
    joined them.

    Seen from the vertex each fan is a closed curve on a sphere. Two fans bound the same region of the
    inside if no curve separates points just inside of them. Each region's fans are joined to its first.
    """
    at = np.flatnonzero(corners.ravel() == v)
    t, n = at // 3, at % 3
    p = _unit(vertices[corners[t, (n + 1) % 3]] - vertices[v])
    q = _unit(vertices[corners[t, (n + 2) % 3]] - vertices[v])
    own = fan[at]
    names = np.unique(own)
    first = np.array([np.flatnonzero(own == name)[0] for name in names])
    inner = _unit(0.37 * p[first] + 0.63 * q[first] - 1e-4 * _unit(np.cross(p[first], q[first])))
    found, region = [], np.arange(len(names))
    for i in range(len(names)):
        for j in range(i):
            if region[i] == i and region[j] == j:
                crossed = _arcs_cross(inner[i], ASIDE, p, q) ^ _arcs_cross(ASIDE, inner[j], p, q)
                apart = [bool(crossed[own == name].sum() % 2) for name in names]
                if not any(apart):
                    region[i] = j
                    found.append((int(names[i]), int(names[j])))
    return found


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _arcs_cross(a: np.ndarray, b: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Whether the short arc from a to b on the unit sphere crosses each of the arcs from p to q."""
    ab, pq = np.cross(a, b), np.cross(p, q)
    meet = np.cross(ab, pq)
    meet *= np.sign(meet @ (a + b))[:, None]  # of the two points where the circles meet, the one near a and b
    between = ((p @ ab) * (q @ ab) < 0) & ((pq @ a) * (pq @ b) < 0)
    return between & (np.einsum("ij,ij->i", meet, p + q) > 0)


def _betti(
    vertices: np.ndarray,
    corners: np.ndarray,
    fan: np.ndarray,
    vertex_of_fan: np.ndarray,
    pieces: int,
    piece: np.ndarray,
    tubes: list[tuple[int, int]],
) -> Betti:
    """Outer surfaces are components, inner ones voids, and handles of either are loops.

    V - E + F of each piece of the surface, fans being its vertices, is 2 - 2 handles; a tube between two
    fans takes 2 away and joins their pieces.
    """
    piece_of_fan = np.empty(len(vertex_of_fan), dtype=np.int64)
    piece_of_fan[fan] = np.repeat(piece, 3)
    faces = np.bincount(piece, minlength=pieces)
    euler = np.bincount(piece_of_fan, minlength=pieces) - faces // 2  # E = 3 F / 2
    a, b = (np.array([pair[n] for pair in tubes], dtype=np.int64) for n in range(2))
    bodies, body = _joined(pieces, piece_of_fan[a], piece_of_fan[b])
    euler = np.bincount(body, euler, minlength=bodies)
    euler -= 2 * np.bincount(body[piece_of_fan[a]], minlength=bodies)
    x, y, z = (vertices[corners[:, n]] - vertices[0] for n in range(3))
    volume = np.bincount(body[piece], np.einsum("ij,ij->i", x, np.cross(y, z)), minlength=bodies)
    outer = int((volume > 0).sum())
    return Betti(outer, round(float((2 - euler).sum()) / 2), bodies - outer)
