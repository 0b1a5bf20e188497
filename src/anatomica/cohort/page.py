"""cohort.html: one self-contained file that says what the cohort is, how it was made, and what is missing."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anatomica.cohort.charts import histogram_svg, quantiles_svg
from anatomica.cohort.rules import quantity
from anatomica.cohort.summary import Cohort, achieved
from anatomica.report.html import STYLE, Html, html_image, html_table
from anatomica.report.statistics import shown

FLOW = {
    "requested": "requested",
    "infeasible": "infeasible: refused before drawing",
    "unmet": "a target was not met in any try",
    "implausible": "anatomically implausible in every try",
    "other stratum": "not of the asked stratum in any try",
    "excluded": "excluded by a condition in every try",
    "too near": "too near a training patient in every try",
    "left": "not yet drawn",
    "kept": "kept",
}


def cohort_html(
    cohort: Cohort,
    found: Mapping[str, Any],
    recipe: Mapping[str, Any],
    sheet: bytes | None,
    pairs: bytes | None = None,
) -> str:
    """The whole page."""
    spec = cohort.plan.spec
    title = html.escape(f"{spec.name} · {spec.anatomy} cohort")
    flow = found["flow"]
    lead = f"{flow['kept']} of {flow['requested']} requested patients are kept"
    lead += f"; {flow['left']} are not drawn yet." if flow["left"] else "."
    body = [f"<h1>{title}</h1><p>{lead}</p>", _flow(flow), _strata(found["strata"])]
    body += [_targets(cohort, found), _joint(found["joint"]), _reference(found["reference"])]
    body += [_coverage(found["coverage"]), _memorisation(found["memorisation"], spec.privacy is not None)]
    if pairs is not None:
        body.append(html_image("patients beside their nearest training patients", pairs))
    body += [_topology(found["topology"]), _plausibility(found["plausibility"])]
    if sheet is not None:
        body.append(f"<h2>Patients</h2>{html_image('patients, evenly taken from the cohort', sheet)}")
    body += [_evidence(cohort, found), _recipe(recipe)]
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _flow(flow: Mapping[str, Any]) -> str:
    rows = [[words, str(flow[name])] for name, words in FLOW.items()]
    share, low, high = flow["kept_share"]
    text = f"Kept share {share:.1%} (95 % interval {low:.1%} to {high:.1%}); "
    text += f"{flow['candidates']} candidates drawn"
    text += f"; {flow['replaced']} requests were replaced by new ones." if flow["replaced"] else "."
    return f"<h2>Flow</h2>{html_table(('', 'requests'), rows)}<p>{text}</p>"


def _strata(strata: Mapping[str, Any]) -> str:
    if not strata:
        return ""
    rows = [[k, f"{v['asked']:.1%}", f"{v['achieved']:.1%}", str(v["kept"])] for k, v in strata.items()]
    return "<h2>Strata</h2>" + html_table(("stratum", "asked", "achieved", "patients"), rows)


def _targets(cohort: Cohort, found: Mapping[str, Any]) -> str:
    keys, kept = cohort.plan.keys, cohort.kept
    if not keys:
        return "<h2>Targets</h2><p>No target was asked for: the patients are unconditional.</p>"
    rows, charts = [], []
    values = achieved(kept, keys)
    for i, key in enumerate(keys):
        row, unit = found["targets"][key], quantity(cohort.plan.spec.anatomy, key).unit
        if "mean" not in row:
            rows.append([key, unit, str(row["patients"]), *["-"] * 5])
            continue
        asked = row.get("distribution", row["requests"])
        mean, low, high = row["mean"]
        rows.append(
            [
                key,
                unit,
                str(row["patients"]),
                f"{shown(row['requested_mean'])} ± {shown(row['requested_sd'])}",
                f"{shown(mean)} ({shown(low)} to {shown(high)}) ± {shown(row['sd'])}",
                _mark(asked["within"], f"{asked['ks']:.3f} ({asked['band']:.3f})"),
                shown(asked["wasserstein"]),
                shown(row["error"]["p95_absolute"]),
            ]
        )
        there = ~np.isnan(values[:, i])
        wanted = np.array([r["targets"][key] for r in kept])[there]
        charts.append(histogram_svg(wanted, values[there, i], key, unit))
        charts.append(quantiles_svg(wanted, values[there, i], "quantiles", unit))
    head = ("target", "unit", "n", "requested", "achieved", "KS (95 % band)", "Wasserstein", "95 % of errors")
    return f"<h2>Requested and achieved</h2>{html_table(head, rows)}<p>{''.join(charts)}</p>"


def _joint(joint: Mapping[str, Any] | None) -> str:
    if joint is None:
        return ""
    rows = [
        [
            r["a"],
            r["b"],
            "-" if r["asked"] is None else f"{r['asked']:.2f}",
            f"{r['requested']:.2f}",
            f"{r['achieved']:.2f}",
        ]
        for r in joint["correlations"]
    ]
    within = joint["energy_distance"] <= joint["energy_band"]
    text = f"{joint['energy_distance']:.4f} (95 % of samples of the requests: {joint['energy_band']:.4f})"
    table = html_table(("", "", "correlation asked", "of the requests", "achieved"), rows)
    return f"<h2>Jointly</h2>{table}<p>Energy distance {_mark(within, text)}</p>"


def _reference(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    rows = [
        [
            k,
            shown(v["mean"]),
            f"{shown(v['reference_mean'])} ± {shown(v['reference_sd'])}",
            f"{v['ks']:.3f} ({v['band']:.3f})",
        ]
        for k, v in found["quantities"].items()
    ]
    head = ("quantity", "cohort", "reference", "KS (95 % band)")
    return f"<h2>Beside {html.escape(found['file'])}</h2>{html_table(head, rows)}"


def _coverage(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return (
            "<h2>Coverage and quality</h2><p>Too few patients, or the model's folder has no population.</p>"
        )
    rows = [
        ["precision", f"{found['precision']:.2f}", "share of patients that lie where training patients do"],
        ["recall", f"{found['recall']:.2f}", "share of training patients that lie where the cohort does"],
        ["coverage", f"{found['coverage']:.2f}", "share of training patients with one of the cohort nearby"],
        [
            "Vendi score",
            f"{found['vendi']:.1f}",
            f"effective number of different patients among {found['vendi_patients']}; "
            f"training {found['vendi_training']:.1f}",
        ],
        [
            "1-NNA",
            _interval(found["one_nna"]),
            f"0.5 is alike; training patients among themselves {_interval(found['one_nna_floor'])}",
        ],
        [
            "FMD",
            _interval(found["fmd"]),
            f"training patients among themselves {_interval(found['fmd_floor'])}",
        ],
    ]
    text = "By the moments of tissues, beside the training population; targets are meant to move a cohort."
    return f"<h2>Coverage and quality</h2><p>{text}</p>{html_table(('', '', 'what'), rows)}"


def _memorisation(found: Mapping[str, Any] | None, asked: bool) -> str:
    if found is None:
        return "<h2>Memorisation</h2><p>The model's folder has no population, so nothing was compared.</p>"
    order = tuple(found["training_percentiles"])
    sets = {"cohort": "percentiles", "training patients among themselves": "training_percentiles"}
    if "held_out_percentiles" in found:
        sets[f"{found['held_out_patients']} patients held out of training"] = "held_out_percentiles"
    rows = [[name, *(f"{found[key].get(p, float('nan')):.3f}" for p in order)] for name, key in sets.items()]
    known = f"distance to the nearest of {found['training_patients']} training patients"
    head = (known, *(f"{p} %" for p in order))
    rule = "The spec's privacy rule" if asked else "A rule of this kind (the spec has none)"
    text = f"{rule}: no nearer than {found['limit']:.3f}, "
    text += f"the training patients' own {found['limit_percent']:g} %. "
    text += f"{found['nearer']} patients are nearer."
    near = [[x["patient"], f"{x['distance']:.3f}", str(x["training_patient"])] for x in found["nearest"]]
    table = html_table(("nearest pairs", "distance", "training patient number"), near)
    return f"<h2>Memorisation</h2><p>{text}</p>{html_table(head, rows)}{table}"


def _topology(found: Mapping[str, Any]) -> str:
    rows = []
    for name, counts in found["tissues"].items():
        words = [f"{count} with {' / '.join(numbers.split())}" for numbers, count in counts.items()]
        rows.append([name, f"{sum(counts.values())} of {found['patients']}", "; ".join(words[:4])])
    head = ("tissue", "patients that have it", "pieces / loops / cavities")
    return f"<h2>Topology</h2><p>Of the written voxels.</p>{html_table(head, rows)}" if rows else ""


def _plausibility(found: Mapping[str, int]) -> str:
    if not found:
        return "<h2>Plausibility</h2><p>No request was given up as unlike the training patients.</p>"
    rows = [[what, str(count)] for what, count in found.items()]
    return "<h2>Plausibility</h2>" + html_table(("unlike training, in requests not kept", "requests"), rows)


def _evidence(cohort: Cohort, found: Mapping[str, Any]) -> str:
    """What evidence there is, in the order of the usual credibility frameworks (ASME V&V 40 and others)."""
    spec, flow = cohort.plan.spec, found["flow"]
    asked = ", ".join(cohort.plan.keys) or "none"
    rows = [
        ("Question of interest", "For you to state: this page does not know what the cohort is for."),
        ("Context of use", "For you to state, with what depends on a wrong answer."),
        (
            "Population asked for",
            f"{spec.anatomy}, {flow['requested']} patients, design {spec.design}, targets: {asked}.",
        ),
        (
            "Provided: code and numbers",
            "The recipe below, with hashes of weights and code; on one platform it gives the same bytes.",
        ),
        (
            "Provided: agreement",
            "Requested against achieved for each target and jointly, with bands; the flow of every request.",
        ),
        (
            "Provided: plausibility",
            "Rules on presence, volumes, contacts and pieces, measured against the training population.",
        ),
        (
            "Provided: privacy",
            "Distances to training patients by moments of tissues; not a proof against every attack.",
        ),
        (
            "Not provided",
            "Comparison with real patients"
            + (" beyond the reference table." if found["reference"] else ": give a reference table."),
        ),
        (
            "Not provided",
            "Physiology, material properties, disease progress, outcomes: a label map has shape only.",
        ),
        ("Not provided", "Any assessment against a regulation or standard."),
    ]
    return "<h2>Evidence</h2>" + html_table(("", ""), rows)


def _recipe(recipe: Mapping[str, Any]) -> str:
    text = html.escape(json.dumps(recipe, indent=1, default=str))
    return f"<h2>Recipe</h2><p>anatomica cohort draw cohort.yaml --out DIR</p><pre>{text}</pre>"


def _interval(x: Sequence[float]) -> str:
    return f"{x[0]:.2f} ({x[1]:.2f} to {x[2]:.2f})"


def _mark(good: bool, text: str) -> Html:
    return Html(f"<span class={'yes' if good else 'no'}>{html.escape(text)}</span>")
