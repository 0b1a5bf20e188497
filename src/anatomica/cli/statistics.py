"""`anatomica measure` without a task: all named quantities of one label map, or of a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anatomica.cli.output import Output
from anatomica.errors import AnatomicaError, naming

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from anatomica.anatomy.catalogue import Anatomy
    from anatomica.measurement.vocabulary.statistics import Found
    from anatomica.prior.percentiles import Percentiles

MOST_REASONS = 6
"""Why nothing was measured, in one sentence."""


def measure_all(
    output: Output, source: Path, about: Anatomy, labels: str | None, out: Path | None, resolution: int | None
) -> None:
    """Table, statistics.json, statistics.csv and statistics.png; of a folder of label maps only the CSV."""
    from anatomica.anatomy.nifti import label_maps_in, load
    from anatomica.files import write_atomic, write_json
    from anatomica.measurement.vocabulary.statistics import statistics
    from anatomica.prior.percentiles import read_percentiles
    from anatomica.prior.zoo import WEIGHTS
    from anatomica.report.statistics import one_csv, statistics_dict, statistics_picture

    files = label_maps_in(source, about, labels)
    if files:
        _measure_folder(output, files, about, labels, out, resolution)
        return
    population = read_percentiles(WEIGHTS / about.name)
    with naming(source):
        s, found = statistics(load(source, about, labels), about, resolution)
    if not any(x.value is not None for x in found):
        reasons = list(dict.fromkeys(x.reason for x in found))
        more = f"; and {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
        raise AnatomicaError(f"{source}: nothing to measure ({'; '.join(reasons[:MOST_REASONS])}{more})")
    output.print(statistics_table(found, population, about.name))
    for line in reasons_missing(found):
        output.print(line, style="yellow")
    if s.edge_mm > about.edge_mm * 1.001:
        text = (
            f"The cube was enlarged from {about.edge_mm:g} to {s.edge_mm:g} mm to hold all tissue; "
            f"its voxels are {s.voxel_mm:.3g} mm wide."
        )
        output.print(text, style="dim")
    content = statistics_dict(s, found, population)
    if out is not None:
        write_json(out / "statistics.json", content)
        write_atomic(out / "statistics.csv", one_csv(found, population).encode())
        statistics_picture(s, found, out / "statistics.png")
        output.print(f"Wrote statistics.json, statistics.csv and statistics.png to {out}")
    output.result(content)


def _measure_folder(
    output: Output,
    files: Sequence[Path],
    about: Anatomy,
    labels: str | None,
    out: Path | None,
    resolution: int | None,
) -> None:
    from rich.progress import Progress

    from anatomica.anatomy.nifti import load, stem
    from anatomica.files import write_atomic
    from anatomica.measurement.vocabulary.statistics import statistics
    from anatomica.report.statistics import many_csv
    from anatomica.spec.vocabulary import entries

    rows: dict[str, dict[str, float]] = {}
    errors: dict[str, str] = {}
    with Progress(console=output.console, transient=True) as bar:
        for path in bar.track(files, description="measuring"):
            try:
                with naming(path):
                    _, found = statistics(load(path, about, labels), about, resolution)
                rows[stem(path)] = {x.entry.key: x.value for x in found if x.value is not None}
            except AnatomicaError as error:
                errors[stem(path)] = str(error)
    if not rows:
        raise AnatomicaError(next(iter(errors.values())))
    keys = [e.key for e in entries(about.name) if any(e.key in row for row in rows.values())]
    folder = files[0].parent if out is None else out
    target = folder / "statistics.csv"
    write_atomic(target, many_csv(rows, errors, keys).encode())
    output.print(f"Measured {len(rows)} label maps, {len(keys)} quantities; wrote {target}")
    for name, error in errors.items():
        output.print(f"{name}: {error}", style="yellow")
    output.result({"file": target, "measured": len(rows), "errors": errors, "quantities": rows})
    if errors:
        raise typer.Exit(1)


def statistics_table(found: Sequence[Found], population: Percentiles | None, anatomy: str) -> Table:
    """Every quantity that was found, with the population's percentile beside it."""
    from rich.table import Table

    from anatomica.report.statistics import shown

    table = Table(title=f"quantities of the {anatomy} label map")
    for name, side in (
        ("quantity", "left"),
        ("value", "right"),
        ("unit", "left"),
        ("percentile", "right"),
        ("population, 5 to 95 %", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for x in found:
        if x.value is None:
            continue
        percent = seen = ""
        if population is not None and x.entry.key in population.quantiles:
            place = population.percent(x.entry.key, x.value)
            percent = "" if place is None else _place(place)
            low, high = (population.value(x.entry.key, p) for p in (5, 95))
            seen = f"{shown(low)} to {shown(high)}"
        table.add_row(x.entry.key, shown(x.value), x.entry.unit, percent, seen)
    return table


def _place(percent: float) -> str:
    return "< 1" if percent < 1 else "> 99" if percent > 99 else f"{percent:.0f}"


def reasons_missing(found: Sequence[Found]) -> list[str]:
    """Why quantities are not in the table: one sentence per reason, with how many it explains."""
    by_reason: dict[str, list[str]] = {}
    for x in found:
        if x.value is None:
            by_reason.setdefault(x.reason, []).append(x.entry.key)
    return [
        f"Not measured: {keys[0]}{f' and {len(keys) - 1} more' if len(keys) > 1 else ''} ({reason})"
        for reason, keys in by_reason.items()
    ]
