"""Certificates: the final label map, measured hard, against what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.measure import Fine, Measured, measure_resolved
from anatomica.measurement.placing import Resolved
from anatomica.spec.quantities import BETTI

DOMAINS = "domains"
"""The quantity of the one check of a constraint that has no place at all; no sample can meet it."""


@dataclass(frozen=True)
class Check:
    """One requested quantity of one of a constraint's domains: asked, achieved, met.

    `unit` is that of what was asked and achieved (mL, mm; shapes are xx, yy, zz, xy, xz, yz of trace 1),
    `error_unit` that of error and tolerance. `achieved` is measured on the written voxels, `fine` on the
    field itself, which has no grid (None where there is no field); a check is met if both are, and `error` is
    the larger of the two. `note` says what a number cannot: the structure is not there.
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
    fine: float | list[float] | None = None

    @property
    def in_tolerances(self) -> float:
        """Error as a multiple of the tolerance; a count that is off by one counts as one."""
        return self.error / self.tolerance if self.tolerance > 0 else self.error

    def to_dict(self) -> dict:
        return asdict(self)


def certificate(
    cube: LabelMap, resolved: Sequence[Resolved], about: Anatomy, fine: Sequence[Fine] = ()
) -> tuple[Check, ...]:
    """A finished label map, measured on its own voxels, against the resolved targets.

    With `fine`, one for each constraint, a check is met only if the field itself meets it too: what holds on
    one grid by the luck of rounding does not count. Invalid domains have no checks; a constraint with no
    valid one was never asked for, and is not met.
    """
    frame = Frame.of(cube, about)
    finer = list(fine) or [None] * len(resolved)
    checks: list[Check] = []
    for m, r, f in zip(measure_resolved(cube, resolved), resolved, finer, strict=True):
        if not bool(r.domains.valid.any()):
            checks.append(_unplaced(r))
        for k in range(r.domains.count):
            if bool(r.domains.valid[k]):
                checks += (*_checks(m, f, r, k, frame), *_counts(m, f, r, k))
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


def _checks(m: Measured, fine: Fine | None, r: Resolved, k: int, frame: Frame) -> Iterator[Check]:
    """Moments of one domain."""
    c, where = r.constraint, (r.constraint.name, k, r.domains.count)
    both = [m.moments] if fine is None or fine.moments is None else [m.moments, fine.moments]
    # An empty substructure has its centroid in the box's middle by convention: no such place was reached.
    there = all(float(moments.mass[k]) > 0 for moments in both)
    for q, wanted in r.wanted.rows:
        values = [q.measured(moments, r.domains) for moments in both]
        off = max(float(q.error(x, wanted.to(x), frame.edge_mm, c.mass_threshold)[k]) for x in values)
        most = c.tolerance.of(q)
        achieved, *finer = (q.for_people(x[k], frame) for x in values)
        yield Check(
            *where,
            q.title,
            q.unit,
            q.for_people(wanted[k], frame),
            achieved,
            off,
            most,
            q.error_unit,
            (there or q.any_mass) and off <= most,
            "" if there or q.any_mass else f"no {' + '.join(c.structure)} there",
            finer[0] if finer else None,
        )


def _counts(m: Measured, fine: Fine | None, r: Resolved, k: int) -> Iterator[Check]:
    """Betti numbers of one domain: on the voxels, and under every condition of the fine measurement."""
    if r.wanted.betti is None:
        return
    where = r.constraint.name, k, r.domains.count
    conditions = fine.counts[k] if fine is not None and fine.counts else ()
    for dim, (want, what) in enumerate(zip(r.wanted.betti.numbers, BETTI, strict=True)):
        if want is None:
            continue
        got = m.betti[k][dim]
        found = [(name, betti[dim]) for name, betti in conditions]
        wrong = [f"{count} {name}" for name, count in found if count != want]
        off = max(abs(count - want) for count in (got, *(count for _, count in found)))
        finest = found[0][1] if found else None
        yield Check(*where, what, "", want, got, off, 0, "", off == 0, "; ".join(wrong), finest)


def all_met(checks: Sequence[Check]) -> bool:
    return all(c.met for c in checks)


def worth_another(checks: Sequence[Check]) -> bool:
    """Whether another candidate could do better: something failed, and not because it has no place."""
    return any(not c.met and c.quantity != DOMAINS for c in checks)


def badness(checks: Sequence[Check]) -> tuple[int, float]:
    """For choosing the best of several candidates: unmet checks first, then the total error in tolerances."""
    return sum(not c.met for c in checks), sum(c.in_tolerances for c in checks)
