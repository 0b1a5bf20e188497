"""Laws between named quantities that hold in every label map: what follows from their definitions.

An ask that breaks one cannot be held, whatever the population; it is refused before sampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from anatomica.spec.vocabulary_tables import AORTIC_LEVELS, SEGMENTS, VERTEBRAE


class Law(NamedTuple):
    """`off` of the quantities' values is 0 where `equal`, else at most 0; it rises or falls with each one.

    `slack` is how far it may be off by the luck of voxels, as a share of the larger side.
    """

    keys: tuple[str, ...]
    off: Callable[[Mapping[str, float]], float]
    equal: bool
    words: str
    slack: float = 0.02


def _most(small: str, large: str, factor: float = 1.0) -> Law:
    """One quantity is at most a multiple of another."""
    times = "" if factor == 1 else f"{factor:.4g} * "
    return Law(
        (small, large),
        lambda x: _share(x[small], factor * x[large]),
        False,
        f"{small} is at most {times}{large}",
    )


def _share(left: float, right: float) -> float:
    """How much larger the left side is, as a share of the larger one."""
    return (left - right) / max(abs(left), abs(right), 1e-9)


def _circle(area: str, diameter: str) -> Law:
    return Law(
        (area, diameter),
        lambda x: _share(x[area], math.pi / 4 * x[diameter] ** 2),
        True,
        f"{area} is pi / 4 times the square of {diameter}",
        0.05,
    )


def _cardiac() -> list[Law]:
    wall = "lv.wall_thickness_mm"
    found = [_most(f"{wall}.mean", f"{wall}.max")]
    found += [_most(f"{wall}.s{k}", f"{wall}.max") for k in SEGMENTS]
    found.append(
        Law(
            ("lv.volume_ml", "lv.long_axis_mm", "lv.sphericity"),
            lambda x: _share(
                1000 * x["lv.volume_ml"], x["lv.sphericity"] * math.pi / 6 * x["lv.long_axis_mm"] ** 3
            ),
            True,
            "lv.sphericity is lv.volume_ml over the volume of the sphere on lv.long_axis_mm",
            0.05,
        )
    )
    for valve in ("av", "mv"):
        at = f"{valve}.annulus"
        found.append(_circle(f"{at}.area_mm2", f"{at}.diameter_mm"))
        found.append(_most(f"{at}.diameter_mm", f"{at}.perimeter_mm", 1 / math.pi))
    return found


def _aortic() -> list[Law]:
    found = []
    for level in AORTIC_LEVELS:
        at = f"ao.{level}"
        found += [
            _circle(f"{at}.area_mm2", f"{at}.diameter_mm"),
            _most(f"{at}.min_diameter_mm", f"{at}.diameter_mm"),
            _most(f"{at}.diameter_mm", f"{at}.max_diameter_mm"),
            _most(f"{at}.min_diameter_mm", f"{at}.max_diameter_mm"),
        ]
    return found


def _spinal() -> list[Law]:
    return [
        Law(
            (f"{v}.wedge_ratio", f"{v}.body.height_mm.anterior", f"{v}.body.height_mm.posterior"),
            lambda x, v=v: _share(
                x[f"{v}.body.height_mm.anterior"], x[f"{v}.wedge_ratio"] * x[f"{v}.body.height_mm.posterior"]
            ),
            True,
            f"{v}.wedge_ratio is the anterior over the posterior height",
        )
        for v in VERTEBRAE[2:]
    ]


def _coronary() -> list[Law]:
    lumen, wide, vessel = "lumen.min_area_mm2", "lumen.mean_diameter_mm", "vessel.area_mm2"
    wall = "wall.thickness_mm"
    return [
        Law(
            (lumen, wide),
            lambda x: _share(x[lumen], math.pi / 4 * x[wide] ** 2),
            False,
            f"{lumen} is at most the area of the circle of {wide}",
        ),
        Law(
            (wide, vessel),
            lambda x: _share(math.pi / 4 * x[wide] ** 2, x[vessel]),
            False,
            f"the circle of {wide} lies within {vessel}",
        ),
        _most(lumen, vessel),
        Law(
            (wide, wall, vessel),
            lambda x: _share(x[vessel], math.pi / 4 * (x[wide] + 2 * x[wall]) ** 2),
            True,
            f"{vessel} is about the area of the circle of {wide} + 2 {wall}",
            # A vessel that tapers has a little more; 59 phantoms have 0 to 2 %.
            0.1,
        ),
    ]


_LAWS = {"cardiac": _cardiac, "aortic": _aortic, "spinal": _spinal, "coronary": _coronary}


@cache
def laws(anatomy: str) -> tuple[Law, ...]:
    """The laws of an anatomy's quantities; none of one that is a user's own.

    >>> [x.words for x in laws("coronary") if len(x.keys) == 2][-1]
    'lumen.min_area_mm2 is at most vessel.area_mm2'
    """
    return tuple(_LAWS[anatomy]()) if anatomy in _LAWS else ()
