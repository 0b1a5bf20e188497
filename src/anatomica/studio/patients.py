"""The patients of a session: where each came from, its label map, and what was measured of it, once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES, PAPER_GRID, Anatomy
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.errors import AnatomicaError
from anatomica.generation.feasibility import Comparison
from anatomica.generation.goal_recipe import goals_from_dict
from anatomica.generation.sample import Sample
from anatomica.measurement.domains.place import StructureMap
from anatomica.measurement.goals import Row
from anatomica.measurement.measure import soft_structure_map
from anatomica.measurement.pieces import contact_area
from anatomica.measurement.placing import Resolved
from anatomica.measurement.vocabulary.statistics import Found, statistics
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.spec import Spec
from anatomica.spec.vocabulary import entries
from anatomica.studio.bounds import MOST_PATIENTS


@dataclass(frozen=True, eq=False)
class Run:
    """What the patients of one job have in common: what was asked and how. It travels between processes."""

    job: str
    spec: Spec | None
    constraints: tuple[Resolved, ...]
    recipe: dict[str, Any]
    comparisons: tuple[Comparison, ...]

    @cached_property
    def resolved(self) -> tuple[Row, ...]:
        """Everything that was asked. Asks hold functions, which do not travel: they come of the recipe."""
        if self.spec is None:
            return ()
        about = ANATOMIES[self.spec.anatomy]
        goals = goals_from_dict(self.recipe["goals"], self.spec.asks(about), about)
        return (*self.constraints, *goals)


@dataclass(frozen=True, eq=False)
class Patient:
    """One patient in the model's frame. `frame` is what the page is sent; a generated one has its sample."""

    id: str
    name: str
    about: Anatomy
    label_map: LabelMap
    frame: bytes
    sample: Sample | None = None
    run: Run | None = None

    @cached_property
    def cube(self) -> LabelMap:
        """As `anatomica measure` sees it by default."""
        return to_cube(self.label_map, self.about, PAPER_GRID, grow=True)

    @cached_property
    def soft(self) -> StructureMap | None:
        """Partial volumes in the cube, each structure's once; None where the cube is the label map."""
        if self.cube is self.label_map:
            return None
        soft = cache(soft_structure_map(self.label_map, self.cube))
        return lambda names: soft(tuple(names))

    @cached_property
    def statistics(self) -> tuple[Subject, list[Found]] | None:
        """All named quantities, as `anatomica measure` gives them; None where the anatomy has no names."""
        if not entries(self.about.name):
            return None
        return statistics(self.label_map, self.about)

    @cached_property
    def contacts(self) -> list[tuple[str, str]]:
        """Pairs of tissues that touch, the widest contact first: the interfaces that a box can snap to."""
        names = self.label_map.table.names
        area = contact_area(self.label_map.table.index[self.label_map.array], len(names))
        pairs = np.argwhere(np.triu(area, 1) > 0)
        order = np.argsort(-area[pairs[:, 0], pairs[:, 1]], kind="stable")
        return [(names[a], names[b]) for a, b in pairs[order] if a > 0]

    def summary(self) -> dict[str, Any]:
        """What a gallery shows."""
        sample = self.sample
        told: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "anatomy": self.about.name,
            "shape": list(self.label_map.shape),
            "volumes_ml": {t: self.label_map.volume_ml(t) for t in self.label_map.present()},
            "contacts": self.contacts,
        }
        if sample is not None:
            told |= {
                "job": None if self.run is None else self.run.job,
                "seed": sample.seed,
                "met": sample.met,
                "plausible": sample.plausible,
                "valid": sample.valid,
                "seconds": round(sample.seconds, 2),
                "drawn": sample.drawn,
                "checks": [c.to_dict() | {"in_tolerances": c.in_tolerances} for c in sample.checks],
                "unusual": [odd.to_dict() for odd in sample.unusual],
            }
        return told


class Shelf:
    """The last patients, by id. Ids are never used twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._patients: OrderedDict[str, Patient] = OrderedDict()
        self._count = 0

    def new_id(self) -> str:
        with self._lock:
            self._count += 1
            return f"p{self._count}"

    def add(self, patient: Patient) -> list[str]:
        """Remember a patient; returns the ids of those that are forgotten for it."""
        with self._lock:
            self._patients[patient.id] = patient
            gone = []
            while len(self._patients) > MOST_PATIENTS:
                gone.append(self._patients.popitem(last=False)[0])
            return gone

    def remove(self, id: str) -> None:
        with self._lock:
            self._patients.pop(id, None)

    def get(self, id: str) -> Patient:
        with self._lock:
            found = self._patients.get(id)
        if found is None:
            raise AnatomicaError("this patient is not there any more; load or generate it again")
        return found

    def all(self) -> list[Patient]:
        with self._lock:
            return list(self._patients.values())

    def of_run(self, job: str) -> list[Patient]:
        return [p for p in self.all() if p.run is not None and p.run.job == job]
