"""From a level's sizes to its vertebra: where body, arch, processes and joints lie, region by region."""

from __future__ import annotations

import math

import numpy as np

from anatomica.data.phantoms.levels import Level
from anatomica.data.phantoms.vertebra import Bar, Body, Facet, Lamina, Part, Point, Vertebra

Array = np.ndarray
Parts = list[Part]


def canal_y_mm(level: Level) -> float:
    """y of the canal's centre behind the body's centre."""
    # It reaches a little into the body, whose hind wall it hollows.
    return -level.depth_mm / 2 + 0.9 - level.canal_depth_mm / 2


def pedicle_mm(level: Level) -> Point:
    """Where annotators mark the right pedicle: between body and articular pillar, further back going down."""
    if level.region in ("atlas", "axis", "cervical"):
        return level.canal_width_mm / 2 + 2.5, -level.depth_mm / 2 - 1.0, 0.0
    thoracic = level.region == "thoracic"
    bar = _pedicle_thoracic(level) if thoracic else _pedicle_lumbar(level)
    # Shares of the way from the body such that distances from the body's centre are those of the keypoints.
    share = 0.40 + 0.035 * int(level.name[1:]) if thoracic else 0.6
    x, y, z = (np.array(bar.start) + share * (np.array(bar.end) - np.array(bar.start))).tolist()
    return x, y, z


def joint_below(upper: Level, lower: Level) -> tuple[Array, Array, float, float]:
    """The right facet joint of two levels, from the disc's centre: centre, normal, radius, half thickness.

    Cervical facets look up and back at 45 degrees, thoracic ones lie almost in the coronal plane, lumbar ones
    almost in the sagittal plane with the lower bone outside; C1 rests on C2.
    """
    wide = (upper.canal_width_mm + lower.canal_width_mm) / 4
    deep = (upper.canal_depth_mm + lower.canal_depth_mm) / 2
    y = (canal_y_mm(upper) + canal_y_mm(lower)) / 2
    if upper.region == "atlas":
        return np.array([16.5, -2.5, 0.0]), _unit(0.2, 0.0, 1.0), 6.0, 4.2
    if upper.region in ("axis", "cervical"):
        steep = 0.85 if upper.name == "C7" else 0.70
        return np.array([wide + 6.3, y + 0.12 * deep, 0.0]), _unit(0.0, -steep, 0.70), 5.2, 3.6
    if upper.region == "thoracic" and upper.name != "T12":
        return np.array([wide + 4.6, y - 0.25 * deep, 0.0]), _unit(0.20, -0.95, 0.26), 5.2, 4.2
    return np.array([wide + 3.6, y - 0.52 * deep, 0.0]), _unit(-0.78, -0.62, 0.08), 6.4, 5.0


def vertebra(level: Level, wedge: float, above: list[Facet], below: list[Facet]) -> Vertebra:
    """The vertebra of a level with its joints (in its frame) above and below."""
    up, down = _reach(above, 0.55), _reach(below, 0.55)
    make = {
        "atlas": _atlas,
        "axis": _axis,
        "cervical": _cervical,
        "thoracic": _thoracic,
        "lumbar": _lumbar,
    }
    parts = make[level.region](level, up, down)
    canal = (level.canal_width_mm / 2, level.canal_depth_mm / 2, canal_y_mm(level))
    if level.region == "atlas":
        # The atlas has no body; its ring holds the dens of C2 as well as the cord.
        return Vertebra(tuple(parts), (10.3, 15.3, -8.8), (*above, *below))
    body = Body(level.width_mm, level.depth_mm, level.height_mm, wedge, 0.08)
    return Vertebra((*parts, body), canal, (*above, *below))


def _unit(x: float, y: float, z: float) -> Array:
    return np.array([x, y, z]) / np.linalg.norm([x, y, z])


def _reach(facets: list[Facet], share: float) -> Point | None:
    """Where a shaft must end to carry its half of the pad: the middle of that half, mean of both sides."""
    if not facets:
        return None
    ends = []
    for f in facets:
        point = np.array(f.centre_mm) - f.side * share * f.half_thick_mm * np.array(f.normal)
        ends.append([abs(point[0]), point[1], point[2]])
    x, y, z = np.mean(ends, axis=0).tolist()
    return x, y, z


def _thoracic(level: Level, up, down) -> Parts:
    h, cd, y_c = level.height_mm, level.canal_depth_mm, canal_y_mm(level)
    pedicle = _pedicle_thoracic(level)
    x_p, y_p, z_p = pedicle.end
    roof = y_c - cd / 2 - 2.9
    top = 0.14 * h
    low = top - (h + level.disc_mm - 7.5)
    parts: Parts = [
        pedicle,
        Bar((x_p, y_p, z_p), (x_p - 0.5, y_p - 2.5, -0.38 * h), 4.4, 4.2),
        Lamina((x_p - 0.5, y_p - 1.0), (0.0, roof), low, top, 6.2, 0.22),
    ]
    parts += _shafts(level, (x_p, y_p, z_p), (x_p - 1.2, y_p - 3.4, -0.36 * h), up, down, 4.0)
    # The transverse processes reach back more and more going down, and are mere stumps at T12.
    tip = level.span_mm / 2 - 4.2
    order = int(level.name[1:])
    back = 3.0 + 1.0 * min(order, 9)
    rise = 4.0 if order < 11 else 1.0
    if tip > x_p + 4:
        neck = (0.55 * x_p + 0.45 * tip, y_p - 1.0 - 0.5 * back, 0.5 * (z_p + rise))
        club = (tip, y_p - back, z_p + rise - 2.0)
        parts.append(Bar((x_p, y_p - 1.0, 0.02 * h), neck, 5.6, 4.0, (1.0, 0.9, 1.0)))
        parts.append(Bar(neck, club, 4.0, 4.9, (0.85, 0.8, 1.0)))
    parts += _sloping_spine(level, roof, -0.12 * h, 6.2, 4.0, 0.72)
    return parts


def _sloping_spine(level: Level, roof: float, z: float, root: float, tip: float, flat: float) -> Parts:
    """A long spinous process that bends down, in two pieces and a knob."""
    slope = math.radians(level.slope_deg)
    first, second = 0.80 * slope, 1.12 * slope
    length = level.spine_mm / 2
    knee = (0.0, roof + 1.0 - length * math.cos(first), z - length * math.sin(first))
    end = (0.0, knee[1] - length * math.cos(second), knee[2] - length * math.sin(second))
    middle = (root + tip) / 2
    knob = (0.0, end[1] + 1.2, end[2] + 0.8)
    return [
        Bar((0.0, roof + 1.0, z), knee, root, middle, (flat, 1.0, 1.0)),
        Bar(knee, end, middle, tip, (flat, 1.0, 1.0)),
        Bar(knob, end, 3.4, 3.4),
    ]


def _pedicle_thoracic(level: Level) -> Bar:
    x, y = level.canal_width_mm / 2 + 3.5, canal_y_mm(level) - 0.16 * level.canal_depth_mm
    return _pedicle(level, x, y, 0.18 * level.height_mm, 11.0)


def _pedicle_lumbar(level: Level) -> Bar:
    x = level.canal_width_mm / 2 + max(4.0, 0.48 * level.pedicle_mm)
    y = canal_y_mm(level) - 0.26 * level.canal_depth_mm
    return _pedicle(level, x, y, 0.20 * level.height_mm, 14.5)


def _pedicle(level: Level, x: float, y: float, z: float, tall_mm: float) -> Bar:
    """From the back of the body to the articular pillar, taller than wide."""
    root_x = max(level.canal_width_mm / 2 + level.pedicle_mm / 2 - 0.6, 0.30 * level.width_mm)
    start = (root_x, -level.depth_mm / 2 + 4.0, z)
    return Bar(start, (x, y, z), tall_mm / 2, tall_mm / 2, (level.pedicle_mm / tall_mm, 1.0, 1.0))


def _shafts(level: Level, high, low, up, down, radius: float) -> Parts:
    """The articular processes: from the pillar to the joints above and below."""
    parts: Parts = []
    if up is not None:
        parts.append(Bar(high, up, radius + 0.3, radius))
    if down is not None:
        parts.append(Bar(low, down, radius + 0.5, radius + 0.2))
    return parts


def _lumbar(level: Level, up, down) -> Parts:
    h, cd, y_c = level.height_mm, level.canal_depth_mm, canal_y_mm(level)
    pedicle = _pedicle_lumbar(level)
    x_p, y_p, z_p = pedicle.end
    roof = y_c - cd / 2 - 3.0
    parts: Parts = [
        pedicle,
        Bar((x_p, y_p, z_p), (x_p - 1.0, y_p - 3.0, -0.34 * h), 5.2, 4.8),
        Lamina((x_p - 1.0, y_p - 2.0), (0.0, roof), -0.66 * h, 0.20 * h, 6.4, 0.16),
    ]
    parts += _shafts(level, (x_p + 1.0, y_p, z_p), (x_p - 3.0, y_p - 5.0, -0.40 * h), up, down, 5.0)
    tip = level.span_mm / 2 - 3.4
    root = (x_p + 1.0, y_c + 0.5, z_p - 0.5)
    knee = (0.5 * (x_p + tip), y_c - 2.5, z_p - 1.0)
    parts.append(Bar(root, knee, 6.2, 4.6, (1.0, 0.66, 1.0)))
    parts.append(Bar(knee, (tip, y_c - 5.5, z_p + 1.5), 4.6, 3.9, (1.0, 0.70, 1.0)))
    # The spinous process is a hatchet: a tall plate with a thick hind edge.
    end, z_s = roof - level.spine_mm + 7.0, -0.34 * h
    drop = level.spine_mm * math.tan(math.radians(level.slope_deg))
    parts.append(Bar((0.0, roof, z_s), (0.0, end, z_s - drop), 8.2, 8.8, (0.40, 1.0, 1.0)))
    parts.append(Bar((0.0, end - 4.0, z_s - drop + 5.5), (0.0, end - 3.0, z_s - drop - 6.5), 3.6, 4.2))
    return parts


def _cervical(level: Level, up, down) -> Parts:
    h, cd, y_c = level.height_mm, level.canal_depth_mm, canal_y_mm(level)
    x_p, y_p = level.canal_width_mm / 2 + 6.0, y_c + 0.12 * cd
    roof = y_c - cd / 2 - 2.2
    parts: Parts = [
        Bar((level.width_mm / 2 - 1.5, -level.depth_mm / 2 + 4.5, 0.5), (x_p, y_p + 1.5, 0.5), 4.2, 4.4),
        Bar((x_p, y_p + 0.5, 0.25 * h), (x_p, y_p - 1.5, -0.25 * h), 5.0, 5.0),
        Lamina((x_p - 1.5, y_p - 2.0), (0.0, roof), -0.62 * h, 0.26 * h, 4.8, 0.25),
        # Uncinate ridges on the sides of the upper endplate.
        Bar(
            (level.width_mm / 2 - 2.2, -0.25 * level.depth_mm, h / 2 - 1.5),
            (level.width_mm / 2 - 2.0, 0.15 * level.depth_mm, h / 2 - 1.2),
            2.4,
            2.2,
        ),
        # Transverse process, gutter-shaped in life; its foramen is below the resolution.
        Bar(
            (x_p - 3.0, y_p + 5.0, 0.0),
            (level.span_mm / 2 - 3.2, y_p + 6.5, -2.0),
            4.4,
            3.2,
            (1.0, 1.0, 0.85),
        ),
    ]
    parts += _shafts(level, (x_p, y_p, 0.2 * h), (x_p, y_p - 1.5, -0.2 * h), up, down, 4.3)
    if level.name == "C7":
        return parts + _sloping_spine(level, roof, -0.10 * h, 4.8, 3.8, 0.7)
    slope, z = math.radians(level.slope_deg), -0.12 * h
    end = (2.6, roof - level.spine_mm * math.cos(slope), z - level.spine_mm * math.sin(slope))
    return [*parts, Bar((0.0, roof + 0.5, z), end, 4.2, 2.9)]


def _axis(level: Level, up, down) -> Parts:
    h, cd, y_c = level.height_mm, level.canal_depth_mm, canal_y_mm(level)
    x_p, y_p = level.canal_width_mm / 2 + 5.5, y_c + 0.15 * cd
    roof = y_c - cd / 2 - 2.4
    slope, z = math.radians(level.slope_deg), -0.15 * h
    end = (3.2, roof - level.spine_mm * math.cos(slope), z - level.spine_mm * math.sin(slope))
    parts: Parts = [
        # The dens: its tip 25 mm above the body's centre, 8 mm above that of C1.
        Bar((0.0, -1.2, h / 2 - 6.0), (0.0, -1.8, h / 2 + 1.0), 6.0, 4.8),
        Bar((0.0, -1.8, h / 2 + 1.0), (0.0, -2.2, h / 2 + 8.0), 4.8, 4.2),
        Bar((8.0, -4.0, 0.15 * h), (x_p, y_p, -0.1 * h), 4.6, 4.6),
        Bar((x_p, y_p, 0.0), (x_p, y_p - 1.5, -0.3 * h), 4.8, 4.8),
        Lamina((x_p - 1.5, y_p - 2.0), (0.0, roof), -0.45 * h, 0.04 * h, 5.4, 0.2),
        Bar((x_p - 2.0, y_p + 4.0, -1.0), (level.span_mm / 2 - 3.2, y_p + 4.0, -3.0), 4.2, 3.2),
        Bar((0.0, roof + 0.5, z), end, 5.4, 3.8),
    ]
    if up is not None:
        parts.append(Bar((10.0, -4.0, 0.2 * h), up, 5.4, 5.0))
    if down is not None:
        parts.append(Bar((x_p, y_p - 1.0, -0.25 * h), down, 4.8, 4.5))
    return parts


def _atlas(level: Level, up, down) -> Parts:
    s = level.canal_width_mm / 29.0
    tip = level.span_mm / 2 - 3.6
    parts: Parts = [
        Bar((0.0, 10.2, 0.0), (13.0 * s, 5.0, 0.0), 3.4, 3.6),
        Bar((16.5 * s, 2.0, 0.6), (17.0 * s, -6.0, 0.6), 6.2, 6.2, (1.0, 1.0, 0.85)),
        Bar((17.0 * s, -6.0, 1.0), (13.0 * s, -20.0, 0.6), 4.4, 3.5),
        Bar((13.0 * s, -20.0, 0.6), (0.0, -27.6, 0.0), 3.5, 3.9),
        Bar((19.0 * s, -4.0, 0.0), (tip, -6.5, -1.0), 5.0, 3.6),
    ]
    if down is not None:
        parts.append(Bar((17.0 * s, -3.0, 0.0), down, 5.4, 5.0))
    return parts
