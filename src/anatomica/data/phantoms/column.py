"""The vertebral column: the patient's levels on their curve, and the joints between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from anatomica.data.phantoms.bones import joint_below, vertebra
from anatomica.data.phantoms.curve import (
    Curve,
    draw_curve,
    mean_spacing_around,
    spacing_around,
    vertebra_tilts,
)
from anatomica.data.phantoms.levels import INDEX, LEVELS, Level
from anatomica.data.phantoms.shapes import rotation
from anatomica.data.phantoms.vertebra import Facet, Point, Vertebra

Array = np.ndarray


@dataclass(frozen=True)
class Column:
    """24 vertebrae from C1 down: sizes, shapes, centres (mm) and frames (columns are the local axes)."""

    levels: tuple[Level, ...]
    bones: tuple[Vertebra, ...]
    centres_mm: Array
    frames: Array
    joints_mm: Array
    """Centres of the facet joints, (23, 2, 3): right, left."""
    parameters: dict[str, float]


LEAST_DISC_MM = 3.4
"""Two voxels of a 64^3 grid must fit between two bodies, or they would fuse."""


def grow(rng: np.random.Generator, pathology: str | None) -> Column:
    """A patient's column; C1 at the origin."""
    curve = draw_curve(rng)
    curve, yaw, parameters = _bend(rng, curve, pathology)
    wedge = np.zeros(len(LEVELS))
    if pathology == "compression-fracture":
        at = int(rng.integers(INDEX["T6"], INDEX["L3"]))
        loss = float(rng.uniform(0.28, 0.5))
        wedge[at] = loss
        # The column above leans forward over the collapsed front; the discs take up a part of it.
        lean = 0.6 * np.degrees(np.arctan(loss * LEVELS[at].height_mm / LEVELS[at].depth_mm))
        sagittal = curve.sagittal_deg - lean * (np.arange(len(LEVELS) - 1) < at)
        curve = replace(curve, sagittal_deg=sagittal)
        parameters |= {"fractured_level": float(at + 1), "front_height_loss": loss}
    pitch, roll = -vertebra_tilts(curve.sagittal_deg), -vertebra_tilts(curve.coronal_deg)
    frames = np.stack([rotation([-p, r, y]) for p, r, y in zip(pitch, roll, yaw, strict=True)])
    levels, curve, sizes = _sizes(rng, curve, pathology)
    # A kyphotic neighbourhood has wedge-shaped bodies, so that the discs keep their thickness in front;
    # lordotic bodies are taller in front.
    bend = np.tan(np.radians(np.clip(-np.gradient(pitch), -5, 8)))
    natural = np.where(bend > 0, 0.8, 0.35) * bend * np.array([x.depth_mm / x.height_mm for x in levels])
    natural = np.clip(natural, -0.1, 0.2)
    # A body's height is that of its back; a collapsed one has lost its front, the others keep their middle.
    levels = tuple(
        x if lost > 0 else replace(x, height_mm=x.height_mm / (1 - float(lean) / 2))
        for x, lost, lean in zip(levels, wedge, natural, strict=True)
    )
    wedge = np.where(wedge > 0, wedge, natural)
    parameters |= {
        **sizes,
        "kyphosis_t1_t12_deg": float(pitch[INDEX["T1"]] - pitch[INDEX["T12"]]),
        "lordosis_l1_l5_deg": float(pitch[INDEX["L5"]] - pitch[INDEX["L1"]]),
    }
    return _join(levels, wedge, curve.centres_mm(), frames, parameters)


def _bend(
    rng: np.random.Generator, curve: Curve, pathology: str | None
) -> tuple[Curve, Array, dict[str, float]]:
    """The curve with the pathology's bend, and each vertebra's turn about the column's axis in degrees."""
    count = len(LEVELS)
    yaw = rng.normal(0, 2.0) + ndimage.gaussian_filter1d(rng.normal(0, 1, count), 3.0, mode="nearest") * 4.0
    cobb, more = float(rng.uniform(22, 45)), float(rng.uniform(14, 28))
    # The apex is thoracic or, in a third, lumbar.
    apex = INDEX["T8"] + rng.uniform(-2.0, 4.0) if rng.random() < 0.67 else INDEX["L2"] + rng.uniform(-1.5, 1)
    reach, side = rng.uniform(3.2, 4.5), rng.choice([-1.0, 1.0])
    segment = np.arange(count - 1) + 0.5
    if pathology == "hyperkyphosis":
        # Added evenly over T2 to T11.
        over = np.clip((segment - INDEX["T2"]) / (INDEX["T11"] - INDEX["T2"]), 0, 1)
        curve = replace(curve, sagittal_deg=curve.sagittal_deg + more * (over - 0.5))
    elif pathology == "scoliosis":
        # The bend is the tilt's slope: tilt +-cobb/2 one reach from the apex, turned into the convexity.
        away = (segment - apex) / reach
        tilt = cobb / 2 * np.clip(away, -1.6, 1.6) * np.exp(0.5 - 0.5 * away**2)
        curve = replace(curve, coronal_deg=curve.coronal_deg - side * tilt)
        yaw = yaw + side * 0.35 * cobb * np.exp(-(((np.arange(count) - apex) / reach) ** 2))
    parameters = {
        "size_sd": curve.size,
        "cobb_deg": cobb if pathology == "scoliosis" else 0.0,
        "apex_level": apex + 1 if pathology == "scoliosis" else 0.0,
    }
    return curve, yaw, parameters


def _sizes(
    rng: np.random.Generator, curve: Curve, pathology: str | None
) -> tuple[tuple[Level, ...], Curve, dict[str, float]]:
    """The mean levels scaled to a patient: bodies and discs share the spacing, the rest follows its size."""
    count = len(LEVELS)
    # Bodies' widths vary by 8 to 9 % between adults (Panjabi), more than half of it with the patient's size.
    stature = 1.0 + 0.055 * float(np.clip(curve.size, -2.5, 2.5))

    def vary(size: float) -> Array:
        smooth = ndimage.gaussian_filter1d(rng.normal(0, 1, count), 3.0, mode="nearest") * 2.5
        return 1 + size * np.clip(smooth + 0.35 * rng.normal(0, 1, count), -2.2, 2.2)

    girth, depth = stature * vary(0.06), stature * vary(0.06)
    canal, roof = (0.4 + 0.6 * stature) * vary(0.07), (0.4 + 0.6 * stature) * vary(0.045)
    span, spine, slope = stature * vary(0.06), stature * vary(0.10), vary(0.07)
    mean_height = np.array([x.height_mm for x in LEVELS])
    mean_disc = np.array([x.disc_mm for x in LEVELS])
    # One patient's discs are thick and another's thin at the same spacing.
    share = 0.16 * float(np.clip(rng.normal(), -2.0, 2.0))
    height = (mean_height - share * mean_disc) * spacing_around(curve.spacing_mm) / mean_spacing_around()
    height = height * vary(0.012)
    disc = curve.spacing_mm - (height[:-1] + height[1:]) / 2
    disc[0] = mean_disc[0]  # there is none between C1 and C2
    if pathology == "narrow-discs":
        lost = np.minimum(disc * rng.uniform(0.25, 0.4), disc - LEAST_DISC_MM).clip(0)
        lost[0] = 0.0
        curve, disc = replace(curve, spacing_mm=curve.spacing_mm - lost), disc - lost
    # Where the disc would be too thin for the grid, the two bodies give way.
    short = np.maximum(LEAST_DISC_MM - disc, 0)
    short[0] = 0.0
    disc = disc + short
    height[:-1] -= short
    height[1:] -= short
    levels = tuple(
        replace(
            mean,
            width_mm=float(mean.width_mm * girth[i]),
            depth_mm=float(mean.depth_mm * depth[i]),
            height_mm=float(height[i]),
            disc_mm=float(disc[min(i, count - 2)]),
            canal_width_mm=float(mean.canal_width_mm * canal[i]),
            canal_depth_mm=float(mean.canal_depth_mm * roof[i]),
            # A pedicle thinner than three voxels of a 64^3 grid would tear.
            pedicle_mm=max(float(mean.pedicle_mm * girth[i]), 5.6),
            span_mm=float(mean.span_mm * span[i]),
            spine_mm=float(mean.spine_mm * spine[i]),
            slope_deg=float(mean.slope_deg * slope[i]),
        )
        for i, mean in enumerate(LEVELS)
    )
    thoracic = disc[INDEX["T1"] : INDEX["T12"]]
    return levels, curve, {"stature": stature, "mean_thoracic_disc_mm": float(np.mean(thoracic))}


def _join(
    levels: tuple[Level, ...], wedge: Array, centres: Array, frames: Array, parameters: dict[str, float]
) -> Column:
    """Place the facet joints halfway between neighbours and build the bones around them."""
    above: list[list[Facet]] = [[] for _ in levels]
    below: list[list[Facet]] = [[] for _ in levels]
    joints = []
    for i in range(len(levels) - 1):
        centre, normal, radius, half = joint_below(levels[i], levels[i + 1])
        u, _, vt = np.linalg.svd(frames[i] + frames[i + 1])
        frame = u @ vt
        disc = _disc_centre(levels, wedge, centres, frames, i)
        pair = []
        for mirror in (1.0, -1.0):
            flip = np.array([mirror, 1.0, 1.0])
            point, axis = disc + frame @ (centre * flip), frame @ (normal * flip)
            pair.append(point)
            for at, side, into in ((i, -1.0, below), (i + 1, 1.0, above)):
                local, turned = frames[at].T @ (point - centres[at]), frames[at].T @ axis
                into[at].append(Facet(_point(local), _point(turned), radius, half, side))
        joints.append(pair)
    bones = tuple(vertebra(levels[i], float(wedge[i]), above[i], below[i]) for i in range(len(levels)))
    return Column(levels, bones, centres, frames, np.array(joints), parameters)


def _disc_centre(levels: tuple[Level, ...], wedge: Array, centres: Array, frames: Array, i: int) -> Array:
    """The middle of the disc below vertebra i; under C1 the plane of its joints with C2."""

    def half(at: int) -> Array:
        return frames[at][:, 2] * levels[at].height_mm * (1 - wedge[at] / 2) / 2

    under = centres[i] - half(i)
    if levels[i].region == "atlas":
        return under - frames[i][:, 2] * levels[i].disc_mm / 2
    return (under + centres[i + 1] + half(i + 1)) / 2


def _point(values: Array) -> Point:
    x, y, z = values.tolist()
    return x, y, z
