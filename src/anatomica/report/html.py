"""report.html: one self-contained file."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from anatomica.generation.feasibility import Comparison
from anatomica.generation.plausibility import sentence
from anatomica.generation.sample import Outcome
from anatomica.measurement.certificate import sentences_not_placed
from anatomica.measurement.placing import Resolved
from anatomica.mesh.proof import Proof, proof_html
from anatomica.report.charts import curves_svg, diagrams_svg
from anatomica.report.tables import check_cells, outside_sentences, population_rows
from anatomica.report.tally import Tally, tally


class Html(str):
    """Text that is markup already; a table escapes every other."""


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}
td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right}
td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}.yes{color:#2a7d2a}.no{color:#b22}
img{max-width:100%;display:block}h3{margin-bottom:.2em}
pre{background:#f6f6f6;padding:1em;overflow:auto;font-size:12px;max-height:30em}"""


def report_html(
    samples: Sequence[Outcome],
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
    pictures: Sequence[bytes] = (),
    proofs: Mapping[int, Proof] = MappingProxyType({}),
    *,
    total: Tally | None = None,
    conflicts: Sequence[str] = (),
) -> str:
    """One file with everything in it; `pictures` holds one PNG per sample, at least of the first ones,
    `proofs` those of the samples' surfaces by seed.

    `total` counts all samples, if `samples` holds only the first.
    """
    spec = recipe["spec"]
    title = html.escape(f"{spec['name'] if spec else 'unconditional'} · {recipe['model']['anatomy']}")
    total = tally(samples, proofs) if total is None else total
    count, met, valid = total.samples, total.met, total.valid
    if spec:
        lead = f"{valid} of {count} samples are valid: {met} meet every constraint"
        lead += f", {met - valid} of these are implausible." if met > valid else "."
        lead += " Targets red, achieved green, domains black."
    else:
        lead = f"{count} samples."
    odd = [(s.seed, sentence(s.unusual)) for s in samples if s.unusual]
    if total.implausible:
        lead += (
            f" {total.implausible} may be anatomically implausible: they are unlike every training patient."
        )
    body = [f"<h1>{title}</h1><p>{lead}</p>", _population_html(comparisons)]
    body += [f"<p class=no>Seed {seed}: {html.escape(text)}.</p>" for seed, text in odd]
    if len(odd) < total.implausible:
        body.append(f"<p class=no>{total.implausible - len(odd)} more are named in report.json.</p>")
    body += [f"<p class=no>Conflict: {html.escape(text)}.</p>" for text in conflicts]
    if missing := sentences_not_placed(resolved):
        body.append(f"<p>{html.escape('; '.join(missing))}.</p>")
    if spec:
        head = ("sample", "constraint", "quantity", "requested", "achieved", "error", "tolerance", "")
        rows = [[*check_cells(s.seed, c), _met(c.met)] for s in samples for c in s.checks]
        body.append(html_table(head, rows))
        body += [f"<p>{html.escape(text)}.</p>" for text in outside_sentences(samples)]
        if len(samples) < count:
            body.append(f"<p>Numbers of the first {len(samples)} samples; report.json has all.</p>")
    for s, png in zip(samples, pictures, strict=False):
        state = f": {_met(s.met)}{_implausible(s)}" if spec else ""
        drawn = f", best of {s.drawn}" if s.drawn > 1 else ""
        drawn += f", {s.mended} voxels mended" if s.mended else ""
        body.append(f"<h3>Seed {s.seed}{state}{drawn}</h3>{html_image(f'seed {s.seed}', png)}")
        body.append(curves_svg(s) + diagrams_svg(s.diagrams))
    if proofs:
        of = f"{total.proved} of {total.surfaces}"
        body.append(f"<h2>Surfaces against label maps: the proof holds for {of}</h2>")
        body += [f"<h3>Seed {seed}</h3>{proof_html(proof)}" for seed, proof in proofs.items()]
    if len(pictures) < count:
        body.append(f"<p>Pictures of the first {len(pictures)} of {count} samples.</p>")
    made = html.escape(json.dumps(recipe, indent=1))
    body.append(f"<h2>Recipe</h2><p>anatomica generate --recipe report.json --out DIR</p><pre>{made}</pre>")
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _population_html(comparisons: Sequence[Comparison]) -> str:
    """The targets compared with the training population; what could not be compared is named."""
    notes = "".join(
        f"<p>{html.escape(f'{c.constraint}: not compared with the training population; {c.note}')}.</p>"
        for c in comparisons
        if c.note
    )
    compared = [c for c in comparisons if not c.note]
    rows = list(population_rows(compared))
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
    return f"<h2>Targets beside the training population: {verdict}</h2>{html_table(head, rows)}{notes}"


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{x}</th>" for x in head)
    lines = (
        "<tr>" + "".join(f"<td>{x if isinstance(x, Html) else html.escape(x)}</td>" for x in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{titles}</tr>{''.join(lines)}</table>"


def _met(met: bool) -> Html:
    return Html(f"<span class={'yes' if met else 'no'}>{'met' if met else 'not met'}</span>")


def _implausible(sample: Outcome) -> str:
    return "" if sample.plausible else "<span class=no>, but implausible</span>"


def html_image(caption: str, png: bytes) -> str:
    data = base64.b64encode(png).decode()
    return f"<img alt='{html.escape(caption, quote=True)}' src='data:image/png;base64,{data}'>"
