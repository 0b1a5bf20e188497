"""The catalogue: the four anatomies of the paper with their frames."""

from __future__ import annotations

from dataclasses import dataclass, field

from anatomica.anatomy.labels import BACKGROUND, Colour, Label, LabelTable
from anatomica.errors import AnatomicaError


@dataclass(frozen=True)
class Anatomy:
    """One of the paper's data sets: its label table and the cube in which its model works.

    `edge_mm` is the cube's edge L; the paper's grid is 128^3, so a paper voxel is edge_mm / 128.
    `centre_on` are the tissues whose union's centre is the cube's centre (empty: all tissues).
    """

    name: str
    table: LabelTable
    edge_mm: float
    centre_on: tuple[str, ...] = field(default=())

    @property
    def paper_voxel_mm(self) -> float:
        return self.edge_mm / PAPER_GRID


PAPER_GRID = 128
"""Voxels along an edge of the paper's frame; extents in specs count these."""


def _table(*rows: tuple[str, str, Colour]) -> LabelTable:
    background = Label(0, BACKGROUND, BACKGROUND, (0, 0, 0))
    return LabelTable((background, *(Label(i, *row) for i, row in enumerate(rows, start=1))))


def _spine() -> LabelTable:
    regions = [("C", 7, "cervical", 0.95), ("T", 12, "thoracic", 0.30), ("L", 5, "lumbar", 0.58)]
    return _table(
        *(
            (f"{letter}{n}", f"{region} vertebra {n}", _shade(hue, n))
            for letter, count, region, hue in regions
            for n in range(1, count + 1)
        )
    )


def _shade(hue: float, n: int) -> Colour:
    """Neighbouring vertebrae differ in lightness, regions in hue."""
    import colorsys

    r, g, b = colorsys.hsv_to_rgb((hue + 0.035 * (n % 3)) % 1.0, (0.35, 0.62)[n % 2], (0.95, 0.80)[n % 2])
    return round(255 * r), round(255 * g), round(255 * b)


ANATOMIES: dict[str, Anatomy] = {
    "cardiac": Anatomy(
        "cardiac",
        _table(
            ("Myo", "myocardium", (206, 110, 84)),
            ("LA", "left atrium", (232, 150, 170)),
            ("LV", "left ventricle", (196, 40, 48)),
            ("RA", "right atrium", (120, 170, 220)),
            ("RV", "right ventricle", (52, 96, 190)),
            ("Ao", "aorta", (224, 70, 60)),
            ("PA", "pulmonary artery", (90, 120, 230)),
            ("IVC", "inferior vena cava", (40, 150, 170)),
            ("SVC", "superior vena cava", (70, 180, 200)),
            ("PV", "pulmonary veins", (240, 180, 90)),
        ),
        edge_mm=256.0,
        centre_on=("LA", "LV", "RA", "RV"),
    ),
    "aortic": Anatomy(
        "aortic",
        _table(
            ("Ao", "aorta", (214, 64, 56)),
            ("BCT", "brachiocephalic trunk", (240, 170, 60)),
            ("LCCA", "left common carotid artery", (90, 170, 90)),
            ("RCCA", "right common carotid artery", (60, 140, 200)),
            ("LSCA", "left subclavian artery", (150, 100, 200)),
            ("RSCA", "right subclavian artery", (70, 190, 190)),
        ),
        edge_mm=256.0,
    ),
    "spinal": Anatomy("spinal", _spine(), edge_mm=128.0),
    "coronary": Anatomy(
        "coronary",
        _table(
            ("Lu", "lumen", (200, 50, 50)),
            ("Ca", "calcium", (250, 240, 220)),
            ("Ve", "vessel wall", (222, 170, 130)),
        ),
        edge_mm=12.8,
    ),
}


def anatomy(name: str) -> Anatomy:
    """The anatomy called `name`, or an error that lists the four."""
    try:
        return ANATOMIES[name]
    except KeyError:
        raise AnatomicaError(f"unknown anatomy {name!r}; allowed: {', '.join(ANATOMIES)}") from None
