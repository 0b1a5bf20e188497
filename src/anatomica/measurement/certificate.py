"""Certificates: the final label map, measured hard, against what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from anatomica.anatomy.frame import Frame
from anatomica.measurement.measure import Measured, Measurement
from anatomica.measurement.moments import normalise
from anatomica.measurement.placing import Resolved

DOMAINS = "domains"
"""The quantity of the one check of a constraint that has no place at all; no sample can meet it."""


@dataclass(frozen=True)
class Check:
    """One requested quantity of one of a constraint's domains: asked, achieved, met.

    `unit` is that of what was asked and achieved (mL, mm; shapes are xx, yy, zz, xy, xz, yz of trace 1),
    `error_unit` that of error and tolerance. `note` says what a number cannot: the structure is not there.
    """

    constraint: str
    domain: int
    domains: int
    quantity: str
    unit: str
    requested: float | list[float]
    achieved: float | list[float]
    error: float
    tolerance: float
    error_unit: str
    met: bool
    note: str = ""

    @property
    def in_tolerances(self) -> float:
        """Error as a multiple of the tolerance; a count that is off by one counts as one."""
        return self.error / self.tolerance if self.tolerance > 0 else self.error

    def to_dict(self) -> dict:
        return asdict(self)


def certify(measured: Measurement, resolved: Sequence[Resolved]) -> tuple[Check, ...]:
    """Compare a measured label map with the resolved targets, domain by domain.

    Invalid domains have no checks; a constraint with no valid one was never asked for, and is not met.
    """
    checks: list[Check] = []
    for m, r in zip(measured.measured, resolved, strict=True):
        if not bool(r.domains.valid.any()):
            checks.append(_unplaced(r))
        for k in range(r.domains.count):
            if bool(r.domains.valid[k]):
                checks += _checks(m, r, k, measured.frame)
    return tuple(checks)


def not_placed(resolved: Sequence[Resolved]) -> list[dict]:
    """Domains that could not be placed and so were neither guided nor checked, with the reasons."""
    return [
        {"constraint": r.constraint.name, "domain": k, "reason": r.domains.reasons[k]}
        for r in resolved
        for k in range(r.domains.count)
        if not bool(r.domains.valid[k])
    ]


def sentences_not_placed(resolved: Sequence[Resolved]) -> list[str]:
    """What has no place and why, as a sentence a constraint, or a domain of one that has others."""
    lines = []
    for r in resolved:
        name, reasons, valid = r.constraint.name, r.domains.reasons, r.domains.valid.tolist()
        if not any(valid):
            lines.append(f"{name} could not be placed ({_why(r)}), so it was not asked for and is not met")
            continue
        lines += [
            f"{name} {k + 1} could not be placed ({reasons[k]}), so it was not asked for"
            for k, there in enumerate(valid)
            if not there
        ]
    return lines


def _why(r: Resolved) -> str:
    return "; ".join(dict.fromkeys(r.domains.reasons))


def _unplaced(r: Resolved) -> Check:
    """One row for the constraint as a whole."""
    count, note = r.domains.count, f"not placed: {_why(r)}"
    return Check(r.constraint.name, 0, 1, DOMAINS, "", count, 0, count, 0, "", False, note)


def _checks(m: Measured, r: Resolved, k: int, frame: Frame) -> Iterator[Check]:
    tolerance, wanted, moments = r.constraint.tolerance, r.wanted, m.moments
    where = r.constraint.name, k, r.domains.count
    # An empty substructure has its centroid in the box's middle by convention: no such place was reached.
    there = float(moments.mass[k]) > 0
    note = "" if there else f"no {' + '.join(r.constraint.structure)} there"
    if wanted.mass is not None:
        want, got = float(wanted.mass[k]), float(moments.mass[k])
        off = 100 * abs(got - want) / max(want, r.constraint.mass_threshold, 1e-12)
        most = tolerance.mass_percent
        yield Check(*where, "volume", "mL", frame.to_ml(want), frame.to_ml(got), off, most, "%", off <= most)
    if wanted.centroid is not None:
        want_mm = frame.to_mm(wanted.centroid[k].numpy())
        got_mm = frame.to_mm(moments.centroid[k].numpy())
        off, most = float(np.linalg.norm(got_mm - want_mm)), tolerance.centroid_mm
        values = want_mm.tolist(), got_mm.tolist(), off, most
        yield Check(*where, "centroid", "mm", *values, "mm", there and off <= most, note)
    if wanted.shape is not None:
        want_shape, got_shape = wanted.shape[k].numpy(), normalise(moments.covariance[k]).numpy()
        off, most = float(np.abs(got_shape - want_shape).max()), tolerance.shape
        # In the order of a spec's target.
        i, j = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
        values = want_shape[i, j].tolist(), got_shape[i, j].tolist(), off, most
        yield Check(*where, "shape", "", *values, "", there and off <= most, note)
    if wanted.spread is not None:
        want, got = float(wanted.spread[k]), float(moments.size[k].sqrt())
        off, most = 100 * abs(got - want) / max(want, 1e-12), tolerance.spread_percent
        values = want * frame.edge_mm, got * frame.edge_mm, off, most
        yield Check(*where, "spread", "mm", *values, "%", there and off <= most, note)
    if wanted.betti is not None:
        names = ("components", "loops", "voids")
        for want, what, got in zip(wanted.betti.numbers, names, m.betti[k], strict=True):
            if want is not None:
                yield Check(*where, what, "", want, got, abs(got - want), 0, "", got == want)


def all_met(checks: Sequence[Check]) -> bool:
    return all(c.met for c in checks)


def worth_another(checks: Sequence[Check]) -> bool:
    """Whether another candidate could do better: something failed, and not for want of a place."""
    return any(not c.met and c.quantity != DOMAINS for c in checks)


def badness(checks: Sequence[Check]) -> tuple[int, float]:
    """For choosing the best of several candidates: unmet checks first, then the total error in tolerances."""
    return sum(not c.met for c in checks), sum(c.in_tolerances for c in checks)
