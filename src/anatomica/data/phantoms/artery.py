"""The unrolled artery of the coronary phantoms: its surfaces as tables over (angle, z) around its axis.

The outer border (the external elastic membrane, EEM) is a noisy ellipse that tapers; the wall grows
eccentric plaques inwards (stenosis) and outwards (remodelling); the lumen is what the wall leaves; a calcium
deposit is a lens with an irregular outline on the (angle, z) sheet, buried in the wall under a fibrous cap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

EDGE_MM = 12.8
ANGLES, ROWS = 180, 257
BLUNT_MM = 0.28
"""Calcium thinner than this is left out."""
THINNEST_WALL_MM = 0.40
"""Two voxels at 64^3, so that the wall is a closed ring in every frame."""
NARROWEST_MM = 0.62
GAP_MM = 0.6
"""Least distance between two deposits, three voxels at 64^3."""


@dataclass(frozen=True)
class Branch:
    """A side branch: a straight tube that leaves the axis at `start_mm` and runs out of the cube."""

    start_mm: np.ndarray
    direction: np.ndarray
    radius_mm: float
    wall_mm: float

    def distance_mm(self, points_mm: np.ndarray) -> np.ndarray:
        """Distance to the branch's axis, a half-line."""
        offset = points_mm - self.start_mm.astype(points_mm.dtype)
        along = np.maximum(offset @ self.direction.astype(points_mm.dtype), 0)
        return np.linalg.norm(offset - along[..., None] * self.direction.astype(points_mm.dtype), axis=-1)


@dataclass(frozen=True)
class Deposit:
    """One calcium deposit on the (angle, z) sheet: `rho` < 1 is its outline, `thickness_mm` its height."""

    angle: float
    z_mm: float
    half_arc: float
    half_length_mm: float
    thickness_mm: float
    cap_mm: float
    rho: np.ndarray
    relief: np.ndarray

    def needed_wall_mm(self) -> np.ndarray:
        """How thick the wall must be to hide the deposit, easing out around its outline."""
        ease = np.clip((2.1 - self.rho) / 1.05, 0, 1)
        return (self.cap_mm + 1.15 * self.thickness_mm + 0.22) * ease * ease * (3 - 2 * ease)

    def layer_mm(self) -> tuple[np.ndarray, np.ndarray]:
        """Depth below the lumen at which calcium begins and ends (empty where it ends first)."""
        bulge = np.sqrt(np.clip(1 - self.rho**4, 0, None))
        middle = self.cap_mm + 0.55 * self.thickness_mm
        half = 0.5 * self.thickness_mm * bulge * (1 + 0.16 * self.relief)
        # A rim thinner than a coarse voxel would be drawn as crumbs; deposits end blunt instead.
        half = np.where(half < BLUNT_MM / 2, -1.0, half)
        return middle - half, middle + half


@dataclass(frozen=True)
class Vessel:
    """The unrolled artery: tables (ROWS, ANGLES) of radii around the axis, mm."""

    axis_mm: np.ndarray
    lumen_mm: np.ndarray
    outer_mm: np.ndarray
    deposits: tuple[Deposit, ...]
    branch: Branch | None


def sheet() -> tuple[np.ndarray, np.ndarray]:
    """Angles (1, ANGLES) and heights (ROWS, 1) of the unrolled sheet."""
    angle = np.arange(ANGLES) * (2 * np.pi / ANGLES)
    z_mm = np.linspace(-EDGE_MM / 2, EDGE_MM / 2, ROWS)
    return angle[None, :], z_mm[:, None]


def _turn(angle: np.ndarray) -> np.ndarray:
    """Wrap to (-pi, pi]."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _along(rng: np.random.Generator, count: int, waves: int) -> np.ndarray:
    """Smooth random functions of z of about unit variance, (ROWS, count)."""
    k = np.arange(1, waves + 1)
    size = 1.2 * rng.normal(size=(count, waves)) / k
    phase = rng.uniform(0, 2 * np.pi, (count, waves))
    turns = np.pi * k * np.linspace(0, 1, ROWS)[:, None]
    return np.cos(turns) @ (size * np.cos(phase)).T - np.sin(turns) @ (size * np.sin(phase)).T


def _relief(rng: np.random.Generator, lobes: int, waves: int) -> np.ndarray:
    """A smooth random function on the sheet, periodic in the angle, about unit variance."""
    angle, _ = sheet()
    m = np.arange(1, lobes + 1)[:, None]
    around = np.concatenate([np.cos(m * angle), np.sin(m * angle)]) / np.tile(m, (2, 1)) ** 0.5
    total = _along(rng, 2 * lobes, waves) @ around
    return total / max(float(total.std()), 1e-6)


def grow(rng: np.random.Generator, pathology: str | None) -> Vessel:
    """Draw the artery's parameters and compute its surfaces."""
    outer, wall = _healthy(rng, pathology)
    axis = 0.45 * _along(rng, 2, 3) + rng.normal(0, 0.35, 2)
    for _ in range(1 if pathology == "severe-stenosis" else int(rng.integers(1, 3))):
        bump = _plaque(rng, pathology)
        wall = wall + bump
        # Glagov: part of a plaque is made up for by the outer border growing.
        low, high = {"positive-remodelling": (0.85, 1.1), "severe-stenosis": (0.0, 0.2)}.get(
            pathology or "", (0.1, 0.5)
        )
        outward = rng.uniform(low, high)
        outer = outer + outward * bump
    branch = _branch(rng, axis, outer - wall, outer) if rng.random() < 0.3 else None
    deposits = _deposits(rng, pathology, axis, outer, wall, branch)
    for deposit in deposits:
        wall = soft_max(wall, deposit.needed_wall_mm(), 0.08)
    # Tissue has no creases: round the shoulders that the deposits raised (about 10 degrees, 0.25 mm).
    wall = ndimage.gaussian_filter1d(ndimage.gaussian_filter1d(wall, 5, 0, mode="nearest"), 5, 1, mode="wrap")
    wall = np.maximum(wall, THINNEST_WALL_MM)
    lumen = soft_max(outer - wall, np.full_like(outer, _floor_mm(pathology)), 0.12)
    return Vessel(axis, lumen, np.maximum(outer, lumen + wall), deposits, branch)


def _floor_mm(pathology: str | None) -> float:
    """No lesion narrows the lumen below this radius: half a catheter's width is always left."""
    return NARROWEST_MM if pathology == "severe-stenosis" else 0.72


def soft_max(a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    """A maximum whose crease is rounded over `width`."""
    return 0.5 * (a + b + np.sqrt((a - b) ** 2 + width**2))


def _healthy(rng: np.random.Generator, pathology: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Outer radius and wall thickness before any focal lesion."""
    angle, z_mm = sheet()
    mean = np.clip(rng.normal(2.18, 0.29), 1.6, 2.85)
    if pathology == "ectasia":
        z0, width = rng.uniform(-3, 3), rng.uniform(1.8, 3.0)
        mean = mean * (1 + rng.uniform(0.25, 0.4) * np.exp(-(((z_mm - z0) / width) ** 2)))
    taper = 1 - rng.uniform(-0.02, 0.10) * (0.5 - z_mm / EDGE_MM)
    squash = rng.uniform(0.02, 0.09) * np.cos(2 * (angle - rng.uniform(0, np.pi) - 0.1 * z_mm))
    outer = mean * taper * (1 + squash + 0.022 * _relief(rng, 4, 5))
    wall = rng.uniform(0.40, 0.52) + 0.09 * np.abs(_relief(rng, 3, 3)) + 0.02 * _relief(rng, 5, 6)
    return outer, wall


def _plaque(rng: np.random.Generator, pathology: str | None) -> np.ndarray:
    """Extra wall of one eccentric plaque, (ROWS, ANGLES) mm."""
    angle, z_mm = sheet()
    severe = pathology == "severe-stenosis"
    height = rng.uniform(1.4, 1.8) if severe else rng.uniform(0.4, 1.3)
    width = rng.uniform(1.4, 2.4) if severe else rng.uniform(1.2, 2.5)
    z0 = rng.uniform(-3.0, 3.0) if severe else rng.uniform(-4.5, 4.5)
    shift = _turn(angle - rng.uniform(-np.pi, np.pi) - rng.uniform(-0.15, 0.15) * z_mm)
    side = np.exp(rng.uniform(0.8, 1.8) * (np.cos(shift) - 1))
    all_round = rng.uniform(0.6, 0.85) if severe else rng.uniform(0.15, 0.45)
    profile = np.exp(-(np.abs((z_mm - z0) / width) ** rng.uniform(1.8, 3.0)))
    return height * profile * (all_round + (1 - all_round) * side) * (1 + 0.12 * _relief(rng, 3, 4))


def _branch(rng: np.random.Generator, axis: np.ndarray, lumen: np.ndarray, outer: np.ndarray) -> Branch:
    """A side branch that leaves downstream (towards -z), thinner than the lumen it leaves."""
    turn, lean = rng.uniform(0, 2 * np.pi), np.radians(rng.uniform(45, 72))
    direction = np.array([np.cos(turn) * np.sin(lean), np.sin(turn) * np.sin(lean), -np.cos(lean)])
    z0 = rng.uniform(0.5, 4.8)
    row = round((z0 / EDGE_MM + 0.5) * (ROWS - 1))
    start = np.array([*axis[row], z0])
    radius = min(rng.uniform(0.55, 0.95), 0.75 * max(float(lumen[row].min()), 0.8))
    return Branch(start, direction, radius, rng.uniform(THINNEST_WALL_MM, 0.5))


def _deposits(
    rng: np.random.Generator,
    pathology: str | None,
    axis: np.ndarray,
    outer: np.ndarray,
    wall: np.ndarray,
    branch: Branch | None,
) -> tuple[Deposit, ...]:
    """Zero to four deposits that keep clear of each other and of the branch's mouth.

    A deposit that finds no room after some tries is left out: the truth counts those that were placed.
    """
    heavy = pathology == "heavy-calcification"
    wanted = int(rng.integers(3, 5)) if heavy else int(rng.choice(5, p=[0.12, 0.26, 0.32, 0.19, 0.11]))
    angle, z_mm = sheet()
    middle = np.clip(outer - wall / 2, 1.2, None)
    taken = np.zeros((ROWS, ANGLES), bool)
    if branch is not None:
        x = axis[:, :1] + middle * np.cos(angle)
        y = axis[:, 1:] + middle * np.sin(angle)
        points = np.stack([x, y, np.broadcast_to(z_mm, x.shape)], -1)
        taken = branch.distance_mm(points) < branch.radius_mm + 1.1
    # Calcium grows where the plaque is thick.
    likely = np.exp(2.0 * wall).ravel()
    placed: list[Deposit] = []
    for _ in range(40):
        if len(placed) == wanted:
            break
        row, column = np.unravel_index(int(rng.choice(likely.size, p=likely / likely.sum())), wall.shape)
        deposit = _deposit(
            rng, heavy, float(angle[0, column]), float(z_mm[row, 0]), float(middle[row].mean())
        )
        reach = GAP_MM / min(deposit.half_length_mm, deposit.half_arc * float(middle[row].min()))
        around = deposit.rho < 1 + reach
        if abs(deposit.z_mm) > 5.3 or (around & taken).any():
            continue
        taken |= deposit.rho < 1
        placed.append(deposit)
    return tuple(placed)


def _deposit(rng: np.random.Generator, heavy: bool, turn: float, z0: float, radius_mm: float) -> Deposit:
    """A deposit centred at this angle and height: larger arcs are longer and thicker, as measured by IVUS."""
    size = rng.beta(2.2, 1.4) if heavy else rng.beta(1.6, 2.2)
    half_arc = max(np.radians((28, 34)[heavy] + (62, 95)[heavy] * size), 0.75 / radius_mm)
    half_length = 0.8 + 1.6 * np.clip(size + rng.normal(0, 0.15), 0, 1)
    thickness = 0.54 + 0.85 * np.clip(size + rng.normal(0, 0.3), 0, 1)
    angle, z_mm = sheet()
    swirl = rng.normal(0, 0.12) * (z_mm - z0)
    outline = np.tanh(0.6 * _relief(rng, 3, 8))
    across, along = _turn(angle - turn - swirl) / half_arc, (z_mm - z0) / half_length
    rho = np.sqrt(across**2 + along**2) * (1 + 0.2 * outline)
    cap = rng.uniform(0.02, 0.30)
    relief = np.clip(_relief(rng, 4, 8), -1.5, 1.5)
    return Deposit(turn, z0, float(half_arc), float(half_length), float(thickness), float(cap), rho, relief)
