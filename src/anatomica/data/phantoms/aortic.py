"""Aortic phantoms: the thoracic aorta with its arch and five supra-aortic branches, as in a chest CT."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import Phantom, Truth
from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms import tree as tr
from anatomica.data.phantoms.aorta_truth import known
from anatomica.data.phantoms.mend import mend, mend_union
from anatomica.data.phantoms.paint import draw_pathology, raster
from anatomica.data.phantoms.published import Measure, Published, diameter, parameter, pooled
from anatomica.data.phantoms.shapes import Array, Cloud
from anatomica.data.phantoms.tree import Artery, Build
from anatomica.data.phantoms.warp import Warp, random_warp

PATHOLOGIES: dict[str, float] = {"aneurysm": 0.10, "bovine-arch": 0.15, "tortuous": 0.10}
"""Bovine arches: 3 to 26 % in ten studies of 1,000 patients or more, 15.5 % in Terzioglu 2022."""

_TISSUES = ANATOMIES["aortic"].table.tissues
WHOLE = "+".join(_TISSUES)
BETTI: dict[str, list[int]] = {name: [1, 0, 0] for name in (*_TISSUES, WHOLE)}
"""Topology of every patient: each artery a tube, all together one tree."""

LEAST_VOXELS = 0.88
"""Least radius in voxels: each voxel that the centreline crosses is then inside, so the tube is connected."""

LEAST_GAP_MM = 5.0
"""Between two branches where they leave the arch."""

_HAGER = "Hager 2002, J Thorac Cardiovasc Surg 123:1060, helical CT, 70 adults"
_GIRSOWICZ = "Girsowicz 2017, Ann Vasc Surg, CT angiography, 61 healthy adults"
_YAN = "Yan Y et al. (in Chinese), CT angiography of normal arches 2009 to 2012, at the origin, 217 adults"
_WANG = "Wang 2016, J Vasc Surg, CT, 2370 adults"


def _level(name: str) -> Measure:
    """Diameter in mm of the circle of equal area at a level that the truth places on the centreline."""
    return lambda phantom: diameter("Ao", "Ao", phantom.truth.parameters[f"{name}_along_mm"])(phantom)


def _of_type(kind: int) -> Measure:
    """100 in patients whose arch is of this type, else 0: the mean is a percentage."""
    return lambda phantom: 100.0 * (phantom.truth.parameters["arch_type"] == kind)


def _percent(share: float) -> tuple[float, float]:
    """Mean and SD of a property that a share of the patients has, in percent."""
    return 100 * share, 100 * (share * (1 - share)) ** 0.5


PUBLISHED: tuple[Published, ...] = (
    Published("aortic sinus", "mm", 29.8, 4.6, _HAGER, diameter("Ao", "Ao", 12)),
    Published("ascending aorta", "mm", 30.9, 4.1, _HAGER, _level("mid_ascending")),
    Published("aorta before the trunk", "mm", 29.4, 4.2, _HAGER, _level("distal_ascending")),
    Published("distal transverse arch", "mm", 26.1, 4.1, _HAGER, _level("mid_arch")),
    Published("isthmus", "mm", 24.7, 4.0, _HAGER, _level("proximal_descending")),
    Published("descending aorta", "mm", 23.9, 3.3, _GIRSOWICZ, _level("mid_descending")),
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
    # SDs from the 95 % confidence intervals of the means.
    Published("BCT to LCCA", "mm", 21.8, 6.2, _GIRSOWICZ, parameter("LCCA_distance_mm")),
    Published("LCCA to LSCA", "mm", 14.3, 5.2, _GIRSOWICZ, parameter("LSCA_distance_mm")),
    Published(
        "tortuosity of the descending aorta",
        "1",
        *pooled((100, 1.05, 0.0), (100, 1.14, 0.0)),
        "Belvroy 2019, PLoS One 14:e0215549, CT, 100 below and 100 above 65 years; SD between them only",
        parameter("descending_tortuosity"),
    ),
    Published("type I arch", "%", *_percent(1338 / 2370), _WANG, _of_type(1)),
    Published("type II arch", "%", *_percent(777 / 2370), _WANG, _of_type(2)),
    Published("type III arch", "%", *_percent(255 / 2370), _WANG, _of_type(3)),
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
    # The scan's top cuts the carotids, never the trunk's fork or a subclavian artery's bend.
    bends = np.concatenate([arteries[name].curve for name in ("LSCA", "RSCA")])
    highest = float(warp.to_cube(bends)[:, 2].max()) + 0.5 * max(body.lsca_mm, body.rsca_mm) + 6.0
    body = replace(body, scan_top_mm=max(body.scan_top_mm, highest))
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

    male = float(rng.random() < 0.55)
    age = float(np.clip(rng.normal(57.0, 15.0), 20.0, 90.0))
    decades = (age - 57.0) / 10.0
    # Relative widths. All of an aorta's diameters grow with age, by 2.5 % a decade, and are 5 % larger in
    # men (Hager 2002); what else varies is for two thirds common to the whole aorta. Branches follow it.
    aorta = 0.025 * decades + 0.05 * (male - 0.55) + normal(0.0, 0.11)
    branches = 0.6 * aorta + normal(0.0, 0.08)

    def wide(mean: float, sd: float) -> float:
        return mean * (1 + aorta + normal(0.0, sd))

    def branch(mean: float, sd: float) -> float:
        return max(mean * (1 + branches + normal(0.0, sd)), 0.62 * mean)

    p = {
        "age_years": age,
        "male": male,
        "size": normal(0.98 + 0.04 * male, 0.04),
        "sinus_mm": wide(30.2, 0.08),
        "ascending_mm": wide(30.4, 0.07),
        "arch_mm": wide(27.4, 0.065),
        "isthmus_mm": wide(24.7, 0.085),
        "descending_mm": wide(24.3, 0.07),
        # The arch grows with age, backwards more than upwards (Boufi 2017).
        "arch_height_mm": normal(70.0 + 1.2 * decades, 7.0),
        "arch_left_mm": normal(40.0 + 0.8 * decades, 5.5),
        "arch_back_mm": normal(74.0 + 1.8 * decades, 6.5),
        "steepness": max(normal(0.43 + 0.26 * decades, 0.92), -0.3),
        "first_mm": normal(15.0, 3.0),
        "second_mm": normal(18.0, 4.0),
        "third_mm": normal(17.5, 4.0),
        "bct_lean_deg": normal(0.0, 13.0),
        "lcca_lean_deg": normal(0.0, 10.0),
        "lsca_lean_deg": normal(0.0, 10.0),
        "bct_mm": branch(12.6, 0.11),
        "bct_length": normal(1.0, 0.16),
        "lcca_mm": branch(8.5, 0.145),
        "rcca_mm": branch(8.7, 0.11),
        "lsca_mm": branch(10.4, 0.165),
        "rsca_mm": branch(10.0, 0.13),
        "shoulder": normal(0.98 + 0.04 * male, 0.06),
        # Descending aortas wind more in the old (Belvroy 2019).
        "wander_mm": abs(normal(1.5, 0.8)) + 0.30 * max(age - 55.0, 0.0),
        "wander_branches_mm": abs(normal(1.6, 0.7)),
        "aneurysm_mm": 0.0,
        "aneurysm_at": 0.0,
        "aneurysm_long_mm": 0.0,
        "bovine": 0.0,
        "scan_top_mm": float(rng.uniform(150, 162)),
        # Whole 8 mm, so that the scan's ends fall between voxels of the centred cube at 64^3 and finer.
        "scan_length_mm": 8.0 * float(rng.integers(30, 35)),
    }
    # Two branches whose walls are nearer than a voxel at 64^3 would fuse.
    p["second_mm"] = max(p["second_mm"], 0.54 * (p["bct_mm"] + p["lcca_mm"]) + LEAST_GAP_MM)
    p["third_mm"] = max(p["third_mm"], 0.54 * (p["lcca_mm"] + p["lsca_mm"]) + LEAST_GAP_MM)
    strength = float(rng.uniform(0.6, 1.0))
    ascending = rng.random() < 0.5
    at, long_mm = rng.uniform(34, 44) if ascending else rng.uniform(190, 245), rng.uniform(17, 28)
    if pathology == "aneurysm":
        p |= {"aneurysm_mm": 38 + 22 * strength, "aneurysm_at": float(at), "aneurysm_long_mm": float(long_mm)}
    elif pathology == "bovine-arch":
        p["bovine"] = 1.0
    elif pathology == "tortuous":
        p["wander_mm"] = 9.0 + 7.0 * strength
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
    # Fillets belong between tube and sinuses; between the tube's own pieces they would widen it.
    tube = sh.union(cloud, arteries["Ao"].shapes(least_mm)[:2])
    root = sh.union(cloud, tr.sinuses(body), 4.0, onto=tube)
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
    vessels, points, numbers = known(body, arteries, warp)
    apex = vessels["Ao"].curve[np.argmax(vessels["Ao"].curve[:, 2])]
    points = {
        "aortic valve": warp.to_cube(np.zeros((1, 3)))[0],
        "arch apex": apex,
        **{f"{name} origin": vessels[name].curve[0] for name in ("BCT", "LCCA", "LSCA")},
        "BCT fork": vessels["BCT"].curve[-1],
        **points,
    }
    return Truth(
        anatomy="aortic",
        seed=seed,
        pathology=pathology,
        parameters=asdict(body) | {name: round(value, 4) for name, value in numbers.items()},
        landmarks_mm={name: np.round(point, 3).tolist() for name, point in points.items()},
        centrelines_mm={name: np.round(vessel.curve, 3).tolist() for name, vessel in vessels.items()},
        radii_mm={name: np.round(vessel.radius_mm, 3).tolist() for name, vessel in vessels.items()},
        betti=BETTI,
    )
