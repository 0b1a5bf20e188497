"""Certificates: the final label map, measured hard, against what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from anatomica.frame import Frame
from anatomica.measurement import Measured, Measurement
from anatomica.moments import normalise
from anatomica.potentials import betti_of
from anatomica.resolve import Resolved


@dataclass(frozen=True)
class Check:
    """One requested quantity of one domain: asked, achieved, the error in the tolerance's unit, met."""

    constraint: str
    domain: int
    quantity: str
    unit: str
    requested: float | list[float]
    achieved: float | list[float]
    error: float
    tolerance: float
    met: bool

    @property
    def in_tolerances(self) -> float:
        """Error as a multiple of the tolerance; a count that is off by one counts as one."""
        return self.error / self.tolerance if self.tolerance > 0 else self.error

    def to_dict(self) -> dict:
        return asdict(self)


def certify(measured: Measurement, resolved: Sequence[Resolved]) -> tuple[Check, ...]:
    """Compare a measured label map with the resolved targets, domain by domain; invalid domains have none."""
    checks: list[Check] = []
    for m, r in zip(measured.measured, resolved, strict=True):
        for k in range(r.domains.count):
            if bool(r.domains.valid[k]):
                checks += _checks(m, r, k, measured.frame)
    return tuple(checks)


def _checks(m: Measured, r: Resolved, k: int, frame: Frame) -> Iterator[Check]:
    name, tolerance, wanted = r.constraint.name, r.constraint.tolerance, r.wanted
    moments = m.moments
    if wanted.mass is not None:
        want, got = float(wanted.mass[k]), float(moments.mass[k])
        percent = 100 * abs(got - want) / max(want, r.constraint.mass_threshold)
        allowed = tolerance.mass_percent
        volumes = frame.to_ml(want), frame.to_ml(got)
        yield Check(name, k, "volume", "mL (error in %)", *volumes, percent, allowed, percent <= allowed)
    if wanted.centroid is not None:
        want_mm = frame.to_mm(wanted.centroid[k].numpy())
        got_mm = frame.to_mm(moments.centroid[k].numpy())
        off = float(np.linalg.norm(got_mm - want_mm))
        allowed = tolerance.centroid_mm
        yield Check(
            name, k, "centroid", "mm", want_mm.tolist(), got_mm.tolist(), off, allowed, off <= allowed
        )
    if wanted.shape is not None:
        want_shape = wanted.shape[k].numpy()
        got_shape = normalise(moments.covariance[k]).numpy()
        off = float(np.abs(got_shape - want_shape).max())
        want_6, got_6 = (x[np.triu_indices(3)].tolist() for x in (want_shape, got_shape))
        yield Check(name, k, "shape", "trace 1", want_6, got_6, off, tolerance.shape, off <= tolerance.shape)
    if wanted.betti is not None:
        counted = m.betti[k]
        for number, what, got in zip(
            betti_of(wanted.betti), ("components", "loops", "voids"), counted, strict=True
        ):
            if number is not None:
                off = abs(got - number)
                yield Check(name, k, what, "count", number, got, off, 0, off == 0)


def all_met(checks: Sequence[Check]) -> bool:
    return all(c.met for c in checks)


def badness(checks: Sequence[Check]) -> tuple[int, float]:
    """For choosing the best of several candidates: unmet checks first, then the total error in tolerances."""
    return sum(not c.met for c in checks), sum(c.in_tolerances for c in checks)
