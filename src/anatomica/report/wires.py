"""Pictures of measurements: surfaces with domain frames and moment ellipsoids, and three slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, bounding_box
from anatomica.files import write_figure
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.measure import Measurement
from anatomica.measurement.moments import Moments
from anatomica.report.render import Camera, Picture, mid_slices, render_views

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME_COLOUR = "black"
TARGET_COLOUR = "#d62728"
LEVEL_COLOUR = "black"
ACHIEVED_COLOUR = "#2ca02c"
OPAQUE, FAINT = 0.95, 0.35
"""Of lines before and behind the surface."""
VIEWS = (("from the front", 0.0), ("from the left", 50.0), ("from the back", 180.0))
"""Titles and azimuths of the pictures of one anatomy."""


@dataclass(frozen=True, eq=False)
class Wire:
    """Polylines in RAS mm with one colour."""

    lines: list[np.ndarray]
    colour: str
    width: float = 1.4


def box_wire(domains: Domains, k: int, frame: Frame) -> Wire:
    """The twelve edges of a control domain."""
    corner = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    placed = frame.to_mm(corner @ domains.J[k].numpy().T + domains.t[k].numpy())
    edges = [(a, b) for a in range(8) for b in range(a + 1, 8) if bin(a ^ b).count("1") == 1]
    return Wire([np.linspace(placed[a], placed[b], 24) for a, b in edges], FRAME_COLOUR, 1.0)


def ellipsoid_wire(centroid: Tensor, covariance: Tensor, frame: Frame, colour: str) -> Wire:
    """Three great circles of the uniform ellipsoid with this covariance: semi-axes sqrt(5 lambda)."""
    values, vectors = torch.linalg.eigh(covariance)
    axes = (vectors * (5 * values.clamp_min(0)).sqrt()).numpy() * frame.edge_mm
    angle = np.linspace(0, 2 * np.pi, 65)[:, None]
    centre = frame.to_mm(centroid.numpy())
    pairs = ((0, 1), (0, 2), (1, 2))
    circles = [centre + np.cos(angle) * axes[:, a] + np.sin(angle) * axes[:, b] for a, b in pairs]
    return Wire(circles, colour)


def draw_wires(axis: Axes, picture: Picture, wires: Sequence[Wire]) -> None:
    """Draw polylines over a picture: full where they lie before the surface, faint behind it."""
    from matplotlib.collections import LineCollection

    for wire in wires:
        segments, strong = [], []
        for line in wire.lines:
            seen, alpha = projected(picture, line)
            segments += list(pairwise(seen))
            strong += alpha[:-1].tolist()
        if segments:  # a centreline of one voxel has none
            drawn = LineCollection(segments, colors=wire.colour, alpha=strong, linewidths=wire.width)
            axis.add_collection(drawn)


def projected(picture: Picture, line_mm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A polyline in pixels (column, row), and how opaque it is at each point: faint behind the surface."""
    seen = picture.project(line_mm)
    index = np.clip(np.round(seen[:, [1, 0]]).astype(int), 0, len(picture.image) - 1)
    front = seen[:, 2] <= picture.depth_mm[tuple(index.T)] + 1e-3 * picture.half_mm
    return seen[:, :2], np.where(front, OPAQUE, FAINT)


def show(axis: Axes, picture: Picture, wires: Sequence[Wire] = (), title: str = "") -> None:
    """A picture with its wires on a matplotlib axis."""
    size = len(picture.image)
    axis.imshow(picture.image, interpolation="lanczos")
    draw_wires(axis, picture, wires)
    axis.set(xlim=(0, size), ylim=(size, 0), xticks=[], yticks=[])
    axis.set_title(title, fontsize=9)
    for spine in axis.spines.values():
        spine.set_visible(False)


def moment_wires(
    domains: Domains, moments: Moments, frame: Frame, colour: str, min_mass: float = 1e-9
) -> list[Wire]:
    """Ellipsoids of all valid, non-empty domains."""
    return [
        ellipsoid_wire(moments.centroid[k], moments.covariance[k], frame, colour)
        for k in range(domains.count)
        if bool(domains.valid[k]) and float(moments.mass[k]) > min_mass
    ]


def focus(cube: LabelMap, margin: float = 0.06) -> LabelMap:
    """The smallest cube around all tissue, with a margin, so that a picture is filled."""
    low, high = bounding_box(cube.array > 0)
    edge = int((high - low).max() * (1 + 2 * margin)) + 1
    start = ((low + high) - edge) // 2
    first, last = np.maximum(start, 0), np.minimum(start + edge, cube.shape)
    inner = cube.array[tuple(slice(a, b) for a, b in zip(first, last, strict=True))]
    array = np.pad(inner, np.stack([first - start, start + edge - last], axis=1))
    affine = cube.affine.copy()
    affine[:3, 3] += affine[:3, :3] @ start
    return LabelMap(array, affine, cube.table)


def _without(cube: LabelMap, shown: set[str]) -> list[str]:
    return [t for t in cube.table.tissues if t not in shown]


def measurement_picture(result: Measurement, path: Path, size: int = 420) -> None:
    """measurement.png: the measured structures solid and the rest translucent from two sides, domain frames
    in black, moment ellipsoids in green, and the three slices through the measured structures' middle."""
    import matplotlib.pyplot as plt

    cube, frame = focus(result.cube), result.frame
    shown = {t for m in result.measured for t in m.constraint.structure if t in cube.present()}
    wires: list[Wire] = []
    for m in result.measured:
        if m.constraint.domain.family != "global":
            wires += [
                box_wire(m.domains, k, frame) for k in range(m.domains.count) if bool(m.domains.valid[k])
            ]
        wires += moment_wires(m.domains, m.moments, frame, ACHIEVED_COLOUR)
    figure, axes = plt.subplots(2, 3, figsize=(13, 9), dpi=100)
    cameras = [Camera(azimuth, 12.0) for _, azimuth in VIEWS]
    pictures = render_views(cube, cameras, size, ghost=_without(cube, shown))
    for axis, picture, (title, _) in zip(axes[0], pictures, VIEWS, strict=True):
        show(axis, picture, wires, title)
    mask = cube.mask(*shown) if shown else cube.array > 0
    at = np.argwhere(mask).mean(0).round().astype(int) if mask.any() else None
    slices = mid_slices(cube, size, at)
    for n, (axis, name) in enumerate(zip(axes[1], ("sagittal", "coronal", "axial"), strict=True)):
        axis.imshow(slices[:, n * size : (n + 1) * size])
        axis.set_title(name, fontsize=9)
        axis.axis("off")
    figure.suptitle(f"{result.spec.name} · {frame.anatomy.name} · cube of {frame.edge_mm:g} mm")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_figure(path, figure)
    plt.close(figure)
