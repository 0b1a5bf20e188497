"""Where a box can snap to: a tissue's bounding box, the interface of two tissues, the place of a quantity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict
from scipy.spatial.transform import Rotation

from anatomica.anatomy.frame import Frame
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.place import place
from anatomica.measurement.placing import structure_map
from anatomica.measurement.vocabulary.statistics import Found, find
from anatomica.spec import spec
from anatomica.studio.patients import Patient

ROOM = 1.3
"""A box around a section is this much wider than the section."""
THIN_MM = 2.0
"""Thickness of a box around a section."""


class Snap(BaseModel):
    """`tissue` takes one tissue, `interface` two, `quantity` the key of a quantity that has a place."""

    model_config = ConfigDict(extra="forbid", strict=True)

    to: Literal["tissue", "interface", "quantity"]
    tissues: list[str] = []
    key: str = ""


def snap(wanted: Snap, patient: Patient) -> dict[str, Any]:
    """The box as a spec has it: centre and size in mm, rotation in degrees about x, then y, then z."""
    if wanted.to == "quantity":
        return _quantity(wanted.key, patient)
    frame = Frame.of(patient.cube, patient.about)
    S = structure_map(patient.cube)
    tissues = [patient.about.table[name].name for name in wanted.tissues]
    if wanted.to == "tissue" and len(tissues) == 1:
        domain = spec.CartesianDomain(grid=(8, 8, 8))
    elif wanted.to == "interface" and len(tissues) == 2:
        domain = spec.InterfaceDomain(grid=(32, 32, 4), first=tissues[:1], second=tissues[1:])
    else:
        raise AnatomicaError("a box snaps to one tissue, or to the interface of two")
    return _box(place(domain, tissues[:1], frame, S), frame)


def _box(domains: Domains, frame: Frame) -> dict[str, Any]:
    if not bool(domains.valid[0]):
        raise AnatomicaError(f"there is nothing to snap to: {domains.reasons[0]}")
    return {
        "centre_mm": _short(frame.to_mm(domains.t[0].numpy())),
        "size_mm": _short((domains.s[0] * frame.edge_mm).numpy()),
        "rotation_deg": _degrees(domains.R[0].numpy()),
    }


def has_place(found: Found) -> bool:
    """Whether a quantity is measured around one place: a section or an annulus, not a length or a volume."""
    if not found.marks or len(found.marks[0].line_mm) < 3:
        return False
    line = found.marks[0].line_mm
    return bool(np.allclose(line[0], line[-1]))


def _quantity(key: str, patient: Patient) -> dict[str, Any]:
    """A thin box around the first mark of a quantity: a level of the aorta, a valve's annulus."""
    if patient.statistics is None:
        raise AnatomicaError(f"there are no named quantities of {patient.about.name} anatomy")
    subject, _ = patient.statistics
    found = find(subject, key)
    if found.value is None:
        raise AnatomicaError(f"{key} is not in this patient: {found.reason}")
    if not has_place(found):
        raise AnatomicaError(f"{key} has no place of its own to snap to")
    line = subject.to_ras(found.marks[0].line_mm)
    centre = line[:-1].mean(axis=0)
    axes = np.linalg.svd(line - centre, full_matrices=False)[2]
    u, v = axes[0], axes[1]
    R = np.stack([u, v, np.cross(u, v)], axis=1)
    wide = 2 * np.abs((line - centre) @ R[:, :2]).max(axis=0) * ROOM
    return {
        "centre_mm": _short(centre),
        "size_mm": _short(np.array([*np.maximum(wide, THIN_MM), THIN_MM])),
        "rotation_deg": _degrees(R),
    }


def _degrees(R: Float[np.ndarray, "3 3"]) -> list[float]:
    return _short(Rotation.from_matrix(R).as_euler("xyz", degrees=True))


def _short(values: np.ndarray) -> list[float]:
    return [round(float(x), 2) for x in values]
