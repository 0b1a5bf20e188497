"""Measure an anatomy: mass, place, shape and Betti numbers of its structures in control domains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from anatomica.anatomy.catalogue import ANATOMIES, PAPER_GRID, Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, partial_volumes, to_cube
from anatomica.errors import AnatomicaError
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.domains.place import StructureMap
from anatomica.measurement.homology.betti import Betti, betti_numbers
from anatomica.measurement.moments import Moments, decompose, ellipsoid_semi_axes
from anatomica.measurement.outside import outside_mass
from anatomica.measurement.parse import slice_domains
from anatomica.measurement.placing import Resolved, measure_in, resolve, structure_map
from anatomica.spec import spec
from anatomica.version import __version__


@dataclass(frozen=True, eq=False)
class Measured:
    """One constraint's structure, measured in each of its K domains."""

    constraint: spec.Constraint
    domains: Domains
    moments: Moments
    betti: tuple[Betti, ...]
    outside: float
    """Mass of the structure outside all domains."""


@dataclass(frozen=True, eq=False)
class Fine:
    """The same constraint measured without an output grid: sub-voxel moments, and counts on a finer grid.

    `counts` holds, for each of the K domains, what was found under each condition that a count must
    withstand: its name and the Betti numbers.
    """

    moments: Moments | None
    counts: tuple[tuple[tuple[str, Betti], ...], ...] = ()
    outside: float | None = None
    named: dict[str, float] | None = None
    """Of a named quantity's goal: its quantities by key."""


@dataclass(frozen=True, eq=False)
class Measurement:
    """A label map in its cube with everything that a spec asks about it."""

    spec: spec.Spec
    frame: Frame
    cube: LabelMap
    measured: tuple[Measured, ...]


def measure(
    label_map: LabelMap,
    wanted: spec.Spec | None = None,
    resolution: int = PAPER_GRID,
    about: Anatomy | None = None,
) -> Measurement:
    """Measure a label map as a spec says; without a spec, every tissue as a whole.

    The label map (any grid, in the vocabulary of the spec's anatomy) is put into that anatomy's cube of
    `resolution`^3 voxels, which grows where tissue would be cut off; domains are computed from the anatomy
    itself. Betti numbers count the cube's own voxels in boxes along the axes, and the domain's grid points in
    turned ones. `about` is the anatomy; it can be left out if it is a shipped one.
    """
    if about is None:
        about = anatomy_of(label_map) if wanted is None else _named(wanted)
    if label_map.table != about.table:
        raise AnatomicaError(f"the label map's tissues are not those of the {about.name} anatomy")
    cube = to_cube(label_map, about, resolution, grow=True)
    soft = None if cube is label_map else soft_structure_map(label_map, cube)
    return measure_cube(cube, wanted or whole_tissues(cube, about), soft=soft, about=about)


def soft_structure_map(label_map: LabelMap, cube: LabelMap) -> StructureMap:
    """Tissue names -> how far they fill each voxel of the cube, from the label map's own grid."""
    return lambda names: torch.from_numpy(partial_volumes(label_map, tuple(names), cube))


def measure_cube(
    cube: LabelMap,
    wanted: spec.Spec,
    resolved: tuple[Resolved, ...] | None = None,
    soft: StructureMap | None = None,
    about: Anatomy | None = None,
) -> Measurement:
    """Measure a label map that is already a cube; `resolved` brings domains from elsewhere (a target's).

    Moments are taken of `soft` where it is given: partial volumes from a finer or thicker-sliced original.
    Domains and Betti numbers are always those of the cube's own labels. `about` is as in `measure`.
    """
    about = _named(wanted) if about is None else about
    wanted = wanted.of(about)
    frame = Frame.of(cube, about)
    placed = resolved if resolved is not None else resolve(wanted, frame, cube)
    return Measurement(wanted, frame, cube, measure_resolved(cube, placed, soft))


def measure_resolved(
    cube: LabelMap, resolved: Sequence[Resolved], soft: StructureMap | None = None
) -> tuple[Measured, ...]:
    """Every constraint's structure in its placed domains."""
    hard = structure_map(cube)
    measured = []
    for r in resolved:
        names = r.constraint.structure
        counted = tuple(_betti(hard(names), r.domains, k) for k in range(r.domains.count))
        moments = measure_in((soft or hard)(names), r.domains)
        beyond = outside_mass(hard(names), r.domains)
        measured.append(Measured(r.constraint, r.domains, moments, counted, beyond))
    return tuple(measured)


def _named(wanted: spec.Spec) -> Anatomy:
    """The shipped anatomy that a spec names."""
    if wanted.anatomy not in ANATOMIES:
        raise AnatomicaError(
            f"spec {wanted.name!r} is about {wanted.anatomy} anatomy, which is not a shipped one; "
            "give the anatomy as well"
        )
    return ANATOMIES[wanted.anatomy]


def anatomy_of(label_map: LabelMap) -> Anatomy:
    """The anatomy whose label table the map has."""
    for kind in ANATOMIES.values():
        if kind.table == label_map.table:
            return kind
    raise AnatomicaError("the label map's tissues are not those of an anatomy; give a spec or a mapping")


def whole_tissues(cube: LabelMap, about: Anatomy) -> spec.Spec:
    """A spec that measures each tissue that occurs over the whole cube, at the cube's own resolution."""
    tissues = cube.present()
    if not tissues:
        raise AnatomicaError("the label map is empty: no tissue to measure")
    # Not checked as a user's spec is: the points of a whole cube are its voxels, of which no copy is made.
    domain = spec.GlobalDomain.model_construct(grid=cube.shape)
    constraints = [spec.Constraint(name=t, structure=[t], domain=domain) for t in tissues]
    return spec.Spec.model_construct(name="whole-tissues", anatomy=about.name, constraints=constraints)


def _betti(structure: Tensor, domains: Domains, k: int) -> Betti:
    """Hard Betti numbers of the structure inside one domain."""
    if not domains.valid[k]:
        return Betti(0, 0, 0)
    if torch.equal(domains.R[k], torch.eye(3, dtype=domains.R.dtype)):
        # A box along the axes: the voxels whose centres lie in it.
        box = []
        for axis in range(3):
            n = structure.shape[axis]
            low = (domains.t[k, axis] - domains.s[k, axis] / 2).item() * n - 0.5
            high = (domains.t[k, axis] + domains.s[k, axis] / 2).item() * n - 0.5
            box.append(slice(max(int(np.ceil(low - 1e-6)), 0), max(int(np.floor(high + 1e-6)) + 1, 0)))
        return betti_numbers(structure[tuple(box)].numpy() > 0.5)
    return betti_numbers(slice_domains(structure[None], domains)[0, k].numpy() > 0.5)


def to_dict(result: Measurement) -> dict:
    """The measurement as plain data; docs/measurement.md describes the schema. Units are in the names."""
    frame = result.frame
    return {
        "schema": "anatomica.measurement/1",
        "version": __version__,
        "spec": result.spec.model_dump(mode="json", exclude_none=True),
        "frame": {
            "anatomy": frame.anatomy.name,
            "edge_mm": frame.edge_mm,
            "n": frame.n,
            "affine": frame.affine.tolist(),
        },
        "tissues_ml": {t: result.cube.volume_ml(t) for t in result.cube.present()},
        "constraints": [
            {
                "name": m.constraint.name,
                "structure": m.constraint.structure,
                "family": m.constraint.domain.family,
                "outside_ml": frame.to_ml(m.outside),
                "domains": [domain_dict(m, k, frame) for k in range(m.domains.count)],
            }
            for m in result.measured
        ],
    }


def extent_of(domains: Domains, family: str, k: int, volume_ml: float, frame: Frame) -> dict[str, float]:
    """What a volume means where the domain is thin: area and diameter in mm of a section (sampled once along
    an axis), mean thickness in mm of a wall along a ray; empty for other domains."""
    size = (domains.s[k] * frame.edge_mm).tolist()
    if min(domains.grid) == 1 and sorted(domains.grid)[1] > 1:
        area = 1000 * volume_ml / size[domains.grid.index(1)]
        return {"area_mm2": area, "diameter_mm": 2 * math.sqrt(area / math.pi)}
    if family in ("spherical", "cylindrical"):
        return {"thickness_mm": 1000 * volume_ml / (size[0] * size[1])}
    return {}


def domain_dict(m: Measured, k: int, frame: Frame) -> dict:
    """One domain with its affine, validity and reason, and what was measured in it."""
    domains, moments = m.domains, m.moments
    placed = {
        "valid": bool(domains.valid[k]),
        "reason": domains.reasons[k],
        "grid": list(domains.grid),
        "centre_mm": frame.to_mm(domains.t[k].numpy()).tolist(),
        "size_mm": (domains.s[k] * frame.edge_mm).tolist(),
        "rotation": domains.R[k].tolist(),
    }
    if not domains.valid[k]:
        return placed
    covariance = moments.covariance[k]
    parts = decompose(covariance)
    mass = float(moments.mass[k])
    return placed | {
        "volume_ml": frame.to_ml(mass),
        **extent_of(domains, m.constraint.domain.family, k, frame.to_ml(mass), frame),
        "mass": mass,
        "centroid_mm": frame.to_mm(moments.centroid[k].numpy()).tolist(),
        "centroid": moments.centroid[k].tolist(),
        "covariance_mm2": (covariance * frame.edge_mm**2).tolist(),
        "covariance_normalised": moments.normalised_covariance[k].tolist(),
        "spread_mm": float(moments.size[k].sqrt()) * frame.edge_mm,
        "ellipsoid_semi_axes_mm": (ellipsoid_semi_axes(covariance) * frame.edge_mm).tolist(),
        "shape_eigenvalues": parts.shape.tolist(),
        "orientation": parts.orientation.tolist(),
        "betti": m.betti[k]._asdict(),
    }
