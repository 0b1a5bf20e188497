"""Quantities of the aorta and the branches of its arch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import ndimage

from anatomica.measurement.vocabulary.lengths import Anchor, angle_between, length_between, tortuosity
from anatomica.measurement.vocabulary.plan import Missing, Plan, number
from anatomica.measurement.vocabulary.shapes import Contact, contact
from anatomica.measurement.vocabulary.subject import Subject, landmark
from anatomica.measurement.vocabulary.tubes import Tube, tube

Array = np.ndarray
BRANCHES = ("BCT", "LCCA", "LSCA", "RCCA", "RSCA")
OF_THE_ARCH = ("BCT", "LCCA", "LSCA")
LEVELS = ("stj", "mid_ascending", "distal_ascending", "mid_arch", "proximal_descending", "mid_descending")
SECTIONS = ("ascending", "arch", "descending")
ANTERIOR = np.array([0.0, 1.0, 0.0])
ROOT_MM = (4.0, 24.0)
"""Distances from the aorta's first section between which the sinuses are widest."""
STJ_MM = 25.0
"""The sinotubular junction is the narrowest section within this distance beyond the widest of the sinuses."""
ISTHMUS_MM = 20.0
"""From the left subclavian artery's origin to the proximal descending aorta."""
OSTIUM_MM = 10.0
"""A branch's diameter is taken so far from its ostium."""
WAY_MM = (5.0, 15.0)
"""A branch's direction is looked at between these distances from its ostium."""
GAP_MM = 5.0
"""A branch that ends so near to its parent leaves it all the same: labels are often a voxel apart."""
GRAZED = 0.3
"""A carotid that leaves the aorta may lean against the trunk, with up to three times the area of its ostium
(of 100 phantoms); one that leaves the trunk hardly touches the aorta."""
TRUNK_MM = 4.0
"""So near to its own ostium and to those of its branches the trunk's sections are not whole."""
ROW = 6
"""Sections through which a direction is fitted: two of them would jitter with the voxels."""
ARCH_MM = 12.0
"""The arch's outer wall is highest where its centreline is no lower than this below its own top."""
ANNULUS_TO_STJ_MM = 25.0
"""Where the sinotubular junction is assumed if nothing narrows above the sinuses (an aneurysm)."""


@landmark
def aorta(s: Subject) -> Tube:
    """The aorta from its root on."""
    return tube(s, ("Ao",), ANTERIOR)


@landmark
def root(s: Subject) -> tuple[float, float]:
    """Distances along the aorta of the widest section of the sinuses and of the sinotubular junction."""
    ao = aorta(s)
    rise = ao.points_mm[:, 2].max() - ao.points_mm[[0, -1], 2]
    if rise[0] < 2 * ao.radius(0.0):
        raise Missing("the label map does not show the ascending aorta")
    step = min(s.voxel_mm, 1.0) * s.coarse
    steps = np.arange(ROOT_MM[0], ROOT_MM[1] + STJ_MM, step)
    steps = steps[steps < ao.length_mm]
    areas = ndimage.gaussian_filter1d(ao.areas(s, steps), 1.3 / step, mode="nearest")
    near = steps <= ROOT_MM[1]
    if len(areas) < 4 or areas[near].max() <= 0:
        raise Missing("the aorta has no root in the label map")
    peaks = np.flatnonzero((areas[1:-1] >= areas[:-2]) & (areas[1:-1] > areas[2:]) & near[1:-1]) + 1
    if not len(peaks):
        return float(steps[near][int(areas[near].argmax())]), min(ANNULUS_TO_STJ_MM, ao.length_mm / 2)
    widest = int(peaks[areas[peaks].argmax()])
    after = slice(widest, int(np.searchsorted(steps, steps[widest] + STJ_MM)))
    return float(steps[widest]), float(steps[widest + int(areas[after].argmin())])


@dataclass(frozen=True, eq=False)
class Branch:
    """A branch: its centreline from the ostium on, and the place of the parent's that is nearest to it."""

    line: Tube
    parent: Tube
    ostium_mm: Array
    origin_mm: float

    def along(self, mm: float) -> float:
        """A distance from the ostium; a short branch is followed to half a radius before its end."""
        return min(mm, self.line.length_mm - self.line.radius(self.line.length_mm) / 2)


def joint(s: Subject, parent: str, name: str) -> Contact | None:
    """Where a branch leaves its parent: where they touch, or face each other across a gap."""
    found = contact(s, parent, name)
    return contact(s, parent, name, max(GAP_MM, 1.5 * s.voxel_mm)) if found is None else found


@landmark
def bovine(s: Subject) -> bool:
    """Whether the left common carotid artery leaves the brachiocephalic trunk, not the aorta."""
    s.need("LCCA", "Ao")
    by_trunk, by_aorta = contact(s, "BCT", "LCCA"), contact(s, "Ao", "LCCA")
    if by_trunk is None and by_aorta is None:
        by_trunk, by_aorta = joint(s, "BCT", "LCCA"), joint(s, "Ao", "LCCA")
    if by_trunk is None and by_aorta is None:
        raise Missing("the left common carotid artery reaches neither the aorta nor the trunk")
    if by_aorta is None or by_trunk is None:
        return by_aorta is None
    return by_aorta.area_mm2 < GRAZED * by_trunk.area_mm2


def parent_of(s: Subject, name: str) -> str:
    if name in ("RCCA", "RSCA"):
        return "BCT"
    return "BCT" if name == "LCCA" and bovine(s) else "Ao"


@landmark
def branch(s: Subject, name: str) -> Branch:
    """A branch from where it touches its parent."""
    s.need(name)
    of = parent_of(s, name)
    s.need(of)
    met = joint(s, of, name)
    if met is None:
        raise Missing(f"{name} does not reach {of}")
    parent = aorta(s) if of == "Ao" else branch(s, of).line
    ostium = met.centre_mm
    line = tube(s, (name,), ANTERIOR, (ostium, None))
    return Branch(line, parent, ostium, parent.nearest(ostium))


@landmark
def origins(s: Subject) -> dict[str, float]:
    """Distances along the aorta at which the branches of the arch leave it."""
    return {name: branch(s, name).origin_mm for name in OF_THE_ARCH if parent_of(s, name) == "Ao"}


@landmark
def levels(s: Subject) -> dict[str, float]:
    """Distances along the aorta of the levels at which its diameters are taken."""
    found = origins(s)
    first, last, stj, end = found["BCT"], found["LSCA"], root(s)[1], aorta(s).length_mm
    if not stj < first < last < end:
        raise Missing("the branches do not leave the aorta in their order")
    met = joint(s, "Ao", "BCT")
    half = 0.0 if met is None else np.sqrt(met.area_mm2 / np.pi)
    return {
        "stj": stj,
        "mid_ascending": (stj + first) / 2,
        "distal_ascending": first - half,
        "mid_arch": (found.get("LCCA", first) + last) / 2,
        "proximal_descending": last + ISTHMUS_MM,
        "mid_descending": (last + ISTHMUS_MM + end) / 2,
    }


def _at_level(s: Subject, level: str, what: str) -> Plan:
    if level == "stj":
        s.need("BCT")  # without its branches a piece of aorta may be any piece
    along = root(s)[1] if level == "stj" else levels(s)[level]
    return aorta(s).section(s, along).plan(what)


def _anchors(s: Subject, first: str | None, last: str | None) -> list[Anchor]:
    """The branches that mark the ends of a length along their parent."""
    found = []
    for name, at_end in ((first, False), (last, True)):
        if name is not None:
            b = branch(s, name)
            cut = b.line.section(s, b.along(OSTIUM_MM / 2))
            found.append(Anchor(cut, b.parent.tangent(b.origin_mm), at_end))
    return found


SPAN_ENDS: dict[str, tuple[str | None, str | None]] = {
    "ascending": (None, "BCT"),
    "arch": ("BCT", "LSCA"),
    "descending": ("LSCA", None),
}
"""The branches at the ends of each section."""


def _section_length(s: Subject, name: str) -> Plan:
    return length_between(s, aorta(s), *_span(s, name), _anchors(s, *SPAN_ENDS[name]))


def _span(s: Subject, name: str) -> tuple[float, float]:
    found = origins(s)
    first, last = found["BCT"], found["LSCA"]
    spans = {
        "ascending": (root(s)[1], first),
        "arch": (first, last),
        "descending": (last, aorta(s).length_mm),
    }
    low, high = spans[name]
    if high <= low:
        raise Missing("the branches do not leave the aorta in their order")
    return low, high


def _takeoff(s: Subject, name: str) -> Plan:
    """Angle of a branch's way with its parent's flow: of the aorta, where the branch leaves it; of the trunk,
    which ends with its branches, before them."""
    b = branch(s, name)
    if parent_of(s, name) == "Ao":
        half = b.parent.radius(b.origin_mm) / 2
        span = np.clip([b.origin_mm - half, b.origin_mm + half], *b.parent.inner)
    else:
        span = trunk_flow(b.origin_mm)
    rows = [
        [tube.section(s, float(x)) for x in np.linspace(low, high, ROW)]
        for tube, (low, high) in ((b.parent, span), (b.line, [b.along(x) for x in WAY_MM]))
    ]
    return angle_between(rows[0], rows[1])


def trunk_flow(origin_mm: float) -> tuple[float, float]:
    """Between which distances from its ostium the trunk's flow is looked at, for a branch that leaves it."""
    low = max(origin_mm - WAY_MM[1], TRUNK_MM)
    return low, max(origin_mm - TRUNK_MM, low + TRUNK_MM)


def _distance(s: Subject, name: str) -> Plan:
    """Along the parent: the aorta from the branch before or the sinotubular junction, the trunk from its
    ostium."""
    if parent_of(s, name) != "Ao":
        b = branch(s, name)
        return length_between(s, b.parent, 0.0, b.origin_mm, _anchors(s, None, name))
    found = origins(s)
    before = [x for x in OF_THE_ARCH[: OF_THE_ARCH.index(name)] if x in found]
    low = found[before[-1]] if before else root(s)[1]
    if found[name] <= low:
        raise Missing("the branches do not leave the aorta in their order")
    anchors = _anchors(s, before[-1] if before else None, name)
    return length_between(s, aorta(s), low, found[name], anchors)


def _landing_zone(s: Subject) -> Plan:
    """Zone 2: from behind the last branch before the left subclavian artery to behind that artery."""
    found = origins(s)
    before = "LCCA" if "LCCA" in found else "BCT"
    edges = []
    for name in (before, "LSCA"):
        met = joint(s, "Ao", name)
        half = 0.0 if met is None else np.sqrt(met.area_mm2 / np.pi)
        edges.append(found[name] + half)
    if edges[1] <= edges[0]:
        raise Missing("the branches do not leave the aorta in their order")
    return length_between(s, aorta(s), edges[0], edges[1], _anchors(s, before, "LSCA"))


def _arch_type(s: Subject) -> Plan:
    """Myla's type: how many carotid diameters the trunk leaves below the arch's top, on the outer wall."""
    ao, first = aorta(s), origins(s)["BCT"]
    high = ao.along_mm[ao.points_mm[:, 2] > ao.points_mm[:, 2].max() - ARCH_MM]
    places = np.append(np.arange(high[0], high[-1], 2.0), first)
    radii = np.sqrt(ao.areas(s, places) / np.pi)
    ways = np.array([ao.tangent(float(x)) for x in places])
    outer = np.array([ao.at(float(x))[2] for x in places]) + radii * np.sqrt(1 - ways[:, 2] ** 2)
    carotid = s.hard(_branch_diameter(s, "LCCA"))
    return number(1 + min(int((outer.max() - outer[-1]) / max(carotid, 1e-6)), 2))


def _branch_diameter(s: Subject, name: str) -> Plan:
    b = branch(s, name)
    return b.line.section(s, b.along(OSTIUM_MM)).plan("diameter_mm")


PLANS = {
    **{
        f"ao.{level}.{what}": partial(_at_level, level=level, what=what)
        for level in LEVELS
        for what in ("diameter_mm", "min_diameter_mm", "max_diameter_mm", "area_mm2")
    },
    **{f"ao.{name}.length_mm": partial(_section_length, name=name) for name in SECTIONS},
    "ao.tortuosity": lambda s: tortuosity(s, aorta(s), *_span(s, "descending")),
    "ao.arch_type": _arch_type,
    "bovine": lambda s: number(float(bovine(s))),
    **{f"{name}.takeoff_deg": partial(_takeoff, name=name) for name in BRANCHES},
    **{f"{name}.diameter_mm": partial(_branch_diameter, name=name) for name in BRANCHES},
    **{f"{name}.distance_mm": partial(_distance, name=name) for name in BRANCHES},
    "landing_zone.length_mm": _landing_zone,
}
