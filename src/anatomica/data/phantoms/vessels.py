"""The heart's great vessels: centrelines with radii, and the tubes swept along them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms.heart import Heart
from anatomica.data.phantoms.shapes import Array


@dataclass(frozen=True)
class Vessel:
    """A centreline (m, 3) with its radii, flattened along `minor` to `aspect` of the width.

    The first `mouth` points belong to the chamber it opens into: the plane across the centreline at that
    point is the border between the two labels. `branches` are side vessels of the same label.
    """

    curve: Array
    radii_mm: Array
    minor: tuple[float, float, float] | None = None
    aspect: float = 1.0
    mouth: int = 0
    branches: tuple[Vessel, ...] = ()

    def shapes(self) -> list[sh.Shape]:
        """The vessel beyond its mouth, which is cut flat; the chunks further on cannot reach the plane."""
        pieces = list(self._tube(slice(max(self.mouth - 1, 0), None)))
        pieces[:1] = [sh.clipped(piece, self.mouth_point, -self.mouth_axis) for piece in pieces[:1]]
        return pieces + [piece for branch in self.branches for piece in branch._tube(slice(None))]

    def stump(self) -> list[sh.Shape]:
        """The vessel up to its mouth, for the chamber."""
        pieces = self._tube(slice(0, self.mouth + 2))
        return [sh.clipped(piece, self.mouth_point, self.mouth_axis) for piece in pieces]

    @property
    def mouth_point(self) -> Array:
        return self.curve[self.mouth]

    @property
    def mouth_axis(self) -> Array:
        return sh.tangents(self.curve)[self.mouth]

    def _tube(self, part: slice) -> tuple[sh.Shape, ...]:
        minor = None if self.minor is None else np.array(self.minor)
        return sh.tube(self.curve[part], self.radii_mm[part], minor, self.aspect)


def _vessel(path: list[Array], along: list[float], radii: list[float], count: int, **more) -> Vessel:
    """A vessel through points, its radius given at fractions of its length."""
    curve = sh.spline(np.stack(path), count)
    return Vessel(curve, np.interp(np.linspace(0, 1, count), along, radii), **more)


def _branch(parent: Array, at: float, way: Array, length_mm: float, begin_mm: float, end_mm: float) -> Vessel:
    """A side branch from a fraction of the parent's curve that bends from its course into `way`."""
    index = round(at * (len(parent) - 1))
    start, course = parent[index], sh.tangents(parent)[index]
    middle = start + 0.45 * length_mm * _mix(course, way, 0.6)
    return _vessel([start, middle, middle + 0.55 * length_mm * way], [0, 1], [begin_mm, end_mm], 6)


def _mix(a: Array, b: Array, share: float) -> Array:
    both = (1 - share) * a + share * b
    return both / np.linalg.norm(both)


def aorta(heart: Heart) -> Vessel:
    """Annulus, three sinuses' bulge, ascending aorta, arch over the right PA, descending beside the spine."""
    k, root, axis = heart.size, heart.aortic, heart.aortic_axis
    top, left, back = heart.arch_height_mm, heart.arch_left_mm, heart.arch_back_mm
    path = [
        root - 1 * axis,
        root + 14 * k * axis,
        root + k * np.array([7.5, 5, 0.52 * top]),
        root + k * np.array([3.5, -1, 0.84 * top]),
        root + k * np.array([-0.36 * left, -0.32 * back, top]),
        root + k * np.array([-0.80 * left, -0.72 * back, 0.86 * top]),
        root + k * np.array([-left, -0.97 * back, 0.50 * top]),
        root + k * np.array([-0.99 * left, -1.02 * back, 0.0]),
        root + k * np.array([-0.86 * left, -1.02 * back, -50]),
        root + k * np.array([-0.66 * left, -0.97 * back, -100]),
        root + np.array([-0.50 * left * k, -0.86 * back * k, -190.0]),
    ]
    curve = sh.spline(np.stack(path), 72)
    along = sh.arc_length(curve) / k
    arch = (heart.ascending_mm + heart.descending_mm) / 2
    radii = np.interp(
        along,
        [0, 5, 13, 22, 32, 60, 95, 135, 170, 260, 420],
        np.array(
            [
                0.80 * heart.sinus_mm,
                0.84 * heart.sinus_mm,
                heart.sinus_mm,
                0.93 * heart.sinus_mm,
                0.92 * heart.ascending_mm,
                heart.ascending_mm,
                0.96 * arch,
                heart.descending_mm * 1.05,
                heart.descending_mm,
                0.95 * heart.descending_mm,
                0.88 * heart.descending_mm,
            ]
        )
        / 2,
    )
    return Vessel(curve, radii)


def pulmonary_arteries(heart: Heart) -> dict[str, Vessel]:
    """Trunk, and its right and left branches: the right one passes under the arch behind the aorta."""
    k, valve, axis = heart.size, heart.pulmonary, heart.pulmonary_axis
    r = heart.trunk_mm / 2
    fork = heart.here(-12, 5, 59)
    trunk = _vessel(
        [valve - 3 * axis, valve + 12 * axis, heart.here(-9, 24, 50), fork],
        [0, 0.25, 0.6, 1],
        [0.95 * r, 1.04 * r, r, 0.95 * r],
        14,
    )
    right = _vessel(
        [
            fork,
            heart.here(5, -11, 56),
            heart.here(28, -20, 54),
            heart.here(51, -22, 52),
            heart.here(70, -23, 45),
        ],
        [0, 0.3, 0.75, 1],
        [0.84 * r, 0.78 * r, 0.70 * r, 0.50 * r],
        18,
        minor=(0, 0.3, 1.0),
        aspect=0.92,
    )
    left = _vessel(
        [
            fork,
            heart.here(-23, -10, 61),
            heart.here(-39, -28, 59),
            heart.here(-52, -42, 49),
            heart.here(-57, -48, 37),
        ],
        [0, 0.3, 0.75, 1],
        [0.84 * r, 0.78 * r, 0.68 * r, 0.48 * r],
        16,
    )
    upper = _branch(right.curve, 0.68, np.array([0.70, 0.10, 0.70]), 24 * k, 0.52 * r, 0.36 * r)
    lower = _branch(left.curve, 0.62, np.array([-0.75, 0.15, 0.64]), 20 * k, 0.48 * r, 0.34 * r)
    return {
        "PA trunk": trunk,
        "right PA": replace(right, branches=(upper,)),
        "left PA": replace(left, branches=(lower,)),
    }


def cavae(heart: Heart) -> dict[str, Vessel]:
    """The venae cavae, both ending well inside the right atrium."""
    k, ra = heart.size, heart.ra_centre
    s, i = heart.svc_mm / 2, heart.ivc_mm / 2
    superior = _vessel(
        [
            ra + k * np.array([0, -3, 10]),
            ra + k * np.array([1, -2, 32]),
            heart.here(52, 8, 60),
            heart.here(49, 9, 84),
            heart.here(43, 14, 100),
        ],
        [0, 0.35, 0.8, 1],
        [1.1 * s, s, 0.98 * s, 0.85 * s],
        18,
        minor=(1.0, 0.5, 0.0),
        aspect=0.85,
        mouth=4,
    )
    inferior = _vessel(
        [
            ra + k * np.array([-3, -6, -12]),
            ra + k * np.array([-5, -10, -34]),
            ra + k * np.array([-9, -18, -62]),
            ra + k * np.array([-13, -27, -100]),
            ra + np.array([-16.0, -34.0, -175.0]),
        ],
        [0, 0.25, 0.6, 1],
        [1.05 * i, i, 0.98 * i, 0.9 * i],
        22,
        minor=(0.25, 1.0, 0.0),
        aspect=0.82,
        mouth=3,
    )
    return {"SVC": superior, "IVC": inferior}


def pulmonary_veins(heart: Heart) -> dict[str, Vessel]:
    """Two veins a side, upper ones forward and up, lower ones backward and slightly down."""
    k, centre, spread = heart.size * heart.la, heart.la_centre, heart.vein_spread
    reach = heart.size * heart.vein_length_mm
    r = heart.vein_mm / 2
    ways = {
        "RSPV": ((13, -2, 15 * spread), (0.88, 0.06, 0.36)),
        "RIPV": ((13, -5, -11 * spread), (0.80, -0.52, -0.16)),
        "LSPV": ((-13, -2, 15 * spread), (-0.80, 0.02, 0.54)),
        "LIPV": ((-13, -6, -9 * spread), (-0.78, -0.60, -0.04)),
    }
    veins = {}
    for name, (start, way) in ways.items():
        begin = centre + k * np.array(start)
        along = np.array(way) / np.linalg.norm(way)
        side = 1.0 if name[1] == "S" else -1.0
        bend = np.array([0, 0, 3.0 * side])
        wide = r * (0.94 if name[0] == "L" else 1.0)
        vein = _vessel(
            [begin, begin + 0.5 * reach * along, begin + reach * along + bend],
            [0, 0.45, 0.7, 1],
            [1.0 * wide, 1.08 * wide, 0.92 * wide, 0.62 * wide],
            12,
            minor=(0, 1.0, 0),
            aspect=0.9,
            mouth=3,
        )
        fork = _mix(along, np.array([0.0, 0.6 if name[1] == "S" else -0.5, 0.9 * side]), 0.42)
        twig = _branch(vein.curve, 0.62, fork, 0.48 * reach, 0.74 * wide, 0.56 * wide)
        veins[name] = replace(vein, branches=(twig,))
    return veins
