"""Landmarks of vertebrae: the body's own frame and size, its end plates, and the canal behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from scipy import ndimage

from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.shapes import unit
from anatomica.measurement.vocabulary.subject import Subject, landmark

Array = np.ndarray
STATION = 0.36
"""Heights in front and behind are taken this share of the body's midline depth from its middle: nearer to the
rim the plates are rounded."""
FAR_MM = 45.0
"""No body or canal is larger than this from its middle."""
CANAL_RAYS = 48
C2_HALF_MM = 8.0
"""The dens stands on the body of C2, which therefore ends this far above the middle that it is given."""


@dataclass(frozen=True, eq=False)
class Body:
    """A vertebral body: its middle in the cube's mm, its axes (columns: right, front, up) and size in mm."""

    name: str
    centre_mm: Array
    axes: Float[Array, "3 3"]
    width_mm: float
    depth_mm: float
    height_mm: float

    def at(self, right: float, front: float, up: float = 0.0) -> Array:
        """A point by shares of the body's width, depth and height from its middle."""
        return self.centre_mm + self.axes @ np.array(
            [right * self.width_mm, front * self.depth_mm, up * self.height_mm]
        )


def order(s: Subject) -> tuple[str, ...]:
    """All vertebrae from the skull down."""
    return s.cube.table.tissues


@landmark
def present(s: Subject) -> tuple[str, ...]:
    return tuple(x for x in order(s) if s.there(x))


@landmark
def _middle(s: Subject, name: str) -> Array:
    """Centroid of all that is seen of a vertebra."""
    return s.voxels(name).mean(0)


@landmark
def _up(s: Subject, name: str) -> Array:
    """Direction of the column at a vertebra, upwards, from the centroids of its neighbours and itself.

    Of a vertebra that is cut the centroid says little, and that of C1 and C2 lies elsewhere in the bone.
    """
    alike = [x for x in present(s) if not s.cut(x) and x not in ("C1", "C2")]
    names = alike if len(alike) > 1 else list(present(s))
    level = order(s).index(name)
    near = sorted(names, key=lambda x: abs(order(s).index(x) - level))[:3]
    near = sorted(near, key=order(s).index)
    if len(near) < 2:
        return np.array([0.0, 0.0, 1.0])
    return unit(_middle(s, near[0]) - _middle(s, near[-1]))


def leaving(
    s: Subject, name: str, starts_mm: Float[Array, "k 3"], ways: Float[Array, "k 3"], inside: bool = True
) -> Float[Array, " k"]:
    """Distances in mm at which rays leave a vertebra (or, from outside it, first meet it); nan: never."""
    step = s.voxel_mm / 4
    away = np.arange(0.0, FAR_MM, step)
    S = s.sample((name,), starts_mm[:, None] + away[:, None] * ways[:, None])
    depth = S - 0.5 if inside else 0.5 - S
    beyond = depth < 0
    after = np.maximum(beyond.argmax(1), 1)
    rows = np.arange(len(starts_mm))
    high, low = depth[rows, after - 1], depth[rows, after]
    share = np.clip(high / np.maximum(high - low, 1e-9), 0, 1)
    return np.where(beyond.any(1), (after - 1 + share) * step, np.nan)


@landmark
def canal(s: Subject, name: str) -> tuple[Array, Array]:
    """The middle of the ring's opening and of its front edge, seen along the column, in the cube's mm."""
    s.need(name)
    points = s.voxels(name)
    centre, up = points.mean(0), _up(s, name)
    front = unit(np.array([0.0, 1.0, 0.0]) - up[1] * up)
    right = np.cross(front, up)
    u, v = (points - centre) @ right, (points - centre) @ front
    step = s.voxel_mm
    low = np.array([u.min(), v.min()]) - 2 * step
    shape = np.ceil((np.array([u.max(), v.max()]) - low) / step).astype(int) + 3
    seen = np.zeros(shape, bool)
    # Half-voxel offsets close the lattice's own gaps where the column is oblique to the voxels.
    for du in (-0.35, 0.35):
        for dv in (-0.35, 0.35):
            i = np.round((np.stack([u, v], -1) - low) / step + [du, dv]).astype(int)
            seen[i[:, 0], i[:, 1]] = True
    holes, count = ndimage.label(ndimage.binary_fill_holes(seen) & ~seen)  # type: ignore[misc]
    if not count:
        raise Missing(f"the ring of {name} is not closed")
    hole = np.argwhere(holes == 1 + int(np.bincount(holes.ravel())[1:].argmax()))
    if len(hole) * step**2 < 20.0:
        raise Missing(f"the ring of {name} has no opening")
    middle = hole.mean(0) * step + low
    column = hole[np.abs(hole[:, 0] - hole[:, 0].mean()) <= max(1.0, 2.0 / step)]
    edge = column[:, 1].max() * step + low[1]
    to_mm = lambda a, b: centre + a * right + b * front  # noqa: E731
    return to_mm(middle[0], middle[1]), to_mm(middle[0], edge)


@landmark
def body(s: Subject, name: str) -> Body:
    """A vertebra's body: what lies before the canal, centred between its own walls and plates."""
    if name == "C1":
        raise Missing("C1 has no body")
    opening, edge = canal(s, name)
    up = _up(s, name)
    front = unit((edge - opening) - (edge - opening) @ up * up)
    right = np.cross(front, up)
    s.need(name)
    points = s.voxels(name)
    away = points - edge
    ahead = points[(away @ front > s.voxel_mm) & (np.abs(away @ right) < 25.0)]
    if len(ahead) < 50:
        raise Missing(f"no body of {name} before its canal")
    centre = ahead.mean(0)
    centre = centre + ((opening - centre) @ right) * right  # ribs' facets and pedicles may pull it sideways
    if name == "C2":
        down = float(leaving(s, name, centre[None], -up[None])[0])
        centre = centre - (down - C2_HALF_MM) * up
    found = Body(name, centre, np.stack([right, front, up], axis=1), 20.0, 15.0, 10.0)
    for _ in range(4):
        found = _centred(s, found)
    corners = np.array([found.at(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.6, 0.6)])
    if not s.inside(corners):
        raise Missing(f"the body of {name} is cut off by the border of the scan")
    return found


def _centred(s: Subject, b: Body) -> Body:
    """The body with its middle between its walls and plates, and its axis across its plates."""
    front = b.axes[:, 1]
    # Sideways in the front half, behind which pedicles and ribs begin; else around the middle.
    bundles: dict[int, list[tuple[float, float, float]]] = {
        0: [(0.0, y, z) for y in (0.1, 0.22) for z in (-0.12, 0.12)],
        1: [(x, 0.0, z) for x in (-0.08, 0.08) for z in (-0.1, 0.1)],
        2: [(x, y, 0.0) for x in (-0.12, 0.12) for y in (-0.12, 0.12)],
    }
    plus, minus = np.zeros(3), np.zeros(3)
    for axis, starts in bundles.items():
        points = np.array([b.at(*x) for x in starts])
        for sign, side in ((1.0, plus), (-1.0, minus)):
            ways = np.tile(sign * b.axes[:, axis], (len(points), 1))
            away = leaving(s, b.name, points, ways)
            if not np.isfinite(away).any():
                raise Missing(f"the body of {b.name} has no border on all sides")
            side[axis] = np.nanmedian(away)
    if b.name == "C2":
        plus[2], minus[2] = 2 * C2_HALF_MM - minus[2], minus[2]
    size = plus + minus
    centre = b.centre_mm + b.axes @ ((plus - minus) / 2)
    moved = replace(
        b, centre_mm=centre, width_mm=float(size[0]), depth_mm=float(size[1]), height_mm=float(size[2])
    )
    sides = ("lower",) if b.name == "C2" else ("upper", "lower")
    normals = [plate(s, moved, side)[1] for side in sides]
    up = unit(np.sum(normals, axis=0))
    front = unit(front - front @ up * up)
    return replace(moved, axes=np.stack([np.cross(front, up), front, up], axis=1))


_TURNS = np.arange(8) * np.pi / 4
STATIONS = [
    (0.0, 0.0),
    *zip((STATION * np.cos(_TURNS)).tolist(), (STATION * np.sin(_TURNS)).tolist(), strict=True),
]
"""Places on an end plate, shares of the body's width and depth: its middle and eight on an ellipse."""


def plate(s: Subject, b: Body, side: str) -> tuple[Array, Array]:
    """Middle and upward unit normal of an end plate: the plane through where nine rays leave the body."""
    sign = 1.0 if side == "upper" else -1.0
    fine = [(x + dx, y + dy) for x, y in STATIONS for dx in (-0.03, 0.03) for dy in (-0.03, 0.03)]
    starts = np.array([b.at(x, y) for x, y in fine])
    way = sign * b.axes[:, 2]
    away = leaving(s, b.name, starts, np.tile(way, (len(starts), 1)))
    good = np.isfinite(away) & (away > 0)
    if good.sum() < 12:
        raise Missing(f"{b.name} has no {side} end plate")
    middle = np.median(away[good])
    # A ray that runs into an arch or out of a rim is not the plate's.
    good &= np.abs(away - middle) < max(0.45 * b.height_mm, 3.0)
    ends = starts[good] + away[good, None] * way
    local = (ends - b.centre_mm) @ b.axes
    slope, *_ = np.linalg.lstsq(np.c_[local[:, :2], np.ones(len(local))], local[:, 2], rcond=None)
    normal = b.axes @ unit([-slope[0], -slope[1], 1.0])
    return b.centre_mm + b.axes[:, 2] * slope[2], normal


def canal_outline(s: Subject, name: str) -> tuple[Array, Array, Float[Array, " r"]]:
    """The canal's outline in the plane of the body's middle, or of the nearest plane in which its ring is
    closed: centre, ray directions (rays, 3) and distances in mm."""
    b, (opening, _) = body(s, name), canal(s, name)
    right, front, up = b.axes.T
    turn = np.arange(CANAL_RAYS) * 2 * np.pi / CANAL_RAYS
    ways = np.cos(turn)[:, None] * right + np.sin(turn)[:, None] * front
    flat = opening - ((opening - b.centre_mm) @ up) * up
    for share in (0.0, 0.12, -0.12, 0.24, -0.24, 0.36, -0.36, 0.48, -0.48):
        centre = flat + share * b.height_mm * up
        for _ in range(2):
            away = leaving(s, name, np.tile(centre, (CANAL_RAYS, 1)), ways, inside=False)
            met = np.isfinite(away) & (away < 25.0)
            if met.sum() < 0.9 * CANAL_RAYS or away[met].min() < s.voxel_mm:
                break
            index = np.arange(CANAL_RAYS)
            away = np.interp(index, index[met], away[met], period=CANAL_RAYS)
            # The star's centroid: rays then meet the outline evenly.
            centre = centre + (away[:, None] ** 3 * ways).sum(0) * 2 / 3 / (away**2).sum()
        else:
            return centre, ways, leaving(s, name, np.tile(centre, (CANAL_RAYS, 1)), ways, inside=False)
    raise Missing(f"the ring of {name} is open at every height of its body")
