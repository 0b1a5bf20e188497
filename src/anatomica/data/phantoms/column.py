"""The vertebral column: the patient's levels, the curve they stand on and the joints between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import ndimage

from anatomica.data.phantoms.bones import joint_below, vertebra
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


def grow(rng: np.random.Generator, pathology: str | None) -> Column:
    """A patient's column; C1 at the origin."""
    levels, parameters = _sizes(rng, pathology)
    pitch, roll, yaw = _curve(rng, pathology, parameters)
    wedge = np.zeros(len(levels))
    if pathology == "compression-fracture":
        at = int(rng.integers(INDEX["T6"], INDEX["L3"]))
        loss = float(rng.uniform(0.28, 0.5))
        wedge[at] = loss
        # The column above leans forward over the collapsed front; the discs take up a part of it.
        lean = np.degrees(np.arctan(loss * levels[at].height_mm / levels[at].depth_mm))
        pitch[: at + 1] += 0.5 * lean * (0.5 + 0.5 * (np.arange(at + 1) == at)) + 0.2 * lean
        parameters |= {"fractured_level": float(at + 1), "front_height_loss": loss}
    # A kyphotic neighbourhood has wedge-shaped bodies, so that the discs keep their thickness in front.
    bend = np.tan(np.radians(np.clip(-np.gradient(pitch), 0, 8)))
    natural = 0.8 * bend * np.array([x.depth_mm / x.height_mm for x in levels])
    wedge = np.maximum(wedge, np.clip(natural, 0, 0.2))
    frames = np.stack([rotation([-p, r, y]) for p, r, y in zip(pitch, roll, yaw, strict=True)])
    centres = _stack(levels, frames)
    return _join(levels, wedge, centres, frames, parameters)


def _sizes(rng: np.random.Generator, pathology: str | None) -> tuple[tuple[Level, ...], dict[str, float]]:
    """The mean levels scaled to a patient: one stature, then smooth and local variation."""
    count = len(LEVELS)
    stature = float(1.0 + 0.05 * np.clip(rng.normal(), -2.0, 2.0))

    def vary(size: float) -> Array:
        smooth = ndimage.gaussian_filter1d(rng.normal(0, 1, count), 3.0, mode="nearest") * 2.5
        return 1 + size * np.clip(smooth + 0.35 * rng.normal(0, 1, count), -2.2, 2.2)

    girth, depth, tall = stature * vary(0.035), stature * vary(0.035), stature * vary(0.03)
    canal, disc = (0.4 + 0.6 * stature) * vary(0.035), stature * vary(0.10)
    span, spine, slope = stature * vary(0.045), stature * vary(0.08), vary(0.07)
    if pathology == "narrow-discs":
        disc = disc * rng.uniform(0.6, 0.75)
    levels = []
    for i, mean in enumerate(LEVELS):
        levels.append(
            replace(
                mean,
                width_mm=float(mean.width_mm * girth[i]),
                depth_mm=float(mean.depth_mm * depth[i]),
                height_mm=float(mean.height_mm * tall[i]),
                # Two voxels of a 64^3 grid must fit between two bodies, or they would fuse.
                disc_mm=max(float(mean.disc_mm * disc[i]), 3.4),
                canal_width_mm=float(mean.canal_width_mm * canal[i]),
                canal_depth_mm=float(mean.canal_depth_mm * canal[i]),
                pedicle_mm=max(float(mean.pedicle_mm * girth[i]), 5.6),
                span_mm=float(mean.span_mm * span[i]),
                spine_mm=float(mean.spine_mm * spine[i]),
                slope_deg=float(mean.slope_deg * slope[i]),
            )
        )
    discs = [x.disc_mm for x in levels[INDEX["T1"] : INDEX["T12"]]]
    return tuple(levels), {"stature": stature, "mean_thoracic_disc_mm": float(np.mean(discs))}


def _curve(
    rng: np.random.Generator, pathology: str | None, parameters: dict[str, float]
) -> tuple[Array, Array, Array]:
    """Forward tilt, sideways tilt and turn of each vertebra in degrees."""
    count = len(LEVELS)
    pitch = np.array([x.pitch_deg for x in LEVELS])
    thorax = slice(INDEX["T1"], INDEX["T12"] + 1)
    neutral = pitch[INDEX["T8"]]
    kyphosis = rng.uniform(1.45, 1.75) if pathology == "hyperkyphosis" else rng.uniform(0.75, 1.2)
    lordosis = rng.uniform(0.7, 1.2)
    # Kyphosis scales the tilts above T8, lordosis those below; both meet at T8.
    scale = np.where(np.arange(count) <= INDEX["T8"], kyphosis, lordosis)
    pitch = neutral + (pitch - neutral) * scale + rng.normal(0, 2.0)
    pitch += ndimage.gaussian_filter1d(rng.normal(0, 1, count), 2.0, mode="nearest") * 3.0
    middle = np.arange(count) - INDEX["T8"]
    roll = ndimage.gaussian_filter1d(rng.normal(0, 1, count), 3.0, mode="nearest") * 3.5
    yaw = ndimage.gaussian_filter1d(rng.normal(0, 1, count), 3.0, mode="nearest") * 3.0
    cobb = 0.0
    if pathology == "scoliosis":
        cobb = float(rng.uniform(22, 45))
        apex, reach = rng.uniform(-2.0, 4.5), rng.uniform(3.2, 4.5)
        side = rng.choice([-1.0, 1.0])
        away = (middle - apex) / reach
        # The bend is the tilt's slope: tilt +-cobb/2 one reach from the apex, turned into the convexity.
        roll = roll + side * cobb / 2 * np.clip(away, -1.6, 1.6) * np.exp(0.5 - 0.5 * away**2)
        yaw = yaw + side * 0.35 * cobb * np.exp(-(away**2))
    parameters |= {
        "kyphosis_t1_t12_deg": float(pitch[thorax][0] - pitch[thorax][-1]),
        "lordosis_l1_l5_deg": float(pitch[INDEX["L5"]] - pitch[INDEX["L1"]]),
        "cobb_deg": cobb,
    }
    return pitch, roll, yaw


def _stack(levels: tuple[Level, ...], frames: Array) -> Array:
    """Centres of the bodies, one below the other, a disc apart along the mean of the two axes."""
    centres = [np.zeros(3)]
    for i in range(1, len(levels)):
        up_above, up_below = frames[i - 1][:, 2], frames[i][:, 2]
        disc = (up_above + up_below) / 2 * levels[i - 1].disc_mm
        step = up_above * levels[i - 1].height_mm / 2 + disc + up_below * levels[i].height_mm / 2
        centres.append(centres[-1] - step)
    return np.stack(centres)


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
        disc = centres[i] - frames[i][:, 2] * (levels[i].height_mm + levels[i].disc_mm) / 2
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


def _point(values: Array) -> Point:
    x, y, z = values.tolist()
    return x, y, z
