"""What the page has to know before anything happens: anatomies, tissues, quantities, populations, tasks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.prior.card import read_card
from anatomica.prior.percentiles import STEPS, read_percentiles
from anatomica.prior.zoo import WEIGHTS, shipped
from anatomica.spec.tasks import TASKS
from anatomica.spec.vocabulary import entries
from anatomica.version import __version__


@cache
def catalogue() -> dict[str, Any]:
    """Every anatomy that has shipped weights."""
    return {"version": __version__, "anatomies": [_anatomy(ANATOMIES[name]) for name in shipped()]}


def _anatomy(about: Anatomy) -> dict[str, Any]:
    known = read_percentiles(WEIGHTS / about.name)
    quantiles = _volumes(about) | ({} if known is None else known.quantiles)
    return {
        "name": about.name,
        "title": about.title,
        "edge_mm": about.edge_mm,
        "camera": {"azimuth_deg": about.camera.azimuth_deg, "elevation_deg": about.camera.elevation_deg},
        "ghost": list(about.camera.ghost),
        "tissues": [
            {"name": x.name, "full_name": x.full_name, "colour": list(x.colour)}
            for x in about.table.labels[1:]
        ],
        "population": "the training patients" if known is None else known.source,
        "quantities": [
            {
                "key": e.key,
                "unit": e.unit,
                "definition": e.definition,
                "source": e.source,
                "tolerance": e.tolerance,
                "tolerance_unit": e.tolerance_unit,
                "count": e.count,
                "quantiles": list(quantiles[e.key]) if e.key in quantiles else None,
            }
            for e in entries(about.name)
        ],
        "tasks": [
            {"name": name, "description": spec.description}
            for name, spec in TASKS.items()
            if spec.anatomy == about.name
        ],
    }


def _volumes(about: Anatomy) -> dict[str, tuple[float, ...]]:
    """Quantiles of whole tissues' volumes from the model's card, for models without those of quantities.

    The card has seven from the 1st to the 99th percentile; the ends stand for what lies beyond them.
    """
    card = read_card(WEIGHTS / about.name)
    found = {}
    for e in entries(about.name):
        tissue = about.table.find(e.key.removesuffix(".volume_ml"))
        seen = card.get("population", {}).get("" if tissue is None else tissue.name, {}).get("volume_ml")
        if e.unit == "mL" and seen:
            at, values = zip(*sorted((float(p), v) for p, v in seen.items()), strict=True)
            found[e.key] = tuple(np.interp(STEPS, at, values).tolist())
    return found
