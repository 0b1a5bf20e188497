"""Published normal values of spines and coronary arteries, and how a phantom is measured for each."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from anatomica.data.phantoms import Phantom, spine_statistics
from anatomica.data.phantoms.published import Measure, Published, pooled


def stated(name: str) -> Measure:
    """A parameter of the truth; nan in a patient who has none."""
    return lambda phantom: phantom.truth.parameters.get(name) or float("nan")


def body_height(level: str) -> Measure:
    """Height in mm of a vertebral body behind its middle, along the line to its neighbour's body."""

    def measure(phantom: Phantom) -> float:
        marks = {k: np.array(v) for k, v in phantom.truth.landmarks_mm.items()}
        if level not in phantom.truth.betti:
            return float("nan")
        other = next(m for k, m in marks.items() if k.endswith(" body") and not k.startswith(f"{level} "))
        body, canal = marks[f"{level} body"], marks[f"{level} canal"]
        return _run_mm(phantom, level, body + 0.4 * (canal - body), other - body)

    return measure


def canal(level: str, axis: int) -> Measure:
    """Extent in mm of the free space around the canal's centre along x (0) or y (1)."""

    def measure(phantom: Phantom) -> float:
        if level not in phantom.truth.betti:
            return float("nan")
        return _run_mm(phantom, "", np.array(phantom.truth.landmarks_mm[f"{level} canal"]), np.eye(3)[axis])

    return measure


def apart(first: str, second: str) -> Measure:
    """Distance of two landmarks in mm; nan where one is not seen."""

    def measure(phantom: Phantom) -> float:
        marks = phantom.truth.landmarks_mm
        if first not in marks or second not in marks:
            return float("nan")
        return float(np.linalg.norm(np.array(marks[first]) - np.array(marks[second])))

    return measure


def _run_mm(phantom: Phantom, tissue: str, point_mm: np.ndarray, direction: np.ndarray) -> float:
    """Length of the straight run of one tissue (free space if none is named) through a point."""
    label_map = phantom.label_map
    mask = label_map.mask(tissue) if tissue else label_map.array == 0
    step = 0.1
    offsets = np.arange(-30.0, 30.0 + step / 2, step)
    line = point_mm + offsets[:, None] * direction / np.linalg.norm(direction)
    index = (line - label_map.affine[:3, 3]) / label_map.spacing_mm
    inside = ndimage.map_coordinates(mask.astype(np.float32), index.T, order=1, mode="nearest") >= 0.5
    middle = len(offsets) // 2
    if not inside[middle]:
        return float("nan")
    ends = np.flatnonzero(~inside)
    before, after = ends[ends < middle], ends[ends > middle]
    return float(after.min() - before.max()) * step if len(before) and len(after) else float("nan")


def lumen_areas_mm2(phantom: Phantom) -> np.ndarray:
    """Lumen area of every frame; nan with a side branch, whose section would be counted too."""
    if phantom.truth.parameters["side_branch"]:
        return np.full(phantom.label_map.shape[2], np.nan)
    return phantom.label_map.mask("Lu").sum((0, 1)) * float(phantom.label_map.spacing_mm[0]) ** 2


def minimum_area(phantom: Phantom) -> float:
    return float(lumen_areas_mm2(phantom).min())


def area_stenosis(phantom: Phantom) -> float:
    """Share of lumen area lost between the widest tenth of the pullback and its narrowest frame, %."""
    areas = lumen_areas_mm2(phantom)
    return float(100 * (1 - areas.min() / np.quantile(areas, 0.9)))


def reference_diameter(phantom: Phantom) -> float:
    """Diameter in mm of the circle of the widest tenth's lumen area."""
    return 2 * float(np.sqrt(np.quantile(lumen_areas_mm2(phantom), 0.9) / np.pi))


def wall_share(phantom: Phantom) -> float:
    """Share of the vessel's volume that its wall takes, %; nan with a side branch."""
    if phantom.truth.parameters["side_branch"]:
        return float("nan")
    return 100 * (1 - phantom.label_map.volume_ml("Lu") / phantom.label_map.volume_ml("Lu", "Ca", "Ve"))


_EGWU = "Egwu 2019, J Anat Soc India 68:110, 26 male columns"
_CHUGHTAI = "Chughtai, Pak J Neurol Surg, thoracic spine CT, 200 adults"
_VID = "VID keypoints (ImFusion), CT"


def _spacing(upper: str, lower: str) -> Published:
    """The distance of two neighbouring body centres, from the table of real columns."""
    _, count, mean, sd = next(row for row in spine_statistics.SPACING if row[0] == f"{upper}-{lower}")
    return Published(
        f"{upper} to {lower}",
        "mm",
        mean,
        sd,
        f"{_VID}, body centres, {count} columns",
        apart(f"{upper} body", f"{lower} body"),
    )


SPINAL: tuple[Published, ...] = (
    *(_spacing(a, b) for a, b in (("C4", "C5"), ("T2", "T3"), ("T8", "T9"), ("T12", "L1"), ("L3", "L4"))),
    Published("T9 body height", "mm", 20.46, 3.08, f"{_EGWU}, posterior", body_height("T9")),
    Published(
        "T12 body height",
        "mm",
        21.25,
        1.64,
        "Bang 2019, Clin Interv Aging 14:375, MRI, dorsal, 80 women without fracture",
        body_height("T12"),
    ),
    Published(
        "T6 pedicles apart",
        "mm",
        21.63,
        1.69,
        f"{_VID}, centre to centre, 157 columns",
        apart("T6 pedicle left", "T6 pedicle right"),
    ),
    Published("T7 canal depth", "mm", 17.03, 1.01, _CHUGHTAI, canal("T7", 1)),
    Published(
        "thoracic disc",
        "mm",
        3.5,
        0.9,
        "Fletcher 2015, Surg Radiol Anat, CT, posterior height, 70 men and 58 women",
        stated("mean_thoracic_disc_mm"),
    ),
    Published(
        "kyphosis T1-T12",
        "deg",
        34.0,
        8.0,
        "PMID 21138225, radiographs, 160 adults with a lordotic neck",
        stated("kyphosis_t1_t12_deg"),
    ),
)

_BOGALE = "Bogale 2016, Cardiovasc Revasc Med, OCT, intermediate lesions"
_HILL = "Hill 2020, J Am Coll Cardiol 76:2635 (Disrupt CAD III)"
CORONARY: tuple[Published, ...] = (
    Published("minimum lumen area", "mm2", 3.3, 1.8, _BOGALE, minimum_area),
    Published("lumen area stenosis", "%", 54.2, 11.4, _BOGALE, area_stenosis),
    Published("reference lumen diameter", "mm", 3.03, 0.47, f"{_HILL}, angiography", reference_diameter),
    Published("thickest calcium", "mm", 0.96, 0.25, f"{_HILL}, OCT", stated("calcium_max_thickness_mm")),
    Published(
        "atheroma volume of the vessel's",
        "%",
        *pooled((90, 58.9, 5.6), (116, 53.8, 7.9)),
        "Relationship between IVUS Parameters and FFR in Intermediate Stenosis of the LAD, 206 lesions",
        wall_share,
    ),
)
