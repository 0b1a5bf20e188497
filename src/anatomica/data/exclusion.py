"""Quality rules: what the paper's authors sorted out by hand, as explicit checks that can be switched off."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.label_map import LabelMap

Range = tuple[float, float]


@dataclass(frozen=True)
class Rules:
    """Which checks exclude a case.

    `missing`: a tissue that the anatomy needs does not occur in the cube. `border`: a tissue that must be
    whole reaches the edge of the scan, so that part of it is not there. `volume`: a tissue's volume is not
    that of any patient.
    """

    missing: bool = True
    border: bool = True
    volume: bool = True


NO_RULES = Rules(missing=False, border=False, volume=False)


@dataclass(frozen=True)
class Expected:
    """What a usable case of an anatomy looks like.

    `needed` tissues occur in the cube, at least `at_least` tissues in all; `whole` tissues do not touch the
    scan's border along `axes` (array axes in RAS); `plausible_ml` bounds volumes in the cube.
    """

    needed: tuple[str, ...] = ()
    at_least: int = 1
    whole: tuple[str, ...] = ()
    axes: tuple[int, ...] = (0, 1, 2)
    plausible_ml: dict[str, Range] = field(default_factory=dict)


# Bounds are wide on purpose: they reject segmentation failures, not disease. A normal adult left ventricle
# holds about 60-210 mL, a dilated one up to 400; the smallest tissue that the 2 mm grid resolves is ~0.1 mL.
EXPECTED: dict[str, Expected] = {
    "cardiac": Expected(
        needed=ANATOMIES["cardiac"].table.tissues,
        whole=("Myo", "LA", "LV", "RA", "RV"),
        plausible_ml={
            "Myo": (30.0, 400.0),
            "LA": (15.0, 400.0),
            "LV": (15.0, 450.0),
            "RA": (15.0, 450.0),
            "RV": (20.0, 500.0),
            "Ao": (15.0, 700.0),
            "PA": (8.0, 300.0),
            "IVC": (2.0, 200.0),
            "SVC": (1.0, 80.0),
            "PV": (1.0, 150.0),
        },
    ),
    "aortic": Expected(
        needed=ANATOMIES["aortic"].table.tissues,
        # The aorta leaves most scans at the bottom and the carotids at the top; the trunk lies between.
        whole=("BCT",),
        plausible_ml={
            "Ao": (40.0, 900.0),
            "BCT": (0.5, 40.0),
            "LCCA": (0.2, 30.0),
            "RCCA": (0.2, 30.0),
            "LSCA": (0.5, 40.0),
            "RSCA": (0.5, 40.0),
        },
    ),
    # A 128 mm window always cuts vertebrae, so only the upper bound says anything.
    "spinal": Expected(
        at_least=3, plausible_ml=dict.fromkeys(ANATOMIES["spinal"].table.tissues, (0.0, 140.0))
    ),
    "coronary": Expected(
        needed=("Lu", "Ve"),
        whole=("Lu",),
        axes=(0, 1),
        plausible_ml={"Lu": (0.005, 1.0), "Ve": (0.005, 2.0), "Ca": (0.0, 0.5)},
    ),
}


def faults(scan: LabelMap, cube: LabelMap, anatomy: Anatomy, rules: Rules) -> list[str]:
    """Every rule that a case breaks, in words; `scan` is the label map before, `cube` after the crop."""
    expected = EXPECTED[anatomy.name]
    out: list[str] = []
    present = cube.present()
    if rules.missing:
        lacking = [t for t in expected.needed if t not in present]
        if lacking:
            out.append(f"missing: {', '.join(lacking)}")
        elif len(present) < expected.at_least:
            out.append(f"missing: {len(present)} tissues, at least {expected.at_least} are needed")
    if rules.border:
        cut = [t for t in expected.whole if touches_border(scan.mask(t), expected.axes)]
        if cut:
            out.append(f"border: {', '.join(cut)} cut by the edge of the scan")
    if rules.volume:
        for tissue, (low, high) in expected.plausible_ml.items():
            volume_ml = cube.volume_ml(tissue)
            if tissue in present and not low <= volume_ml <= high:
                out.append(f"volume: {tissue} has {volume_ml:.4g} mL, plausible are {low:g} to {high:g}")
    return out


def touches_border(mask: np.ndarray, axes: tuple[int, ...] = (0, 1, 2)) -> bool:
    """Whether the mask has a voxel in the first or last slice along any of the axes."""
    return any(bool(np.take(mask, [0, -1], axis=axis).any()) for axis in axes)
