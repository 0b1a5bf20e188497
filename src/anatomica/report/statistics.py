"""Named quantities for people: rows of a table, JSON, CSV, and the picture with levels drawn."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.files import write_figure
from anatomica.measurement.vocabulary.statistics import Found
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.percentiles import Percentiles
from anatomica.report.render import Camera, render
from anatomica.report.wires import LEVEL_COLOUR, Wire, focus, show
from anatomica.version import __version__


def shown(value: float) -> str:
    """A value with as many digits as it deserves.

    >>> shown(143.26), shown(28.61), shown(13.04), shown(1.118), shown(2.0)
    ('143', '28.6', '13.0', '1.118', '2')
    """
    if value == round(value) or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def statistics_dict(s: Subject, found: Sequence[Found], population: Percentiles | None) -> dict[str, Any]:
    """statistics.json; docs/quantities.md describes it."""
    rows = {}
    for x in found:
        row: dict[str, Any] = {"unit": x.entry.unit, "value": x.value}
        if x.value is None:
            row["reason"] = x.reason
        elif population is not None:
            row["percentile"] = population.percent(x.entry.key, x.value)
        rows[x.entry.key] = row
    return {
        "schema": "anatomica.statistics/1",
        "version": __version__,
        "anatomy": s.about.name,
        "edge_mm": s.edge_mm,
        "n": s.n,
        "population": None if population is None else population.source,
        "quantities": rows,
    }


def one_csv(found: Sequence[Found], population: Percentiles | None) -> str:
    """statistics.csv of one file: one row per quantity."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["quantity", "value", "unit", "percentile", "definition", "reason"])
    for x in found:
        known = x.value is not None and population is not None
        percent = population.percent(x.entry.key, x.value) if known else None  # type: ignore[union-attr,arg-type]
        writer.writerow(
            [
                x.entry.key,
                "" if x.value is None else f"{x.value:.6g}",
                x.entry.unit,
                "" if percent is None else f"{percent:.1f}",
                x.entry.definition,
                x.reason,
            ]
        )
    return text.getvalue()


def many_csv(rows: Mapping[str, Mapping[str, float]], errors: Mapping[str, str], keys: Sequence[str]) -> str:
    """statistics.csv of many files: one row per file, one column per quantity."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", *keys, "error"])
    for name in [*rows, *errors]:
        values = rows.get(name, {})
        cells = [f"{values[key]:.6g}" if key in values else "" for key in keys]
        writer.writerow([name, *cells, errors.get(name, "")])
    return text.getvalue()


def statistics_picture(s: Subject, found: Sequence[Found], path: Path, size: int = 460) -> None:
    """statistics.png: the anatomy from three sides with levels, rings and axes drawn."""
    import matplotlib.pyplot as plt

    cube = focus(s.cube)
    lines = [s.to_ras(_dense(mark.line_mm)) for x in found for mark in x.marks if len(mark.line_mm) > 1]
    wire = Wire(lines, LEVEL_COLOUR, 1.1)
    view = s.about.camera
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 5), dpi=100)
    views = ((view.azimuth_deg, "the usual view"), (90.0, "from the left"), (180.0, "from the back"))
    for axis, (azimuth, title) in zip(axes, views, strict=True):
        picture = render(cube, Camera(azimuth, view.elevation_deg), size, ghost=cube.table.tissues)
        show(axis, picture, [wire], title)
    there = sum(x.value is not None for x in found)
    figure.suptitle(f"{s.about.name}: {there} of {len(found)} quantities · cube of {s.edge_mm:g} mm")
    figure.tight_layout()
    write_figure(path, figure)
    plt.close(figure)


def _dense(line: np.ndarray, count: int = 24) -> np.ndarray:
    """A polyline with enough points that parts of it can be hidden."""
    if len(line) >= count:
        return line
    along = np.linspace(0, len(line) - 1, count)
    return np.stack([np.interp(along, np.arange(len(line)), x) for x in line.T], axis=1)
