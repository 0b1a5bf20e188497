"""One small patient for the tests of volumes and files: a tube of two tissues cut at both ends, and a lump
beside it."""

import numpy as np
import pytest

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.mesh import Surface, surface_of
from anatomica.mesh.tetrahedra import TetOptions, Tetrahedra, tetrahedralize
from anatomica.mesh.tetwild import Made

NAMES = {1: "lumen", 2: "wall", 5: "lump"}


@pytest.fixture(scope="session")
def patient() -> LabelMap:
    x, y, _ = np.meshgrid(*[np.arange(n) for n in (12, 12, 8)], indexing="ij")
    away = np.hypot(x - 4.6, y - 5.3)
    array = np.select([away < 2.3, away < 4.2], [1, 2], 0)
    array[9:11, 4:8, 2:5] = 5
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    affine[:3, 3] = -10.0, 30.0, 100.0
    return LabelMap(array.astype(np.uint8), affine, LabelTable.from_names(NAMES))


@pytest.fixture(scope="session")
def surface(patient: LabelMap) -> Surface:
    return surface_of(patient)


@pytest.fixture(scope="session")
def filled(surface: Surface) -> tuple[Tetrahedra, Made]:
    return tetrahedralize(surface, TetOptions(edge_mm=8.0, tolerance_mm=0.5, energy=20.0))


@pytest.fixture(scope="session")
def tetrahedra(filled: tuple[Tetrahedra, Made]) -> Tetrahedra:
    return filled[0]
