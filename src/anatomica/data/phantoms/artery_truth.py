"""What is known of a coronary phantom without looking at voxels: areas, wall and calcium, from its sheets.

Areas and thicknesses are those of the main vessel; a side branch is left out. A frame is a row of the sheets,
0.05 mm apart. Angles of calcium are seen from the centroid of the frame's lumen, as in OCT.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.data.phantoms.artery import ANGLES, EDGE_MM, ROWS, Vessel, sheet

Array = np.ndarray
_TURN = 2 * np.pi / ANGLES
_STEP_MM = EDGE_MM / (ROWS - 1)
REFERENCE = 0.9
"""The reference lumen is this quantile of the frames' areas."""


@dataclass(frozen=True)
class Known:
    """Frames' areas in mm2 (rows,), their centroids in the plane (rows, 2), and numbers by name."""

    lumen_mm2: Array
    vessel_mm2: Array
    lumen_centre_mm: Array
    vessel_centre_mm: Array
    numbers: dict[str, float]


def known(vessel: Vessel) -> Known:
    """Areas along the vessel, wall thickness and plaque burden, and the calcium's measures."""
    lumen, outer = (_area_and_centre(table) for table in (vessel.lumen_mm, vessel.outer_mm))
    lumen_mm2, vessel_mm2 = lumen[0], outer[0]
    narrowest = int(lumen_mm2.argmin())
    wall = vessel.outer_mm - vessel.lumen_mm
    reference = float(np.quantile(lumen_mm2, REFERENCE))
    numbers = {
        "mean_lumen_area_mm2": float(lumen_mm2.mean()),
        "minimum_lumen_area_mm2": float(lumen_mm2.min()),
        "minimum_lumen_z_mm": narrowest * _STEP_MM - EDGE_MM / 2,
        "reference_lumen_area_mm2": reference,
        "mean_lumen_diameter_mm": float(2 * np.sqrt(lumen_mm2 / np.pi).mean()),
        "mean_eem_area_mm2": float(vessel_mm2.mean()),
        "eem_area_at_minimum_mm2": float(vessel_mm2[narrowest]),
        "area_stenosis": 1 - float(lumen_mm2.min()) / reference,
        "plaque_burden": float(1 - (lumen_mm2 / vessel_mm2)[narrowest]),
        "atheroma_volume_share": float(1 - lumen_mm2.sum() / vessel_mm2.sum()),
        "mean_wall_thickness_mm": float(wall.mean()),
        "least_wall_thickness_mm": float(wall.min()),
        "largest_wall_thickness_mm": float(wall.max()),
        "side_branch": float(vessel.branch is not None),
        **_calcium(vessel, lumen[1]),
    }
    return Known(lumen_mm2, vessel_mm2, vessel.axis_mm + lumen[1], vessel.axis_mm + outer[1], numbers)


def _area_and_centre(radii_mm: Array) -> tuple[Array, Array]:
    """Area (rows,) of each frame's polar outline and its centroid (rows, 2) from the axis."""
    angle, _ = sheet()
    area = 0.5 * (radii_mm**2).sum(1) * _TURN
    cubed = radii_mm**3 * _TURN / 3
    centre = np.stack([(cubed * np.cos(angle)).sum(1), (cubed * np.sin(angle)).sum(1)], -1)
    return area, centre / area[:, None]


def _calcium(vessel: Vessel, centre: Array) -> dict[str, float]:
    """Count, volume, angle, thickness, length and depth of the calcium, and Fujino's score (2018)."""
    if not vessel.deposits:
        names = ("volume_mm3", "max_angle_deg", "max_thickness_mm", "length_mm", "longest_mm", "score")
        return {"deposits": 0.0} | {f"calcium_{name}": 0.0 for name in names}
    angle, _ = sheet()
    volume, thickness, longest, to_lumen = 0.0, 0.0, 0.0, np.inf
    there = np.zeros((ROWS, ANGLES), bool)
    swept = np.zeros((ROWS, ANGLES))
    for deposit in vessel.deposits:
        start, end = deposit.layer_mm()
        inner = vessel.lumen_mm + np.maximum(start, 0)
        outer = np.minimum(vessel.lumen_mm + end, vessel.outer_mm)
        here = (end > start) & (outer > inner)
        volume += float((0.5 * (outer**2 - inner**2))[here].sum() * _TURN * _STEP_MM)
        thickness = max(thickness, float((outer - inner)[here].max()))
        longest = max(longest, float(here.any(1).sum() * _STEP_MM))
        to_lumen = min(to_lumen, float((inner - vessel.lumen_mm)[here].min()))
        middle = np.where(here, (inner + outer) / 2, 1.0)
        swept[here] = _swept(middle, angle, centre)[here]
        there |= here
    length = float(there.any(1).sum() * _STEP_MM)
    widest = float(np.degrees(swept.sum(1).max()))
    return {
        "deposits": float(len(vessel.deposits)),
        "calcium_volume_mm3": volume,
        "calcium_max_angle_deg": widest,
        "calcium_max_thickness_mm": thickness,
        "calcium_length_mm": length,
        "calcium_longest_mm": longest,
        "calcium_to_lumen_mm": to_lumen,
        "calcium_score": 2.0 * (widest > 180) + 1.0 * (thickness > 0.5) + 1.0 * (length > 5),
    }


def _swept(radius_mm: Array, angle: Array, centre: Array) -> Array:
    """The angle that each column's middle sweeps as seen from a frame's centre, (rows, angles) radians."""
    sides = []
    for turn in (angle - _TURN / 2, angle + _TURN / 2):
        x = radius_mm * np.cos(turn) - centre[:, :1]
        y = radius_mm * np.sin(turn) - centre[:, 1:]
        sides.append(np.arctan2(y, x))
    return (sides[1] - sides[0]) % (2 * np.pi)
