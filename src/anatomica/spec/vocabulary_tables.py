"""The named quantities: key, unit, definition, source and tolerance, one table per anatomy."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

VERTEBRAE = tuple(
    f"{part}{i}" for part, count in (("C", 7), ("T", 12), ("L", 5)) for i in range(1, count + 1)
)
DISCS = tuple(pairwise(VERTEBRAE[1:]))
CURVES = {"kyphosis_deg": ("T", 3), "lordosis_deg": ("L", 3)}
"""Angles of a region of the column: the region's letter, and how many of its bodies must be shown."""
SEGMENTS = tuple(range(1, 18))
SEGMENT_NAMES = (
    *(
        f"basal {x}"
        for x in ("anterior", "anteroseptal", "inferoseptal", "inferior", "inferolateral", "anterolateral")
    ),
    *(
        f"mid {x}"
        for x in ("anterior", "anteroseptal", "inferoseptal", "inferior", "inferolateral", "anterolateral")
    ),
    *(f"apical {x}" for x in ("anterior", "septal", "inferior", "lateral")),
    "apex",
)
BRANCHES = {
    "BCT": "brachiocephalic trunk",
    "LCCA": "left common carotid artery",
    "LSCA": "left subclavian artery",
    "RCCA": "right common carotid artery",
    "RSCA": "right subclavian artery",
}


@dataclass(frozen=True)
class Entry:
    """One named quantity. `tolerance` is when an ask for it counts as met, in `tolerance_unit` (`%` of what
    was asked, or the quantity's own unit). A `count` has no soft form. `parts` are the arguments of a key
    with brackets."""

    key: str
    anatomy: str
    unit: str
    definition: str
    source: str
    tolerance: float
    tolerance_unit: str
    count: bool = False
    parts: tuple[str, ...] = ()


KAWEL = "Kawel-Boehm 2020, J Cardiovasc Magn Reson 22:87"
AHA = "Cerqueira 2002, Circulation 105:539 (17 segments)"
SCCT = "Blanke 2019, J Cardiovasc Comput Tomogr 13:1 (SCCT)"
TRUONG = "Truong 2012, Circ Cardiovasc Imaging 5:147"
HIRATZKA = "Hiratzka 2010, Circulation 121:e266 (levels of the thoracic aorta)"
ISHIMARU = "Ishimaru 2004, J Endovasc Ther 11:II-62 (zones)"
MYLA = "Madhwal 2008, J Invasive Cardiol 20:538 (arch types)"
BELVROY = "Belvroy 2019, PLoS One 14:e0215549 (length over chord)"
GENANT = "Genant 1993, J Bone Miner Res 8:1137 (heights of bodies)"
COBB = "Cobb 1948, Instr Course Lect 5:261"
MINTZ = "Mintz 2001, J Am Coll Cardiol 37:1478 (ACC consensus on IVUS)"
FUJINO = "Fujino 2018, EuroIntervention 13:e2182 (calcium score)"


_PER_UNIT = {"mL": (2.0, "%"), "g": (2.0, "%"), "mm2": (4.0, "%"), "mm3": (4.0, "%")}


def _entry(
    anatomy: str,
    key: str,
    unit: str,
    definition: str,
    source: str,
    tolerance: tuple[float, str] | None = None,
) -> Entry:
    most, of = tolerance or _PER_UNIT.get(unit) or (_FINE[anatomy] if unit == "mm" else (2.0, unit))
    return Entry(key, anatomy, unit, definition, source, most, of)


_FINE = {"cardiac": (1.0, "mm"), "aortic": (1.0, "mm"), "spinal": (1.0, "mm"), "coronary": (0.1, "mm")}
"""Tolerance of lengths: half a voxel of the paper's grid; of coronary arteries a whole one."""


def _count(anatomy: str, key: str, unit: str, definition: str, source: str) -> Entry:
    return Entry(key, anatomy, unit, definition, source, 0.0, unit, count=True)


def _cardiac() -> list[Entry]:
    def e(*args, **more) -> Entry:
        return _entry("cardiac", *args, **more)

    names = {"LV": "left ventricle", "RV": "right ventricle", "LA": "left atrium", "RA": "right atrium"}
    found = [
        e(f"{k.lower()}.volume_ml", "mL", f"volume of the {v}'s blood pool", KAWEL) for k, v in names.items()
    ]
    found.append(e("lv.mass_g", "g", "myocardial volume times 1.05 g/mL", KAWEL))
    found += [
        e(
            f"lv.wall_thickness_mm.s{k}",
            "mm",
            f"mean thickness across the wall of segment {k}, {SEGMENT_NAMES[k - 1]}",
            f"{AHA}; {KAWEL}",
        )
        for k in SEGMENTS
    ]
    found += [
        e("lv.wall_thickness_mm.mean", "mm", "mean of the segments' wall thicknesses", KAWEL),
        e("lv.wall_thickness_mm.max", "mm", "largest of the segments' wall thicknesses", KAWEL),
        e("lv.long_axis_mm", "mm", "from the middle of the mitral annulus to the cavity's apex", KAWEL),
        e(
            "lv.sphericity",
            "1",
            "cavity's volume over that of the sphere on its long axis",
            "ours",
            tolerance=(0.02, "1"),
        ),
    ]
    for valve, name, between in (("av", "aortic", "LV and aorta"), ("mv", "mitral", "LV and LA")):
        found += [
            e(
                f"{valve}.annulus.area_mm2",
                "mm2",
                f"area of the {name} annulus: where {between} meet, projected on its mean plane",
                SCCT,
                tolerance=(8.0, "%"),  # what a millimetre of its diameter makes
            ),
            e(
                f"{valve}.annulus.perimeter_mm",
                "mm",
                f"perimeter of the ellipse with the {name} annulus's area and elongation",
                SCCT,
                tolerance=(3.0, "mm"),
            ),
            e(f"{valve}.annulus.diameter_mm", "mm", f"of the circle with the {name} annulus's area", SCCT),
            e(
                f"{valve}.annulus.eccentricity",
                "1",
                f"1 - least / largest diameter of the {name} annulus",
                SCCT,
                tolerance=(0.05, "1"),
            ),
        ]
    levels = {
        "sinus": "the widest section of the sinuses, 4 to 24 mm from the aorta's first section",
        "stj": "the narrowest section within 25 mm beyond the sinuses",
        "ascending": "the section halfway between sinotubular junction and top of the arch",
    }
    found += [
        e(f"ao.{k}.diameter_mm", "mm", f"equivalent diameter of {v}", f"{SCCT}; {HIRATZKA}")
        for k, v in levels.items()
    ]
    found.append(
        e("pa.diameter_mm", "mm", "equivalent diameter of the pulmonary trunk 20 mm above its valve", TRUONG)
    )
    defects = "openings of the ventricular septum: patches in which LV and RV touch"
    found.append(_count("cardiac", "septum.defects", "", defects, "ours"))
    return found


AORTIC_LEVELS = {
    "stj": "the sinotubular junction: the narrowest section within 25 mm beyond the sinuses",
    "mid_ascending": "halfway between sinotubular junction and brachiocephalic trunk",
    "distal_ascending": "just before the brachiocephalic trunk",
    "mid_arch": "halfway between left carotid (or trunk, if bovine) and left subclavian artery",
    "proximal_descending": "20 mm beyond the left subclavian artery",
    "mid_descending": "halfway between the proximal descending level and the aorta's end",
}
AORTIC_SECTIONS = {
    "ascending": "from sinotubular junction to brachiocephalic trunk",
    "arch": "from brachiocephalic trunk to left subclavian artery",
    "descending": "from left subclavian artery to the aorta's end in the scan",
}


def _aortic() -> list[Entry]:
    def e(*args, **more) -> Entry:
        return _entry("aortic", *args, **more)

    kinds = {
        "diameter_mm": ("mm", "diameter of the circle with the section's area"),
        "min_diameter_mm": ("mm", "least diameter of the ellipse with the section's area and moments"),
        "max_diameter_mm": ("mm", "largest diameter of that ellipse"),
        "area_mm2": ("mm2", "area of the section across the centreline"),
    }
    found = [
        e(f"ao.{level}.{kind}", unit, f"{what}, {where}", HIRATZKA)
        for level, where in AORTIC_LEVELS.items()
        for kind, (unit, what) in kinds.items()
    ]
    found += [
        e(f"ao.{k}.length_mm", "mm", f"length of the centreline {v}", HIRATZKA, tolerance=(3.0, "mm"))
        for k, v in AORTIC_SECTIONS.items()
    ]
    tortuosity = "length of the descending aorta's centreline over the straight line between its ends"
    found.append(e("ao.tortuosity", "1", tortuosity, BELVROY, tolerance=(0.02, "1")))
    arch = "1 to 3: the trunk leaves less than one, one to two, or more carotid diameters below the top"
    found.append(_count("aortic", "ao.arch_type", "", arch, MYLA))
    found.append(
        _count("aortic", "bovine", "", "1 if the left carotid leaves the brachiocephalic trunk", "ours")
    )
    for k, v in BRANCHES.items():
        takeoff = f"angle of the {v}, 5 to 15 mm from its origin, with its parent's flow there"
        found.append(e(f"{k}.takeoff_deg", "deg", takeoff, MYLA, tolerance=(4.0, "deg")))
    found += [
        e(f"{k}.diameter_mm", "mm", f"equivalent diameter of the {v} 10 mm from its origin", HIRATZKA)
        for k, v in BRANCHES.items()
    ]
    found += [
        e(
            f"{k}.distance_mm",
            "mm",
            f"along the {along} to the {BRANCHES[k]}",
            HIRATZKA,
            # From the sinotubular junction it is the ascending aorta's length.
            tolerance=(3.0 if k == "BCT" else 2.0, "mm"),
        )
        for k, along in {
            "BCT": "aorta from the sinotubular junction",
            "LCCA": "aorta from the brachiocephalic trunk, or along a trunk that it leaves from its ostium",
            "LSCA": "aorta from the branch before",
            "RCCA": "brachiocephalic trunk from its ostium",
            "RSCA": "brachiocephalic trunk from its ostium",
        }.items()
    ]
    zone = (
        "zone 2: from behind the left carotid (or the trunk, if bovine) to behind the left subclavian artery"
    )
    found.append(e("landing_zone.length_mm", "mm", zone, ISHIMARU, tolerance=(2.0, "mm")))
    return found


LEADS = {
    "bovine": {
        False: ("touch[Ao,LCCA].area_mm2 >= 30",),
        True: ("touch[BCT,LCCA].area_mm2 >= 30", "touch[Ao,LCCA].area_mm2 <= 10"),
    }
}
"""Counts have no derivative. Where they follow from contacts, asks of these lead a sample to none of it or
to at least one. 30 mm2 are half of a carotid's section; one that leaves the trunk may graze the aorta."""


def _spinal() -> list[Entry]:
    def e(*args, **more) -> Entry:
        return _entry("spinal", *args, **more)

    found = [e(f"{v}.volume_ml", "mL", f"volume of the whole vertebra {v}", "ours") for v in VERTEBRAE]
    where = {"anterior": "in front", "middle": "in the middle", "posterior": "behind"}
    found += [
        e(f"{v}.body.height_mm.{k}", "mm", f"height of {v}'s body between its end plates, {w}", GENANT)
        for v in VERTEBRAE[2:]
        for k, w in where.items()
    ]
    found += [
        e(
            f"{v}.wedge_ratio",
            "1",
            f"anterior over posterior height of {v}'s body",
            GENANT,
            tolerance=(0.05, "1"),
        )
        for v in VERTEBRAE[2:]
    ]
    found += [
        e(
            f"disc.{a}-{b}.height_mm",
            "mm",
            f"between the middles of {a}'s lower and {b}'s upper end plate",
            GENANT,
        )
        for a, b in DISCS
    ]
    curve = (
        "sagittal angle between the lines through the first two and the last two {0} bodies that are shown"
    )
    found += [
        e("kyphosis_deg", "deg", curve.format("thoracic") + "; positive: bent forward", COBB),
        e("lordosis_deg", "deg", curve.format("lumbar") + "; positive: bent backward", COBB),
    ]
    for v in VERTEBRAE[1:]:
        area = f"area of the canal inside {v}'s ring, in the plane of the body's middle"
        found.append(e(f"canal.{v}.area_mm2", "mm2", area, "ours", tolerance=(5.0, "%")))
        depth = f"diameter of the canal of {v} from back to front"
        found.append(e(f"canal.{v}.diameter_mm", "mm", depth, "ours"))
    return found


def _coronary() -> list[Entry]:
    def e(*args, **more) -> Entry:
        return _entry("coronary", *args, **more)

    return [
        e("lumen.min_area_mm2", "mm2", "least area of the lumen in a frame, over three frames (MLA)", MINTZ),
        _count("coronary", "lumen.min_area_at_mm", "mm", "where that is, from the cube's lower end", MINTZ),
        e("lumen.mean_diameter_mm", "mm", "mean over the frames of the circle with the lumen's area", MINTZ),
        e("vessel.area_mm2", "mm2", "mean over the frames of the area within the outer border (EEM)", MINTZ),
        e(
            "plaque_burden_pct",
            "%",
            "1 - lumen / vessel area at the narrowest frame",
            MINTZ,
            tolerance=(2.0, "%abs"),
        ),
        e(
            "area_stenosis_pct",
            "%",
            "1 - least lumen area / the frames' 90th percentile",
            MINTZ,
            tolerance=(3.0, "%abs"),
        ),
        e("wall.thickness_mm", "mm", "mean over the frames of the vessel's minus the lumen's radius", MINTZ),
        _count(
            "coronary", "calcium.count", "", "deposits: calcium voxels that hang together by faces", FUJINO
        ),
        e("calcium.volume_mm3", "mm3", "volume of all calcium", FUJINO),
        e(
            "calcium.max_angle_deg",
            "deg",
            "largest arc of calcium in a frame, seen from the lumen's centre",
            FUJINO,
            tolerance=(8.0, "deg"),
        ),
        e(
            "calcium.max_thickness_mm",
            "mm",
            "largest thickness of calcium on a ray from the lumen's centre",
            FUJINO,
        ),
        e(
            "calcium.length_mm",
            "mm",
            "length along the vessel of the longest deposit",
            FUJINO,
            tolerance=(0.3, "mm"),
        ),
        _count(
            "coronary",
            "calcium.score",
            "",
            "0 to 4: 2 points for an arc over 180 degrees, 1 for over 0.5 mm thick, 1 for over 5 mm long",
            FUJINO,
        ),
        e("calcium.to_lumen_mm", "mm", "least thickness of the tissue between lumen and calcium", FUJINO),
    ]


TABLES = {"cardiac": _cardiac, "aortic": _aortic, "spinal": _spinal, "coronary": _coronary}
