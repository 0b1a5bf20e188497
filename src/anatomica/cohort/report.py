"""Write a cohort's report: cohort.html, cohort.json, and cohort.csv with one row per patient."""

from __future__ import annotations

import csv
import io
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.nifti import load
from anatomica.cohort.maker import load_for_spec
from anatomica.cohort.page import cohort_html
from anatomica.cohort.privacy import Crowd
from anatomica.cohort.store import Store
from anatomica.cohort.summary import FEWEST, Cohort, quantity_columns, read_cohort, summary
from anatomica.cohort.training_phantoms import TrainingPhantoms, training_phantoms
from anatomica.errors import AnatomicaError
from anatomica.files import write_atomic, write_json, write_text
from anatomica.prior.zoo import Model
from anatomica.report.render import Camera, contact_sheet, render
from anatomica.version import __version__

REFERENCE = "reference.csv"
"""A copy of the spec's reference table, so that the folder is all that a report needs."""
SHOWN = 24
"""Patients on the contact sheet, evenly taken from the cohort."""
PAIRS = 6
"""Patients that are shown beside their nearest training patients."""


def write_cohort_report(folder: Path, reference: Path | None = None, pictures: bool = True) -> dict[str, Any]:
    """The report of the patients that are finished; returns the content of cohort.json."""
    cohort = read_cohort(folder)
    if not cohort.records:
        raise AnatomicaError(f"{folder} has no finished patient yet")
    model = _model(cohort)
    crowd = None if model is None or model.population is None else Crowd.of(model.population)
    phantoms = None if model is None or len(cohort.kept) < FEWEST else training_phantoms(model)
    held_out = None if phantoms is None else phantoms.held_out_moments()
    found = summary(cohort, crowd, reference, held_out)
    recipe = _recipe(cohort, model)
    sheet = _sheet(cohort) if pictures and cohort.kept else None
    pairs = None if phantoms is None or not pictures else _pairs(cohort, found["memorisation"], phantoms)
    write_json(folder / "cohort.json", {**found, "recipe": recipe})
    write_text(folder / "cohort.csv", cohort_csv(cohort))
    write_text(folder / "cohort.html", cohort_html(cohort, found, recipe, sheet, pairs))
    return found


def cohort_csv(cohort: Cohort) -> str:
    """One row per finished request; quantities only of patients that are kept."""
    keys, asked = quantity_columns(cohort), cohort.plan.keys
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["patient", "key", "stratum", "outcome", "seed", "drawn", "nearest_training"]
        + [f"requested {k}" for k in asked]
        + keys
    )
    for r in cohort.records:
        values = r["quantities"] if r["outcome"] == "kept" else {}
        drawn = sum(a["drawn"] for a in r["attempts"])
        head = [cohort.name(r), r["key"], r["stratum"], r["outcome"], r.get("seed", ""), drawn]
        near = r.get("nearest_training")
        writer.writerow(
            [*head, "" if near is None else near]
            + [r["targets"].get(k, "") for k in asked]
            + [values.get(k, "") for k in keys]
        )
    return text.getvalue()


def _model(cohort: Cohort) -> Model | None:
    """The cohort's model, if it is on this machine with the same weights."""
    try:
        model = load_for_spec(cohort.plan.spec)
    except AnatomicaError:
        return None
    return model if model.hash == cohort.plan.maker.model else None


def _recipe(cohort: Cohort, model: Model | None) -> dict[str, Any]:
    plan = cohort.plan
    card = {} if model is None else model.card
    shown = ("preset", "data", "training", "sampling", "samples", "reconstruction")
    return {
        "spec": plan.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "size": plan.size,
        "model": plan.maker.model,
        "code": plan.maker.code,
        "anatomica": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "card": {k: card[k] for k in shown if k in card},
    }


def _sheet(cohort: Cohort) -> bytes:
    """Pictures of patients, evenly taken from those that are kept, kept as patients.png too."""
    kept = cohort.kept
    chosen: Sequence[int] = np.unique(
        np.linspace(0, len(kept) - 1, min(SHOWN, len(kept))).astype(int)
    ).tolist()
    store = Store(cohort.folder)
    images = [render(load(store.map_path(kept[i]["key"])), Camera(20.0), 220).image for i in chosen]
    path = cohort.folder / "patients.png"
    contact_sheet(images, path, [cohort.name(kept[i]) for i in chosen], 6, 64)
    return path.read_bytes()


def _pairs(cohort: Cohort, memorisation: dict[str, Any] | None, phantoms: TrainingPhantoms) -> bytes | None:
    """The patients that are nearest to a training patient, each beside it; kept as nearest.png too."""
    store, images, titles = Store(cohort.folder), [], []
    keys = {cohort.name(r): r["key"] for r in cohort.kept}
    for pair in (memorisation or {}).get("nearest", [])[:PAIRS]:
        other = phantoms.patient(pair["training_patient"])
        if other is not None:
            own = load(store.map_path(keys[pair["patient"]]))
            images += [render(x, Camera(20.0), 220).image for x in (own, other)]
            titles += [pair["patient"], f"training patient {pair['training_patient']}"]
    if not images:
        return None
    path = cohort.folder / "nearest.png"
    contact_sheet(images, path, titles, 4, 64)
    return path.read_bytes()


def save_spec_text(folder: Path, text: str) -> None:
    """Keep the user's own words beside the plan."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / "cohort.yaml", text.encode())
