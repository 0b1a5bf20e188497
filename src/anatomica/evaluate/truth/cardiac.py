"""Named quantities of a cardiac phantom: rays, planes and sections of its analytic shapes, in the cube."""

from __future__ import annotations

from functools import partial

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import Truth
from anatomica.data.phantoms import cardiac as phantoms
from anatomica.data.phantoms.paint import crop_centre, draw_pathology
from anatomica.data.phantoms.warp import random_warp
from anatomica.evaluate.truth.aortic import junction
from anatomica.evaluate.truth.scene import Cut, Line, Scene, cut, labelled, moments, unit
from anatomica.measurement.vocabulary.cardiac import MUSCLE_G_PER_ML, TRUNK_MM
from anatomica.measurement.vocabulary.ventricle import LEAST, Axis, segment_rays
from anatomica.spec.vocabulary_tables import SEGMENTS

Array = np.ndarray
STEP_MM = 0.4


def known(truth: Truth) -> dict[str, float]:
    """Every quantity of the cardiac vocabulary."""
    scene, chambers = replayed(truth)
    volumes = chambers.volumes_ml()
    found = {f"{x.lower()}.volume_ml": volumes[x] for x in ("LV", "RV", "LA", "RA")}
    found["lv.mass_g"] = MUSCLE_G_PER_ML * volumes["Myo"]
    mitral = patch(chambers, "LV", "LA", np.array(truth.landmarks_mm["mitral valve"]), 30.0)
    aortic = patch(scene, "LV", "Ao", np.array(truth.landmarks_mm["aortic valve"]), 22.0)
    for name, seen in (("mv", mitral), ("av", aortic)):
        a, b = seen.most_mm / 2, seen.least_mm / 2
        h = ((a - b) / (a + b)) ** 2
        found |= {
            f"{name}.annulus.area_mm2": seen.area_mm2,
            f"{name}.annulus.diameter_mm": seen.diameter_mm,
            f"{name}.annulus.perimeter_mm": float(np.pi * (a + b) * (1 + 3 * h / (10 + np.sqrt(4 - 3 * h)))),
            f"{name}.annulus.eccentricity": 1 - seen.least_mm / seen.most_mm,
        }
    axis = long_axis(chambers, mitral.centre_mm)
    found["lv.long_axis_mm"] = axis.length_mm
    found["lv.sphericity"] = 1000 * volumes["LV"] / (np.pi / 6 * axis.length_mm**3)
    walls = {k: thickness(chambers, axis, k) for k in SEGMENTS}
    there = {k: x for k, x in walls.items() if x is not None}
    found |= {f"lv.wall_thickness_mm.s{k}": x for k, x in there.items()}
    found["lv.wall_thickness_mm.mean"] = float(np.mean(list(there.values())))
    found["lv.wall_thickness_mm.max"] = max(there.values())
    return found | _vessels(scene, truth) | {"septum.defects": 0.0}


def replayed(truth: Truth) -> tuple[Scene, Scene]:
    """The phantom's shapes, drawn again from its seed in the order of `data.phantoms.cardiac.build`; the last
    scene has only the chambers, which claim their points before all vessels."""
    rng = np.random.default_rng([phantoms._SALT, truth.seed])
    heart = phantoms.draw(rng, draw_pathology(rng, phantoms.PATHOLOGIES, None))
    warp = random_warp(rng, phantoms.TILT_DEG, [(72.0, 7.5), (36.0, 2.1)])
    about, vessels = ANATOMIES["cardiac"], phantoms._vessels(heart)
    centre = crop_centre(
        warp,
        about.edge_mm,
        lambda cloud: phantoms.fields(heart, cloud, vessels, chambers=True),
        about.centre_on,
    )
    warp = warp.centred_at(centre)
    if not np.allclose(warp.to_cube(heart.mitral)[0], truth.landmarks_mm["mitral valve"], atol=2e-3):
        raise AssertionError("the cardiac phantoms are drawn in another order than their truth expects")
    scenes = [
        Scene(about, warp, lambda cloud, c=only: phantoms.fields(heart, cloud, vessels, chambers=c))
        for only in (False, True)
    ]
    return scenes[0], scenes[1]


def patch(scene: Scene, first: str, second: str, near_mm: Array, reach_mm: float) -> Cut:
    """Where two cavities meet: the part of the first one's border beyond which the second one begins.

    The border is integrated as a smeared level set, w d(f) grad f, over points 1 mm apart; seen along its own
    vector area it has an area, a centroid and an elongation.
    """
    step, thick = 1.0, 1.5
    line = np.arange(-reach_mm, reach_mm + step, step)
    points = near_mm + np.stack(np.meshgrid(line, line, line, indexing="ij"), -1)
    f = labelled(scene.parts(points), first)
    slope = np.stack([np.gradient(f, step, axis=axis) for axis in range(3)], -1)
    band = np.abs(f) < thick
    f, slope, points = f[band], slope[band], points[band]
    out = slope / np.maximum(np.square(slope).sum(1, keepdims=True), 1e-6)
    beyond = labelled(scene.parts(points + (0.3 - f)[:, None] * out), second) < 0
    points = points - f[:, None] * out
    elements = (beyond * (1 + np.cos(np.pi * f / thick)) / (2 * thick) * step**3)[:, None] * slope
    normal = unit(elements.sum(0))
    u = unit(np.cross(normal, np.eye(3)[int(np.abs(normal).argmin())]))
    v = np.cross(normal, u)
    weight = np.clip(elements @ normal, 0, None)
    middle = (weight[:, None] * points).sum(0) / weight.sum()
    seen = moments((points - middle) @ u, (points - middle) @ v, weight, 1.0, middle, u, v)
    area = float(np.linalg.norm(elements.sum(0)))
    wide = np.sqrt(area / seen.area_mm2)
    return Cut(area, seen.centre_mm, wide * seen.most_mm, wide * seen.least_mm)


def long_axis(scene: Scene, base_mm: Array) -> Axis:
    """From the mitral annulus to the point of the cavity that is farthest from it."""
    right = _centroid(scene, "RV")
    way = unit(_centroid(scene, "LV") - base_mm)
    best = way
    for spread in (0.6, 0.25, 0.1):
        lean = np.linspace(-spread, spread, 11)
        u = unit(np.cross(best, np.eye(3)[int(np.abs(best).argmin())]))
        v = np.cross(best, u)
        a, b = (x.ravel() for x in np.meshgrid(lean, lean, indexing="ij"))
        ways = best + a[:, None] * u + b[:, None] * v
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        away = np.arange(40.0, 130.0, 1.0)
        depth = labelled(scene.parts(base_mm + away[:, None] * ways[:, None]), "LV")
        k = np.maximum(((depth < 0) * np.arange(1, len(away) + 1)).max(1), 1) - 1
        rows, beyond = np.arange(len(ways)), np.minimum(k + 1, len(away) - 1)
        low, high = depth[rows, k], depth[rows, beyond]
        length = away[k] + np.clip(-low / np.maximum(high - low, 1e-9), 0, 1)
        best, far = ways[int(length.argmax())], float(length.max())
    septal = right - base_mm
    septal = unit(septal - septal @ best * best)
    return Axis(base_mm, base_mm + far * best, best, septal, np.cross(best, septal))


def _centroid(scene: Scene, name: str) -> Array:
    """By points 5 mm apart."""
    line = np.arange(-90.0, 90.0, 5.0)
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1)
    return points[labelled(scene.parts(points), name) < 0].mean(0)


def thickness(scene: Scene, axis: Axis, segment: int) -> float | None:
    """Mean over a segment's rays of the muscle's length on the ray times the cosine to the wall's normal."""
    starts, ways = (np.array(x) for x in zip(*segment_rays(axis, segment), strict=True))
    step = 0.5
    away = np.arange(0.0, 75.0, step)
    points = starts[:, None] + away[:, None] * ways[:, None]
    parts = scene.parts(points)
    cavity, muscle = labelled(parts, "LV"), labelled(parts, "Myo")
    rays, lengths, entries, exits = [], [], [], []
    for i, way in enumerate(ways):
        inside = np.flatnonzero(muscle[i] < 0)
        if not len(inside):
            continue
        first = int(inside[0])
        if not (cavity[i, :first] < 0).any() or (cavity[i, :first] >= 0).sum() * step > 3.0:
            continue  # the ray left through a valve before it met the wall
        last = first + int((muscle[i, first:] >= 0).argmax())
        ends = [_crossing(cavity[i], first - 1, step), _crossing(muscle[i], last - 1, step)]
        rays.append(way)
        lengths.append(ends[1] - ends[0])
        entries.append(starts[i] + ends[0] * way)
        exits.append(starts[i] + ends[1] * way)
    if len(rays) < LEAST * len(ways):
        return None
    normal = _slopes(scene, np.array(entries), ("LV",)) + _slopes(scene, np.array(exits), ("LV", "Myo"))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    return float((np.array(lengths) * np.maximum((normal * np.array(rays)).sum(1), 0.3)).mean())


def _crossing(depth: Array, k: int, step: float) -> float:
    """Where a depth passes from below zero at k to above it."""
    low, high = depth[k], depth[k + 1]
    return float(step * (k + np.clip(-low / max(high - low, 1e-9), 0, 1)))


def _slopes(scene: Scene, points: Array, names: tuple[str, ...]) -> Array:
    """Unit gradients of the distance to a union of tissues at points (m, 3)."""
    parts = scene.parts(points[:, None] + 0.5 * np.concatenate([np.eye(3), -np.eye(3)]))
    depth = np.minimum.reduce([parts[x] for x in names])
    slope = depth[:, :3] - depth[:, 3:]
    return slope / np.linalg.norm(slope, axis=1, keepdims=True)


def _vessels(scene: Scene, truth: Truth) -> dict[str, float]:
    """Diameters of the aorta's levels and of the pulmonary trunk."""
    ao, trunk = (Line(truth.centrelines_mm[x]) for x in ("aorta", "PA trunk"))
    begin = ao.nearest(np.array(truth.landmarks_mm["aortic valve"]))
    sinus, stj = junction(scene, ao, begin)
    top = float(ao.along_mm[int(ao.points_mm[:, 2].argmax())])
    valve = trunk.nearest(np.array(truth.landmarks_mm["pulmonary valve"]))
    places = {
        "ao.sinus": ("Ao", ao, begin + sinus),
        "ao.stj": ("Ao", ao, begin + stj),
        "ao.ascending": ("Ao", ao, (begin + stj + top) / 2),
        "pa": ("PA", trunk, valve + TRUNK_MM),
    }
    found = {}
    for key, (name, line, mm) in places.items():
        seen = cut(partial(scene.depth, name), line.at(mm), line.tangent(mm), 40.0, STEP_MM)
        assert seen is not None
        found[f"{key}.diameter_mm"] = seen.diameter_mm
    return found
