"""Quality rules: what the paper's authors sorted out by hand, as explicit checks that can be switched off.

The anatomy's record says what a usable case looks like (`Anatomy.expected`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap


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


def faults(scan: LabelMap, cube: LabelMap, anatomy: Anatomy, rules: Rules) -> list[str]:
    """Every rule that a case breaks, in words; `scan` is the label map before, `cube` after the crop."""
    expected = anatomy.expected
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
