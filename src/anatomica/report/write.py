"""The folder of a run: report.json, report.html, and pictures."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from anatomica.anatomy.catalogue import from_card
from anatomica.files import write_atomic
from anatomica.generation.feasibility import Comparison
from anatomica.generation.sample import Sample
from anatomica.measurement.certificate import not_placed
from anatomica.measurement.placing import Resolved
from anatomica.report.html import report_html
from anatomica.report.samples import as_png, contact_picture, draw, sample_picture
from anatomica.spec.spec import Spec

MOST_PICTURES = 64


def report_dict(
    samples: Sequence[Sample],
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
) -> dict[str, Any]:
    """report.json: the recipe, targets against the population, every sample with checks and curves."""
    return {
        "schema": "anatomica.report/1",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "recipe": recipe,
        "population": [c.to_dict() for c in comparisons],
        "not_placed": not_placed(resolved),
        "met": sum(s.met for s in samples),
        "valid": sum(s.valid for s in samples),
        "samples": [
            {
                "seed": s.seed,
                "drawn_seed": s.drawn_seed,
                "drawn": s.drawn,
                "seconds": round(s.seconds, 3),
                "mended_voxels": s.mended,
                "met": s.met,
                "plausible": s.plausible,
                "valid": s.valid,
                "checks": [c.to_dict() for c in s.checks],
                "volumes_ml": {t: s.label_map.volume_ml(t) for t in s.label_map.present()},
                "unusual": [odd.to_dict() for odd in s.unusual],
                "curves": [c.to_dict() for c in s.curves],
                "diagrams": [d.to_dict() for d in s.diagrams],
            }
            for s in samples
        ],
    }


def write_report(
    out: Path,
    samples: Sequence[Sample],
    spec: Spec | None,
    resolved: Sequence[Resolved],
    recipe: dict[str, Any],
    comparisons: Sequence[Comparison] = (),
) -> None:
    """report.json, report.html, contact-sheet.png and one picture per sample, each whole or not at all."""
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
