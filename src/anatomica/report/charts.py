"""The report's charts as inline SVG: errors over the sampling steps, and persistence diagrams.

Written by hand: a report of many samples has two per sample, and they should cost nothing.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anatomica.generation.sample import Outcome
from anatomica.guidance.trace import TOPOLOGY, Curve, DomainDiagram
from anatomica.spec.quantities import BETTI, QUANTITIES

COLOURS = ("#1f77b4", "#ff7f0e", "#9467bd", "#8c564b", "#17becf", "#e377c2")
BY_QUANTITY = dict(zip((q.title for q in QUANTITIES), COLOURS, strict=False)) | {TOPOLOGY: "#444"}
DIMENSIONS = tuple(zip(BETTI, ("#1f77b4", "#d62728", "#2ca02c"), strict=True))
FLOOR = 1e-2
"""Errors below a hundredth of the tolerance are drawn there: a log scale has no zero."""


@dataclass(frozen=True)
class Axes:
    """A frame with labelled ticks; `x` and `y` map data to pixels."""

    width: int
    height: int
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    log: bool = False
    left: int = 62
    top: int = 22
    right: int = 10
    bottom: int = 40

    def x(self, value: float) -> float:
        low, high = self.x_range
        return round(self.left + (value - low) / (high - low) * (self.width - self.left - self.right), 1)

    def y(self, value: float) -> float:
        scale: Callable[[float], float] = math.log10 if self.log else float
        low, high = map(scale, self.y_range)
        share = (scale(value) - low) / (high - low)
        return round(self.height - self.bottom - share * (self.height - self.top - self.bottom), 1)

    def draw(
        self,
        body: Sequence[str],
        title: str,
        labels: tuple[str, str],
        ticks: tuple[Sequence[float], Sequence[float]],
    ) -> str:
        """The whole chart as one svg element."""
        low, high = self.height - self.bottom, self.width - self.right
        parts = [
            f"<rect x='{self.left}' y='{self.top}' width='{high - self.left}' height='{low - self.top}' "
            "fill='none' stroke='#999'/>"
        ]
        middle, up = (self.left + high) / 2, (self.top + low) / 2
        parts += [text(self.x(value), low + 15, f"{value:g}", "middle") for value in ticks[0]]
        parts += [text(self.left - 5, self.y(value) + 4, f"{value:g}", "end") for value in ticks[1]]
        parts += [
            text(middle, self.height - 6, labels[0], "middle"),
            f"<g transform='translate(14 {up}) rotate(-90)'>{text(0, 0, labels[1], 'middle')}</g>",
            text(middle, 14, title, "middle"),
        ]
        return (
            f"<svg width='{self.width}' height='{self.height}' viewBox='0 0 {self.width} {self.height}' "
            "font-family='sans-serif' font-size='12'>"
            f"{''.join(parts)}{''.join(body)}</svg>"
        )


def text(x: float, y: float, words: str, anchor: str = "start", colour: str = "#222") -> str:
    return f"<text x='{x}' y='{y}' text-anchor='{anchor}' fill='{colour}'>{html.escape(words)}</text>"


def _legend(axes: Axes, names: dict[str, str], first: float) -> list[str]:
    """Coloured names below each other at the left, the first at this height."""
    return [
        text(axes.left + 8, first + 15 * n, name, colour=colour)
        for n, (name, colour) in enumerate(names.items())
    ]


def curves_svg(sample: Outcome) -> str:
    """Errors over the sampling steps: geometry in tolerances (log), topology as the count of wrong features.

    A dot at the right end is the certificate: the same error of the finished label map, measured hard.
    """
    geometric = [c for c in sample.curves if c.quantity != TOPOLOGY]
    topological = [c for c in sample.curves if c.quantity == TOPOLOGY]
    return "".join(_curves(group, sample) for group in (geometric, topological) if group)


def _curves(curves: Sequence[Curve], sample: Outcome) -> str:
    counts = curves[0].quantity == TOPOLOGY
    several = len({c.constraint for c in curves}) > 1
    rows = []
    for n, c in enumerate(curves):
        own = several and len(curves) <= len(COLOURS)
        name = f"{c.constraint}: {c.quantity}" if own else c.quantity
        scale = (lambda e, c=c: e) if counts else (lambda e, c=c: max(e / c.tolerance, FLOOR))
        end = _certified(sample, c)
        values = [scale(e) for e in c.errors]
        rows.append(
            (
                name,
                COLOURS[n] if own else BY_QUANTITY[c.quantity],
                c.steps,
                values,
                max(end, 0 if counts else FLOOR),
            )
        )
    top = max(v for *_, values, end in rows for v in (*values, end))
    last = max(steps[-1] for _, _, steps, _, _ in rows)
    if counts:
        axes = Axes(460, 250, (0, last + 1), (0, max(top, 1) * 1.15))
        y_ticks = sorted({round(t) for t in np.linspace(0, max(top, 1), 5)})
        allowed = 0.0
    else:
        axes = Axes(460, 250, (0, last + 1), (FLOOR / 1.5, max(top, 10) * 1.5), log=True)
        y_ticks = [10.0**k for k in range(-2, math.floor(math.log10(max(top, 10) * 1.5)) + 1)]
        allowed = 1.0
    line = axes.y(allowed)
    body = [
        f"<line x1='{axes.left}' x2='{axes.width - axes.right}' y1='{line}' y2='{line}' "
        "stroke='#888' stroke-dasharray='4 3'/>"
    ]
    for _, colour, steps, values, end in rows:
        points = " ".join(f"{axes.x(s)},{axes.y(v)}" for s, v in zip(steps, values, strict=True))
        body.append(f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='1.6'/>")
        body.append(f"<circle cx='{axes.x(steps[-1])}' cy='{axes.y(end)}' r='3.5' fill='{colour}'/>")
    names = {name: colour for name, colour, *_ in rows}
    # Errors are large at first, so the lower left is free; wrong features may be none at first.
    body += _legend(axes, names, axes.top + 16 if counts else axes.height - axes.bottom - 15 * len(names) + 6)
    title = "wrong features" if counts else "error / tolerance"
    return axes.draw(body, f"{title}; dots: the label map", ("sampling step", title), (_steps(last), y_ticks))


def _steps(last: int) -> list[int]:
    gap = next(g for g in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if last / g <= 8 or g == 1000)
    return list(range(0, last + 1, gap))


def _certified(sample: Outcome, curve: Curve) -> float:
    """The certificate's error that belongs to a curve: the worst domain, or all wrong counts together."""
    checks = [c for c in sample.checks if c.constraint == curve.constraint]
    if curve.quantity == TOPOLOGY:
        return sum(c.error for c in checks if c.quantity in BETTI)
    return max((c.in_tolerances for c in checks if c.quantity == curve.quantity), default=0.0)


def diagrams_svg(diagrams: Sequence[DomainDiagram], most: int = 8) -> str:
    """Persistence diagrams: a feature far from the diagonal is certain; the wanted number of the most
    persistent is filled, all others are hollow and should hug the diagonal."""
    several = len({d.domain for d in diagrams}) > 1
    return "".join(_diagram(d, several) for d in diagrams[:most])


def _diagram(one: DomainDiagram, several: bool) -> str:
    axes = Axes(300, 300, (-0.05, 1.05), (-0.05, 1.05))
    body = [f"<line x1='{axes.x(0)}' y1='{axes.y(0)}' x2='{axes.x(1)}' y2='{axes.y(1)}' stroke='#999'/>"]
    names = {}
    for dim, (name, colour) in enumerate(DIMENSIONS):
        wanted = one.wanted[dim]
        if wanted is None:
            continue
        names[f"{name}: {wanted} wanted"] = colour
        part = one.diagram.of_dim(dim)
        places: dict[tuple[float, float, bool], int] = {}
        for rank, i in enumerate(np.argsort(-part.persistence)):
            place = axes.x(float(part.birth[i])), axes.y(float(part.death[i])), rank < wanted
            places[place] = places.get(place, 0) + 1
        for (x, y, filled), count in places.items():
            fill = colour if filled else "none"
            body.append(
                f"<circle cx='{x}' cy='{y}' r='4' fill='{fill}' fill-opacity='.8' stroke='{colour}'/>"
            )
            if count > 1:
                body.append(text(x - 7, y - 5, f"{count} ×", "end", colour))
    body += _legend(axes, names, axes.top + 16)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    title = f"{one.constraint} {one.domain + 1}" if several else one.constraint
    return axes.draw(body, title, ("birth", "death"), (ticks, ticks))
