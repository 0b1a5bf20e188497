"""The report's pictures: a sample with the targets and what it achieved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.files import figure_png
from anatomica.generation.sample import Sample
from anatomica.measurement.measure import measure_cube
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.report.render import Camera, Picture, render
from anatomica.report.wires import (
    ACHIEVED_COLOUR,
    TARGET_COLOUR,
    Wire,
    box_wire,
    ellipsoid_wire,
    focus,
    moment_wires,
    show,
)
from anatomica.spec.spec import Spec

VIEWS = (("from the front", 0.0), ("from the left", 50.0), ("from the back", 180.0))


@dataclass(frozen=True, eq=False)
class Views:
    """A sample drawn from `VIEWS`: constrained structures solid, the rest translucent, frames of the domains
    in black, ellipsoids of the target in red and of the sample in dashed green."""

    sample: Sample
    pictures: list[Picture]
    wires: list[Wire]


def draw(
    sample: Sample, spec: Spec | None, resolved: Sequence[Resolved], about: Anatomy, size: int = 300
) -> Views:
    label_map = sample.label_map
    cube = focus(label_map) if label_map.present() else label_map
    ghost: list[str] = []
    wires: list[Wire] = []
    if spec is not None:
        shown = {tissue for c in spec.constraints for tissue in c.structure}
        ghost = [t for t in cube.table.tissues if t not in shown]
        wires = _wires(label_map, spec, resolved, about)
    pictures = [render(cube, Camera(azimuth, 12.0), size, ghost=ghost) for _, azimuth in VIEWS]
    return Views(sample, pictures, wires)


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


def sample_picture(views: Views, size: int = 300) -> Figure:
    """One sample from all sides."""
    figure, axes = _row(len(VIEWS), 1, size)
    for axis, picture, (title, _) in zip(axes, views.pictures, VIEWS, strict=True):
        show(axis, picture, views.wires, title)
    return figure


def contact_picture(samples: Sequence[Views], size: int = 240) -> Figure:
    """All samples from the front, four in a row."""
    columns = min(4, len(samples))
    figure, axes = _row(columns, -(-len(samples) // columns), size)
    for axis in axes:
        axis.axis("off")
    for axis, views in zip(axes, samples, strict=False):
        s = views.sample
        state = "" if not s.checks else f" · {_state(s)}"
        show(axis, views.pictures[0], views.wires, f"seed {s.seed}{state}")
    return figure


def _state(sample: Sample) -> str:
    if not sample.met:
        return "not met"
    return "valid" if sample.plausible else "met, but implausible"


def _row(columns: int, rows: int, size: int) -> tuple[Figure, list[Axes]]:
    """Square panels of `size` pixels edge to edge, each with room for a title."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(columns * size / 80, rows * (size + 20) / 80), dpi=80, squeeze=False
    )
    title = 20 / (rows * (size + 20))
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1 - title, wspace=0, hspace=20 / size)
    return figure, list(axes.flat)


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


def as_png(figure: Figure) -> bytes:
    data = figure_png(figure)
    plt.close(figure)
    return data
