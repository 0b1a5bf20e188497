"""Requested against achieved, as tables on the screen and as rows of text for the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from rich.markup import escape
from rich.table import Table

from anatomica.anatomy.frame import Frame
from anatomica.generation.feasibility import Comparison
from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import Check
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import BETTI, QUANTITIES

ASKED = {name: q for q in QUANTITIES for name in q.asked}
"""Which quantity a field of a spec's target sets."""


def report_table(samples: Sequence[Sample], most: int = 60) -> Table:
    """One row per check: requested, achieved, error, tolerance, met. A shape is shown by its eigenvalues."""
    table = Table(title="requested and achieved")
    for name in ("sample", "constraint", "quantity", "requested", "achieved", "error / allowed", "met"):
        side = "left" if name in ("constraint", "quantity") else "right"
        table.add_column(name, justify=side, no_wrap=name == "quantity", overflow="fold")
    left = most
    for sample in samples:
        for n, c in enumerate(sample.checks[: max(left, 0)]):
            new = n == 0 or _where(c) != _where(sample.checks[n - 1])
            table.add_row(
                "" if n else str(sample.seed),
                escape(_where(c)) if new else "",
                c.quantity,
                _brief(c.requested, c),
                escape(c.note) or _brief(c.achieved, c),
                f"{c.error:.3g} / {c.tolerance:g} {c.error_unit}".rstrip(),
                "[green]yes[/]" if c.met else "[red]no[/]",
                end_section=n == len(sample.checks) - 1,
            )
        left -= len(sample.checks)
    if left < 0:
        table.caption = f"{-left} more rows in report.json"
    return table


def _where(c: Check) -> str:
    return f"{c.constraint} {c.domain + 1}" if c.domains > 1 else c.constraint


def _brief(value: float | list[float], c: Check) -> str:
    """A value for the screen, with the digits that its tolerance calls for."""
    if c.quantity == "shape" and isinstance(value, list):
        xx, yy, zz, xy, xz, yz = value
        value = np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[::-1].tolist()
    if isinstance(value, list):
        digits = max(0, -math.floor(math.log10(c.tolerance))) + (c.quantity == "centroid")
        return f"{', '.join(f'{x:.{digits}f}' for x in value)} {c.unit}".rstrip()
    return f"{value:.4g} {c.unit}".rstrip()


def asked_table(resolved: Sequence[Resolved], frame: Frame) -> Table:
    """One row per quantity and domain that is asked for, in people's units, with its tolerance."""
    table = Table(title="what is asked")
    for name in ("constraint", "tissues", "domain", "quantity", "target", "tolerance"):
        table.add_column(name, justify="right" if name in ("target", "tolerance") else "left")
    for r in resolved:
        c = r.constraint
        for k in range(r.domains.count):
            if not bool(r.domains.valid[k]):
                continue
            where = f"{c.domain.family} {k + 1}" if r.domains.count > 1 else c.domain.family
            first = (c.name, " + ".join(c.structure), where)
            for q, wanted in r.wanted.rows:
                target = f"{_number(q.for_people(wanted[k], frame))} {q.unit}".rstrip()
                table.add_row(*first, q.title, target, f"{c.tolerance.of(q):g} {q.error_unit}".rstrip())
            numbers = r.wanted.betti.numbers if r.wanted.betti is not None else ()
            for title, count in zip(BETTI, numbers, strict=False):
                if count is not None:
                    table.add_row(*first, title, str(count), "exact")
    return table


def population_table(comparisons: Sequence[Comparison]) -> Table:
    """Targets outside the training population, with what it has and the nearest target within it."""
    table = Table(title="outside the training population; tried all the same")
    for name in ("constraint", "quantity", "requested", "training 5 to 95 %", "nearest feasible", "distance"):
        table.add_column(name, justify="left" if name in ("constraint", "quantity") else "right")
    for row in population_rows(c for c in comparisons if c.outside):
        table.add_row(*map(escape, row))
    table.caption = "distance: Mahalanobis, all of a constraint's quantities together (95 % of patients)"
    return table


def volume_table(model: Model, made: Sequence[Sample]) -> Table:
    """Volumes in mL, one row per tissue, with the population's 5th, 50th and 95th percentile."""
    population = model.card.get("population", {})
    table = Table(title=f"{model.anatomy}: volumes in mL")
    table.add_column("tissue")
    shown = made[:8]
    for sample in shown:
        table.add_column(f"seed {sample.seed}", justify="right")
    for title in ("training 5 %", "50 %", "95 %"):
        table.add_column(title, justify="right", style="dim")
    for name in model.table.tissues:
        known = population.get(name, {}).get("volume_ml", {})
        row = []
        for sample in shown:
            volume = sample.label_map.volume_ml(name)
            outside = bool(known) and not known["1"] <= volume <= known["99"]
            row.append(f"[yellow]{volume:.4g}[/]" if outside else f"{volume:.4g}")
        table.add_row(name, *row, *(f"{known[p]:.4g}" if known else "" for p in ("5", "50", "95")))
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
        c.quantity,
        f"{_number(c.requested)} {c.unit}".rstrip(),
        c.note or f"{_number(c.achieved)} {c.unit}".rstrip(),
        f"{c.error:.3g} {c.error_unit}".rstrip(),
        f"{c.tolerance:g} {c.error_unit}".rstrip(),
    ]
