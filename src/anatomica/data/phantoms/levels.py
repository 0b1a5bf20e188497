"""Sizes of the 24 vertebrae, C1 to L5, mm and degrees: the table the spinal phantoms are scaled from.

Canals and processes follow Panjabi et al. (cervical, Spine 1991;16:861; thoracic, Spine 1991;16:888; lumbar,
Spine 1992;17:299). A body and the disc below it add up to the spacing of real columns (`spine_statistics`),
the pedicles stand as far apart as theirs (VID keypoints), and the bodies of T9 to L5 are as wide and deep as
those of two CTs (VerSe, TotalSegmentator), 8 to 13 % more than Panjabi's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Region = Literal["atlas", "axis", "cervical", "thoracic", "lumbar"]


@dataclass(frozen=True)
class Level:
    """Mean sizes of one vertebra."""

    name: str
    region: Region
    width_mm: float
    depth_mm: float
    height_mm: float
    disc_mm: float
    """Thickness of the disc below."""
    canal_width_mm: float
    canal_depth_mm: float
    pedicle_mm: float
    span_mm: float
    """Tip to tip of the transverse processes."""
    spine_mm: float
    """Length of the spinous process behind the lamina."""
    slope_deg: float
    """How steeply the spinous process falls."""


LEVELS: tuple[Level, ...] = (
    Level("C1", "atlas", 34.0, 16.0, 10.0, 2.0, 29.0, 30.0, 6.0, 76.0, 4.0, 0.0),
    Level("C2", "axis", 18.0, 15.5, 26.0, 4.6, 24.5, 17.5, 7.5, 52.0, 16.0, 22.0),
    Level("C3", "cervical", 17.6, 15.8, 12.9, 5.0, 22.9, 15.8, 6.0, 50.0, 13.0, 22.0),
    Level("C4", "cervical", 18.0, 16.0, 12.5, 5.0, 24.0, 15.8, 6.0, 51.0, 13.0, 22.0),
    Level("C5", "cervical", 18.6, 16.2, 12.0, 5.0, 24.6, 15.8, 6.0, 53.0, 14.0, 22.0),
    Level("C6", "cervical", 20.0, 17.0, 11.9, 5.0, 25.4, 15.8, 6.4, 55.0, 18.0, 20.0),
    Level("C7", "cervical", 23.0, 18.0, 13.7, 4.7, 23.5, 15.6, 7.0, 66.0, 27.0, 20.0),
    Level("T1", "thoracic", 27.0, 19.0, 16.5, 3.9, 21.4, 15.8, 7.4, 72.0, 27.0, 26.0),
    Level("T2", "thoracic", 27.0, 20.8, 17.1, 3.8, 18.8, 15.2, 6.6, 67.0, 27.0, 34.0),
    Level("T3", "thoracic", 27.0, 23.2, 17.4, 3.6, 17.2, 15.4, 6.0, 62.0, 28.0, 42.0),
    Level("T4", "thoracic", 27.2, 24.8, 17.5, 3.8, 15.8, 15.4, 5.8, 60.0, 29.0, 47.0),
    Level("T5", "thoracic", 28.0, 26.0, 18.2, 3.8, 15.6, 15.4, 5.8, 60.0, 31.0, 51.0),
    Level("T6", "thoracic", 29.4, 27.6, 18.3, 3.9, 15.8, 15.4, 5.8, 60.5, 33.0, 54.0),
    Level("T7", "thoracic", 31.2, 29.2, 19.1, 3.9, 16.3, 15.3, 5.8, 60.5, 34.0, 55.0),
    Level("T8", "thoracic", 33.0, 30.4, 19.8, 4.0, 17.2, 15.3, 6.0, 60.0, 33.0, 52.0),
    Level("T9", "thoracic", 34.8, 31.4, 20.2, 4.4, 17.6, 15.2, 6.2, 59.0, 30.0, 46.0),
    Level("T10", "thoracic", 36.6, 32.6, 21.7, 4.8, 18.4, 15.2, 6.8, 57.0, 27.0, 36.0),
    Level("T11", "thoracic", 39.0, 33.8, 23.2, 5.7, 19.8, 15.6, 7.8, 51.0, 25.0, 24.0),
    Level("T12", "thoracic", 41.8, 34.8, 24.2, 7.3, 21.8, 18.0, 8.2, 47.0, 25.0, 12.0),
    Level("L1", "lumbar", 44.0, 36.2, 25.8, 8.2, 22.4, 18.6, 8.2, 70.0, 26.0, 6.0),
    Level("L2", "lumbar", 46.0, 37.0, 26.5, 9.2, 22.8, 18.2, 8.4, 75.0, 28.0, 6.0),
    Level("L3", "lumbar", 48.0, 37.8, 26.6, 10.0, 24.0, 17.8, 9.2, 84.0, 28.0, 6.0),
    Level("L4", "lumbar", 50.4, 38.2, 26.3, 10.4, 26.0, 18.4, 11.0, 80.0, 25.0, 7.0),
    Level("L5", "lumbar", 53.0, 38.0, 25.4, 10.0, 29.4, 19.0, 17.0, 88.0, 20.0, 10.0),
)
INDEX: dict[str, int] = {level.name: i for i, level in enumerate(LEVELS)}
