"""The numbers of the paper's tables, to stand beside ours."""

from __future__ import annotations

# Keys are those of the rows of our tables: paper is Anatomica-L, paper-v Anatomica-V.
GEOMETRIC: dict[str, dict[str, tuple[float, float, float, float, float]]] = {
    "right-ventricle": {
        "explicit": (154.5, 227.1, 101.4, 164.7, 0.761),
        "implicit": (60.6, 51.0, 30.6, 156.3, 0.593),
        "paper": (17.5, 48.6, 22.1, 93.7, 0.566),
        "paper-v": (12.3, 30.2, 21.6, 84.9, 0.590),
    },
    "mitral-valve": {
        "explicit": (29.0, 246.5, 37.4, 97.1, 0.577),
        "implicit": (8.91, 87.0, 17.3, 314.8, 0.661),
        "paper": (3.22, 11.4, 7.89, 88.8, 0.577),
        "paper-v": (3.81, 41.4, 7.99, 93.8, 0.586),
    },
    "aortic-trunk": {
        "explicit": (2.53, 272.6, 13.9, 114.3, 0.587),
        "implicit": (0.81, 35.2, 5.30, 104.8, 0.565),
        "paper": (2.38, 86.0, 16.2, 89.8, 0.580),
        "paper-v": (2.40, 84.9, 14.4, 82.0, 0.561),
    },
    "myocardium-wall": {
        "explicit": (1.01, 123.4, 3.39, 130.7, 0.574),
        "implicit": (0.48, 22.3, 1.67, 111.0, 0.558),
        "paper": (0.29, 34.6, 1.87, 86.4, 0.609),
        "paper-v": (0.36, 42.3, 1.93, 97.3, 0.554),
    },
}
"""Mass x 1e5, centroid x 1e4, covariance x 1e5, FMD, 1-NNA (table "geometric control tasks")."""

TOPOLOGICAL: dict[str, dict[str, tuple[float, float, float, float]]] = {
    "atrial-separation": {
        "unconditional": (7.81, 5.47, 56.2, 0.578),
        "paper": (78.9, 89.1, 97.7, 0.606),
    },
    "branch-connectivity": {
        "unconditional": (55.5, 12.5, 63.3, 0.559),
        "paper": (77.3, 17.2, 64.1, 0.532),
    },
    "vertebrae-connectivity": {
        "unconditional": (28.9, 8.59, 12.5, 0.518),
        "paper": (74.2, 26.6, 7.03, 0.537),
    },
    "calcium-count": {"unconditional": (0.00, 2.34, 95.3, 0.653), "paper": (60.9, 79.7, 98.4, 0.618)},
}
"""Precision in % of B0, B1, B2, and 1-NNA (table "topological control tasks")."""

PARTIAL_DECODING: dict[tuple[str, str], tuple[float, float, float, float, float, float]] = {
    ("local", "high"): (17.02, 48.14, 21.85, 91.16, 0.57, 2.48),
    ("local", "med."): (16.64, 48.41, 22.03, 93.89, 0.58, 7.43),
    ("local", "low"): (16.43, 48.75, 22.07, 105.57, 0.55, 10.40),
    ("coarse", "high"): (17.50, 48.58, 22.77, 114.62, 0.55, 2.08),
    ("coarse", "med."): (17.75, 48.78, 23.03, 119.93, 0.53, 7.43),
    ("coarse", "low"): (20.30, 46.96, 25.60, 123.31, 0.54, 10.40),
    ("global", "high"): (11.95, 30.66, 21.92, 84.70, 0.58, 1.00),
}
"""Fidelity, FMD, 1-NNA and relative speed (table "partial decoding strategies"); global is Anatomica-V."""

TOPOLOGICAL_SPEED: dict[tuple[str, int], float] = {
    ("anatomica-l", 16): 32.0,
    ("anatomica-l", 32): 26.25,
    ("anatomica-l", 64): 11.0,
    ("anatomica-l", 128): 1.14,
    ("anatomica-v", 128): 1.0,
}
"""Relative speed (table "topological sampling speed")."""
