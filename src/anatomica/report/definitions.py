"""Drawings of how named quantities are defined: their levels, rays and rings on one anatomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import ndimage

from anatomica.errors import AnatomicaError
from anatomica.files import write_figure
from anatomica.measurement.vocabulary.coronary import frames
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.shapes import unit
from anatomica.measurement.vocabulary.statistics import Found, find
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.measurement.vocabulary.ventricle import long_axis
from anatomica.measurement.vocabulary.vertebrae import body
from anatomica.report.render import Camera, render
from anatomica.report.statistics import shown
from anatomica.report.wires import LEVEL_COLOUR, Wire, focus, show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray
PIXELS = 420


@dataclass(frozen=True)
class Panel:
    """One family of quantities: seen from outside (`azimuth_deg`), or in a plane of the anatomy."""

    title: str
    keys: tuple[str, ...]
    plane: str = ""
    azimuth_deg: float = 0.0
    zoom: float = 1.1


PANELS = {
    "cardiac": (
        Panel("long axis", ("lv.long_axis_mm", "lv.wall_thickness_mm.s17"), "long axis"),
        Panel("wall", tuple(f"lv.wall_thickness_mm.s{k}" for k in range(7, 13)), "short axis"),
        Panel("annuli", ("mv.annulus.diameter_mm", "av.annulus.diameter_mm"), azimuth_deg=50.0, zoom=1.5),
        Panel(
            "great vessels",
            ("ao.sinus.diameter_mm", "ao.stj.diameter_mm", "ao.ascending.diameter_mm", "pa.diameter_mm"),
            zoom=1.5,
        ),
    ),
    "aortic": (
        Panel(
            "levels",
            tuple(
                f"ao.{x}.diameter_mm"
                for x in (
                    "stj",
                    "mid_ascending",
                    "distal_ascending",
                    "mid_arch",
                    "proximal_descending",
                    "mid_descending",
                )
            ),
            azimuth_deg=60.0,
        ),
        Panel(
            "sections, tortuosity",
            ("ao.ascending.length_mm", "ao.arch.length_mm", "ao.descending.length_mm"),
            azimuth_deg=60.0,
        ),
        Panel("landing zone", ("landing_zone.length_mm",), azimuth_deg=60.0),
        Panel(
            "branches: take-off",
            ("BCT.takeoff_deg", "LCCA.takeoff_deg", "LSCA.takeoff_deg"),
            azimuth_deg=20.0,
            zoom=1.5,
        ),
        Panel(
            "branches: diameter",
            tuple(f"{x}.diameter_mm" for x in ("BCT", "LCCA", "LSCA", "RCCA", "RSCA")),
            azimuth_deg=20.0,
            zoom=1.5,
        ),
    ),
    "spinal": (
        Panel(
            "heights, disc",
            (
                *(f"T9.body.height_mm.{x}" for x in ("anterior", "middle", "posterior")),
                "disc.T8-T9.height_mm",
            ),
            "sagittal",
        ),
        Panel("curves", ("kyphosis_deg", "cobb_deg[T7,T9]"), "column"),
        Panel("canal", ("canal.T9.area_mm2",), "axial"),
    ),
    "coronary": (
        Panel("narrowest frame", ("lumen.min_area_mm2",), "narrowest"),
        Panel("calcium", ("calcium.max_angle_deg",), "arc"),
        Panel("calcium", ("calcium.max_thickness_mm",), "thickest"),
        Panel("stenosis: narrowest and reference frame", ("area_stenosis_pct",), azimuth_deg=30.0),
    ),
}
"""What is drawn of each anatomy."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A plane of the cube: a point in it, the image's right and up, and how far it is seen from the point."""

    centre_mm: Array
    right: Array
    up: Array
    half_mm: float


def draw_definitions(s: Subject, path: Path) -> None:
    """One picture with a panel for each family of the anatomy's quantities."""
    import matplotlib.pyplot as plt

    panels = PANELS.get(s.about.name)
    if panels is None:
        raise AnatomicaError(f"there are no named quantities of {s.about.name} anatomy")
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 4.6), dpi=100)
    for axis, panel in zip(np.atleast_1d(axes), panels, strict=True):
        found = [x for x in (find(s, key) for key in panel.keys) if x.marks]
        if panel.plane:
            try:
                _in_plane(axis, s, _plane(s, panel.plane, found), found)
            except Missing as why:
                raise AnatomicaError(f"{panel.title} cannot be drawn: {why}") from None
        else:
            _from_outside(axis, s, panel, found)
        axis.set_title(panel.title, fontsize=10)
    figure.tight_layout()
    write_figure(path, figure)
    plt.close(figure)


def _plane(s: Subject, name: str, found: Sequence[Found]) -> Plane:
    """The plane in which a family is shown."""
    if name in ("long axis", "short axis"):
        a = long_axis(s)
        middle = (a.base_mm + a.apex_mm) / 2
        if name == "long axis":
            return Plane(middle, a.septal, -a.along, 0.85 * a.length_mm)
        return Plane(middle, a.septal, -a.inferior, 0.6 * a.length_mm)
    if name in ("sagittal", "axial", "column"):
        b = body(s, "T9")
        right, front, up = b.axes.T
        if name == "axial":
            return Plane(b.centre_mm - 0.6 * b.depth_mm * front, right, front, 1.2 * b.width_mm)
        half = 1.6 * b.depth_mm if name == "sagittal" else 0.5 * s.edge_mm
        return Plane(b.centre_mm if name == "sagittal" else _on_axis(s, b.centre_mm), -front, up, half)
    at = found[0].marks[0].line_mm.mean(0) if found else frames(s).centres_mm[0]
    return Plane(at, np.eye(3)[0], np.eye(3)[1], 0.3 * s.edge_mm)


def _on_axis(s: Subject, point: Array) -> Array:
    """The point at half the cube's height."""
    return np.array([point[0], point[1], s.edge_mm / 2])


def _in_plane(axis: Axes, s: Subject, plane: Plane, found: Sequence[Found]) -> None:
    """The labels that a plane cuts, and the quantities' marks projected on it."""
    line = (np.arange(PIXELS) + 0.5) / PIXELS * 2 * plane.half_mm - plane.half_mm
    a, b = np.meshgrid(line, -line)
    points = plane.centre_mm + a[..., None] * unit(plane.right) + b[..., None] * unit(plane.up)
    at = np.moveaxis(points / s.voxel_mm - 0.5, -1, 0)
    label = np.asarray(ndimage.map_coordinates(s.cube.array, at, order=0, mode="constant"), dtype=int)
    table = s.cube.table
    colours = np.full((int(s.cube.array.max()) + 1, 3), 1.0)
    for tissue in table.tissues:
        id = table.id_of(tissue)
        if id < len(colours):
            colours[id] = 0.5 + 0.5 * np.array(table[tissue].colour) / 255
    reach = plane.half_mm
    axis.imshow(colours[label], extent=(-reach, reach, -reach, reach), interpolation="nearest")
    at_end = []
    for x in found:
        for mark in x.marks:
            away = mark.line_mm - plane.centre_mm
            axis.plot(away @ unit(plane.right), away @ unit(plane.up), color=LEVEL_COLOUR, linewidth=1.3)
        last = x.marks[0].line_mm[-1] - plane.centre_mm
        at_end.append((float(last @ unit(plane.right)), float(last @ unit(plane.up))))
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    _labels(axis, found, at_end, 2 * reach)


def _from_outside(axis: Axes, s: Subject, panel: Panel, found: Sequence[Found]) -> None:
    """The anatomy as glass with the quantities' marks."""
    cube = focus(s.cube)
    camera = Camera(panel.azimuth_deg, s.about.camera.elevation_deg, panel.zoom)
    picture = render(cube, camera, PIXELS, ghost=cube.table.tissues)
    lines = [s.to_ras(mark.line_mm) for x in found for mark in x.marks if len(mark.line_mm) > 1]
    show(axis, picture, [Wire(lines, LEVEL_COLOUR, 1.3)])
    seen = [picture.project(s.to_ras(x.marks[0].line_mm)) for x in found]
    _labels(axis, found, [tuple(line[int(line[:, 0].argmax()), :2].tolist()) for line in seen], PIXELS)


def _labels(axis: Axes, found: Sequence[Found], at: Sequence[tuple[float, float]], size: float) -> None:
    """Every key and its value beside its mark, pushed apart where they would cover each other."""
    room, highest = 0.052 * size, float("-inf")
    for x, (u, v) in sorted(zip(found, at, strict=True), key=lambda pair: pair[1][1]):
        highest = max(v, highest + room)
        unit_text = {"deg": "°", "mm2": "mm²"}.get(x.entry.unit, x.entry.unit)
        value = "" if x.value is None else f" {shown(x.value)} {unit_text}"
        axis.annotate(
            f"{_short(x.entry.key)}{value}",
            (u, v),
            (u + 0.05 * size, highest),
            fontsize=8,
            va="center",
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": "gray"},
        )


def _short(key: str) -> str:
    """A key without what all of its family have in common.

    >>> _short("ao.mid_ascending.diameter_mm"), _short("lv.wall_thickness_mm.s7")
    ('mid_ascending', 's7')
    """
    for common in (
        "lv.wall_thickness_mm.",
        "ao.",
        ".diameter_mm",
        ".length_mm",
        ".takeoff_deg",
        "body.height_mm.",
        ".height_mm",
    ):
        key = key.replace(common, "")
    return key
