"""What is known of an aortic phantom without looking at voxels: levels, sections, branches, arch type.

Centrelines and sections are those after the patient's deformation of space: a circle of the model becomes an
ellipse, whose area, width and height follow from the deformation's derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial import distance

from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms.shapes import Array
from anatomica.data.phantoms.tree import Artery, Build, sinus_end_mm
from anatomica.data.phantoms.warp import Warp

ISTHMUS_MM = 20.0
"""From the left subclavian artery's origin to the proximal descending aorta."""
OSTIUM_MM = 10.0
"""A branch's diameter is taken, and its direction looked at, so far from the parent's wall."""
BRANCHES = ("BCT", "LCCA", "LSCA", "RCCA", "RSCA")


@dataclass(frozen=True)
class Vessel:
    """A centreline in the cube (m, 3), distances along it, and its ellipses' half axes (m, 2) in mm."""

    curve: Array
    along: Array
    half_mm: Array

    @classmethod
    def of(cls, artery: Artery, warp: Warp) -> Vessel:
        curve = warp.to_cube(artery.curve)
        stretch = warp.derivative(curve)
        flow = sh.tangents(artery.curve)
        side = np.cross(flow, [0.0, 1.0, 0.0])
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        moved = sh.tangents(curve)
        axes = []
        for way in (side, np.cross(flow, side)):
            ring = np.einsum("mij,mj->mi", stretch, way * artery.radii_mm[:, None])
            axes.append(ring - (ring * moved).sum(1)[:, None] * moved)
        half = np.linalg.svd(np.stack(axes, axis=2), compute_uv=False)
        return cls(curve, sh.arc_length(curve), half[:, :2])

    @property
    def radius_mm(self) -> Array:
        """Of the circle of equal area."""
        return np.sqrt(self.half_mm[:, 0] * self.half_mm[:, 1])

    def at(self, along_mm: float | Array) -> tuple[Array, Array]:
        """The points at distances along the line, (..., 3), and the half axes there, (..., 2)."""
        both = np.concatenate([self.curve, self.half_mm], axis=1)
        found = np.stack([np.interp(along_mm, self.along, column) for column in both.T], axis=-1)
        return found[..., :3], found[..., 3:]

    def nearest(self, points: Array) -> tuple[Array, Array]:
        """Where along the line points (m, 3) are nearest, and how far they lie outside the wall."""
        fine = np.arange(0.0, self.along[-1], 0.5)
        line, half = self.at(fine)
        away = distance.cdist(points, line) - np.sqrt(half.prod(1))
        i = away.argmin(1)
        return fine[i], away[np.arange(len(points)), i]


def known(
    body: Build, arteries: dict[str, Artery], warp: Warp
) -> tuple[dict[str, Vessel], dict[str, Array], dict[str, float]]:
    """Vessels by label, points (RAS mm of the cube) and numbers by name."""
    vessels = {name: Vessel.of(artery, warp) for name, artery in arteries.items()}
    ao = vessels["Ao"]
    low = max(body.scan_top_mm - body.scan_length_mm - float(warp.centre_mm[2]), -128.0)
    # The descending aorta is seen down to where it leaves the scan.
    below = np.flatnonzero((ao.curve[:, 2] < low) & (ao.along > 0.5 * ao.along[-1]))
    end = float(ao.along[below[0] - 1]) if len(below) else float(ao.along[-1])
    points, numbers = {}, {}
    for name in BRANCHES:
        parent = _parent(body, name)
        found = _branch(vessels[name], vessels[parent])
        points[f"{name} ostium"] = found.pop("ostium")
        numbers |= {f"{name}_{key}": float(value) for key, value in found.items()}
    origins = {x: numbers[f"{x}_along_mm"] for x in ("BCT", "LCCA", "LSCA")}
    if body.bovine > 0:
        del origins["LCCA"]
    for (_, before), (name, here) in pairwise(origins.items()):
        numbers[f"{name}_distance_mm"] = here - before
    stj = float(np.interp(sinus_end_mm(body), sh.arc_length(arteries["Ao"].curve), ao.along))
    first, last = origins["BCT"], origins["LSCA"]
    levels = {
        "sinotubular junction": stj,
        "mid ascending": (stj + first) / 2,
        "distal ascending": first - vessels["BCT"].radius_mm[0],
        "mid arch": (origins.get("LCCA", first) + last) / 2,
        "proximal descending": last + ISTHMUS_MM,
        "mid descending": (last + ISTHMUS_MM + end) / 2,
    }
    for name, along in levels.items():
        points[name], half = ao.at(along)
        key = name.replace(" ", "_")
        numbers |= {
            f"{key}_along_mm": along,
            f"{key}_diameter_mm": 2 * float(np.sqrt(half[0] * half[1])),
            f"{key}_min_diameter_mm": 2 * float(half[1]),
            f"{key}_max_diameter_mm": 2 * float(half[0]),
            f"{key}_area_mm2": float(np.pi * half[0] * half[1]),
        }
    bottom = ao.at(end)[0]
    numbers |= {
        "ascending_length_mm": first - stj,
        "arch_length_mm": last - first,
        "descending_length_mm": end - last,
        "descending_tortuosity": (end - last) / float(np.linalg.norm(bottom - ao.at(last)[0])),
        "tortuosity": (end - stj) / float(np.linalg.norm(bottom - ao.at(stj)[0])),
        **_arch(ao, first, numbers["LCCA_diameter_mm"]),
    }
    return vessels, points, numbers


def _parent(body: Build, name: str) -> str:
    if name in ("RCCA", "RSCA"):
        return "BCT"
    return "BCT" if name == "LCCA" and body.bovine > 0 else "Ao"


def _branch(branch: Vessel, parent: Vessel) -> dict[str, Array | float]:
    """Where a branch leaves its parent's wall, its angle to the parent's flow there, and its diameter."""
    fine = np.arange(0.0, branch.along[-1], 0.5)
    outside = np.flatnonzero(parent.nearest(branch.at(fine)[0])[1] > 0)
    leave = float(fine[outside[0]]) if len(outside) else 0.0
    beyond = min(leave + OSTIUM_MM, float(branch.along[-1]))
    ostium, (tip, half) = branch.at(leave)[0], branch.at(beyond)
    origin = float(parent.nearest(branch.curve[:1])[0][0])
    flow = parent.at(origin + 2.0)[0] - parent.at(origin - 2.0)[0]
    way = tip - ostium
    cosine = way @ flow / (np.linalg.norm(way) * np.linalg.norm(flow))
    return {
        "ostium": ostium,
        "takeoff_deg": float(np.degrees(np.arccos(cosine))),
        "diameter_mm": 2 * float(np.sqrt(half[0] * half[1])),
        "along_mm": origin,
    }


def _arch(ao: Vessel, first: float, carotid_mm: float) -> dict[str, float]:
    """Arch type I, II or III: the trunk leaves less than one, one to two, or more carotid diameters below the
    arch's top (Myla; both heights on the outer wall).
    """
    outer = ao.curve[:, 2] + ao.radius_mm * np.sqrt(1 - sh.tangents(ao.curve)[:, 2] ** 2)
    drop = float(outer.max() - np.interp(first, ao.along, outer))
    return {"arch_drop_mm": drop, "arch_type": float(1 + min(int(drop / carotid_mm), 2))}
