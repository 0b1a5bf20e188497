"""Aortic phantoms: the thoracic aorta with its arch and five supra-aortic branches, as in a chest CT."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import Phantom, Truth
from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms import tree as tr
from anatomica.data.phantoms.mend import mend, mend_union
from anatomica.data.phantoms.paint import draw_pathology, in_cube, raster
from anatomica.data.phantoms.published import Published, diameter
from anatomica.data.phantoms.shapes import Array, Cloud
from anatomica.data.phantoms.tree import Artery, Build
from anatomica.data.phantoms.warp import Warp, random_warp

PATHOLOGIES: dict[str, float] = {"aneurysm": 0.10, "bovine-arch": 0.12, "tortuous": 0.10}

_TISSUES = ANATOMIES["aortic"].table.tissues
WHOLE = "+".join(_TISSUES)
BETTI: dict[str, list[int]] = {name: [1, 0, 0] for name in (*_TISSUES, WHOLE)}
"""Topology of every patient: each artery a tube, all together one tree."""

LEAST_VOXELS = 0.88
"""Least radius in voxels: each voxel that the centreline crosses is then inside, so the tube is connected."""

_HAGER = "Hager 2002, J Thorac Cardiovasc Surg 123:1060, helical CT, 70 adults"
_YAN = "Yan Y et al. (in Chinese), CT angiography of normal arches 2009 to 2012, at the origin, 217 adults"
PUBLISHED: tuple[Published, ...] = (
    Published("aortic sinus", "mm", 29.8, 4.6, _HAGER, diameter("Ao", "Ao", 12)),
    Published("ascending aorta", "mm", 30.9, 4.1, _HAGER, diameter("Ao", "Ao", 50)),
    Published("proximal transverse arch", "mm", 27.7, 3.7, _HAGER, diameter("Ao", "Ao", 88)),
    Published("isthmus", "mm", 24.7, 4.0, _HAGER, diameter("Ao", "Ao", 145)),
    Published("aorta at the diaphragm", "mm", 24.3, 3.5, _HAGER, diameter("Ao", "Ao", 230)),
    Published("BCT", "mm", 12.50, 1.95, _YAN, diameter("BCT", "BCT", 26)),
    Published("LCCA", "mm", 8.28, 1.51, _YAN, diameter("LCCA", "LCCA", 30)),
    Published("LSCA", "mm", 10.41, 2.20, _YAN, diameter("LSCA", "LSCA", 30)),
    Published(
        "RCCA with its wall",
        "mm",
        6.54 + 2 * 1.18,
        (0.70**2 + (2 * 0.58) ** 2) ** 0.5,
        "lumen: Tuncer 2018, Int J Med Health Res 4(12), CT angiography; wall: Casella 2008, Clinics 63:515",
        diameter("RCCA", "RCCA", 24),
    ),
)
"""Adults' values. The phantoms' arteries are labelled with their walls, as they are in CT."""

_SALT = 1002


def build(seed: int, n: int, pathology: str | None) -> Phantom:
    """The aortic patient `seed` on an n^3 grid of the 256 mm cube around all arteries."""
    rng = np.random.default_rng([_SALT, seed])
    pathology = draw_pathology(rng, PATHOLOGIES, pathology)
    body = draw(rng, pathology)
    arteries = tr.arteries(body, rng)
    warp = random_warp(rng, 4.0, [(80.0, 4.0), (40.0, 1.2)])
    frame = ANATOMIES["aortic"]
    warp = warp.centred_at(_centre(body, arteries, warp))
    label_map = raster(warp, frame, n, lambda cloud: fields(body, cloud, arteries))
    height_mm = ((np.arange(n) + 0.5) / n - 0.5) * frame.edge_mm + warp.centre_mm[2]
    label_map.array[
        :, :, (height_mm > body.scan_top_mm) | (height_mm < body.scan_top_mm - body.scan_length_mm)
    ] = 0
    for label in frame.table.labels[1:]:
        mend(label_map.array, label.id, BETTI[label.name])
    mend_union(label_map.array, BETTI[WHOLE])
    return Phantom(label_map, _truth(seed, pathology, body, arteries, warp))


def draw(rng: np.random.Generator, pathology: str | None) -> Build:
    """A patient at random; `pathology` moves its own parameters far out of the normal range."""

    def normal(mean: float, sd: float) -> float:
        return float(mean + sd * np.clip(rng.normal(), -2.2, 2.2))

    wide = normal(1.0, 0.07)  # one body's vessels are wide or narrow together
    p = {
        "size": normal(1.0, 0.04),
        "sinus_mm": wide * normal(31.8, 1.6),
        "ascending_mm": wide * normal(30.6, 1.8),
        "arch_mm": wide * normal(27.4, 1.3),
        "isthmus_mm": wide * normal(24.8, 1.2),
        "descending_mm": wide * normal(24.0, 1.2),
        "arch_height_mm": normal(70.0, 4.0),
        "arch_left_mm": normal(40.0, 4.0),
        "arch_back_mm": normal(74.0, 5.0),
        "arch_peak": normal(0.3, 0.6),
        "bct_mm": wide * normal(13.2, 0.8),
        "bct_length": normal(1.0, 0.08),
        "lcca_mm": wide * normal(9.2, 0.4),
        "rcca_mm": wide * normal(9.0, 0.4),
        "lsca_mm": wide * normal(10.9, 0.6),
        "rsca_mm": wide * normal(10.2, 0.5),
        "shoulder": normal(1.0, 0.06),
        "wander_mm": abs(normal(2.0, 1.0)),
        "wander_branches_mm": abs(normal(1.6, 0.7)),
        "aneurysm_mm": 0.0,
        "aneurysm_at": 0.0,
        "aneurysm_long_mm": 0.0,
        "bovine": 0.0,
        "scan_top_mm": float(rng.uniform(150, 162)),
        # Whole 8 mm, so that the scan's ends fall between voxels of the centred cube at 64^3 and finer.
        "scan_length_mm": 8.0 * float(rng.integers(30, 35)),
    }
    strength = float(rng.uniform(0.6, 1.0))
    ascending = rng.random() < 0.5
    at, long_mm = rng.uniform(34, 44) if ascending else rng.uniform(190, 245), rng.uniform(17, 28)
    if pathology == "aneurysm":
        p |= {"aneurysm_mm": 38 + 22 * strength, "aneurysm_at": float(at), "aneurysm_long_mm": float(long_mm)}
    elif pathology == "bovine-arch":
        p["bovine"] = 1.0
    elif pathology == "tortuous":
        p["wander_mm"] = 13.0 * strength
        p["wander_branches_mm"] = 4.5 * strength
        p["arch_height_mm"] += 6.0
        p["arch_back_mm"] += 8.0
    return Build(**p)


def fields(body: Build, cloud: Cloud, arteries: dict[str, Artery]) -> dict[str, Array]:
    """Distance fields in the order in which they claim voxels."""
    least_mm = LEAST_VOXELS * cloud.voxel_mm
    parts = {name: sh.union(cloud, artery.shapes(least_mm)) for name, artery in arteries.items()}
    # The trunk's two branches part half-way between them; else one would wrap around the other in a ring.
    parts["RCCA"] = np.maximum(parts["RCCA"], parts["RCCA"] - parts["RSCA"])
    root = sh.union(cloud, [*arteries["Ao"].shapes(least_mm)[:2], *tr.sinuses(body)], 4.0)
    # The valve's plane cuts the root; the descending aorta, which also lies below it, is not meant.
    plane = sh.half_space(cloud.points, np.zeros(3), -tr.AXIS)
    aorta = np.minimum(parts["Ao"], root)
    near = np.einsum("...i,...i", cloud.points, cloud.points) < (1.1 * body.size * body.sinus_mm) ** 2
    parts["Ao"] = np.where(near, np.maximum(aorta, plane), aorta)
    return parts


def _centre(body: Build, arteries: dict[str, Artery], warp: Warp) -> Array:
    """Middle of the bounding box of all arteries within the scan."""
    low, high = [], []
    for artery in arteries.values():
        points = warp.to_cube(artery.curve)
        seen = (points[:, 2] < body.scan_top_mm) & (points[:, 2] > body.scan_top_mm - body.scan_length_mm)
        radius = artery.radii_mm[seen, None]
        low.append((points[seen] - radius).min(0))
        high.append((points[seen] + radius).max(0))
    bottom, top = np.min(low, axis=0), np.max(high, axis=0)
    bottom[2], top[2] = max(bottom[2], body.scan_top_mm - body.scan_length_mm), min(top[2], body.scan_top_mm)
    return (bottom + top) / 2


def _truth(seed: int, pathology: str | None, body: Build, arteries: dict[str, Artery], warp: Warp) -> Truth:
    places = {
        "aortic valve": np.zeros(3),
        "arch apex": arteries["Ao"].curve[np.argmax(arteries["Ao"].curve[:, 2])],
        "BCT origin": arteries["BCT"].curve[0],
        "BCT fork": arteries["BCT"].curve[-1],
        "LCCA origin": arteries["LCCA"].curve[0],
        "LSCA origin": arteries["LSCA"].curve[0],
    }
    landmarks, centrelines = in_cube(warp, places, {name: a.curve for name, a in arteries.items()})
    return Truth(
        anatomy="aortic",
        seed=seed,
        pathology=pathology,
        parameters=asdict(body),
        landmarks_mm=landmarks,
        centrelines_mm=centrelines,
        radii_mm={name: np.round(a.radii_mm, 3).tolist() for name, a in arteries.items()},
        betti=BETTI,
    )
