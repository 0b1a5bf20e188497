"""Diagrams from gudhi and cripser in our conventions, as sorted arrays of (dim, birth, death)."""

from collections.abc import Sequence

import cripser
import gudhi
import numpy as np

from anatomica.measurement.homology import Diagram, persistence


def diagram_of(volume: np.ndarray, *arguments, **options) -> Diagram:
    """`persistence` of one volume."""
    found = persistence(volume, *arguments, **options)
    assert isinstance(found, Diagram)
    return found


def diagrams_of(volumes: Sequence[np.ndarray] | np.ndarray, **options) -> list[Diagram]:
    """`persistence` of a batch."""
    found = persistence(volumes, **options)
    assert isinstance(found, list)
    return found


def table(dim, birth, death) -> np.ndarray:
    """A multiset of pairs in one canonical order, without those of zero persistence."""
    rows = np.stack([np.asarray(column, dtype=np.float64) for column in (dim, birth, death)], axis=1) + 0.0
    rows = rows[rows[:, 1] != rows[:, 2]]
    return rows[np.lexsort(rows.T)]


def ours(diagram) -> np.ndarray:
    return table(diagram.dim, diagram.birth, diagram.death)


def gudhi_table(volume: np.ndarray, construction: str = "V") -> np.ndarray:
    """Superlevel sets are sublevel sets of the negated volume; the essential class dies at the minimum."""
    negated = -volume.astype(np.float64)
    as_vertices = construction == "V"
    cubical = (
        gudhi.CubicalComplex(vertices=negated)
        if as_vertices
        else gudhi.CubicalComplex(top_dimensional_cells=negated)
    )
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
