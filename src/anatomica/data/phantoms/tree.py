"""The thoracic aorta and its supra-aortic branches as centrelines with radii, around the aortic valve.

Patient's frame: x right, y anterior, z superior, mm. The arch rises from the valve to the right and forward,
passes to the left and back, and descends beside the spine; brachiocephalic trunk, left common carotid and
left subclavian artery leave its top in this order, the right carotid and subclavian leave the trunk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms.shapes import Array

AXIS = np.array([0.28, 0.20, 0.94]) / np.linalg.norm([0.28, 0.20, 0.94])
"""Direction of the flow through the aortic valve."""


@dataclass(frozen=True)
class Build:
    """What differs between patients; diameters and lengths in mm, the rest are factors."""

    age_years: float
    male: float
    size: float
    sinus_mm: float
    ascending_mm: float
    arch_mm: float
    isthmus_mm: float
    descending_mm: float
    arch_height_mm: float
    arch_left_mm: float
    arch_back_mm: float
    steepness: float
    """How far the arch's top lies behind the first branch: 0 in the young, more with age."""
    first_mm: float
    """Along the arch from its beginning to the trunk's origin; then from origin to origin."""
    second_mm: float
    third_mm: float
    bct_lean_deg: float
    """By how much a branch leans along the arch when it leaves it, downstream positive."""
    lcca_lean_deg: float
    lsca_lean_deg: float
    bct_mm: float
    bct_length: float
    lcca_mm: float
    rcca_mm: float
    lsca_mm: float
    rsca_mm: float
    shoulder: float
    wander_mm: float
    wander_branches_mm: float
    aneurysm_mm: float
    aneurysm_at: float
    aneurysm_long_mm: float
    bovine: float
    scan_top_mm: float
    scan_length_mm: float


@dataclass(frozen=True)
class Artery:
    """A centreline (m, 3) with its radius at each point."""

    curve: Array
    radii_mm: Array

    def shapes(self, least_mm: float) -> tuple[sh.Shape, ...]:
        """The tube, nowhere thinner than `least_mm`."""
        return sh.tube(self.curve, np.maximum(self.radii_mm, least_mm))

    def point(self, share: float) -> Array:
        return self.curve[round(share * (len(self.curve) - 1))]


def arteries(build: Build, rng: np.random.Generator) -> dict[str, Artery]:
    """All six arteries by label name."""
    ao = _aorta(build, rng)
    k, spread = build.size, build.shoulder
    along = np.cumsum([build.first_mm, build.second_mm, build.third_mm])
    first, second, third = (_arch_point(build, ao, mm)[0] for mm in along)
    neck = np.array([0, 6.0, 95.0]) * k
    # The left carotid of a bovine arch leaves a trunk that is long enough to keep it off the aorta.
    n = max(build.bct_length, 1.05) if build.bovine > 0 else build.bct_length
    lean = np.tan(np.radians([build.bct_lean_deg, build.lcca_lean_deg, build.lsca_lean_deg]))
    flow = [_arch_point(build, ao, mm)[1] for mm in along]
    trunk = [
        first,
        first + k * n * (np.array([3, -3, 20]) + 20 * lean[0] * flow[0]),
        first + k * n * (np.array([13, -6, 41]) + 22 * lean[0] * flow[0]),
    ]
    fork = trunk[-1]
    right_carotid = [
        fork,
        fork + k * np.array([2, -1, 14]),
        fork + k * np.array([7, 1, 45]),
        fork + k * np.array([9, 2, 0]) + neck,
    ]
    right_subclavian = [
        fork,
        fork + k * np.array([13, -5, 9]),
        fork + k * np.array([32 * spread, -8, 12]),
        fork + k * np.array([53 * spread, -1, 2]),
        fork + k * np.array([73 * spread, 9, -13]),
    ]
    if build.bovine > 0:
        # The left carotid shares the trunk's stem and passes to the left well above the arch.
        start = first + k * n * np.array([6, -4, 27])
        left_carotid = [
            start,
            start + k * np.array([-14, -3, 11]),
            start + k * np.array([-24, -5, 32]),
            start + k * np.array([-27, -2, 20]) + neck,
        ]
    else:
        left_carotid = [
            second,
            second + k * (np.array([-3, 1, 24]) + 24 * lean[1] * flow[1]),
            second + k * np.array([-11, 4, 56]),
            second + k * np.array([-14, 6, 20]) + neck,
        ]
    left_subclavian = [
        third,
        third + k * (np.array([-5, -2, 23]) + 23 * lean[2] * flow[2]),
        third + k * np.array([-16, 1, 42]),
        third + k * np.array([-35 * spread, 8, 46]),
        third + k * np.array([-55 * spread, 20, 36]),
        third + k * np.array([-72 * spread, 31, 21]),
    ]
    return {
        "Ao": ao,
        "BCT": _branch(build, rng, trunk, build.bct_mm, 14, flare=1.2, taper=0.95),
        "LCCA": _branch(build, rng, left_carotid, build.lcca_mm, 26),
        "LSCA": _branch(build, rng, left_subclavian, build.lsca_mm, 26, taper=0.84),
        "RCCA": _branch(
            build, rng, right_carotid, build.rcca_mm, 22, flare=_within_trunk(build, build.rcca_mm)
        ),
        "RSCA": _branch(
            build, rng, right_subclavian, build.rsca_mm, 22, _within_trunk(build, build.rsca_mm), taper=0.88
        ),
    }


def _aorta(build: Build, rng: np.random.Generator) -> Artery:
    k = build.size
    top, left, back = build.arch_height_mm, build.arch_left_mm, build.arch_back_mm
    # A steep arch has its top behind the branches: its front falls and its back rises.
    steep = build.steepness
    path = k * np.array(
        [
            -1.0 * AXIS,
            14.0 * AXIS,
            [8.5, 6, 0.48 * top],
            [5.0, 1, (0.80 - 0.08 * steep) * top],
            [-0.30 * left, -0.27 * back, (1.0 - 0.07 * steep) * top],
            [-0.72 * left, -0.66 * back, (0.90 + 0.10 * steep) * top],
            [-left, -0.96 * back, (0.52 + 0.08 * steep) * top],
            [-1.02 * left, -1.04 * back, 2.0],
            [-0.90 * left, -1.06 * back, -50],
            [-0.66 * left, -0.98 * back, -105],
            [-0.40 * left, -0.80 * back, -165],
        ]
    )
    curve = sh.spline(path, 80)
    along = sh.arc_length(curve)
    # Tortuosity lives in the descending part; root and arch stay where the branches expect them.
    free = np.clip((along - 150 * k) / 50, 0, 1)
    curve = curve + free[:, None] * wander(rng, along, build.wander_mm, 140.0)
    diameters = np.interp(
        along / k,
        [0, 5, 12, 20, 27, 50, 85, 105, 135, 200, 330],
        [
            0.76 * build.sinus_mm,
            0.84 * build.sinus_mm,
            0.94 * build.sinus_mm,
            0.90 * build.sinus_mm,
            0.90 * build.ascending_mm,
            build.ascending_mm,
            build.arch_mm,
            0.97 * build.arch_mm,
            build.isthmus_mm,
            build.descending_mm,
            0.92 * build.descending_mm,
        ],
    )
    if build.aneurysm_mm > 0:
        bulge = np.exp(-0.5 * ((along / k - build.aneurysm_at) / build.aneurysm_long_mm) ** 2)
        grown = np.maximum(build.aneurysm_mm - np.interp(build.aneurysm_at * k, along, diameters), 0)
        diameters = diameters + grown * bulge
        # An aneurysm grows away from the vessel's inner curve.
        outward = sh.tangents(curve)[:, [1, 0, 2]] * np.array([1, -1, 0])
        curve = curve + 0.12 * grown * bulge[:, None] * outward
    return Artery(curve, diameters / 2)


def _arch_point(build: Build, ao: Artery, along_mm: float) -> tuple[Array, Array]:
    """The centreline's point at this distance from the arch's beginning, and the direction of flow there."""
    along = sh.arc_length(ao.curve)
    at = 0.85 * build.arch_height_mm * build.size + along_mm
    flow = sh.tangents(ao.curve)
    place, way = (np.array([np.interp(at, along, line[:, i]) for i in range(3)]) for line in (ao.curve, flow))
    return place, way / np.linalg.norm(way)


def _branch(
    build: Build,
    rng: np.random.Generator,
    path: list[Array],
    diameter_mm: float,
    count: int,
    flare: float = 1.25,
    taper: float = 0.92,
) -> Artery:
    """A branch that widens towards its origin and meanders once it has left it."""
    curve = sh.spline(np.stack(path), count)
    along = sh.arc_length(curve)
    free = np.clip((along - 22) / 25, 0, 1)
    curve = curve + free[:, None] * wander(rng, along, build.wander_branches_mm, 60.0)
    share = along / along[-1]
    width = np.interp(share, [0, 0.12, 0.3, 1], [flare, 1.08, 1.0, taper])
    return Artery(curve, width * diameter_mm / 2)


def _within_trunk(build: Build, diameter_mm: float) -> float:
    """Flare of a branch of the trunk: one as wide as the trunk's end would wrap around it in a ring."""
    return min(1.0, 0.80 * build.bct_mm / diameter_mm)


def wander(rng: np.random.Generator, along: Array, size_mm: float, wave_mm: float) -> Array:
    """A smooth random sideways course of about `size_mm`, mostly in the horizontal plane."""
    phase = rng.uniform(0, 2 * np.pi, (2, 3))
    pace = wave_mm * rng.uniform(0.8, 1.3, (2, 3))
    weight = np.array([1.0, 0.35])[:, None] * size_mm * np.array([1.0, 0.8, 0.25])
    turns = along[:, None, None] * 2 * np.pi / (pace * np.array([1.0, 0.55])[:, None]) + phase
    return (weight * np.sin(turns)).sum(1)


def sinus_end_mm(build: Build) -> float:
    """Along the centreline from the valve to the sinotubular junction, where sinuses and fillets end."""
    return build.size * (17.5 + 0.36 * build.sinus_mm)


def sinuses(build: Build) -> list[sh.Shape]:
    """The three sinuses of Valsalva: bulges around the root, 120 degrees apart."""
    across = np.cross(AXIS, [0.0, 1.0, 0.0])
    across /= np.linalg.norm(across)
    other = np.cross(AXIS, across)
    d = build.size * build.sinus_mm
    lobes = []
    for angle in np.radians([100.0, 220.0, 340.0]):
        out = np.cos(angle) * across + np.sin(angle) * other
        lobes.append(sh.ellipsoid(12 * build.size * AXIS + 0.21 * d * out, [0.325 * d, 0.325 * d, 0.36 * d]))
    return lobes
