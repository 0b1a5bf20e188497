"""Cardiac phantoms: four chambers, the myocardium and the great vessels at mid-diastole, as in gated CT."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.data.phantoms import Phantom, Truth
from anatomica.data.phantoms import heart as ht
from anatomica.data.phantoms import shapes as sh
from anatomica.data.phantoms import vessels as vs
from anatomica.data.phantoms.heart import Heart
from anatomica.data.phantoms.mend import mend
from anatomica.data.phantoms.paint import Fields, crop_centre, draw_pathology, in_cube, raster
from anatomica.data.phantoms.published import Published, diameter, pooled, ratio, section, volume
from anatomica.data.phantoms.shapes import Cloud
from anatomica.data.phantoms.warp import Warp, random_warp

PATHOLOGIES: dict[str, float] = {
    "dilated-rv": 0.06,
    "dilated-lv": 0.06,
    "hypertrophy": 0.06,
    "enlarged-la": 0.06,
    "root-aneurysm": 0.04,
}

BETTI: dict[str, list[int]] = {name: [1, 0, 0] for name in ANATOMIES["cardiac"].table.tissues} | {
    "PV": [4, 0, 0],
    "LA+RA": [2, 0, 0],
}
"""Topology of every patient: each tissue a ball (the myocardium a cup), four veins, atria apart."""

_HUDSMITH = "Hudsmith 2005, J Cardiovasc Magn Reson 7:775, 63 men and 45 women"
_HAGER = "Hager 2002, J Thorac Cardiovasc Surg 123:1060, helical CT, 70 adults"
PUBLISHED: tuple[Published, ...] = (
    Published(
        "LV cavity", "mL", *pooled((63, 160, 29), (45, 135, 26)), f"{_HUDSMITH}, end-diastole", volume("LV")
    ),
    Published(
        "RV cavity", "mL", *pooled((63, 190, 33), (45, 148, 35)), f"{_HUDSMITH}, end-diastole", volume("RV")
    ),
    Published("LA", "mL", *pooled((63, 103, 30), (45, 89, 21)), f"{_HUDSMITH}, maximal", volume("LA")),
    Published(
        "RA : LA",
        "1",
        1.41,
        0.15,
        "Järvinen 1994, Radiology 191:137, peak volumes, 8 adults",
        ratio("RA", "LA"),
    ),
    Published(
        "myocardium",
        "mL",
        *pooled((1, 134 / 1.05, 21 / 1.05), (1, 98 / 1.05, 21 / 1.05)),
        "Kawel-Boehm 2015, J Cardiovasc Magn Reson 17:29, mass of men and women at 1.05 g/mL",
        volume("Myo"),
    ),
    Published("aortic sinus", "mm", 29.8, 4.6, _HAGER, diameter("Ao", "aorta", 12)),
    Published("ascending aorta", "mm", 30.9, 4.1, _HAGER, diameter("Ao", "aorta", 55)),
    Published("aorta at the diaphragm", "mm", 24.3, 3.5, _HAGER, diameter("Ao", "aorta", 225)),
    Published(
        "pulmonary trunk",
        "mm",
        25.1,
        2.8,
        "Truong 2012, Circ Cardiovasc Imaging 5:147, CT, 3171 adults",
        diameter("PA", "PA trunk", 20),
    ),
    Published(
        "SVC",
        "cm2",
        (1.08 + 4.42) / 2,
        (4.42 - 1.08) / (2 * 1.645),
        "Lin 2009, PubMed 19394871, gated CT, 5th to 95th percentile, 103 adults",
        section("SVC", "SVC", 45),
    ),
    Published(
        "IVC",
        "mm",
        (16.9 * 26.2) ** 0.5,
        2.5,
        "Cureus 2022, 14:e31845, CT 2 cm from the atrium, 16.9 by 26.2 mm, 200 adults",
        diameter("IVC", "IVC", 38),
    ),
)
"""Adults' values; the phantoms are at mid-diastole: ventricles near their largest size, atria below it."""

TILT_DEG = (4.6, 2.0, 1.8)
"""SDs of the pose about x, y and z; more would spread the centroids further than those of real hearts."""
THIN_WALL_MM = (7.5, 8.5)
"""Thinnest lateral wall and septum; below, `heart.WALL_MM` would decide."""
_SALT = 1001  # keeps the anatomies' populations independent of each other at equal seeds


def build(seed: int, n: int, pathology: str | None) -> Phantom:
    """The cardiac patient `seed` on an n^3 grid of the 256 mm cube around the four chambers."""
    rng = np.random.default_rng([_SALT, seed])
    pathology = draw_pathology(rng, PATHOLOGIES, pathology)
    heart = draw(rng, pathology)
    warp = random_warp(rng, TILT_DEG, [(72.0, 7.5), (36.0, 2.1)])
    frame = ANATOMIES["cardiac"]
    vessels = _vessels(heart)
    centre = crop_centre(
        warp, frame.edge_mm, lambda cloud: fields(heart, cloud, vessels, chambers=True), frame.centre_on
    )
    warp = warp.centred_at(centre)
    label_map = raster(warp, frame, n, lambda cloud: fields(heart, cloud, vessels))
    for label in frame.table.labels[1:]:
        mend(label_map.array, label.id, BETTI[label.name])
    return Phantom(label_map, _truth(seed, pathology, heart, vessels, warp))


def draw(rng: np.random.Generator, pathology: str | None) -> Heart:
    """A heart at random; `pathology` moves its own parameters far out of the normal range.

    One size factor scales the whole heart, and the parameters go with it as far as they do in the nine real
    hearts of `anatomica.data.real_hearts`: larger ventricles come with larger hearts. Means and SDs of the
    features of that table decide the other SDs.
    """
    big = float(np.clip(rng.normal(), -2.2, 2.2))

    def normal(mean: float, sd: float, with_size: float = 0.0) -> float:
        """A value whose correlation with the heart's size is `with_size`."""
        own = np.clip(rng.normal(), -2.2, 2.2)
        return float(mean + sd * (with_size * big + np.sqrt(1 - with_size**2) * own))

    p = {
        "size": 1.0 + 0.058 * big,
        "lv": normal(1.0, 0.03, -0.2),
        "lv_length": normal(1.0, 0.045, 0.2),
        "wall_mm": max(THIN_WALL_MM[0], normal(8.8, 2.25, 0.5)),
        "septum_mm": max(THIN_WALL_MM[1], normal(9.8, 2.25, 0.5)),
        "rv": normal(1.0, 0.06, 0.4),
        "rv_bulge": normal(1.0, 0.06),
        "rv_tall": normal(1.0, 0.10),
        "rv_drop_mm": normal(0.0, 3.6),
        "outflow": normal(1.0, 0.08),
        "la": normal(1.0, 0.02),
        "la_flat": normal(1.0, 0.15),
        "la_tall": normal(1.0, 0.09),
        "la_right_mm": normal(0.0, 2.2),
        "la_forward_mm": normal(0.0, 2.2),
        "la_up_mm": normal(0.0, 2.4),
        "appendage_left_mm": normal(30.0, 5.0, 0.3),
        "appendage_turn": normal(0.3, 0.35),
        "ra": normal(1.0, 0.06),
        "ra_tall": normal(1.0, 0.10),
        "ra_flat": normal(1.0, 0.16),
        "ra_right_mm": normal(0.0, 2.0),
        "ra_forward_mm": normal(0.0, 4.5),
        "ra_up_mm": normal(0.0, 3.8),
        "appendage_right_mm": normal(30.0, 4.0, 0.3),
        "mitral_mm": normal(33.0, 2.0, 0.5),
        "tricuspid_mm": normal(36.0, 2.0, 0.5),
        "sinus_mm": normal(32.5, 2.4, 0.4),
        "ascending_mm": normal(31.0, 2.6, 0.4),
        "descending_mm": normal(24.5, 1.9, 0.4),
        "arch_height_mm": normal(74.0, 3.5),
        "arch_left_mm": normal(33.0, 3.5),
        "arch_back_mm": normal(76.0, 4.0),
        "trunk_mm": normal(25.6, 2.0, 0.4),
        "svc_mm": normal(19.5, 1.6, 0.4),
        "ivc_mm": normal(24.0, 2.0, 0.4),
        "vein_mm": normal(14.5, 0.9, 0.3),
        "vein_spread": normal(1.0, 0.05),
        "vein_length_mm": normal(46.0, 5.0),
    }
    strength = float(rng.uniform(0.6, 1.0))
    changes = {
        "dilated-rv": {"rv": 0.22, "rv_bulge": 0.15, "ra": 0.14, "tricuspid_mm": 7.0},
        "dilated-lv": {"lv": 0.20, "lv_length": -0.05, "wall_mm": -0.5, "mitral_mm": 5.0, "la": 0.03},
        "hypertrophy": {"wall_mm": 7.5, "septum_mm": 10.5, "lv": -0.05, "la": 0.02},
        "enlarged-la": {"la": 0.15, "mitral_mm": 4.0},
        "root-aneurysm": {"sinus_mm": 16.0, "ascending_mm": 9.0},
    }
    for name, change in changes.get(pathology or "", {}).items():
        p[name] += change * strength
    return Heart(**p)


def _vessels(heart: Heart) -> dict[str, dict[str, vs.Vessel]]:
    """Each vessel tissue's tubes by name."""
    cavae = vs.cavae(heart)
    return {
        "Ao": {"aorta": vs.aorta(heart)},
        "PA": vs.pulmonary_arteries(heart),
        "SVC": {"SVC": cavae["SVC"]},
        "IVC": {"IVC": cavae["IVC"]},
        "PV": vs.pulmonary_veins(heart),
    }


def fields(heart: Heart, cloud: Cloud, vessels: dict, chambers: bool = False) -> Fields:
    """Distance fields in the order in which they claim voxels; only the chambers if asked."""
    aorta = sh.union(cloud, vessels["Ao"]["aorta"].shapes())
    lv, epicardium, myocardium = ht.left_ventricle(heart, cloud)
    rv = ht.right_ventricle(heart, cloud, epicardium, aorta)
    stumps = (
        [s for vein in vessels["PV"].values() for s in vein.stump()],
        [s for name in ("SVC", "IVC") for s in vessels[name][name].stump()],
    )
    la, ra = ht.atria(heart, cloud, epicardium, aorta, stumps)
    four = {"LV": lv, "Myo": myocardium, "RV": rv, "LA": la, "RA": ra}
    if chambers:
        return four
    tubes = {name: [s for v in parts.values() for s in v.shapes()] for name, parts in vessels.items()}
    pulmonary = sh.union(cloud, tubes["PA"], 2.0)
    pulmonary = np.maximum(pulmonary, 1.5 - aorta)
    veins = sh.union(cloud, tubes["PV"])
    veins = np.maximum(veins, 1.5 - np.minimum(pulmonary, ra))
    svc = np.maximum(sh.union(cloud, tubes["SVC"]), 1.0 - np.minimum(aorta, pulmonary))
    return {
        **four,
        "Ao": aorta,
        "PA": pulmonary,
        "SVC": svc,
        "IVC": sh.union(cloud, tubes["IVC"]),
        "PV": veins,
    }


def _truth(seed: int, pathology: str | None, heart: Heart, vessels: dict, warp: Warp) -> Truth:
    tubes = {name: vessel for parts in vessels.values() for name, vessel in parts.items()}
    places = {
        "mitral valve": heart.mitral,
        "aortic valve": heart.aortic,
        "tricuspid valve": heart.tricuspid,
        "pulmonary valve": heart.pulmonary,
        "LV apex": heart.lv_centre + heart.cavity[0] * ht.APEX,
    }
    landmarks, centrelines = in_cube(warp, places, {name: v.curve for name, v in tubes.items()})
    return Truth(
        anatomy="cardiac",
        seed=seed,
        pathology=pathology,
        parameters=asdict(heart),
        landmarks_mm=landmarks,
        centrelines_mm=centrelines,
        radii_mm={name: np.round(v.radii_mm, 3).tolist() for name, v in tubes.items()},
        betti=BETTI,
    )
