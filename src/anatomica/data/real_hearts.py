"""Sizes, places and extents of the structures of real hearts: means, SDs, volumes' correlations.

Measured by `tools/real_hearts.py` on 9 of the 19 healthy CT subjects of the shape model of Rodero et
al. 2021 (PLoS Comput Biol 17:e1008851), reconstructed and voxelised at 1 mm; statistics are facts.
`anatomica.data.realism` defines the features.
"""

from __future__ import annotations

import numpy as np

from anatomica.data.realism import Reference

# Structure, means and SDs of: volume, right, front, up, longest, middle, shortest
_ROWS = (
    ("Myo", "147.67 -25.24 -3.30 -9.40 24.52 20.32 18.29", "38.24 3.10 2.17 1.69 1.92 1.18 1.27"),
    ("LA", "67.46 17.06 -34.50 32.24 15.74 12.42 7.92", "14.60 4.03 4.62 4.47 1.47 1.40 1.15"),
    ("LV", "126.69 -22.78 -4.42 -6.93 21.21 12.60 11.18", "23.72 3.52 1.82 2.11 2.08 0.95 0.74"),
    ("RA", "87.50 46.25 -4.98 11.69 18.67 11.48 9.47", "21.07 3.03 5.31 4.64 1.86 1.08 1.02"),
    ("RV", "156.22 8.88 24.83 -6.11 23.19 16.62 11.21", "37.92 2.64 2.04 3.61 2.26 1.91 1.19"),
)

REFERENCE = Reference(
    source="Rodero 2021, PLoS Comput Biol 17:e1008851, CT, healthy adults",
    count=9,
    structures=tuple(name for name, _, _ in _ROWS),
    mean=np.array([float(x) for _, mean, _ in _ROWS for x in mean.split()]),
    sd=np.array([float(x) for _, _, sd in _ROWS for x in sd.split()]),
)

VOLUME_CORRELATION = np.array(
    [
        [1.0, -0.09, 0.48, 0.37, 0.79],
        [-0.09, 1.0, 0.4, 0.52, 0.24],
        [0.48, 0.4, 1.0, 0.35, 0.76],
        [0.37, 0.52, 0.35, 1.0, 0.67],
        [0.79, 0.24, 0.76, 0.67, 1.0],
    ]
)
"""Of the volumes, in the order of the structures."""
