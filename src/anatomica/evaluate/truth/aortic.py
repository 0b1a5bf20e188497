"""Named quantities of an aortic phantom: sections and ostia of its analytic tubes."""

from __future__ import annotations

from dataclasses import fields as names_of
from functools import partial
from itertools import pairwise

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import Truth, tree
from anatomica.data.phantoms import aortic as phantoms
from anatomica.data.phantoms.paint import draw_pathology
from anatomica.data.phantoms.warp import random_warp
from anatomica.evaluate.truth.scene import Line, Scene, cut, degrees, unit
from anatomica.measurement.vocabulary.aortic import (
    ANNULUS_TO_STJ_MM,
    ARCH_MM,
    ISTHMUS_MM,
    OF_THE_ARCH,
    OSTIUM_MM,
    ROOT_MM,
    ROW,
    STJ_MM,
    WAY_MM,
    trunk_flow,
)

Array = np.ndarray
STEP_MM = 0.4
"""Between the points at which sections and ostia are looked at: a fifth of the paper's voxel."""


def known(truth: Truth) -> dict[str, float]:
    """Every quantity of the aortic vocabulary that the phantom has."""
    scene, body = replayed(truth)
    lines = {name: Line(points) for name, points in truth.centrelines_mm.items()}
    # The trunk ends in a half ball around its fork.
    fork = np.array(truth.centrelines_mm["BCT"])
    tip = fork[-1] + truth.radii_mm["BCT"][-1] * unit(fork[-1] - fork[-2])
    lines["BCT"] = Line([*fork, (fork[-1] + tip) / 2, tip])
    ao, bovine = lines["Ao"], body.bovine > 0
    begin = ao.nearest(np.array(truth.landmarks_mm["aortic valve"]))
    bottom = body.scan_top_mm - body.scan_length_mm - float(scene.warp.centre_mm[2])
    below = np.flatnonzero(
        (ao.points_mm[:, 2] < max(bottom, -scene.about.edge_mm / 2)) & (ao.along_mm > ao.length_mm / 2)
    )
    end = float(ao.along_mm[below[0]]) if len(below) else ao.length_mm
    parents = dict.fromkeys(OF_THE_ARCH, "Ao") | {"RCCA": "BCT", "RSCA": "BCT"}
    if bovine:
        parents["LCCA"] = "BCT"
    ostia = {
        name: ostium(scene, name, parent, np.array(truth.landmarks_mm[f"{name} ostium"]), lines[parent])
        for name, parent in parents.items()
    }
    origins = {x: ao.nearest(ostia[x][0]) for x in OF_THE_ARCH if parents[x] == "Ao"}
    stj = begin + junction(scene, ao, begin)[1]
    found = {"bovine": float(bovine)}
    found |= _levels(scene, ao, _places(origins, ostia, stj, end))
    found |= _lengths(ao, origins, ostia, stj, end)
    for name, parent in parents.items():
        line, (place, _) = lines[name], ostia[name]
        start = line.nearest(place)
        seen = cut(
            partial(scene.depth, name),
            line.at(start + OSTIUM_MM),
            line.tangent(start + OSTIUM_MM),
            14.0,
            STEP_MM / 2,
        )
        assert seen is not None
        found[f"{name}.diameter_mm"] = seen.diameter_mm
        if parent != "Ao":
            trunk = lines[parent]
            found[f"{name}.distance_mm"] = trunk.nearest(place) - trunk.nearest(ostia[parent][0])
        begins = lines[parent].nearest(ostia[parent][0]) if parent in ostia else 0.0
        found[f"{name}.takeoff_deg"] = _takeoff(
            scene, name, line, start, parent, lines[parent], begins, place
        )
    found["ao.arch_type"] = _arch_type(scene, ao, origins["BCT"], found["LCCA.diameter_mm"])
    return found


def replayed(truth: Truth) -> tuple[Scene, tree.Build]:
    """The phantom's shapes, drawn again from its seed in the same order as `data.phantoms.aortic.build`."""
    rng = np.random.default_rng([phantoms._SALT, truth.seed])
    pathology = draw_pathology(rng, phantoms.PATHOLOGIES, None)
    body = phantoms.draw(rng, pathology)
    arteries = tree.arteries(body, rng)
    warp = random_warp(rng, 4.0, [(80.0, 4.0), (40.0, 1.2)])
    body = tree.Build(**{x.name: truth.parameters[x.name] for x in names_of(tree.Build)})
    warp = warp.centred_at(phantoms._centre(body, arteries, warp))
    again = warp.to_cube(arteries["LSCA"].curve)
    if not np.allclose(again, truth.centrelines_mm["LSCA"], atol=2e-3):
        raise AssertionError("the aortic phantoms are drawn in another order than their truth expects")
    return Scene(ANATOMIES["aortic"], warp, lambda cloud: phantoms.fields(body, cloud, arteries)), body


def junction(scene: Scene, ao: Line, begin_mm: float) -> tuple[float, float]:
    """Distances from the aorta's first section of the sinuses' widest section and the one that is narrowest
    beyond it; where nothing narrows, the second is where a junction is on average."""
    steps = np.arange(ROOT_MM[0], ROOT_MM[1] + STJ_MM, 1.0)
    areas = np.array([_area(scene, ao, begin_mm + x) for x in steps])
    near = steps <= ROOT_MM[1]
    peaks = np.flatnonzero((areas[1:-1] >= areas[:-2]) & (areas[1:-1] > areas[2:]) & near[1:-1]) + 1
    if not len(peaks):
        return float(steps[near][int(areas[near].argmax())]), ANNULUS_TO_STJ_MM
    widest = int(peaks[areas[peaks].argmax()])
    beyond = (steps >= steps[widest]) & (steps <= steps[widest] + STJ_MM)
    return float(steps[widest]), float(steps[beyond][int(areas[beyond].argmin())])


def _area(scene: Scene, ao: Line, mm: float) -> float:
    seen = cut(partial(scene.depth, "Ao"), ao.at(mm), ao.tangent(mm), 45.0, 2 * STEP_MM)
    return 0.0 if seen is None else seen.area_mm2


def ostium(scene: Scene, name: str, parent: str, guess_mm: Array, line: Line) -> tuple[Array, float]:
    """Centre and area of the patch of a parent's wall that lies within a branch."""
    out = unit(guess_mm - line.at(line.nearest(guess_mm)))
    u = unit(np.cross(out, np.eye(3)[int(np.abs(out).argmin())]))
    v = np.cross(out, u)
    across = np.arange(-14.0, 14.0, STEP_MM)
    a, b = np.meshgrid(across, across, indexing="ij")
    heights = np.arange(-12.0, 12.0, 1.0)
    flat = guess_mm + a[..., None] * u + b[..., None] * v
    wall = scene.parts(flat[..., None, :] + heights[:, None] * out)[parent]
    # From outside inwards: the first height at which the parent's wall is met.
    met = (wall < 0) * np.arange(1, len(heights) + 1)
    top = np.clip(met.max(-1) - 1, 0, len(heights) - 2)
    i, j = np.indices(top.shape)
    low, high = wall[i, j, top], wall[i, j, top + 1]
    height = heights[top] + np.clip(low / np.where(low == high, 1, low - high), 0, 1)
    surface = flat + height[..., None] * out
    here = (met.max(-1) > 0) & (scene.parts(surface + 0.05 * out)[name] < 0)
    step_u, step_v = np.gradient(surface, axis=0), np.gradient(surface, axis=1)
    cells = np.cross(step_u, step_v)[here]
    weight = np.linalg.norm(cells, axis=1)
    centre = (weight[:, None] * surface[here]).sum(0) / weight.sum()
    return centre, float(np.linalg.norm(cells.sum(0)))


def _places(
    origins: dict[str, float], ostia: dict[str, tuple[Array, float]], stj: float, end: float
) -> dict[str, float]:
    first, last = origins["BCT"], origins["LSCA"]
    return {
        "stj": stj,
        "mid_ascending": (stj + first) / 2,
        "distal_ascending": first - np.sqrt(ostia["BCT"][1] / np.pi),
        "mid_arch": (origins.get("LCCA", first) + last) / 2,
        "proximal_descending": last + ISTHMUS_MM,
        "mid_descending": (last + ISTHMUS_MM + end) / 2,
    }


def _levels(scene: Scene, ao: Line, places: dict[str, float]) -> dict[str, float]:
    found = {}
    for level, mm in places.items():
        seen = cut(partial(scene.depth, "Ao"), ao.at(mm), ao.tangent(mm), 45.0, STEP_MM)
        assert seen is not None
        found |= {
            f"ao.{level}.diameter_mm": seen.diameter_mm,
            f"ao.{level}.min_diameter_mm": seen.least_mm,
            f"ao.{level}.max_diameter_mm": seen.most_mm,
            f"ao.{level}.area_mm2": seen.area_mm2,
        }
    return found


def _lengths(
    ao: Line, origins: dict[str, float], ostia: dict[str, tuple[Array, float]], stj: float, end: float
) -> dict[str, float]:
    first, last = origins["BCT"], origins["LSCA"]
    order = sorted(origins, key=OF_THE_ARCH.index)
    zone = "LCCA" if "LCCA" in origins else "BCT"
    behind = {x: origins[x] + np.sqrt(ostia[x][1] / np.pi) for x in (zone, "LSCA")}
    return {
        "ao.ascending.length_mm": first - stj,
        "ao.arch.length_mm": last - first,
        "ao.descending.length_mm": end - last,
        "ao.tortuosity": (end - last) / float(np.linalg.norm(ao.at(end) - ao.at(last))),
        "landing_zone.length_mm": float(behind["LSCA"] - behind[zone]),
        "BCT.distance_mm": first - stj,
        **{f"{b}.distance_mm": origins[b] - origins[a] for a, b in pairwise(order)},
    }


def _takeoff(
    scene: Scene,
    name: str,
    line: Line,
    start: float,
    parent_name: str,
    parent: Line,
    begin: float,
    place: Array,
) -> float:
    """Angle of a branch's way from 5 to 15 mm beyond its ostium with its parent's flow.

    The way is that of what is labelled as the branch: near a fork two branches part half-way between them,
    and the middles of their sections are not those of the tubes.
    """
    places = np.linspace(start + WAY_MM[0], min(start + WAY_MM[1], line.length_mm), ROW)
    cuts = [cut(partial(scene.depth, name), line.at(x), line.tangent(x), 14.0, STEP_MM) for x in places]
    way = np.polyfit(
        places, [line.at(x) if c is None else c.centre_mm for c, x in zip(cuts, places, strict=True)], 1
    )[0]
    origin = parent.nearest(place)
    if parent_name == "Ao":
        half = _radius(scene, parent, origin) / 2
        low, high = origin - half, origin + half
    else:
        low, high = (begin + x for x in trunk_flow(origin - begin))
    return degrees(way, parent.at(high) - parent.at(low))


def _arch_type(scene: Scene, ao: Line, first: float, carotid_mm: float) -> float:
    """By how many carotid diameters the outer wall at the trunk lies below the arch's top."""
    places = np.append(ao.along_mm[ao.points_mm[:, 2] > ao.points_mm[:, 2].max() - ARCH_MM][::8], first)
    outer = [
        ao.at(x)[2] + _radius(scene, ao, x) * np.sqrt(1 - ao.tangent(x)[2] ** 2) for x in places.tolist()
    ]
    drop = float(max(outer) - outer[-1])
    return float(1 + min(int(drop / carotid_mm), 2))


def _radius(scene: Scene, ao: Line, mm: float) -> float:
    seen = cut(partial(scene.depth, "Ao"), ao.at(mm), ao.tangent(mm), 45.0, 2.0)
    return 0.0 if seen is None else seen.diameter_mm / 2
