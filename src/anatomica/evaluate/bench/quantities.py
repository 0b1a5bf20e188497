"""Do the named quantities measure what is there? Hard forms on phantoms against their analytic truth.

Phantoms that no model has seen are drawn as voxels and measured as a user's file is; the truth comes from the
shapes before they were drawn (`evaluate.truth`). Both are kept under a hash of the code that decides them, so
that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy, anatomy
from anatomica.data.phantoms import Phantom, phantom
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.evaluate.experiments.store import load_numbers, save_numbers
from anatomica.evaluate.provenance import PICTURES
from anatomica.evaluate.truth.known import known
from anatomica.measurement.vocabulary.statistics import find
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.spec.vocabulary import entries, lookup

MODULE = "evaluate.bench.quantities"
CACHE = Path("out/quantities")
FIRST = 100_000
"""Phantoms from this number on are in no training set."""
TOLD = 10
"""Phantoms after which the count so far is told."""
PLACE_MM = 0.5
"""A narrowest frame is found within this distance: areas beside it are hardly larger."""
LENGTHS = ("length_mm", "distance_mm", "perimeter_mm")
"""Endings of lengths that lie along something; like areas and ratios they are held to the tolerance of an
ask. Diameters, thicknesses, heights and gaps are held to voxels."""


class Limit(NamedTuple):
    """What the error is counted in, and how much of it may be on average and in 95 of 100 phantoms."""

    unit: str
    mean: float | None
    most: float | None


def run(
    out: Path,
    phantoms: int = 100,
    n: int = 128,
    anatomies: Sequence[str] = tuple(ANATOMIES),
    first: int = FIRST,
    cache: Path = CACHE,
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Compare every quantity of every anatomy, tell how far it is, write out/quantities.json and .md."""
    tables = {}
    for name in anatomies:
        about = anatomy(name)
        rows = []
        for row in compared(about, range(first, first + phantoms), n, cache):
            rows.append(row)
            if len(rows) % TOLD == 0 and len(rows) < phantoms:
                tell(f"{name}: {len(rows)} of {phantoms} phantoms")
        tables[name] = summary(rows, about, n)
        held = sum(x["holds"] for x in tables[name])
        tell(f"{name}: {held} of {len(tables[name])} quantities are within their limits")
    result = {"phantoms": phantoms, "first_seed": first, "n": n, "quantities": tables}
    return write_bench(out, "quantities", result, markdown(result), {})


def compared(about: Anatomy, seeds: Sequence[int], n: int, cache: Path) -> Iterator[dict[str, Any]]:
    """Of each phantom the true and the measured quantities, and why one could not be measured."""
    for seed in seeds:
        truth_at, found_at = (kept(cache, about, seed, n, what) for what in ("truth", "found"))
        truth, found = load_numbers(truth_at), load_numbers(found_at)
        if truth is None or found is None:
            made = phantom(about.name, seed, n)
            if truth is None:
                truth = known(made.truth)
                save_numbers(truth_at, truth)
            if found is None:
                found = measured(made, about, list(truth))
                save_numbers(found_at, found)
        yield {"seed": seed, "truth": truth, **found}


def kept(cache: Path, about: Anatomy, seed: int, n: int, what: str) -> Path:
    """Where a phantom's numbers are kept, named after the code that decides them."""
    modules = {"truth": f"evaluate.truth.{about.name}", "found": "measurement.vocabulary.statistics"}
    drawn = code_version(f"data.phantoms.{about.phantom}", PICTURES)
    name = content_hash([drawn, code_version(modules[what], PICTURES), seed, n])
    return cache / about.name / f"{what}-{seed:06d}-{name}.json"


def measured(made: Phantom, about: Anatomy, known_keys: Sequence[str]) -> dict[str, Any]:
    """The hard forms of the vocabulary, and of the keys with brackets that the truth has."""
    s = Subject(made.label_map, about)
    keys = dict.fromkeys([*(e.key for e in entries(about.name)), *known_keys])
    found = {key: find(s, key) for key in keys}
    return {
        "values": {key: x.value for key, x in found.items() if x.value is not None},
        "reasons": {key: x.reason for key, x in found.items() if x.value is None},
    }


def limit_of(key: str, about: Anatomy) -> Limit:
    """How near a quantity must be: volumes 2 %, lengths across something half a voxel on average and one in
    95 of 100, angles 2 degrees, counts exact; the rest as near as an ask for it must be."""
    e = lookup(about, key)
    if key.endswith("_at_mm"):
        return Limit("mm", None, PLACE_MM)
    if e.count:
        return Limit("count", 0.0, None)
    if e.unit in ("mL", "g") or key == "calcium.volume_mm3":
        return Limit("%", None, 2.0)
    if e.unit == "deg":
        return Limit("degrees", 2.0, None)
    if e.unit == "mm" and not key.endswith(LENGTHS):
        return Limit("voxels", 0.5, 1.0)
    if e.tolerance_unit == "%":
        return Limit("%", None, e.tolerance)
    return Limit({"1": "", "%": "points"}.get(e.unit, e.unit), None, e.tolerance)


def summary(rows: Sequence[dict[str, Any]], about: Anatomy, n: int) -> list[dict[str, Any]]:
    """One row per quantity (of vertebrae one per region), those farthest from their limit first."""
    errors: dict[str, list[tuple[float, int]]] = defaultdict(list)
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    limits: dict[str, Limit] = {}
    for row in rows:
        for key, true in row["truth"].items():
            name = grouped(key)
            limit = limits.setdefault(name, limit_of(key, about))
            if key not in row["values"]:
                missing[name][row["reasons"].get(key, "")] += 1
                continue
            off = row["values"][key] - true
            scale = {"voxels": about.edge_mm / n, "%": abs(true) / 100}.get(limit.unit, 1.0)
            errors[name].append((off / max(scale, 1e-9), row["seed"]))
    found = [_row(name, errors[name], missing[name], limit) for name, limit in limits.items()]
    return sorted(found, key=lambda x: -x["of_limit"])


def _row(name: str, errors: list[tuple[float, int]], missing: Counter[str], limit: Limit) -> dict[str, Any]:
    off = np.array([x for x, _ in errors]) if errors else np.array([np.nan])
    worst = max(errors, key=lambda x: abs(x[0]), default=(float("nan"), -1))
    mean, most = float(np.abs(off).mean()), float(np.percentile(np.abs(off), 95))
    wrong = int((off != 0).sum())
    shares = [x / y for x, y in ((mean, limit.mean), (most, limit.most)) if y is not None and y > 0] or [
        float(wrong)
    ]
    return {
        "quantity": name,
        "compared": len(errors),
        "not_measured": dict(missing),
        "unit": limit.unit,
        "bias": float(off.mean()),
        "mean": mean,
        "within_95": most,
        "worst": worst[0],
        "worst_seed": worst[1],
        "limit_mean": limit.mean,
        "limit_95": limit.most,
        "of_limit": max(shares),
        "holds": bool(errors) and (max(shares) <= 1.0 if limit.unit != "count" else wrong == 0),
    }


def grouped(key: str) -> str:
    """A vertebra's quantity under its region's name.

    >>> grouped("canal.T8.area_mm2"), grouped("disc.T12-L1.height_mm"), grouped("cobb_deg[T5,T12]")
    ('canal.Tn.area_mm2', 'disc.Tn.height_mm', 'cobb_deg[A,B]')
    """
    key = re.sub(r"\[[^\]]*\]", "[A,B]", key)
    key = re.sub(r"^disc\.([CTL])\d+-[CTL]\d+", r"disc.\1n", key)
    return re.sub(r"\b([CTL])\d+\.", r"\1n.", key)


def markdown(result: dict[str, Any]) -> str:
    """quantities.md: one table per anatomy."""
    lines = [
        f"Hard forms of the named quantities on {result['phantoms']} phantoms per anatomy at "
        f"{result['n']}^3 (seeds {result['first_seed']} to {result['first_seed'] + result['phantoms'] - 1}, "
        "which no model has seen) against the truth of their analytic shapes; farthest from its limit first. "
        "Volumes are to be within 2 % in 95 of 100, diameters, thicknesses, heights and gaps within half a "
        "voxel on average and one voxel in 95 of 100, angles within 2 degrees on average, counts exact; the "
        "rest as near as an ask must be.",
    ]
    for name, rows in result["quantities"].items():
        held = sum(x["holds"] for x in rows)
        lines += [
            "",
            f"## {name}: {held} of {len(rows)} within their limits",
            "",
            "| quantity | compared | missing | error in | bias | mean | 95 % below | worst | limit | holds |",
            "|---|---:|---:|---|---:|---:|---:|---:|---:|---|",
        ]
        lines += [_line(x) for x in rows]
    return "\n".join(lines) + "\n"


def _line(x: dict[str, Any]) -> str:
    absent = sum(x["not_measured"].values())
    limits = [f"{x['limit_mean']:g} mean"] if x["limit_mean"] else []
    limits += [f"{x['limit_95']:g}"] if x["limit_95"] is not None else []
    numbers = " | ".join(f"{x[k]:.3g}" for k in ("bias", "mean", "within_95", "worst"))
    return (
        f"| {x['quantity']} | {x['compared']} | {absent or ''} | {x['unit']} | {numbers} | "
        f"{', '.join(limits) or 'exact'} | {'yes' if x['holds'] else 'no'} |"
    )
