"""Certificates: the final label map, measured hard, against what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.measure import Measured, measure_resolved
from anatomica.measurement.placing import Resolved
from anatomica.spec.quantities import BETTI

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


def certificate(cube: LabelMap, resolved: Sequence[Resolved], about: Anatomy) -> tuple[Check, ...]:
    """A finished label map, measured hard at its own resolution, against the resolved targets.

    Invalid domains have no checks; a constraint with no valid one was never asked for, and is not met.
    """
    frame = Frame.of(cube, about)
    checks: list[Check] = []
    for m, r in zip(measure_resolved(cube, resolved), resolved, strict=True):
        if not bool(r.domains.valid.any()):
            checks.append(_unplaced(r))
        for k in range(r.domains.count):
            if bool(r.domains.valid[k]):
                checks += _checks(m, r, k, frame)
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
    """What has no place and why: one sentence per constraint, or per domain if others of it have a place."""
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
    c, where = r.constraint, (r.constraint.name, k, r.domains.count)
    # An empty substructure has its centroid in the box's middle by convention: no such place was reached.
    there = float(m.moments.mass[k]) > 0
    for q, wanted in r.wanted.rows:
        got = q.measured(m.moments, r.domains)
        off = float(q.error(got, wanted.to(got), frame.edge_mm, c.mass_threshold)[k])
        most = c.tolerance.of(q)
        yield Check(
            *where,
            q.title,
            q.unit,
            q.for_people(wanted[k], frame),
            q.for_people(got[k], frame),
            off,
            most,
            q.error_unit,
            (there or q.any_mass) and off <= most,
            "" if there or q.any_mass else f"no {' + '.join(c.structure)} there",
        )
    if r.wanted.betti is not None:
        for want, what, got in zip(r.wanted.betti.numbers, BETTI, m.betti[k], strict=True):
            if want is not None:
                yield Check(*where, what, "", want, got, abs(got - want), 0, "", got == want)


def all_met(checks: Sequence[Check]) -> bool:
    return all(c.met for c in checks)


def worth_another(checks: Sequence[Check]) -> bool:
    """Whether another candidate could do better: something failed, and not because it has no place."""
    return any(not c.met and c.quantity != DOMAINS for c in checks)


def badness(checks: Sequence[Check]) -> tuple[int, float]:
    """For choosing the best of several candidates: unmet checks first, then the total error in tolerances."""
    return sum(not c.met for c in checks), sum(c.in_tolerances for c in checks)
