"""The report's figures: a sample with its targets, its errors while sampling, its persistence diagrams."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from anatomica.frame import Frame
from anatomica.generation import Sample
from anatomica.labels import anatomy
from anatomica.measurement import measure_cube
from anatomica.moments import Moments
from anatomica.picture import (
    ACHIEVED_COLOUR,
    TARGET_COLOUR,
    Wire,
    box_wire,
    ellipsoid_wire,
    focus,
    moment_wires,
    show,
)
from anatomica.render import Camera, render
from anatomica.resolve import Resolved
from anatomica.spec import Spec
from anatomica.watch import Curve, Features

COLOURS = {"volume": "#1f77b4", "centroid": "#ff7f0e", "shape": "#9467bd", "topology": "#444444"}
DIMENSIONS = (("components", "o", "#1f77b4"), ("loops", "^", "#d62728"), ("voids", "s", "#2ca02c"))


def sample_picture(
    sample: Sample, spec: Spec | None, resolved: Sequence[Resolved], size: int = 300
) -> Figure:
    """Three views: the constrained structures solid, the rest translucent; frames of the domains in black,
    ellipsoids of the target in red and of the sample in green."""
    label_map = sample.label_map
    cube = focus(label_map) if label_map.present() else label_map
    shown: set[str] = set()
    wires: list[Wire] = []
    if spec is not None:
        frame = Frame.of(label_map, anatomy(spec.anatomy))
        measured = measure_cube(label_map, spec, tuple(resolved)).measured
        for r, m in zip(resolved, measured, strict=True):
            shown |= set(r.constraint.structure)
            if r.constraint.domain.family != "global":
                wires += [
                    box_wire(r.domains, k, frame) for k in range(r.domains.count) if bool(r.domains.valid[k])
                ]
            if any(x is not None for x in (r.wanted.mass, r.wanted.centroid, r.wanted.shape)):
                wires += moment_wires(r.domains, m.moments, frame, ACHIEVED_COLOUR)
                wires += _target_wires(r, m.moments, frame)
    ghost = [t for t in cube.table.tissues if shown and t not in shown]
    figure, axes = plt.subplots(1, 3, figsize=(3 * size / 80, size / 80 + 0.3), dpi=80)
    views = (("from the front", 0.0), ("from the left", 50.0), ("from the back", 180.0))
    for axis, (title, azimuth) in zip(axes, views, strict=True):
        show(axis, render(cube, Camera(azimuth, 12.0), size, ghost=ghost), wires, title)
    figure.tight_layout()
    return figure


def _target_wires(r: Resolved, achieved: Moments, frame: Frame) -> list[Wire]:
    """The wanted ellipsoids; what is free is drawn as achieved, so that a picture compares what was asked."""
    wires = []
    for k in range(r.domains.count):
        if not bool(r.domains.valid[k]):
            continue
        centroid = achieved.centroid[k] if r.wanted.centroid is None else r.wanted.centroid[k]
        size = achieved.covariance[k].diagonal().sum()
        if r.wanted.mass is not None:
            # Volume grows with length^3, the covariance with length^2; a speck says little about size.
            ratio = (r.wanted.mass[k] / achieved.mass[k].clamp_min(1e-9)).clamp(1 / 8, 8)
            size = size * ratio ** (2 / 3)
        shape = achieved.normalised_covariance[k] if r.wanted.shape is None else r.wanted.shape[k]
        wires.append(ellipsoid_wire(centroid.double(), (size * shape).double(), frame, TARGET_COLOUR))
    return wires


def curves_figure(sample: Sample) -> Figure:
    """Errors over the sampling steps: geometry in tolerances (log), topology as the count of wrong features.

    A dot at the right end is the certificate: the same error of the finished label map, measured hard.
    """
    geometric = [c for c in sample.curves if c.quantity != "topology"]
    topological = [c for c in sample.curves if c.quantity == "topology"]
    panels = [group for group in (geometric, topological) if group]
    figure, axes = plt.subplots(1, len(panels), figsize=(5.6 * len(panels), 2.9), dpi=100, squeeze=False)
    for axis, group in zip(axes[0], panels, strict=True):
        _draw_curves(axis, group, sample)
    figure.tight_layout()
    return figure


def _draw_curves(axis: Axes, curves: Sequence[Curve], sample: Sample) -> None:
    counts = curves[0].quantity == "topology"
    several = len({c.constraint for c in curves}) > 1
    names: set[str] = set()
    for n, c in enumerate(curves):
        name = f"{c.constraint}: {c.quantity}" if several and len(curves) <= 6 else c.quantity
        colour = COLOURS[c.quantity] if not several or len(curves) > 6 else f"C{n}"
        y = np.array(c.errors) if counts else np.maximum(np.array(c.errors) / c.tolerance, 1e-2)
        axis.plot(c.steps, y, color=colour, label=None if name in names else name, linewidth=1.4)
        names.add(name)
        hard = _certified(sample, c)
        axis.plot([c.steps[-1]], [hard if counts else max(hard, 1e-2)], "o", color=colour, markersize=4)
    if counts:
        axis.set(ylabel="wrong features", ylim=(-0.3, max(1.5, axis.get_ylim()[1])))
        axis.axhline(0, color="grey", linewidth=0.8, linestyle="--")
    else:
        axis.set(ylabel="error / tolerance", yscale="log")
        axis.axhline(1, color="grey", linewidth=0.8, linestyle="--")
    axis.set_xlabel("sampling step")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(fontsize=8, frameon=False)


def _certified(sample: Sample, curve: Curve) -> float:
    """The certificate's error that belongs to a curve: the worst domain, or all wrong counts together."""
    checks = [c for c in sample.checks if c.constraint == curve.constraint]
    if curve.quantity == "topology":
        return sum(c.error for c in checks if c.quantity in ("components", "loops", "voids"))
    return max((c.in_tolerances for c in checks if c.quantity == curve.quantity), default=0.0)


def diagrams_figure(features: Sequence[Features], most: int = 4) -> Figure:
    """Persistence diagrams: a feature far from the diagonal is certain; the wanted number of the most
    persistent is filled, all others are hollow and should hug the diagonal."""
    shown = features[:most]
    figure, axes = plt.subplots(1, len(shown), figsize=(3.4 * len(shown), 3.2), dpi=100, squeeze=False)
    for axis, one in zip(axes[0], shown, strict=True):
        axis.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        for dim, (name, marker, colour) in enumerate(DIMENSIONS):
            part = one.diagram.of_dim(dim)
            wanted = one.wanted[dim]
            if wanted is None:
                continue
            order = np.argsort(-part.persistence)
            keep, rest = order[:wanted], order[wanted:]
            style = {"linestyle": "", "marker": marker, "color": colour, "markersize": 6}
            axis.plot(part.birth[keep], part.death[keep], **style, label=f"{name}: {wanted} wanted")
            axis.plot(part.birth[rest], part.death[rest], **style, fillstyle="none", alpha=0.7)
        axis.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="birth", ylabel="death")
        several = sum(x.constraint == one.constraint for x in features) > 1
        axis.set_title(f"{one.constraint} {one.domain + 1}" if several else one.constraint, fontsize=9)
        axis.legend(fontsize=7, loc="upper left", frameon=False)
    figure.tight_layout()
    return figure


def as_png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png")
    plt.close(figure)
    return data.getvalue()
