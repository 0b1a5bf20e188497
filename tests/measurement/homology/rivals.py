"""Diagrams from gudhi and cripser in our conventions, as sorted arrays of (dim, birth, death)."""

import cripser
import gudhi
import numpy as np


def table(dim, birth, death) -> np.ndarray:
    """A multiset of pairs in one canonical order, without those of zero persistence."""
    rows = np.stack([np.asarray(column, dtype=np.float64) for column in (dim, birth, death)], axis=1) + 0.0
    rows = rows[rows[:, 1] != rows[:, 2]]
    return rows[np.lexsort(rows.T)]


def ours(diagram) -> np.ndarray:
    return table(diagram.dim, diagram.birth, diagram.death)


def gudhi_table(volume: np.ndarray, construction: str = "V") -> np.ndarray:
    """Superlevel sets are sublevel sets of the negated volume; the essential class dies at the minimum."""
    cells = "vertices" if construction == "V" else "top_dimensional_cells"
    cubical = gudhi.CubicalComplex(**{cells: -volume.astype(np.float64)})
    cubical.compute_persistence(homology_coeff_field=2)
    dims, births, deaths = [], [], []
    for dim in range(3):
        pairs = cubical.persistence_intervals_in_dimension(dim)
        dims += [dim] * len(pairs)
        births += [-pairs[:, 0]]
        deaths += [-np.minimum(pairs[:, 1], -float(volume.min()))]
    return table(dims, np.concatenate(births), np.concatenate(deaths))


def cripser_table(volume: np.ndarray, construction: str = "V") -> np.ndarray:
    compute = cripser.computePH if construction == "V" else cripser.computePH_T
    rows = compute(-volume.astype(np.float64), maxdim=2)
    return table(rows[:, 0], -rows[:, 1], -np.minimum(rows[:, 2], -float(volume.min())))
