"""Requested against achieved: tables on screen, report.json, and report.html in one self-contained file."""

from __future__ import annotations

import base64
import html
import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from anatomica.anatomy.catalogue import from_card
from anatomica.files import write_atomic
from anatomica.generation.feasibility import Comparison
from anatomica.generation.plausibility import sentence
from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import Check, not_placed, sentences_not_placed
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.report.charts import curves_svg, diagrams_svg
from anatomica.report.samples import as_png, contact_picture, draw, sample_picture
from anatomica.spec.quantities import QUANTITIES
from anatomica.spec.spec import Spec

MOST_PICTURES = 64
ASKED = {name: q for q in QUANTITIES for name in q.asked}
"""Which quantity a field of a spec's target sets."""


def report_table(samples: Sequence[Sample], most: int = 60) -> Table:
    """A row a check: requested, achieved, error and tolerance, met. A shape is shown by its eigenvalues."""
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


def population_table(comparisons: Sequence[Comparison]) -> Table:
    """Targets outside the training population, with what it has and the nearest target within it."""
    table = Table(title="outside the training population; tried all the same")
    for name in ("constraint", "quantity", "requested", "training 5 to 95 %", "nearest feasible", "distance"):
        table.add_column(name, justify="left" if name in ("constraint", "quantity") else "right")
    for row in _population_rows(c for c in comparisons if c.outside):
        table.add_row(*map(escape, row))
    table.caption = "distance: Mahalanobis, all of a constraint's quantities together (95 % of patients)"
    return table


def volume_table(model: Model, made: Sequence[Sample]) -> Table:
    """Volumes in mL, a row a tissue, beside the population's 5th, 50th and 95th percentile."""
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


def _population_rows(comparisons: Iterable[Comparison]) -> Iterable[list[str]]:
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


def _cells(seed: int, c: Check) -> list[str]:
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


def report_dict(
    samples: Sequence[Sample],
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
) -> dict[str, Any]:
    """report.json: the recipe, the targets beside the population, every sample with checks and curves."""
    return {
        "schema": "anatomica.report/1",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": recipe,
        "population": [c.to_dict() for c in comparisons],
        "not_placed": not_placed(resolved),
        "met": sum(s.met for s in samples),
        "samples": [
            {
                "seed": s.seed,
                "drawn_seed": s.drawn_seed,
                "drawn": s.drawn,
                "seconds": round(s.seconds, 3),
                "mended_voxels": s.mended,
                "met": s.met,
                "checks": [c.to_dict() for c in s.checks],
                "volumes_ml": {t: s.label_map.volume_ml(t) for t in s.label_map.present()},
                "unusual": [odd.to_dict() for odd in s.unusual],
                "curves": [c.to_dict() for c in s.curves],
                "features": [f.to_dict() for f in s.features],
            }
            for s in samples
        ],
    }


class Html(str):
    """Text that is markup already; a table escapes every other."""


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}
td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right}
td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}.yes{color:#2a7d2a}.no{color:#b22}
img{max-width:100%;display:block}h3{margin-bottom:.2em}
pre{background:#f6f6f6;padding:1em;overflow:auto;font-size:12px;max-height:30em}"""


def report_html(
    samples: Sequence[Sample],
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
    pictures: Sequence[bytes] = (),
) -> str:
    """One file with everything in it; `pictures` holds a PNG a sample, of the first ones at least."""
    spec = recipe["spec"]
    title = html.escape(f"{spec['name'] if spec else 'unconditional'} · {recipe['model']['anatomy']}")
    count, met = len(samples), sum(s.met for s in samples)
    if spec:
        lead = f"{met} of {count} samples meet every constraint. Targets red, achieved green, domains black."
    else:
        lead = f"{count} samples."
    odd = [(s.seed, sentence(s.unusual)) for s in samples if s.unusual]
    if odd:
        lead += f" {len(odd)} are unlike any training patient: they may be no anatomy."
    body = [f"<h1>{title}</h1><p>{lead}</p>", _population_html(comparisons)]
    body += [f"<p class=no>Seed {seed}: {html.escape(text)}.</p>" for seed, text in odd]
    if missing := sentences_not_placed(resolved):
        body.append(f"<p>{html.escape('; '.join(missing))}.</p>")
    if spec:
        head = ("sample", "constraint", "quantity", "requested", "achieved", "error", "tolerance", "")
        rows = [[*_cells(s.seed, c), _met(c.met)] for s in samples for c in s.checks]
        body.append(_html_table(head, rows))
    for s, png in zip(samples, pictures, strict=False):
        state = f": {_met(s.met)}" if spec else ""
        drawn = f", best of {s.drawn}" if s.drawn > 1 else ""
        drawn += f", {s.mended} voxels mended" if s.mended else ""
        body.append(f"<h3>Seed {s.seed}{state}{drawn}</h3>{_image(f'seed {s.seed}', png)}")
        body.append(curves_svg(s) + diagrams_svg(s.features))
    if len(pictures) < count:
        body.append(f"<p>Pictures of the first {len(pictures)} samples; numbers of all.</p>")
    made = html.escape(json.dumps(recipe, indent=1))
    body.append(f"<h2>Recipe</h2><p>anatomica generate --recipe report.json --out DIR</p><pre>{made}</pre>")
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _population_html(comparisons: Sequence[Comparison]) -> str:
    """What the targets are beside the training population; what could not be compared is named."""
    notes = "".join(
        f"<p>{html.escape(f'{c.constraint}: not compared with the training population; {c.note}')}.</p>"
        for c in comparisons
        if c.note
    )
    compared = [c for c in comparisons if not c.note]
    rows = list(_population_rows(compared))
    if not rows:
        return notes
    far = sum(c.outside for c in compared)
    verdict = f"{far} of {len(compared)} compared constraints lie outside it"
    head = (
        "constraint",
        "quantity",
        "requested",
        "training 5 to 95 %",
        "nearest feasible",
        "distance (95 %)",
    )
    return f"<h2>Targets beside the training population: {verdict}</h2>{_html_table(head, rows)}{notes}"


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{x}</th>" for x in head)
    lines = (
        "<tr>" + "".join(f"<td>{x if isinstance(x, Html) else html.escape(x)}</td>" for x in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{titles}</tr>{''.join(lines)}</table>"


def _met(met: bool) -> Html:
    return Html(f"<span class={'yes' if met else 'no'}>{'met' if met else 'not met'}</span>")


def _image(caption: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    return f"<img alt='{html.escape(caption, quote=True)}' src='data:image/png;base64,{data}'>"


def write_report(
    out: Path,
    samples: Sequence[Sample],
    spec: Spec | None,
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
) -> None:
    """report.json, report.html, contact-sheet.png and a picture a sample, each whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    data = json.dumps(report_dict(samples, resolved, recipe, comparisons), indent=1) + "\n"
    write_atomic(out / "report.json", data.encode())
    about = from_card(recipe["model"], "recipe")
    drawn = [draw(s, spec, resolved, about) for s in samples[:MOST_PICTURES]]
    write_atomic(out / "contact-sheet.png", as_png(contact_picture(drawn)))
    pictures = [as_png(sample_picture(views)) for views in drawn]
    for s, png in zip(samples, pictures, strict=False):
        write_atomic(out / f"sample-{s.seed:06d}.png", png)
    page = report_html(samples, resolved, recipe, comparisons, pictures)
    write_atomic(out / "report.html", page.encode())
