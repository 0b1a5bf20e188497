"""Requested against achieved, as tables on the screen and as rows of text for the page."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.markup import escape
from rich.table import Table

from anatomica.anatomy.frame import Frame
from anatomica.generation.feasibility import Comparison
from anatomica.generation.sample import Outcome
from anatomica.measurement.certificate import Check
from anatomica.measurement.goals import Goal, Row, constraints_in, goals_in
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import BETTI, QUANTITIES

ASKED = {name: q for q in QUANTITIES for name in q.asked}
"""Which quantity a field of a spec's target sets."""


def report_table(samples: Sequence[Outcome], most: int = 60, checks: int | None = None) -> Table:
    """One row per check: requested, achieved, error, tolerance, met. A shape is shown by its eigenvalues.

    `checks` counts those of all samples, if `samples` holds only the first.
    """
    table = Table(title="requested and achieved")
    for name in ("sample", "constraint", "quantity", "requested", "achieved", "error / allowed", "met"):
        side = "left" if name in ("constraint", "quantity") else "right"
        table.add_column(name, justify=side, no_wrap=name == "quantity", overflow="fold")
    left, checks = most, sum(len(s.checks) for s in samples) if checks is None else checks
    for sample in samples:
        for n, c in enumerate(sample.checks[: max(left, 0)]):
            new = n == 0 or _where(c) != _where(sample.checks[n - 1])
            table.add_row(
                "" if n else str(sample.seed),
                escape(_where(c)) if new else "",
                escape(_title(c)),
                _brief(c.requested, c),
                escape(c.note) or _brief(c.achieved, c),
                f"{c.error:.3g} / {c.tolerance:.3g} {c.error_unit}".rstrip(),
                "[green]yes[/]" if c.met else "[red]no[/]",
                end_section=n == len(sample.checks) - 1,
            )
        left -= len(sample.checks)
    captions = [f"{checks - most} more rows in report.json"] if checks > most else []
    table.caption = escape("\n".join([*captions, *outside_sentences(samples)])) or None
    return table


def outside_sentences(samples: Sequence[Outcome]) -> list[str]:
    """For each constraint how much of its structure lies outside its domains, from least to most."""
    found: dict[str, list[float]] = {}
    for sample in samples:
        for name, ml in sample.outside_ml.items():
            found.setdefault(name, []).append(ml)
    return [f"{name}, outside the domain: {_span(ml)} mL" for name, ml in found.items()]


def _span(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


def _where(c: Check) -> str:
    return f"{c.constraint} {c.domain + 1}" if c.domains > 1 else c.constraint


def _title(c: Check) -> str:
    """A check's quantity; a volume that is told in mm2 or mm is that of a section or of a wall on a ray."""
    return (
        {"mm2": "area", "mm": "thickness"}.get(c.unit, c.quantity) if c.quantity == "volume" else c.quantity
    )


def _brief(value: float | list[float], c: Check) -> str:
    """A value for the screen, with the digits that its tolerance calls for."""
    if c.quantity == "shape" and isinstance(value, list):
        xx, yy, zz, xy, xz, yz = value
        value = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[::-1].tolist()
    if isinstance(value, list):
        digits = max(0, -math.floor(math.log10(c.tolerance))) + (c.quantity == "centroid")
        return f"{', '.join(f'{x:.{digits}f}' for x in value)} {c.unit}".rstrip()
    return f"{value:.4g} {c.unit}".rstrip()


def asked_table(resolved: Sequence[Row], frame: Frame) -> Table:
    """One row per quantity and domain that is asked for, in people's units, with its tolerance."""
    table = Table(title="what is asked")
    for name in ("constraint", "tissues", "domain", "quantity", "target", "tolerance"):
        table.add_column(name, justify="right" if name in ("target", "tolerance") else "left")
    for goal in goals_in(resolved):
        where = "reference" if goal.reference is not None else "prediction" if goal.guided else "checked only"
        table.add_row(
            escape(goal.name), "", where, escape(goal.ask.text), escape(_bounds(goal)), _tolerance(goal)
        )
    for r in constraints_in(resolved):
        c = r.constraint
        for k in range(r.domains.count):
            if not bool(r.domains.valid[k]):
                continue
            where = f"{c.domain.family} {k + 1}" if r.domains.count > 1 else c.domain.family
            first = (escape(c.name), escape(" + ".join(c.structure)), where)
            for q, wanted in r.wanted.rows:
                target = f"{_number(q.for_people(wanted[k], frame))} {q.unit}".rstrip()
                table.add_row(*first, q.title, target, f"{c.tolerance.of(q):g} {q.error_unit}".rstrip())
            numbers = r.wanted.betti.numbers if r.wanted.betti is not None else ()
            for title, count in zip(BETTI, numbers, strict=False):
                if count is not None:
                    table.add_row(*first, title, str(count), "exact")
    return table


def _bounds(goal: Goal) -> str:
    """What a goal's value must be, as numbers."""
    if goal.ask.right is not None:
        return goal.ask.right.text
    low, high = ("" if x is None else f"{x:.4g}" for x in (goal.low, goal.high))
    text = low if goal.equal else f"{low} to {high}" if low and high else f">= {low}" if low else f"<= {high}"
    return f"{text} {goal.unit}".rstrip()


def _tolerance(goal: Goal) -> str:
    if not goal.guided or not goal.equal:
        return "exact"
    if goal.ask.tolerance is not None:
        return f"{goal.ask.tolerance[0]:g} {goal.ask.tolerance[1]}"
    if not goal.ask.left.single or goal.ask.right is not None:
        return "of its quantities"
    return f"{goal.entries[0].tolerance:g} {goal.entries[0].tolerance_unit}"


def population_table(comparisons: Sequence[Comparison]) -> Table:
    """Targets outside the training population, with what it has and the nearest target within it."""
    table = Table(title="outside the training population; tried all the same")
    for name in ("constraint", "quantity", "requested", "training 5 to 95 %", "nearest feasible", "distance"):
        table.add_column(name, justify="left" if name in ("constraint", "quantity") else "right")
    for row in population_rows(c for c in comparisons if c.outside):
        table.add_row(*map(escape, row))
    table.caption = "distance: Mahalanobis, all of a constraint's quantities together (95 % of patients)"
    return table


def volume_table(model: Model, volumes_ml: Mapping[int, Mapping[str, float]], most: int = 8) -> Table:
    """Volumes of the first seeds, one row per tissue, with the population's 5th, 50th and 95th percentile."""
    population = model.card.get("population", {})
    table = Table(title=f"{model.anatomy}: volumes in mL")
    table.add_column("tissue")
    shown = dict(itertools.islice(volumes_ml.items(), most))
    for seed in shown:
        table.add_column(f"seed {seed}", justify="right")
    for title in ("training 5 %", "50 %", "95 %"):
        table.add_column(title, justify="right", style="dim")
    for name in model.table.tissues:
        known = population.get(name, {}).get("volume_ml", {})
        row = []
        for found in shown.values():
            volume = found.get(name, 0.0)
            outside = bool(known) and not known["1"] <= volume <= known["99"]
            row.append(f"[yellow]{volume:.4g}[/]" if outside else f"{volume:.4g}")
        table.add_row(escape(name), *row, *(f"{known[p]:.4g}" if known else "" for p in ("5", "50", "95")))
    return table


def population_rows(comparisons: Iterable[Comparison]) -> Iterable[list[str]]:
    for c in comparisons:
        for key, value in c.requested.items():
            unit = ASKED[key].unit
            low, high = c.seen[key]
            seen = f"{_number(low)} to {_number(high)}" if not isinstance(low, list) else _ranges(low, high)
            yield [
                c.constraint,
                ASKED[key].title,
                f"{_number(value)} {unit}",
                f"{seen} {unit}",
                f"{_number(c.nearest[key])} {unit}",
                f"{c.distance:.1f} ({c.limit:.1f})",
            ]


def _ranges(low: list[float], high: list[float]) -> str:
    return ", ".join(f"{a:.2f}..{b:.2f}" for a, b in zip(low, high, strict=True))


def _number(value: float | list[float]) -> str:
    if isinstance(value, list):
        return ", ".join(f"{x:.2f}" for x in value)
    return f"{value:.4g}"


def check_cells(seed: int, c: Check) -> list[str]:
    """A check as text, every number with its unit."""
    return [
        str(seed),
        _where(c),
        _title(c),
        f"{_number(c.requested)} {c.unit}".rstrip(),
        c.note or f"{_number(c.achieved)} {c.unit}".rstrip(),
        f"{c.error:.3g} {c.error_unit}".rstrip(),
        f"{c.tolerance:.3g} {c.error_unit}".rstrip(),
    ]
