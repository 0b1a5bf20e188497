"""The frame: where a cube of N^3 voxels lies in the patient, and the units on both sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.label_map import LabelMap, cube_affine


@dataclass(frozen=True, eq=False)
class Frame:
    """Maps the cube's coordinates [0, 1]^3 (inside) to RAS mm and mL (for people)."""

    anatomy: Anatomy
    n: int
    affine: np.ndarray

    @classmethod
    def of(cls, cube: LabelMap, anatomy: Anatomy) -> Frame:
        """The frame of a label map that is already a cube."""
        return cls(anatomy, cube.shape[0], cube.affine)

    @classmethod
    def model(cls, anatomy: Anatomy, n: int) -> Frame:
        """A model's own frame: the anatomy's cube with its centre at 0 mm."""
        return cls(anatomy, n, cube_affine(anatomy.edge_mm, n))

    @property
    def edge_mm(self) -> float:
        return float(self.affine[0, 0]) * self.n

    @property
    def paper_voxel(self) -> float:
        """Edge of a voxel of the paper's 128^3 frame in cube units; extents in specs count these."""
        return self.anatomy.paper_voxel_mm / self.edge_mm

    def to_mm(self, r: np.ndarray) -> np.ndarray:
        """Cube coordinates -> RAS mm."""
        return (np.asarray(r) * self.n - 0.5) * self.affine[0, 0] + self.affine[:3, 3]

    def to_unit(self, mm: np.ndarray) -> np.ndarray:
        """RAS mm -> cube coordinates."""
        return ((np.asarray(mm) - self.affine[:3, 3]) / self.affine[0, 0] + 0.5) / self.n

    def to_ml(self, mass: float) -> float:
        return mass * self.edge_mm**3 / 1000.0

    def to_mass(self, ml: float) -> float:
        return ml * 1000.0 / self.edge_mm**3
