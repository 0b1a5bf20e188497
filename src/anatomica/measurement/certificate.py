"""Certificates: the final label map, measured hard, against what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from torch import Tensor

from anatomica.anatomy.catalogue import Anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap
from anatomica.measurement.goals import Goal, Row, allowed, error, measured, met, sides
from anatomica.measurement.measure import Fine, Measured, extent_of, measure_resolved
from anatomica.measurement.outside import allowed_outside, must_be_empty, outside_mass
from anatomica.measurement.placing import Resolved, structure_map
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.quantities import BETTI, Quantity

OUTSIDE = "outside"
"""The quantity of the check that nothing of the structure lies beyond its domains."""
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
    cube: LabelMap, resolved: Sequence[Row], about: Anatomy, fine: Sequence[Fine] = ()
) -> tuple[Check, ...]:
    """A finished label map, measured on its own voxels, against the resolved targets.

    With `fine`, one for each constraint, a check is met only if the field itself meets it too: what holds on
    one grid by the luck of rounding does not count. Invalid domains have no checks; a constraint with no
    valid one was never asked for, and is not met.
    """
    frame = Frame.of(cube, about)
    both = list(zip(resolved, list(fine) or [None] * len(resolved), strict=True))
    checks: list[Check] = []
    placed = [(r, f) for r, f in both if isinstance(r, Resolved)]
    for m, (r, f) in zip(measure_resolved(cube, [r for r, _ in placed]), placed, strict=True):
        if not bool(r.domains.valid.any()):
            checks.append(_unplaced(r))
        for k in range(r.domains.count):
            if bool(r.domains.valid[k]):
                checks += (*_checks(m, f, r, k, frame), *_counts(m, f, r, k))
        if bool(r.domains.valid.any()) and must_be_empty(r.constraint):
            checks.append(_outside(m, f, r, frame))
    s = Subject(cube, about)
    checks += [_goal(r, s, None if f is None else f.named) for r, f in both if isinstance(r, Goal)]
    return tuple(checks)


def _goal(goal: Goal, s: Subject, fine: dict[str, float] | None) -> Check:
    """A named quantity: on the voxels as `anatomica measure` finds it, and on the field itself."""
    right = "" if goal.ask.right is None else f" {goal.ask.right.text}"
    kinds = {(True, True): "between", (True, False): "at least", (False, True): "at most"}
    kind = "equal to" if goal.equal else kinds[goal.low is not None, goal.high is not None]
    bounds = [x for x in (goal.low, goal.high) if x is not None]
    wanted: float | list[float] = bounds if kind == "between" else bounds[0]
    where = (goal.name, 0, 1, f"{kind}{right}", goal.unit)
    try:
        values = measured(goal, s)
        found = [sides(goal.ask, x) for x in ([values] if fine is None else [values, fine])]
    except Missing as why:
        return Check(*where, wanted, 0.0, abs(bounds[0]), 0.0, goal.unit, False, str(why))
    off, most = max(error(goal, x) for x in found), allowed(goal, values)
    if goal.ask.right is not None:
        wanted = float(found[0].right)
    achieved, *finer = (float(x.left) for x in found)
    here = met(goal, off, most)
    return Check(*where, wanted, achieved, off, most, goal.unit, here, "", finer[0] if finer else None)


def outside_ml(cube: LabelMap, resolved: Sequence[Resolved], about: Anatomy) -> dict[str, float]:
    """By constraint, how much of its structure lies outside its domains, whether that is allowed or not."""
    hard, frame = structure_map(cube), Frame.of(cube, about)
    return {
        r.constraint.name: frame.to_ml(outside_mass(hard(r.constraint.structure), r.domains))
        for r in resolved
        if r.constraint.domain.family != "global"
    }


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
        unit, shown = _for_people(q, r, k, frame)
        achieved, *finer = (shown(x[k]) for x in values)
        yield Check(
            *where,
            q.title,
            unit,
            shown(wanted[k]),
            achieved,
            off,
            most,
            q.error_unit,
            (there or q.any_mass) and off <= most,
            "" if there or q.any_mass else f"no {' + '.join(c.structure)} there",
            finer[0] if finer else None,
        )


def _for_people(
    q: Quantity, r: Resolved, k: int, frame: Frame
) -> tuple[str, Callable[[Tensor], float | list[float]]]:
    """Unit and values of a quantity; the volume in a section is told as an area, on a ray as a thickness."""
    family = r.constraint.domain.family
    thin = extent_of(r.domains, family, k, 1.0, frame) if q.key == "mass" else {}
    for key, unit in (("area_mm2", "mm2"), ("thickness_mm", "mm")):
        if key in thin:
            return unit, lambda x, per_ml=thin[key]: frame.to_ml(float(x)) * per_ml
    return q.unit, lambda x: q.for_people(x, frame)


def _outside(m: Measured, fine: Fine | None, r: Resolved, frame: Frame) -> Check:
    """One row for what lies beyond the constraint's domains, where nothing may be."""
    found = [m.outside] if fine is None or fine.outside is None else [m.outside, fine.outside]
    most = r.constraint.tolerance.outside_percent
    one_percent = float(allowed_outside(r, r.wanted.values.get("mass", m.moments.mass))) / most
    off = max(found) / one_percent
    achieved, *finer = (frame.to_ml(x) for x in found)
    return Check(
        r.constraint.name,
        0,
        1,
        OUTSIDE,
        "mL",
        0.0,
        achieved,
        off,
        most,
        "%",
        off <= most,
        "",
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
