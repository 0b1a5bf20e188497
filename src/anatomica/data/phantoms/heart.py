"""The heart's parts as distance fields, in the patient's frame around the middle of the LV's base.

Two frames are used. Patient: x right, y anterior, z superior. Heart: along the LV's axis to the apex (a),
towards the RV (s), towards the diaphragm (i); `Heart.at(a, s, i)` takes its coordinates to the patient's.
The positions are those of a mid-sized adult in CT and are scaled by `Heart.size`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms.shapes import Array, Cloud

APEX = np.array([-0.66, 0.58, -0.48]) / np.linalg.norm([-0.66, 0.58, -0.48])
_SEPTAL = np.array([0.75, 0.65, -0.10]) - np.dot([0.75, 0.65, -0.10], APEX) * APEX
SEPTAL = _SEPTAL / np.linalg.norm(_SEPTAL)
INFERIOR = np.cross(APEX, SEPTAL)
FRAME = np.stack([APEX, SEPTAL, INFERIOR])

SEPTUM_MM = 6.5
"""Width of the interatrial gap: more than a voxel's diagonal step at 64^3, so the atria never touch."""

WALL_VOXELS = 1.8
"""Least thickness of the myocardium in voxels: sqrt(3) separates the inside from the outside for sure."""


@dataclass(frozen=True)
class Heart:
    """What differs between patients; 1 is the average for factors, lengths are mm before `size`."""

    size: float
    lv: float
    lv_length: float
    wall_mm: float
    septum_mm: float
    rv: float
    rv_bulge: float
    outflow: float
    la: float
    la_flat: float
    appendage_left_mm: float
    appendage_turn: float
    ra: float
    ra_tall: float
    appendage_right_mm: float
    mitral_mm: float
    tricuspid_mm: float
    sinus_mm: float
    ascending_mm: float
    descending_mm: float
    arch_height_mm: float
    arch_left_mm: float
    arch_back_mm: float
    trunk_mm: float
    svc_mm: float
    ivc_mm: float
    vein_mm: float
    vein_spread: float
    vein_length_mm: float

    def at(self, a: float, s: float, i: float) -> Array:
        """Patient coordinates of a point of the heart's frame."""
        return self.size * (np.array([a, s, i]) @ FRAME)

    def here(self, x: float, y: float, z: float) -> Array:
        """Patient coordinates, scaled."""
        return self.size * np.array([x, y, z])

    @property
    def cavity(self) -> Array:
        """Semi-axes of the LV cavity's ellipsoid in the heart's frame."""
        return self.size * self.lv * np.array([56.5 * self.lv_length, 25.0, 26.4])

    @property
    def lv_centre(self) -> Array:
        """The ellipsoid's centre lies below the base, so that the base is cut wide open."""
        return self.at(25.0 * self.lv * self.lv_length, -1.5 * (self.lv - 1), 0)

    @property
    def mitral(self) -> Array:
        return self.at(0, -7, 4)

    @property
    def aortic(self) -> Array:
        return self.at(-7, 13, -10)

    @property
    def aortic_axis(self) -> Array:
        """Direction of the flow through the aortic valve: up, to the right and forward."""
        return _unit(np.array([0.28, 0.20, 0.94]))

    @property
    def tricuspid(self) -> Array:
        return self.at(9, 43, 10) + (self.rv - 1) * 12 * SEPTAL

    @property
    def tricuspid_axis(self) -> Array:
        return _unit(np.array([0.95, -0.18, -0.16]) @ FRAME)

    @property
    def pulmonary(self) -> Array:
        return self.at(9, 21, -41)

    @property
    def pulmonary_axis(self) -> Array:
        return _unit(np.array([-0.14, -0.36, 0.92]))

    @property
    def la_centre(self) -> Array:
        grown = self.la - 1
        return self.here(11.0 + 4 * grown, -22.5 - 16 * grown, 9.5 + 12 * grown)

    @property
    def ra_centre(self) -> Array:
        grown = self.ra - 1
        return self.here(50.0 + 24 * grown, 18.0, -3.0) + (self.rv - 1) * 10 * SEPTAL


def _unit(v: Array) -> Array:
    return v / np.linalg.norm(v)


def left_ventricle(heart: Heart, cloud: Cloud) -> tuple[Array, Array, Array]:
    """Fields of the cavity, the epicardium (cavity and wall) and the myocardium, a cup open at the base."""
    semi, centre = heart.cavity, heart.lv_centre
    base = sh.half_space(cloud.points, heart.at(0, 0, 0), -APEX)
    inner = _bullet(cloud, centre, semi)
    cavity = np.maximum(inner, base)
    # The outflow tract leaves through the cup's opening, beside the mitral valve.
    root = heart.aortic
    path = np.stack([heart.at(16, 2, -1), heart.at(4, 8, -5), root + 4 * heart.aortic_axis])
    tract = sh.union(cloud, sh.tube(sh.spline(path, 10), np.linspace(11.0, 0.41 * heart.sinus_mm, 10)))
    tract = np.maximum(tract, sh.half_space(cloud.points, root, heart.aortic_axis))
    cavity = sh.smooth_union(cavity, tract, 3.0)
    wall = np.array([0.9 * heart.wall_mm, (heart.wall_mm + heart.septum_mm) / 2, heart.wall_mm])
    shift = (heart.septum_mm - heart.wall_mm) / 2 * SEPTAL
    outer = _bullet(cloud, centre + shift, semi, wall)
    rim = sh.half_space(cloud.points, heart.at(0.8, 0, 0), -APEX)
    # A wall thinner than a voxel's diagonal would be pierced by the raster.
    cavity = np.where(rim < 0, np.maximum(cavity, outer + WALL_VOXELS * cloud.voxel_mm), cavity)
    epicardium = sh.smooth_intersection(outer, rim, 2.0)
    return cavity, epicardium, np.maximum(epicardium, -cavity)


def _bullet(cloud: Cloud, centre: Array, semi: Array, wall: Array | float = 0.0) -> Array:
    """An ellipsoid drawn out to a blunt apex; `wall` is added to its semi-axes."""
    tip = sh.ellipsoid(centre + 0.50 * semi[0] * APEX, semi * [0.58, 0.66, 0.66] + wall, FRAME)
    return sh.union(cloud, [sh.ellipsoid(centre, semi * [0.97, 1, 1] + wall, FRAME), tip], 8.0)


def right_ventricle(heart: Heart, cloud: Cloud, epicardium: Array, aorta: Array) -> Array:
    """A crescent around the septum: inflow behind the tricuspid valve, body, apex, and the outflow tract."""
    # A larger LV pushes the RV aside, a larger RV grows away from the septum.
    k, out = heart.size * heart.rv, ((heart.rv - 1) * 14 + (heart.lv - 1) * 18) * SEPTAL
    bulge = heart.rv_bulge
    body = [
        sh.ellipsoid(heart.at(19, 41, 8) + out, k * np.array([32, 30 * bulge, 37]), FRAME),
        sh.ellipsoid(heart.at(37, 31, 7) + 0.9 * out, k * np.array([36, 30.5 * bulge, 36]), FRAME),
        sh.ellipsoid(heart.at(60, 15, 9) + 0.5 * out, k * np.array([23, 20 * bulge, 21]), FRAME),
    ]
    field = sh.union(cloud, body, 10.0)
    # Everything of the body lies on the valve's apical side.
    field = sh.smooth_intersection(
        field, sh.half_space(cloud.points, heart.tricuspid, -heart.tricuspid_axis), 4.0
    )
    valve = heart.pulmonary
    path = np.stack([heart.at(29, 33, -8), heart.at(19, 30, -26), valve, valve + 6 * heart.pulmonary_axis])
    radii = heart.size * heart.outflow * np.interp(np.linspace(0, 1, 14), [0, 0.5, 1], [20, 16, 12.5])
    tract = sh.union(cloud, sh.tube(sh.spline(path, 14), radii, minor=SEPTAL, aspect=0.86))
    tract = np.maximum(tract, sh.half_space(cloud.points, valve, heart.pulmonary_axis))
    field = sh.smooth_union(field, tract, 9.0)
    field = np.maximum(field, 2.0 - aorta)
    return sh.smooth_difference(field, epicardium, 3.0)


def atria(
    heart: Heart, cloud: Cloud, epicardium: Array, aorta: Array, stumps: tuple[list[sh.Shape], list[sh.Shape]]
) -> tuple[Array, Array]:
    """The two atria, each with its appendage and a vestibule down to its valve, and a septum between them.

    `stumps` are the mouths of the veins that open into the left and into the right one.
    """
    left = sh.union(cloud, stumps[0], 5.0, onto=_left_atrium(heart, cloud, epicardium))
    right = sh.union(cloud, stumps[1], 5.0, onto=_right_atrium(heart, cloud))
    left = sh.smooth_difference(left, aorta - 1.5, 2.0)
    right = sh.smooth_difference(right, np.minimum(aorta, epicardium) - 1.5, 2.0)
    # Equal distance to both is the septum's middle; the difference grows by 2 mm a mm across it.
    return np.maximum(left, left - right + SEPTUM_MM), np.maximum(right, right - left + SEPTUM_MM)


def _left_atrium(heart: Heart, cloud: Cloud, epicardium: Array) -> Array:
    k, centre = 1.015 * heart.size * heart.la, heart.la_centre
    flat = heart.la_flat
    tilt = sh.rotation([-14, 8, 6])
    parts = [
        sh.ellipsoid(centre, k * np.array([29, 18.5 * flat, 22]), tilt),
        sh.ellipsoid(centre + k * np.array([-9, 7, 2]), k * np.array([21, 17 * flat, 21]), tilt),
        sh.ellipsoid(centre + k * np.array([18, -3, 3]), k * np.array([14, 13 * flat, 18]), tilt),
        *sh.tube(
            np.stack([centre + k * np.array([-6, 4, -2]), heart.mitral + 9 * APEX]),
            [17.0 * k, 0.56 * heart.mitral_mm],
        ),
    ]
    field = sh.union(cloud, parts, 7.0)
    field = np.maximum(field, sh.half_space(cloud.points, heart.at(0, 0, 0), APEX))
    # The appendage leaves the left wall in front of the veins and curls forward over the AV groove.
    turn = heart.appendage_turn
    path = np.stack(
        [
            centre + k * np.array([-17, 7, 8]),
            heart.at(-10, -22, -28),
            heart.at(-1, -22 + 3 * turn, -40),
            heart.at(9, -13 + 8 * turn, -45 - 2 * turn),
            heart.at(15, -4 + 12 * turn, -44),
        ]
    )
    length = heart.size * heart.appendage_left_mm
    curve = _shortened(sh.spline(path, 24), length)
    radii = heart.size * np.interp(
        np.linspace(0, 1, len(curve)), [0, 0.35, 0.5, 0.8, 1], [11, 8, 8.6, 7.4, 4.4]
    )
    appendage = sh.union(cloud, sh.tube(curve, radii, minor=APEX, aspect=0.8))
    # Only the appendage passes the plane of the valve; it lies on the ventricle, not in it.
    return sh.smooth_union(field, sh.smooth_difference(appendage, epicardium - 1.5, 2.0), 5.0)


def _right_atrium(heart: Heart, cloud: Cloud) -> Array:
    k, centre = 0.985 * heart.size * heart.ra, heart.ra_centre
    tall = heart.ra_tall
    parts = [
        sh.ellipsoid(centre, k * np.array([24, 25, 30 * tall]), sh.rotation([8, -6, 24])),
        sh.ellipsoid(centre + k * np.array([-3, -8, 9]), k * np.array([18, 18, 25 * tall]), None),
        sh.ellipsoid(centre + k * np.array([2, 3, -12]), k * np.array([22, 22, 18]), None),
        # Towards the crux, where the atrium meets the top of the ventricular septum.
        sh.ellipsoid(centre + k * np.array([-14, 3, -9]), k * np.array([15, 16, 17]), None),
        *sh.tube(
            np.stack([centre + k * np.array([-4, 2, -4]), heart.tricuspid + 9 * heart.tricuspid_axis]),
            [20.0 * k, heart.tricuspid_mm / 2],
        ),
    ]
    field = sh.union(cloud, parts, 8.0)
    field = np.maximum(field, sh.half_space(cloud.points, heart.tricuspid, heart.tricuspid_axis))
    # The right appendage is a broad flap that reaches forward and left around the aortic root.
    path = np.stack(
        [
            centre + k * np.array([-2, 12, 12]),
            heart.here(44, 38, 17),
            heart.here(33, 46, 21),
            heart.here(20, 48, 23),
        ]
    )
    curve = _shortened(sh.spline(path, 20), heart.size * heart.appendage_right_mm)
    radii = heart.size * np.interp(np.linspace(0, 1, len(curve)), [0, 0.5, 1], [15, 11.5, 5.0])
    flap = sh.union(cloud, sh.tube(curve, radii, minor=[-0.3, 0.8, 0.2], aspect=0.72))
    field = sh.smooth_union(field, flap, 7.0)
    return field


def _shortened(curve: Array, length_mm: float) -> Array:
    """The first `length_mm` of a curve."""
    along = sh.arc_length(curve)
    even = np.linspace(0, min(length_mm, along[-1]), len(curve))
    return np.stack([np.interp(even, along, curve[:, i]) for i in range(3)], axis=1)
