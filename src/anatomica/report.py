"""Requested against achieved: a table on screen, report.json, and report.html in one self-contained file."""

from __future__ import annotations

import base64
import html
import io
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from rich.table import Table

from anatomica import __version__
from anatomica.certify import Check
from anatomica.frame import Frame
from anatomica.generation import Sample
from anatomica.labels import anatomy
from anatomica.measurement import measure_cube
from anatomica.models.zoo import Model
from anatomica.moments import Moments
from anatomica.picture import (
    ACHIEVED_COLOUR,
    TARGET_COLOUR,
    Wire,
    box_wire,
    ellipsoid_wire,
    focus,
    moment_wires,
    show,
)
from anatomica.render import Camera, render
from anatomica.resolve import Resolved
from anatomica.spec import Spec


def report_table(samples: Sequence[Sample], most: int = 60) -> Table:
    """A row a check: requested, achieved, error, met."""
    table = Table(title="requested and achieved")
    for name in ("sample", "constraint", "quantity", "requested", "achieved", "error", "tolerance", "met"):
        table.add_column(name, justify="left" if name in ("constraint", "quantity") else "right")
    rows = [(s, c) for s in samples for c in s.checks]
    for sample, c in rows[:most]:
        table.add_row(
            str(sample.seed),
            c.constraint + (f" [{c.domain + 1}]" if _many(sample.checks, c) else ""),
            c.quantity,
            _number(c.requested),
            _number(c.achieved),
            f"{c.error:.3g} {error_unit(c)}",
            f"{c.tolerance:g} {error_unit(c)}",
            "[green]yes[/]" if c.met else "[red]no[/]",
        )
    if len(rows) > most:
        table.caption = f"{len(rows) - most} more rows in report.json"
    return table


def error_unit(c: Check) -> str:
    return {"volume": "%", "centroid": "mm", "shape": ""}.get(c.quantity, "")


def _many(checks: Sequence[Check], c: Check) -> bool:
    return any(x.domain > 0 for x in checks if x.constraint == c.constraint)


def _number(value: float | list[float]) -> str:
    if isinstance(value, list):
        return ", ".join(f"{x:.3g}" for x in value)
    return f"{value:.4g}"


def recipe(model: Model, spec: Spec | None, arguments: dict[str, Any]) -> dict[str, Any]:
    """Everything that makes the same label maps again."""
    return {
        "anatomica": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": {"anatomy": model.anatomy, "hash": model.hash},
        "spec": None if spec is None else spec.model_dump(mode="json", exclude_none=True),
        "arguments": arguments,
    }


def report_dict(samples: Sequence[Sample], made_by: dict[str, Any]) -> dict[str, Any]:
    """report.json: the recipe, and every sample with its checks and volumes."""
    return {
        "schema": "anatomica.report/1",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": made_by,
        "met": sum(s.met for s in samples),
        "samples": [
            {
                "seed": s.seed,
                "drawn_seed": s.drawn_seed,
                "drawn": s.drawn,
                "seconds": round(s.seconds, 3),
                "met": s.met,
                "checks": [c.to_dict() for c in s.checks],
                "volumes_ml": {t: s.label_map.volume_ml(t) for t in s.label_map.present()},
            }
            for s in samples
        ],
    }


def sample_picture(
    sample: Sample, spec: Spec | None, resolved: Sequence[Resolved], size: int = 300
) -> Figure:
    """Three views: the constrained structures solid, the rest translucent; frames of the domains in black,
    ellipsoids of the target in red and of the sample in green."""
    cube = focus(sample.label_map)
    frame = Frame.of(sample.label_map, anatomy(spec.anatomy)) if spec else None
    shown: set[str] = set()
    wires: list[Wire] = []
    if spec is not None and frame is not None:
        measured = measure_cube(sample.label_map, spec, tuple(resolved)).measured
        for r, m in zip(resolved, measured, strict=True):
            shown |= set(r.constraint.structure)
            if r.constraint.domain.family not in ("global",):
                wires += [
                    box_wire(r.domains, k, frame) for k in range(r.domains.count) if bool(r.domains.valid[k])
                ]
            if r.wanted.centroid is not None or r.wanted.mass is not None:
                wires += moment_wires(r.domains, m.moments, frame, ACHIEVED_COLOUR)
                wires += _target_wires(r, m.moments, frame)
    ghost = [t for t in cube.table.tissues if shown and t not in shown]
    figure, axes = plt.subplots(1, 3, figsize=(3 * size / 80, size / 72), dpi=80)
    for axis, azimuth in zip(axes, (0.0, 50.0, 180.0), strict=True):
        show(axis, render(cube, Camera(azimuth, 12.0), size, ghost=ghost), wires)
    state = "" if not sample.checks else (" · met" if sample.met else " · not met")
    figure.suptitle(f"seed {sample.seed}{state}", fontsize=10)
    figure.tight_layout()
    return figure


def _target_wires(r: Resolved, achieved: Moments, frame: Frame) -> list[Wire]:
    """The wanted ellipsoids; what is free is drawn as achieved, so that a picture compares what was asked."""
    wires = []
    for k in range(r.domains.count):
        if not bool(r.domains.valid[k]):
            continue
        centroid = achieved.centroid[k] if r.wanted.centroid is None else r.wanted.centroid[k]
        size = achieved.covariance[k].diagonal().sum()
        if r.wanted.mass is not None:
            # Volume grows with length^3, the covariance with length^2.
            size = size * (r.wanted.mass[k] / achieved.mass[k].clamp_min(1e-9)) ** (2 / 3)
        shape = achieved.normalised_covariance[k] if r.wanted.shape is None else r.wanted.shape[k]
        wires.append(ellipsoid_wire(centroid.double(), (size * shape).double(), frame, TARGET_COLOUR))
    return wires


def as_png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png")
    plt.close(figure)
    return data.getvalue()


STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}
td,th{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right}
td:nth-child(-n+3),th:nth-child(-n+3){text-align:left}.yes{color:#2a7d2a}.no{color:#b22}img{max-width:100%}
pre{background:#f6f6f6;padding:1em;overflow:auto;font-size:12px}"""


def report_html(data: dict[str, Any], pictures: Sequence[tuple[str, bytes]]) -> str:
    """One file with everything in it: table, pictures, recipe."""
    spec = data["recipe"]["spec"]
    title = f"{spec['name'] if spec else 'unconditional'} · {data['recipe']['model']['anatomy']}"
    rows = [
        "<tr>"
        + "".join(f"<td>{html.escape(str(x))}</td>" for x in _cells(s, c))
        + f"<td class={'yes' if c['met'] else 'no'}>{'met' if c['met'] else 'not met'}</td></tr>"
        for s in data["samples"]
        for c in s["checks"]
    ]
    head = "".join(
        f"<th>{x}</th>"
        for x in ("sample", "constraint", "quantity", "requested", "achieved", "error", "tolerance", "")
    )
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>" if rows else ""
    figures = "".join(
        f"<h3>{html.escape(name)}</h3><img alt='{html.escape(name)}' "
        f"src='data:image/png;base64,{base64.b64encode(png).decode()}'>"
        for name, png in pictures
    )
    count = len(data["samples"])
    summary = f"{data['met']} of {count} samples meet every constraint." if rows else f"{count} samples."
    made = html.escape(json.dumps(data["recipe"], indent=1))
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
        f"<h1>{html.escape(title)}</h1><p>{summary} Targets red, achieved green, domains black.</p>"
        f"{table}{figures}<h2>Recipe</h2><p>anatomica generate --recipe report.json</p><pre>{made}</pre>"
    )


def _cells(s: dict, c: dict) -> list[str]:
    unit = {"volume": "%", "centroid": "mm"}.get(c["quantity"], "")
    return [
        s["seed"],
        f"{c['constraint']} [{c['domain'] + 1}]",
        c["quantity"],
        _number(c["requested"]),
        _number(c["achieved"]),
        f"{c['error']:.3g} {unit}",
        f"{c['tolerance']:g} {unit}",
    ]


def write_report(
    out: Path,
    samples: Sequence[Sample],
    spec: Spec | None,
    resolved: Sequence[Resolved],
    made_by: dict[str, Any],
) -> None:
    """report.json, report.html and a picture a sample in `out`."""
    out.mkdir(parents=True, exist_ok=True)
    data = report_dict(samples, made_by)
    (out / "report.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    pictures = []
    for s in samples[:16]:
        png = as_png(sample_picture(s, spec, resolved))
        (out / f"sample-{s.seed:06d}.png").write_bytes(png)
        pictures.append((f"seed {s.seed}", png))
    (out / "report.html").write_text(report_html(data, pictures), encoding="utf-8")
