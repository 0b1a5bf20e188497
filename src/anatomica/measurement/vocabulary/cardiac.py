"""Quantities of the heart: chambers, wall, annuli and great vessels."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import ndimage

from anatomica.measurement.vocabulary.annulus import annulus, annulus_plan
from anatomica.measurement.vocabulary.aortic import aorta, root
from anatomica.measurement.vocabulary.plan import Missing, Plan, combined, largest, mean, number
from anatomica.measurement.vocabulary.shapes import contact, patches, volume
from anatomica.measurement.vocabulary.subject import Subject, landmark
from anatomica.measurement.vocabulary.tubes import Tube, tube
from anatomica.measurement.vocabulary.ventricle import long_axis_plan, thickness
from anatomica.spec.vocabulary_tables import SEGMENTS

MUSCLE_G_PER_ML = 1.05
TRUNK_MM = 20.0
"""The pulmonary trunk's diameter is taken so far from its valve."""
ANNULI = {"av": ("LV", "Ao"), "mv": ("LV", "LA")}
VESSELS = ("Ao", "PA")
FILLED = 1 / 3
"""The largest sphere in a vessel's blood has at least this share of its ventricle's radius: on ten phantoms
0.45 to 0.74, on nine real hearts whose vessels' walls are labelled 0.15 to 0.25."""


def _whole(s: Subject, tissue: str, per_mm3: float = 1e-3) -> Plan:
    s.whole(tissue)
    return volume(s, tissue, per_mm3=per_mm3)


def _sphericity(s: Subject) -> Plan:
    """The cavity's volume over that of the sphere on its long axis."""
    both = [_whole(s, "LV", 1.0), long_axis_plan(s)]
    return combined(both, lambda x: x[0] / (math.pi / 6 * x[1] ** 3).clamp_min(1e-9))


def _walls(s: Subject, of: Callable[..., Plan]) -> Plan:
    found = []
    for segment in SEGMENTS:
        try:
            found.append(thickness(s, segment))
        except Missing:
            if segment == SEGMENTS[-1] and not found:
                raise
    if len(found) < len(SEGMENTS) // 2:
        raise Missing("the wall is closed in fewer than half of the segments")
    return of(found)


@landmark
def _inscribed_mm(s: Subject, tissue: str) -> float:
    """Radius of the largest sphere within a tissue."""
    mask = np.pad(s.mask(tissue)[s.box(tissue)], 1)
    return float(np.asarray(ndimage.distance_transform_edt(mask)).max()) * s.voxel_mm


def _filled(s: Subject, vessel: str, ventricle: str) -> None:
    """Refuse a vessel of which only the wall is labelled: it has neither a section nor an annulus."""
    s.need(ventricle, vessel)
    if _inscribed_mm(s, vessel) < FILLED * _inscribed_mm(s, ventricle):
        name = s.cube.table[vessel].full_name
        raise Missing(f"the {name} is nowhere as thick as a filled vessel (is only its wall labelled?)")


def _annulus(s: Subject, first: str, second: str, what: str) -> Plan:
    if second in VESSELS:
        _filled(s, second, first)
    return annulus_plan(s, first, second, what)


def _aorta_at(s: Subject, level: str) -> Plan:
    _filled(s, "Ao", "LV")
    line = aorta(s)
    sinus, stj = root(s)
    if level == "ascending":
        top = float(line.along_mm[int(line.points_mm[:, 2].argmax())])
        if top > line.length_mm - line.radius(top) or top <= stj:
            raise Missing("the aorta ends before its arch")
        return line.section(s, (stj + top) / 2).plan("diameter_mm")
    return line.section(s, sinus if level == "sinus" else stj).plan("diameter_mm")


@landmark
def _trunk(s: Subject) -> Tube:
    """The pulmonary artery from its valve on."""
    valve = annulus(s, "RV", "PA").centre_mm
    return tube(s, ("PA",), np.zeros(3), (valve, None))


def _pulmonary(s: Subject) -> Plan:
    _filled(s, "PA", "RV")
    line = _trunk(s)
    if line.length_mm < TRUNK_MM + 5.0:
        raise Missing("the pulmonary artery ends before its trunk does")
    return line.section(s, TRUNK_MM).plan("diameter_mm")


def _defects(s: Subject) -> Plan:
    """Openings of the ventricular septum: patches in which the ventricles' blood meets."""
    s.need("LV", "Myo", "RV")
    found = contact(s, "LV", "RV")
    return number(0.0 if found is None else float(len(patches(found, s.voxel_mm))))


PLANS = {
    **{f"{x.lower()}.volume_ml": partial(_whole, tissue=x) for x in ("LV", "RV", "LA", "RA")},
    "lv.mass_g": partial(_whole, tissue="Myo", per_mm3=MUSCLE_G_PER_ML / 1000),
    **{f"lv.wall_thickness_mm.s{k}": partial(thickness, segment=k) for k in SEGMENTS},
    "lv.wall_thickness_mm.mean": partial(_walls, of=mean),
    "lv.wall_thickness_mm.max": partial(_walls, of=largest),
    "lv.long_axis_mm": long_axis_plan,
    "lv.sphericity": _sphericity,
    **{
        f"{valve}.annulus.{what}": partial(_annulus, first=a, second=b, what=what)
        for valve, (a, b) in ANNULI.items()
        for what in ("area_mm2", "perimeter_mm", "diameter_mm", "eccentricity")
    },
    **{f"ao.{level}.diameter_mm": partial(_aorta_at, level=level) for level in ("sinus", "stj", "ascending")},
    "pa.diameter_mm": _pulmonary,
    "septum.defects": _defects,
}
