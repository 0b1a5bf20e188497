"""The heart's parts as distance fields, in the patient's frame around the middle of the LV's base.

Two frames are used. Patient: x right, y anterior, z superior. Heart: along the LV's axis to the apex (a),
towards the RV (s), towards the diaphragm (i); `Heart.at(a, s, i)` takes its coordinates to the patient's.
The positions are those of a mid-sized adult in CT and are scaled by `Heart.size`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms.shapes import Array, Cloud


def _frame(apex: Sequence[float], septal: Sequence[float]) -> Array:
    """Orthonormal rows: along `apex`, towards `septal` as far as it is across it, and the third."""
    along = np.array(apex) / np.linalg.norm(apex)
    across = np.array(septal) - np.dot(septal, along) * along
    across = across / np.linalg.norm(across)
    return np.stack([along, across, np.cross(along, across)])


FRAME = _frame((-0.45, 0.672, -0.588), (0.843, 0.537, -0.031))
APEX, SEPTAL, INFERIOR = FRAME


class Blob(NamedTuple):
    """An ellipsoid in the heart's frame: centre and semi-axes in mm."""

    centre: tuple[float, float, float]
    semi: tuple[float, float, float]


# The average heart. Its numbers were fitted by Gauss-Newton to the mean volume, centroid and covariance of
# the five structures of nine real hearts (`anatomica.data.real_hearts`); valves lie where those hearts' lie.
LV_SEMI = (48.5, 23.6, 26.7)
LV_CENTRE = (36.3, -4.5, 2.0)
LV_TIP = (0.37, 0.54, 0.61)  # the blunt apex: its place, length and width as shares of the cavity's semi-axes
LV_WALL = (0.624, 0.848, 1.04)  # the wall along the three axes, by the parameter's thickness
LV_OUTFLOW = ((20.0, 4.0, -3.0), (9.0, 13.0, -10.0))
OUTFLOW_RADIUS_MM = 12.5
MITRAL = (3.0, 0.0, 1.0)
AORTIC = (14.7, 23.4, 15.2)
TRICUSPID = (36.1, 31.4, -18.7)
PULMONARY = (0.2, 45.5, 26.7)
RV_INFLOW = Blob((29.1, 51.8, 9.7), (29.9, 25.0, 18.0))
RV_BODY = Blob((50.3, 38.0, 5.0), (25.7, 28.5, 26.6))
RV_APEX = Blob((61.0, 16.3, 11.4), (25.2, 21.4, 22.1))
RV_CREST = Blob((30.7, 35.3, -13.8), (13.8, 18.3, 21.9))
RV_OUTFLOW = ((41.4, 31.3, -5.1), (33.3, 29.8, -38.6))
RV_OUTFLOW_RADII_MM = (22.4, 19.0, 13.6)
LA_CENTRE, LA_SCALE, LA_TILT_DEG = (25.7, -6.6, 12.9), (1.05, 0.93, 1.28), (-9.0, 18.8, -19.1)
RA_CENTRE, RA_SCALE, RA_TILT_DEG = (50.7, 18.7, -4.7), (0.71, 1.15, 1.26), (69.9, -24.5, 10.5)

SEPTUM_MM = 6.5
"""Width of the interatrial gap: more than a voxel's diagonal step at 64^3, so the atria never touch."""

SLEEVE_MM = 8.5
"""Wall of the left outflow tract: more than WALL_MM, less than the margin in which shapes are evaluated."""

WALL_MM = 7.8
"""Least thickness of the myocardium: more than a voxel's diagonal at 64^3, also where the warp squeezes it.

The raster does not pierce it and the patient is the same at 64^3 and above; coarser grids need 1.8 voxels."""


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
    rv_tall: float
    rv_drop_mm: float
    outflow: float
    la: float
    la_flat: float
    la_tall: float
    la_right_mm: float
    la_forward_mm: float
    la_up_mm: float
    appendage_left_mm: float
    appendage_turn: float
    ra: float
    ra_tall: float
    ra_flat: float
    ra_right_mm: float
    ra_forward_mm: float
    ra_up_mm: float
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
        return self.size * self.lv * np.array(LV_SEMI) * [self.lv_length, 1, 1]

    @property
    def lv_centre(self) -> Array:
        """The ellipsoid's centre lies below the base, so that the base is cut wide open."""
        a, s, i = LV_CENTRE
        return self.at(a * self.lv * self.lv_length, s - 1.5 * (self.lv - 1), i)

    @property
    def mitral(self) -> Array:
        return self.at(*MITRAL)

    @property
    def aortic(self) -> Array:
        return self.here(*AORTIC)

    @property
    def aortic_axis(self) -> Array:
        """Direction of the flow through the aortic valve: up, to the right and forward."""
        return _unit(np.array([0.50, 0.20, 0.80]))

    @property
    def tricuspid(self) -> Array:
        return self.here(*TRICUSPID) + (self.rv - 1) * 12 * SEPTAL

    @property
    def tricuspid_axis(self) -> Array:
        return _unit(np.array([-0.6, 0.68, -0.42]))

    @property
    def pulmonary(self) -> Array:
        return self.here(*PULMONARY)

    @property
    def pulmonary_axis(self) -> Array:
        return _unit(np.array([-0.16, -0.45, 0.86]))

    @property
    def la_centre(self) -> Array:
        grown, moved = self.la - 1, [self.la_right_mm, self.la_forward_mm, self.la_up_mm]
        return self.here(*(np.array(LA_CENTRE) + grown * np.array([4, -16, 12]) + moved))

    @property
    def ra_centre(self) -> Array:
        grown, moved = self.ra - 1, [self.ra_right_mm, self.ra_forward_mm, self.ra_up_mm]
        return (
            self.here(*(np.array(RA_CENTRE) + grown * np.array([24, 0, 0]) + moved))
            + (self.rv - 1) * 10 * SEPTAL
        )


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
    path = np.stack([*(heart.at(*point) for point in LV_OUTFLOW), root + 4 * heart.aortic_axis])
    radii = np.linspace(OUTFLOW_RADIUS_MM, 0.34 * heart.sinus_mm, 10)
    tube = sh.union(cloud, sh.tube(sh.spline(path, 10), radii))
    valve = sh.half_space(cloud.points, root, heart.aortic_axis)
    tract = np.maximum(tube, valve)
    cavity = sh.smooth_union(cavity, tract, 3.0)
    wall = np.array(LV_WALL) * np.array([heart.wall_mm, (heart.wall_mm + heart.septum_mm) / 2, heart.wall_mm])
    shift = (0.4 * (heart.septum_mm - heart.wall_mm) - 1.4) * SEPTAL - 3.3 * APEX
    outer = _bullet(cloud, centre + shift, semi, wall)
    # A wall thinner than a voxel's diagonal would be pierced by the raster.
    least = max(WALL_MM, 1.8 * cloud.voxel_mm)
    outer = np.minimum(outer, inner - least)
    rim = sh.half_space(cloud.points, heart.at(0.8, 0, 0), -APEX)
    # The tract has a sleeve of muscle up to the valve; the cavity stays inside of both.
    sleeve = tube - SLEEVE_MM
    cavity = np.where(rim < 0, np.maximum(cavity, sh.smooth_union(outer, sleeve, 3.0) + least), cavity)
    outer = sh.smooth_union(outer, np.maximum(sleeve, valve), 3.0)
    epicardium = sh.smooth_intersection(outer, rim, 2.0)
    return cavity, epicardium, np.maximum(epicardium, -cavity)


def _bullet(cloud: Cloud, centre: Array, semi: Array, wall: Array | float = 0.0) -> Array:
    """An ellipsoid drawn out to a blunt apex; `wall` is added to its semi-axes."""
    place, length, width = LV_TIP
    tip = sh.ellipsoid(centre + place * semi[0] * APEX, semi * [length, width, width] + wall, FRAME)
    return sh.union(cloud, [sh.ellipsoid(centre, semi * [0.97, 1, 1] + wall, FRAME), tip], 8.0)


def right_ventricle(heart: Heart, cloud: Cloud, epicardium: Array, aorta: Array) -> Array:
    """A crescent around the septum: inflow behind the tricuspid valve, body, apex, and the outflow tract."""
    # A larger LV pushes the RV aside, a larger RV grows away from the septum.
    k, out = heart.size * heart.rv, ((heart.rv - 1) * 14 + (heart.lv - 1) * 18) * SEPTAL
    out = out + heart.size * heart.rv_drop_mm * INFERIOR
    shape = k * np.array([1, heart.rv_bulge, heart.rv_tall])
    body = [
        sh.ellipsoid(heart.at(*blob.centre) + share * out, shape * blob.semi, FRAME)
        for blob, share in ((RV_INFLOW, 1.0), (RV_BODY, 0.9), (RV_APEX, 0.5), (RV_CREST, 0.9))
    ]
    field = sh.union(cloud, body, 10.0)
    # Everything of the body lies on the valve's apical side.
    field = sh.smooth_intersection(
        field, sh.half_space(cloud.points, heart.tricuspid, -heart.tricuspid_axis), 4.0
    )
    valve = heart.pulmonary
    path = np.stack([*(heart.at(*point) for point in RV_OUTFLOW), valve, valve + 6 * heart.pulmonary_axis])
    radii = heart.size * heart.outflow * np.interp(np.linspace(0, 1, 14), [0, 0.5, 1], RV_OUTFLOW_RADII_MM)
    tract = sh.union(cloud, sh.tube(sh.spline(path, 14), radii, minor=SEPTAL, aspect=0.86))
    tract = np.maximum(tract, sh.half_space(cloud.points, valve, heart.pulmonary_axis))
    field = sh.smooth_union(field, tract, 14.0)
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
    k, centre = 1.014 * heart.size * heart.la, heart.la_centre
    tilt = sh.rotation(LA_TILT_DEG)
    f = k * np.array(LA_SCALE) * [1, heart.la_flat, heart.la_tall]
    parts = [
        sh.ellipsoid(centre, f * np.array([28, 18, 23]), tilt),
        sh.ellipsoid(centre + (f * np.array([-11, 4, 2])) @ tilt, f * np.array([18, 16, 19]), tilt),
        sh.ellipsoid(centre + (f * np.array([12, -3, 1])) @ tilt, f * np.array([17, 14, 20]), tilt),
        *sh.tube(
            np.stack([centre + (f * np.array([-6, 4, -2])) @ tilt, heart.mitral + 9 * APEX]),
            [17.0 * k * min(LA_SCALE), 0.56 * heart.mitral_mm],
        ),
    ]
    field = sh.union(cloud, parts, 7.0)
    field = np.maximum(field, sh.half_space(cloud.points, heart.at(0, 0, 0), APEX))
    # The appendage leaves the left wall in front of the veins and curls forward over the AV groove.
    turn = heart.appendage_turn
    path = np.stack(
        [
            centre + k * np.array([-15, 4, 5]),
            heart.here(-14, 2, 26),
            heart.here(-19, 12 + 2 * turn, 27 - 2 * turn),
            heart.here(-18, 22 + 4 * turn, 26 - 4 * turn),
            heart.here(-14, 30 + 5 * turn, 24 - 6 * turn),
        ]
    )
    length = heart.size * heart.appendage_left_mm
    curve = _shortened(sh.spline(path, 24), length)
    radii = heart.size * np.interp(
        np.linspace(0, 1, len(curve)), [0, 0.35, 0.5, 0.8, 1], [12, 9.5, 9, 7.4, 4.4]
    )
    appendage = sh.union(cloud, sh.tube(curve, radii, minor=APEX, aspect=0.8))
    # Only the appendage passes the plane of the valve; it lies on the ventricle, not in it.
    return sh.smooth_union(field, sh.smooth_difference(appendage, epicardium - 1.5, 2.0), 5.0)


def _right_atrium(heart: Heart, cloud: Cloud) -> Array:
    k, centre = 0.985 * heart.size * heart.ra, heart.ra_centre
    tilt = sh.rotation(RA_TILT_DEG)
    f = k * np.array(RA_SCALE) * [heart.ra_flat, 1, heart.ra_tall]
    parts = [
        sh.ellipsoid(centre, f * np.array([24, 24, 29]), tilt),
        sh.ellipsoid(centre + (f * np.array([-2, -4, 9])) @ tilt, f * np.array([19, 19, 22]), tilt),
        sh.ellipsoid(centre + (f * np.array([2, 2, -10])) @ tilt, f * np.array([21, 21, 20]), tilt),
        # Towards the crux, where the atrium meets the top of the ventricular septum.
        sh.ellipsoid(centre + (f * np.array([-12, 2, -6])) @ tilt, f * np.array([15, 16, 17]), tilt),
        *sh.tube(
            np.stack([centre, heart.tricuspid + 9 * heart.tricuspid_axis]),
            [18.0 * k * min(RA_SCALE), heart.tricuspid_mm / 2],
        ),
    ]
    field = sh.union(cloud, parts, 8.0)
    field = np.maximum(field, sh.half_space(cloud.points, heart.tricuspid, heart.tricuspid_axis))
    # The right appendage is a broad flap that reaches forward and left around the aortic root.
    path = np.stack(
        [
            centre + k * np.array([-2, 12, 12]),
            centre + k * np.array([-8, 24, 24]),
            centre + k * np.array([-18, 30, 28]),
            centre + k * np.array([-28, 34, 28]),
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
