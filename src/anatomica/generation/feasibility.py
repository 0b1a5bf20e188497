"""Is a target like anything the prior has seen? Its distance from the training patients' own moments.

It is reported before sampling, and the target is tried in any case. A model's folder knows only whole
tissues, so a constraint on part of one (a slice, a ray, a given box) is not compared, and its comparison says
so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from anatomica.anatomy.frame import Frame
from anatomica.measurement.goals import Row, constraints_in
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.population import union_moments
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import Quantity
from anatomica.spec.spec import CartesianDomain, GlobalDomain

FEWEST_PATIENTS = 20
WITHIN = 95
"""Per cent of the training patients that lie within `Comparison.limit`."""


@dataclass(frozen=True)
class Comparison:
    """One constraint's geometric targets compared with the population.

    `distance` is Mahalanobis's, over all requested quantities together; 95 % of the training patients lie
    within `limit`. `seen` is the patients' 5th to 95th percentile, `nearest` the target moved straight
    towards the population's mean until it lies within the limit. `note` says why nothing was compared.
    """

    constraint: str
    patients: int = 0
    distance: float = 0.0
    limit: float = 0.0
    requested: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    nearest: dict[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def outside(self) -> bool:
        return self.distance > self.limit

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"outside": self.outside}


def compare(model: Model, resolved: Sequence[Row]) -> tuple[Comparison, ...]:
    """Every constraint with a geometric target, compared with the model's training population."""
    frame = model.frame
    geometric = [r for r in constraints_in(resolved) if _asked(r)]
    return tuple(_compare(r, model.population, frame) for r in geometric)


def _asked(r: Resolved) -> list[Quantity]:
    """The quantities that are asked for and that the population has."""
    return [q for q, _ in r.wanted.rows if q.whole]


def _whole(r: Resolved) -> bool:
    """Whether the domain holds its whole structure, so that the tissues' own moments are what is asked."""
    domain = r.constraint.domain
    own = isinstance(domain, CartesianDomain) and (domain.around or r.constraint.structure)
    return isinstance(domain, GlobalDomain) or own == r.constraint.structure


def _compare(r: Resolved, population: Float[Tensor, "m C 10"] | None, frame: Frame) -> Comparison:
    name, asked = r.constraint.name, _asked(r)
    if population is None:
        return Comparison(name, note="the model's folder has no population to compare with")
    if not _whole(r) or not bool(r.domains.valid[0]):
        family = r.constraint.domain.family
        return Comparison(name, note=f"part of a tissue ({family} domain): the population is of whole ones")
    mass, centroid, covariance = union_moments(population, r.selection)
    patients = len(mass)
    if patients < FEWEST_PATIENTS:
        return Comparison(name, patients, note=f"only {patients} training patients have this structure")
    seen = Moments(mass, centroid, covariance)
    rows = _columns([(q, q.measured(seen, r.domains)) for q in asked])
    target = _columns([(q, r.wanted.values[q.key][:1]) for q in asked])[0]
    mean = rows.mean(axis=0)
    # A population as sharp as a measurement is blurred by the tolerance: within it, two targets are the same.
    Sigma = np.cov(rows.T).reshape(len(mean), -1) + np.diag(_tolerances(r, frame) ** 2)
    distances = _mahalanobis(rows - mean, Sigma)
    distance = float(_mahalanobis(target[None] - mean, Sigma)[0])
    limit = float(np.percentile(distances, WITHIN))
    nearest = mean + (target - mean) * min(1.0, limit / max(distance, 1e-12))
    low, high = np.percentile(rows, [5, 95], axis=0)
    return Comparison(
        name,
        patients,
        round(distance, 3),
        round(limit, 3),
        _for_people(target, asked, frame),
        {
            key: [a, b]
            for (key, a), b in zip(
                _for_people(low, asked, frame).items(), _for_people(high, asked, frame).values(), strict=True
            )
        },
        _for_people(nearest, asked, frame),
    )


def _columns(measured: Sequence[tuple[Quantity, Tensor]]) -> Float[ndarray, "rows f"]:
    """Plain columns of several quantities, side by side."""
    return torch.cat([q.to_columns(x.double()) for q, x in measured], dim=1).numpy()


def _tolerances(r: Resolved, frame: Frame) -> Float[ndarray, " f"]:
    """One tolerance of each column."""
    each = []
    for q in _asked(r):
        width = q.to_columns(r.wanted.values[q.key][:1]).shape[1]
        each += [q.scale(r.constraint.tolerance.of(q), frame.edge_mm)] * width
    return np.array(each)


def _mahalanobis(off: Float[ndarray, "rows f"], Sigma: Float[ndarray, "f f"]) -> Float[ndarray, " rows"]:
    return np.sqrt((off * np.linalg.solve(Sigma, off.T).T).sum(axis=1))


def _for_people(row: Float[ndarray, " f"], asked: Sequence[Quantity], frame: Frame) -> dict[str, Any]:
    """Back from columns to mL, mm and a shape (xx, yy, zz, xy, xz, yz), by the names of a spec's target."""
    out: dict[str, Any] = {}
    rest = torch.from_numpy(np.asarray(row))
    for q in asked:
        width = q.to_columns(torch.full((1, *q.shape), 0.5, dtype=torch.float64)).shape[1]
        value = q.for_people(q.from_columns(rest[:width]), frame)
        out[next(iter(q.asked))] = [_short(x) for x in value] if isinstance(value, list) else _short(value)
        rest = rest[width:]
    return out


def _short(value: float) -> float:
    return float(f"{value:.6g}")
