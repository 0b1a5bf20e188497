"""The persistence diagram of one volume as plain arrays."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray


class Diagram(NamedTuple):
    """The persistence pairs of one volume under its superlevel filtration: row i of every array is one class.

    A class of dimension 0 is a component, of 1 a loop, of 2 a void.  It is there for thresholds t with
    ``death < t <= birth``; ``birth`` is the volume's value at ``birth_voxel``, ``death`` at ``death_voxel``
    (flat indices in C order).  Rows are grouped by dimension; within one they have no particular order unless
    ``top`` was asked for.  ``essential`` marks the component that never dies: its death is put at the
    volume's minimum.
    """

    dim: Int[ndarray, " n"]
    birth: Float[ndarray, " n"]
    death: Float[ndarray, " n"]
    birth_voxel: Int[ndarray, " n"]
    death_voxel: Int[ndarray, " n"]
    essential: Bool[ndarray, " n"]

    @property
    def persistence(self) -> Float[ndarray, " n"]:
        return self.birth - self.death

    def of_dim(self, dim: int) -> "Diagram":
        """The classes of one dimension."""
        rows = self.dim == dim
        return Diagram(*(column[rows] for column in self))

    def betti(self, threshold: float) -> tuple[int, int, int]:
        """Betti numbers of {volume >= threshold}, for thresholds above the volume's minimum."""
        alive = (self.death < threshold) & (threshold <= self.birth)
        counts = np.bincount(self.dim[alive], minlength=3)
        return int(counts[0]), int(counts[1]), int(counts[2])
