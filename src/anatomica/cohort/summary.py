"""What became of a cohort, in numbers: flow, requested against achieved, coverage, quality, memorisation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from anatomica.anatomy.nifti import load
from anatomica.cohort.engine import run_notes, state
from anatomica.cohort.patient import OUTCOMES
from anatomica.cohort.patients_csv import header, read_columns
from anatomica.cohort.plan import Plan, read_plan
from anatomica.cohort.privacy import Crowd
from anatomica.cohort.store import Store
from anatomica.evaluate.likeness import frechet_and_floor, one_nna, one_nna_alike
from anatomica.evaluate.metrics.agreement import (
    against_distribution,
    against_values,
    energy_band,
    energy_distance,
)
from anatomica.evaluate.metrics.bootstrap import mean_interval, share_interval
from anatomica.evaluate.metrics.coverage import coverage, kernel_width, vendi_score
from anatomica.measurement.homology.betti import betti_numbers
from anatomica.spec.vocabulary import entries
from anatomica.version import __version__

Array = np.ndarray
Record = Mapping[str, Any]
FEWEST = 10
"""Patients below which coverage and quality say nothing."""
LOOKED_AT = 1000
"""Patients whose topology is counted at most: one takes some 30 ms."""


@dataclass(frozen=True, eq=False)
class Cohort:
    """A cohort's folder, read: the plan and the records of all finished requests, in the plan's order."""

    folder: Path
    plan: Plan
    records: tuple[dict[str, Any], ...]

    @property
    def kept(self) -> tuple[dict[str, Any], ...]:
        return tuple(r for r in self.records if r["outcome"] == "kept")

    def name(self, record: Record) -> str:
        """A patient's name in tables and exports."""
        return f"{self.plan.spec.name}-{record['index'] + 1:06d}"


def read_cohort(folder: Path) -> Cohort:
    """All finished patients of a folder."""
    plan, store = read_plan(folder), Store(folder)
    finished = store.finished()
    keys = [plan.key(i) for i in range(plan.size)]
    return Cohort(folder, plan, tuple(store.record(k) for k in keys if k in finished))


def quantity_columns(cohort: Cohort) -> list[str]:
    """The quantities that any patient has, in the vocabulary's order."""
    seen = {key for r in cohort.kept for key in r["quantities"]}
    known = [e.key for e in entries(cohort.plan.spec.anatomy) if e.key in seen]
    return [*known, *sorted(seen - set(known))]


def summary(
    cohort: Cohort,
    crowd: Crowd | None,
    reference: Path | None = None,
    held_out: Float[Array, "k C 10"] | None = None,
) -> dict[str, Any]:
    """cohort.json, without the recipe; `held_out` are moments of patients that were not trained on."""
    kept = cohort.kept
    return {
        "schema": "anatomica.cohort/1",
        "version": __version__,
        "name": cohort.plan.spec.name,
        "anatomy": cohort.plan.spec.anatomy,
        "flow": flow(cohort),
        "strata": strata(cohort),
        "targets": targets(cohort),
        "joint": joint(cohort),
        "reference": None if reference is None else beside(cohort, reference),
        "coverage": None if crowd is None or len(kept) < FEWEST else covered(cohort, crowd),
        "memorisation": None if crowd is None or not kept else memorisation(cohort, crowd, held_out),
        "topology": topology(cohort),
        "plausibility": plausibility(cohort),
        "run": run_notes(cohort.folder),
    }


def flow(cohort: Cohort) -> dict[str, Any]:
    """How many requests became what, and how many candidates that took."""
    count = Counter(r["outcome"] for r in cohort.records)
    requests = len(cohort.records)
    share = share_interval([r["outcome"] == "kept" for r in cohort.records])
    return {
        "requested": cohort.plan.size,
        "finished": requests,
        "left": state(cohort.folder).size - requests,
        **{name: count.get(name, 0) for name in OUTCOMES},
        "kept_share": list(share),
        "candidates": sum(a["drawn"] for r in cohort.records for a in r["attempts"]),
        "replaced": sum(len(r["attempts"]) > 1 for r in cohort.records),
    }


def strata(cohort: Cohort) -> dict[str, Any]:
    """Asked and achieved shares of the strata."""
    kept = Counter(r["stratum"] for r in cohort.kept)
    total = max(1, len(cohort.kept))
    return {
        name: {"asked": share, "kept": kept.get(name, 0), "achieved": kept.get(name, 0) / total}
        for name, share in cohort.plan.spec.shares.items()
    }


def achieved(records: Sequence[Record], keys: Sequence[str]) -> Float[Array, "m d"]:
    """Measured quantities, one row per patient; NaN where a patient does not have one."""
    values = np.array([[r["quantities"].get(k, np.nan) for k in keys] for r in records])
    return values.reshape(len(records), len(keys))


def targets(cohort: Cohort) -> dict[str, Any]:
    """Requested against achieved of every target, of the patients that are kept."""
    plan, kept = cohort.plan, cohort.kept
    found: dict[str, Any] = {}
    values = achieved(kept, plan.keys)
    asked = np.array([[r["targets"][k] for k in plan.keys] for r in kept]).reshape(len(kept), len(plan.keys))
    for i, (key, distribution) in enumerate(zip(plan.keys, plan.distributions, strict=True)):
        there = ~np.isnan(values[:, i])
        x, wanted = values[there, i], asked[there, i]
        if len(x) < 2:
            found[key] = {"patients": len(x)}
            continue
        row = {"patients": len(x), "mean": list(mean_interval(x)), "sd": float(x.std(ddof=1))}
        row["requested_mean"], row["requested_sd"] = float(wanted.mean()), float(wanted.std(ddof=1))
        pairs = {"distribution": against_distribution(x, distribution.cdf, distribution.ppf)}
        pairs["requests"] = against_values(x, wanted)
        if plan.spec.design in ("grid", "one-at-a-time"):
            del pairs["distribution"]  # a design is no sample of the distribution
        for name, a in pairs.items():
            row[name] = {"ks": a.ks, "band": a.band, "within": a.within, "wasserstein": a.wasserstein}
        row["error"] = {
            "mean": float((x - wanted).mean()),
            "median_absolute": float(np.median(np.abs(x - wanted))),
            "p95_absolute": float(np.percentile(np.abs(x - wanted), 95)),
        }
        found[key] = row
    return found


def joint(cohort: Cohort) -> dict[str, Any] | None:
    """Correlations asked, requested and achieved, and the energy distance of requests and patients."""
    plan, kept = cohort.plan, cohort.kept
    values = achieved(kept, plan.keys)
    whole = ~np.isnan(values).any(1)
    if len(plan.keys) < 2 or whole.sum() < 3:
        return None
    asked = np.array([[r["targets"][k] for k in plan.keys] for r in kept])[whole]
    values = values[whole]
    varied = (values.std(0) > 0) & (asked.std(0) > 0)
    names = [k for k, v in zip(plan.keys, varied, strict=True) if v]
    rows = []
    if len(names) > 1:
        got, wanted = np.corrcoef(values[:, varied].T), np.corrcoef(asked[:, varied].T)
        stated = {frozenset(pair): r for pair, r in plan.spec.targets.pairs.items()}
        for i, a in enumerate(names):
            for j in range(i + 1, len(names)):
                r = stated.get(frozenset((a, names[j])))
                rows.append(
                    {"a": a, "b": names[j], "asked": r, "requested": wanted[i, j], "achieved": got[i, j]}
                )
    return {
        "correlations": rows,
        "energy_distance": energy_distance(values, asked),
        "energy_band": energy_band(asked, len(values)),
    }


def beside(cohort: Cohort, path: Path) -> dict[str, Any]:
    """The cohort's quantities against a table of real patients, of every column that both have."""
    known = set(quantity_columns(cohort))
    columns = [name for name in header(path) if name in known]
    found: dict[str, Any] = {}
    for name in columns:
        real = read_columns(path, [name])[:, 0]
        x = achieved(cohort.kept, [name])[:, 0]
        x = x[~np.isnan(x)]
        if len(x) >= 2:
            a = against_values(x, real)
            found[name] = {
                "mean": float(x.mean()),
                "reference_mean": float(real.mean()),
                "reference_sd": float(real.std(ddof=1)),
                "ks": a.ks,
                "band": a.band,
                "wasserstein": a.wasserstein,
            }
    return {"file": path.name, "quantities": found}


def moments_of(records: Sequence[Record]) -> Float[Array, "m C 10"]:
    rows = [[[np.nan if x is None else x for x in row] for row in r["moments"]] for r in records]
    return np.array(rows, dtype=float)


def covered(cohort: Cohort, crowd: Crowd) -> dict[str, Any]:
    """Coverage, diversity and quality beside the training population, by the moments of tissues.

    A cohort with targets is meant to differ from it; the numbers say how far.
    """
    x, real = crowd.standardised(moments_of(cohort.kept)), crowd.points
    found = coverage(x, real)
    width, rng = kernel_width(real), np.random.default_rng(0)
    some = min(len(x), len(real), 500)
    rows = rng.choice(len(real), some, replace=False)
    # 1-NNA and the Frechet distance are of sets of equal size, so of as many training patients at most.
    few = real[rng.choice(len(real), min(len(real), len(x) // 2), replace=False)]
    told, alike = one_nna(x, few, 200), one_nna_alike(real, min(len(few), len(real) // 2), 200)
    distance, floor = frechet_and_floor(x, few, 100)
    return {
        "precision": found.precision,
        "recall": found.recall,
        "coverage": found.coverage,
        "vendi": vendi_score(x[:some], width),
        "vendi_training": vendi_score(real[rows], width),
        "vendi_patients": some,
        "one_nna": list(told),
        "one_nna_floor": list(alike),
        "fmd": list(distance),
        "fmd_floor": list(floor),
    }


def topology(cohort: Cohort) -> dict[str, Any]:
    """Of each tissue that a kept patient has: how many have which numbers of pieces, loops and cavities.

    Of a large cohort some patients are looked at, evenly taken.
    """
    store, found = Store(cohort.folder), defaultdict[str, Counter[str]](Counter)
    kept = cohort.kept
    looked = np.unique(np.linspace(0, len(kept) - 1, min(LOOKED_AT, len(kept))).astype(int)).tolist()
    for record in (kept[i] for i in looked):
        label_map = load(store.map_path(record["key"]))
        for name in label_map.table.tissues:
            mask = label_map.array == label_map.table[name].id
            if mask.any():
                found[name][" ".join(map(str, betti_numbers(mask)))] += 1
    return {
        "patients": len(looked),
        "tissues": {name: dict(counts.most_common()) for name, counts in found.items()},
    }


def plausibility(cohort: Cohort) -> dict[str, int]:
    """What was unlike training patients in requests that are not kept, most frequent first."""
    kinds = Counter(
        kind
        for r in cohort.records
        if r["outcome"] != "kept"
        for kind in {_kind(x) for x in r.get("unusual", [])}
    )
    return dict(kinds.most_common())


def _kind(text: str) -> str:
    """What is unlike training, without the numbers.

    >>> _kind("T12 4.21 mL (training 9.1 to 40 mL)"), _kind("the prior would redraw 31% of a cube (x)")
    ('T12 ... mL', 'the prior would redraw ... of a cube')
    """
    return re.sub(r"\b\d[\d.eE+-]*%?", "...", re.sub(r"\s*\(.*", "", text))


def memorisation(
    cohort: Cohort, crowd: Crowd, held_out: Float[Array, "k C 10"] | None = None
) -> dict[str, Any]:
    """Distances to the nearest training patient beside those of held-out patients, and beside the training
    patients' own."""
    kept = [r for r in cohort.kept if r.get("nearest_training") is not None]
    x = np.array([r["nearest_training"] for r in kept])
    privacy = cohort.plan.spec.privacy
    limit = crowd.limit(1.0 if privacy is None else privacy.percent)
    order = np.argsort(x)[:8]
    return {
        "limit_percent": 1.0 if privacy is None else privacy.percent,
        "limit": limit,
        "nearer": int((x < limit).sum()),
        "percentiles": {str(p): float(np.percentile(x, p)) for p in (0, 1, 5, 50)} if len(x) else {},
        "training_percentiles": {str(p): float(np.percentile(crowd.own, p)) for p in (0, 1, 5, 50)},
        "training_patients": len(crowd.points),
        **_held_out(crowd, held_out),
        "nearest": [
            {"patient": cohort.name(kept[i]), "distance": float(x[i]), **_nearest(kept[i], crowd)}
            for i in order
        ],
    }


def _held_out(crowd: Crowd, moments: Float[Array, "k C 10"] | None) -> dict[str, Any]:
    if moments is None:
        return {}
    x = [crowd.nearest(one)[1] for one in moments]
    return {
        "held_out_patients": len(x),
        "held_out_percentiles": {str(p): float(np.percentile(x, p)) for p in (0, 1, 5, 50)},
    }


def _nearest(record: Record, crowd: Crowd) -> dict[str, Any]:
    number, _ = crowd.nearest(moments_of([record])[0])
    return {"training_patient": number}
