"""The report's pictures: a sample with the targets and what it achieved."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace

from PIL import Image

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.generation.sample import Sample
from anatomica.measurement.goals import Goal, Row, constraints_in, goals_in, place
from anatomica.measurement.measure import measure_cube
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.report.panel import panel, png, side_by_side
from anatomica.report.render import Camera, Picture, render_views
from anatomica.report.wires import (
    ACHIEVED_COLOUR,
    LEVEL_COLOUR,
    TARGET_COLOUR,
    VIEWS,
    Wire,
    box_wire,
    ellipsoid_wire,
    focus,
    moment_wires,
)
from anatomica.spec.spec import Spec


@dataclass(frozen=True, eq=False)
class Views:
    """A sample drawn from `VIEWS`: what was asked of solid, the rest translucent, frames of the domains and
    levels of named quantities in black, ellipsoids of the target in red and of the sample in dashed green."""

    sample: Sample
    pictures: list[Picture]
    wires: list[Wire]


def draw(
    sample: Sample, spec: Spec | None, resolved: Sequence[Row], about: Anatomy, size: int = 300
) -> Views:
    label_map = sample.label_map
    cube = focus(label_map) if label_map.present() else label_map
    ghost: list[str] = []
    wires: list[Wire] = []
    if spec is not None:
        shown = {tissue for c in spec.constraints for tissue in c.structure}
        levels, asked_of = _levels(label_map, goals_in(resolved), about)
        ghost = [t for t in cube.table.tissues if t not in shown | asked_of]
        placed = constraints_in(resolved)
        wires = [*levels, *(_wires(label_map, spec, placed, about) if placed else [])]
    pictures = render_views(cube, [Camera(azimuth, 12.0) for _, azimuth in VIEWS], size, ghost=ghost)
    return Views(sample, pictures, wires)


def _levels(label_map: LabelMap, goals: Sequence[Goal], about: Anatomy) -> tuple[list[Wire], set[str]]:
    """The levels, rays and axes of named quantities on a label map, and the tissues that they are of."""
    s, lines, tissues = Subject(label_map, about), [], set()
    for goal in goals:
        try:
            plans = place(goal, s).plans.values()
        except Missing:
            continue
        tissues |= {t for p in plans for piece in p.pieces for t in piece.tissues}
        lines += [s.to_ras(mark.line_mm) for p in plans for mark in p.marks if len(mark.line_mm) > 1]
    return [Wire(lines, LEVEL_COLOUR, 1.4)] if lines else [], tissues


def _wires(label_map: LabelMap, spec: Spec, resolved: Sequence[Resolved], about: Anatomy) -> list[Wire]:
    found = measure_cube(label_map, spec, tuple(resolved), about=about)
    frame, wires = found.frame, []
    for r, m in zip(resolved, found.measured, strict=True):
        if r.constraint.domain.family != "global":
            valid = [k for k in range(r.domains.count) if bool(r.domains.valid[k])]
            wires += [box_wire(r.domains, k, frame) for k in valid]
        if r.wanted.any_moment:
            wires += _target_wires(r, m.moments, frame)
            wires += [_dashed(w) for w in moment_wires(r.domains, m.moments, frame, ACHIEVED_COLOUR)]
    return wires


def sample_picture(views: Views, size: int = 300) -> bytes:
    """One sample from all sides, as a PNG file."""
    titled = zip(views.pictures, VIEWS, strict=True)
    return png(side_by_side([panel(p, views.wires, title, size) for p, (title, _) in titled]))


def contact_panel(views: Views, size: int = 240) -> bytes:
    """One sample from the front with its verdict, as a PNG file: its part of the contact sheet."""
    s = views.sample
    state = "" if not s.checks else f", {_state(s)}"
    return png(panel(views.pictures[0], views.wires, f"seed {s.seed}{state}", size))


def contact_sheet(panels: Sequence[bytes], columns: int = 4) -> bytes:
    """Panels of one size, four in a row, as a PNG file."""
    return png(side_by_side([Image.open(io.BytesIO(panel)) for panel in panels], columns))


def _state(sample: Sample) -> str:
    if not sample.met:
        return "not met"
    return "valid" if sample.plausible else "met, but implausible"


def _dashed(wire: Wire, dash: int = 5, gap: int = 3) -> Wire:
    """Drawn over another wire, both show where they agree."""
    lines = [line[i : i + dash + 1] for line in wire.lines for i in range(0, len(line) - 1, dash + gap)]
    return replace(wire, lines=lines, width=2.0)


def _target_wires(r: Resolved, achieved: Moments, frame: Frame) -> list[Wire]:
    """The wanted ellipsoids; what is free is drawn as achieved, so that a picture compares what was asked."""
    wires, values = [], r.wanted.values
    for k in range(r.domains.count):
        if not bool(r.domains.valid[k]):
            continue
        centroid = values["centroid"][k] if "centroid" in values else achieved.centroid[k]
        size = achieved.covariance[k].diagonal().sum()
        if "mass" in values:
            # Volume grows with length^3, the covariance with length^2; a speck says little about size.
            ratio = (values["mass"][k] / achieved.mass[k].clamp_min(1e-9)).clamp(1 / 8, 8)
            size = size * ratio ** (2 / 3)
        shape = values["shape"][k] if "shape" in values else achieved.normalised_covariance[k]
        wires.append(ellipsoid_wire(centroid.double(), (size * shape).double(), frame, TARGET_COLOUR))
    return wires
