"""The cohort report's charts as inline SVG: requested and achieved histograms, and quantiles side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from anatomica.report.charts import Axes, text

Array = np.ndarray
ASKED, GOT = "#888888", "#1f77b4"
BINS = 20


def histogram_svg(asked: Float[Array, " m"], got: Float[Array, " k"], title: str, unit: str) -> str:
    """Requested (grey, filled) and achieved (blue line), as shares per bin."""
    low, high = _range(np.concatenate([asked, got]))
    edges = np.linspace(low, high, BINS + 1)
    shares = [np.histogram(x, edges)[0] / max(1, len(x)) for x in (asked, got)]
    top = max(float(s.max()) for s in shares) * 1.15 or 1.0
    axes = Axes(430, 250, (low, high), (0.0, top))
    body = []
    for share, a, b in zip(shares[0], edges, edges[1:], strict=False):
        x, y, base = axes.x(a), axes.y(share), axes.y(0)
        size = f"width='{axes.x(b) - x:.1f}' height='{base - y:.1f}'"
        body.append(f"<rect x='{x}' y='{y}' {size} fill='{ASKED}' fill-opacity='.45'/>")
    points = []
    for share, a, b in zip(shares[1], edges, edges[1:], strict=False):
        points += [f"{axes.x(a)},{axes.y(share)}", f"{axes.x(b)},{axes.y(share)}"]
    body.append(f"<polyline points='{' '.join(points)}' fill='none' stroke='{GOT}' stroke-width='1.8'/>")
    body += [
        text(axes.left + 8, axes.top + 16, "requested", colour=ASKED),
        text(axes.left + 8, axes.top + 31, "achieved", colour=GOT),
    ]
    return axes.draw(body, title, (unit, "share"), (ticks(low, high), ticks(0.0, top)))


def quantiles_svg(asked: Float[Array, " m"], got: Float[Array, " k"], title: str, unit: str) -> str:
    """Q-Q: achieved quantiles over requested ones; on the diagonal both distributions are the same."""
    low, high = _range(np.concatenate([asked, got]))
    axes = Axes(290, 250, (low, high), (low, high))
    diagonal = f"x1='{axes.x(low)}' y1='{axes.y(low)}' x2='{axes.x(high)}' y2='{axes.y(high)}'"
    body = [f"<line {diagonal} stroke='#999'/>"]
    at = (np.arange(min(60, len(got))) + 0.5) / min(60, len(got))
    for x, y in zip(np.quantile(asked, at), np.quantile(got, at), strict=True):
        body.append(f"<circle cx='{axes.x(x)}' cy='{axes.y(y)}' r='2.4' fill='{GOT}' fill-opacity='.7'/>")
    names = (f"requested, {unit}".rstrip(", "), f"achieved, {unit}".rstrip(", "))
    return axes.draw(body, title, names, (ticks(low, high, 4), ticks(low, high, 4)))


def ticks(low: float, high: float, about: int = 5) -> Sequence[float]:
    """Round numbers within a range.

    >>> list(ticks(1.05, 1.35))
    [1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35]
    """
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * 0.75)
    digits = max(0, 2 - math.floor(math.log10(step)))
    return [
        round(k * step, digits)
        for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]


def _range(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = 0.03 * (high - low) or 0.5 * (abs(high) or 1.0)
    return low - room, high + room
