"""The line on which a vertebral column stands: spacings and tilts drawn like those of real columns.

Spacings, sagittal tilts and coronal tilts are three Gaussian vectors with the means, SDs and correlations of
`spine_statistics`; turns are differences of tilts, and the spacings' common part is the patient's size.
`anatomica.data.spine_realism` defines them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.data.phantoms import spine_statistics as real
from anatomica.data.phantoms.levels import INDEX

Array = np.ndarray
CLIP = 2.2
"""Spacings and tilts stay within so many SDs."""
TURN_CLIP = 2.0
"""Turns stay within so many SDs: laminae of necks bent by more overlap, which a 64^3 grid cannot show."""


@dataclass(frozen=True)
class Curve:
    """23 spacings in mm and the sagittal and coronal tilts of the 23 segments in degrees, from C1 down."""

    spacing_mm: Array
    sagittal_deg: Array
    coronal_deg: Array
    size: float
    """The spacings' common part in SDs of the population."""

    def centres_mm(self) -> Array:
        """Body centres, (24, 3), C1 at the origin."""
        x, y = np.tan(np.radians(self.coronal_deg)), np.tan(np.radians(self.sagittal_deg))
        down = np.stack([x, y, -np.ones_like(x)], axis=1)
        steps = self.spacing_mm[:, None] * down / np.linalg.norm(down, axis=1, keepdims=True)
        return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def draw_curve(rng: np.random.Generator) -> Curve:
    """A patient without a pathology."""
    mean, sd = _moments(real.SPACING)
    z = _gaussian(rng, real.SPACING_CORRELATION)
    # What the mean of the z-scores is in SDs: the sum of all correlations is its variance times 23^2.
    size = float(z.mean() / np.sqrt(real.SPACING_CORRELATION.mean()))
    sagittal = _tilts(rng, real.SAGITTAL_TILT, real.SAGITTAL_TILT_CORRELATION, real.SAGITTAL_TURN)
    coronal = _tilts(rng, real.CORONAL_TILT, real.CORONAL_TILT_CORRELATION, real.CORONAL_TURN)
    return Curve(mean + sd * z, sagittal, coronal, size)


def _tilts(
    rng: np.random.Generator, tilts: tuple[real.Row, ...], correlation: Array, turns: tuple[real.Row, ...]
) -> Array:
    """Tilts of the 23 segments; turns that are too sharp are eased, T12-L1 staying as it is."""
    mean, sd = _moments(tilts)
    drawn = mean + sd * _gaussian(rng, correlation)
    middle, spread = _moments(turns)
    eased = np.clip(np.diff(drawn), middle - TURN_CLIP * spread, middle + TURN_CLIP * spread)
    path = np.concatenate([[0.0], np.cumsum(eased)])
    at = INDEX["T12"]
    return drawn[at] + path - path[at]


def _gaussian(rng: np.random.Generator, correlation: Array) -> Array:
    """Standard normal draws with the given correlations."""
    draw = np.linalg.cholesky(correlation) @ rng.normal(size=len(correlation))
    # Smaller as a whole rather than cut off at single levels, which would kink there.
    return draw * min(1.0, CLIP / float(np.abs(draw).max()))


def _moments(rows: tuple[real.Row, ...]) -> tuple[Array, Array]:
    return np.array([row[2] for row in rows]), np.array([row[3] for row in rows])


def vertebra_tilts(segments_deg: Array) -> Array:
    """Tilt of each of the 24 vertebrae: half-way between the segments above and below it.

    C1 lies on C2 and turns with it; L5 goes on bending as L4 does.
    """
    middle = (segments_deg[:-1] + segments_deg[1:]) / 2
    last = segments_deg[-1] + 0.5 * (segments_deg[-1] - segments_deg[-2])
    return np.concatenate([middle[:1], middle, [last]])


def mean_spacing_around() -> Array:
    """Half the sum of the real mean spacings above and below each vertebra, (24,)."""
    return spacing_around(_moments(real.SPACING)[0])


def spacing_around(spacing_mm: Array) -> Array:
    """Half the sum of the spacings above and below each of the 24 vertebrae; at the ends the one there is."""
    padded = np.concatenate([spacing_mm[:1], spacing_mm, spacing_mm[-1:]])
    return (padded[:-1] + padded[1:]) / 2
