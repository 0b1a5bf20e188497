"""Phantoms: parametric populations of the four anatomies, each sample with its truth.

>>> phantom("cardiac", seed=7, n=32).truth.betti["LA+RA"]
[2, 0, 0]
"""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, field
from types import ModuleType
from typing import Any

from anatomica.anatomy.bounds import check_seed
from anatomica.anatomy.catalogue import anatomy as anatomy_of
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError

GRID_STEP = 16
"""A phantom's resolution is a multiple of this: its points are evaluated in 16 blocks per edge."""


@dataclass(frozen=True)
class Truth:
    """What is known of a phantom without measuring it. Points are RAS mm of its label map's affine."""

    anatomy: str
    seed: int
    pathology: str | None
    parameters: dict[str, float]
    """Drawn parameters by name; the name ends in the unit."""
    landmarks_mm: dict[str, list[float]] = field(default_factory=dict)
    centrelines_mm: dict[str, list[list[float]]] = field(default_factory=dict)
    radii_mm: dict[str, list[float]] = field(default_factory=dict)
    """Radius at each point of the centreline of the same name."""
    directions: dict[str, list[float]] = field(default_factory=dict)
    """Unit vectors, such as an end plate's normal."""
    betti: dict[str, list[int]] = field(default_factory=dict)
    """[components, loops, voids] of a tissue or of a union such as "LA+RA"."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Phantom:
    """One made-up patient: the label map and the truth about it."""

    label_map: LabelMap
    truth: Truth


def phantom(anatomy: str, seed: int, n: int = 64, pathology: str | None = None) -> Phantom:
    """The patient number `seed` of an anatomy's population, on an n^3 grid; the same patient at any n.

    Without `pathology` the patient is healthy or has one of the anatomy's pathologies at its stated rate;
    with a name the patient has that one; with "none" the patient is healthy.
    """
    module = _module(anatomy)
    known = ("none", *module.PATHOLOGIES)
    if pathology is not None and pathology not in known:
        raise AnatomicaError(
            f"unknown pathology {pathology!r} of the {anatomy} phantoms; allowed: {', '.join(known)}"
        )
    if n < 2 * GRID_STEP or n > 512 or n % GRID_STEP:
        raise AnatomicaError(f"a phantom's resolution is a multiple of {GRID_STEP} from 32 to 512, not {n}")
    return module.build(check_seed(seed), n, pathology)


def pathologies(anatomy: str) -> dict[str, float]:
    """Names of the anatomy's pathologies and the share of the population that has each."""
    return dict(_module(anatomy).PATHOLOGIES)


def _module(anatomy: str) -> ModuleType:
    """The anatomy's own module, imported only when asked for."""
    found = anatomy_of(anatomy).phantom
    if found is None:
        raise AnatomicaError(f"there are no phantoms of {anatomy} anatomy")
    return importlib.import_module(f"anatomica.data.phantoms.{found}")
