"""Sizes of the 24 vertebrae, C1 to L5, mm and degrees: the table the spinal phantoms are scaled from.

Bodies and canals follow Panjabi et al. (cervical, Spine 1991;16:861; thoracic, Spine 1991;16:888; lumbar,
Spine 1992;17:299); processes and discs are rounded from the same papers and from CT.
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
    pitch_deg: float
    """Forward tilt of the vertebra in the natural curve."""


LEVELS: tuple[Level, ...] = (
    Level("C1", "atlas", 34.0, 16.0, 10.0, 2.0, 29.0, 30.0, 6.0, 76.0, 4.0, 0.0, -1.0),
    Level("C2", "axis", 18.0, 15.5, 18.0, 4.5, 24.5, 17.5, 7.5, 52.0, 16.0, 22.0, -2.0),
    Level("C3", "cervical", 17.0, 15.4, 12.4, 5.0, 22.9, 15.8, 6.0, 50.0, 13.0, 22.0, 0.0),
    Level("C4", "cervical", 17.6, 15.6, 12.2, 5.0, 24.0, 15.8, 6.0, 51.0, 13.0, 22.0, 3.0),
    Level("C5", "cervical", 18.2, 15.8, 12.2, 5.0, 24.6, 15.8, 6.0, 53.0, 14.0, 22.0, 7.0),
    Level("C6", "cervical", 19.6, 16.6, 12.4, 5.2, 25.4, 15.8, 6.4, 55.0, 18.0, 20.0, 12.0),
    Level("C7", "cervical", 22.4, 17.6, 13.6, 4.8, 24.5, 15.6, 7.0, 66.0, 27.0, 20.0, 17.0),
    Level("T1", "thoracic", 25.5, 18.0, 15.2, 3.8, 21.8, 16.4, 7.6, 72.0, 27.0, 26.0, 21.0),
    Level("T2", "thoracic", 25.2, 19.6, 16.2, 3.6, 19.5, 15.8, 7.2, 67.0, 27.0, 34.0, 20.0),
    Level("T3", "thoracic", 25.0, 22.0, 16.4, 3.5, 19.1, 16.0, 6.4, 62.0, 28.0, 42.0, 17.0),
    Level("T4", "thoracic", 25.0, 23.3, 16.8, 3.5, 18.3, 16.0, 6.0, 60.0, 29.0, 47.0, 14.0),
    Level("T5", "thoracic", 25.5, 24.4, 17.0, 3.6, 18.1, 16.0, 6.0, 60.0, 31.0, 51.0, 11.0),
    Level("T6", "thoracic", 26.6, 26.0, 17.8, 3.9, 18.0, 16.0, 6.0, 60.5, 33.0, 54.0, 7.0),
    Level("T7", "thoracic", 28.0, 27.3, 18.4, 4.1, 18.0, 15.9, 6.2, 60.5, 34.0, 55.0, 3.0),
    Level("T8", "thoracic", 29.5, 28.2, 18.9, 4.4, 18.4, 15.9, 6.6, 60.0, 33.0, 52.0, -1.0),
    Level("T9", "thoracic", 30.8, 29.2, 19.5, 4.7, 18.6, 15.8, 7.0, 59.0, 30.0, 46.0, -5.0),
    Level("T10", "thoracic", 32.4, 30.4, 20.4, 5.1, 19.0, 15.8, 7.6, 57.0, 27.0, 36.0, -8.5),
    Level("T11", "thoracic", 35.2, 31.8, 21.4, 5.7, 19.4, 16.2, 8.4, 51.0, 25.0, 24.0, -12.0),
    Level("T12", "thoracic", 38.8, 32.8, 22.9, 7.0, 22.2, 18.0, 8.6, 47.0, 25.0, 12.0, -14.5),
    Level("L1", "lumbar", 41.0, 34.0, 24.0, 8.0, 23.0, 18.6, 8.6, 70.0, 26.0, 6.0, -15.0),
    Level("L2", "lumbar", 42.6, 34.6, 24.6, 9.0, 23.4, 18.2, 8.8, 75.0, 28.0, 6.0, -11.0),
    Level("L3", "lumbar", 44.2, 35.2, 24.8, 9.8, 24.0, 17.8, 9.4, 84.0, 28.0, 6.0, -4.0),
    Level("L4", "lumbar", 46.4, 35.5, 24.8, 10.6, 25.0, 18.4, 11.0, 80.0, 25.0, 7.0, 6.0),
    Level("L5", "lumbar", 47.6, 34.8, 24.4, 10.0, 26.6, 19.0, 13.0, 88.0, 20.0, 10.0, 20.0),
)
INDEX: dict[str, int] = {level.name: i for i, level in enumerate(LEVELS)}
