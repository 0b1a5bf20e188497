"""A phantom population measured: volumes, published normal values, topology, agreement of resolutions.

`measure` gives one anatomy's numbers as a JSON value; `write_page` makes docs/phantoms.md out of those of all
anatomies, so that no number on that page is typed by hand.
"""

from __future__ import annotations

import hashlib
import importlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from anatomica.anatomy.catalogue import ANATOMIES, PAPER_GRID
from anatomica.anatomy.label_map import resample
from anatomica.data import real_hearts
from anatomica.data.phantoms import Phantom, pathologies, phantom
from anatomica.data.realism import Reference, differences, features
from anatomica.measurement.homology import betti_numbers

REAL: dict[str, Reference] = {"cardiac": real_hearts.REFERENCE}
"""Statistics of real patients by anatomy, to compare the features of all phantoms with."""


def measure(
    anatomy: str,
    count: int = 200,
    seed: int = 0,
    n: int = 64,
    compared: int = 16,
    tell: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Measure `count` patients at n^3; the first `compared` ones also on the paper's grid.

    Volumes and published values are those of the patients without a pathology; topology is all patients'.
    """
    rows = getattr(importlib.import_module(f"anatomica.data.phantoms.{anatomy}"), "PUBLISHED", ())
    table = ANATOMIES[anatomy].table
    volumes: dict[str, list[float]] = {name: [] for name in table.tissues}
    values: list[list[float]] = [[] for _ in rows]
    real = REAL.get(anatomy)
    seen: list[np.ndarray] = []
    agreement: dict[str, list[float]] = {name: [] for name in table.tissues}
    found: dict[str, int] = dict.fromkeys(pathologies(anatomy), 0)
    wrong, digests, seconds = [], set(), []
    for number in range(count):
        began = time.process_time()
        made = phantom(anatomy, seed + number, n)
        seconds.append(time.process_time() - began)
        digests.add(hashlib.sha256(made.label_map.array.tobytes()).hexdigest())
        wrong += _wrong_topology(made)
        if real is not None:
            seen.append(features(made.label_map, real.structures))
        if made.truth.pathology is None:
            for name in made.label_map.present():
                volumes[name].append(made.label_map.volume_ml(name))
            for row, kept in zip(rows, values, strict=True):
                kept.append(row.measure(made))
        else:
            found[made.truth.pathology] += 1
        if number < compared and n < PAPER_GRID:
            for name, dice in agree(made, phantom(anatomy, seed + number, PAPER_GRID)).items():
                agreement[name].append(dice)
        tell()
    return {
        "anatomy": anatomy,
        "patients": count,
        "first_seed": seed,
        "resolution": n,
        "cpu_seconds_each": round(float(np.mean(seconds)), 2),
        "distinct": len(digests),
        "wrong_topology": wrong,
        "pathologies": {
            name: {"rate": rate, "found": found[name]} for name, rate in pathologies(anatomy).items()
        },
        "volumes_ml": {name: _summary(kept) for name, kept in volumes.items() if kept},
        "published": [
            {
                "name": row.name,
                "unit": row.unit,
                **_summary(kept),
                "published_mean": round(row.mean, 2),
                "published_sd": round(row.sd, 2),
                "source": row.source,
            }
            for row, kept in zip(rows, values, strict=True)
        ],
        "real": [] if real is None else differences(np.stack(seen), real),
        "least_dice": {name: round(min(kept), 3) for name, kept in agreement.items() if kept},
        "compared": min(compared, count) if n < PAPER_GRID else 0,
    }


def _wrong_topology(made: Phantom) -> list[str]:
    """A line for each structure whose Betti numbers are not the stated ones."""
    lines = []
    for name, stated in made.truth.betti.items():
        seen = list(betti_numbers(made.label_map.mask(*name.split("+"))))
        if seen != list(stated):
            lines.append(f"seed {made.truth.seed}: {name} is {seen}, stated {list(stated)}")
    return lines


def agree(coarse: Phantom, fine: Phantom) -> dict[str, float]:
    """Dice of each tissue: a patient drawn coarsely against the same patient drawn finely and resampled."""
    small = coarse.label_map
    down = resample(fine.label_map, small.shape, small.affine)
    both = {}
    for name in small.present():
        a, b = small.mask(name), down.mask(name)
        both[name] = 2 * float((a & b).sum()) / float(a.sum() + b.sum())
    return both


def _summary(kept: list[float]) -> dict[str, float]:
    """Mean, SD, 5th and 95th percentile of what could be measured."""
    seen = np.array(kept, dtype=float)
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return {"mean": float("nan"), "sd": float("nan"), "count": 0}
    low, high = np.percentile(seen, [5, 95])
    numbers = {"mean": seen.mean(), "sd": seen.std(), "p5": low, "p95": high}
    return {key: round(float(value), 3) for key, value in numbers.items()} | {"count": len(seen)}


def outside(result: dict[str, Any]) -> list[str]:
    """Published values from which the phantoms' mean is more than one published SD away."""
    return [
        row["name"]
        for row in result["published"]
        if not abs(row["mean"] - row["published_mean"]) <= row["published_sd"]
    ]


def page(results: Iterable[dict[str, Any]]) -> str:
    """The text of docs/phantoms.md."""
    parts = [_INTRODUCTION]
    for result in results:
        parts += [*_heading(result), *_published_table(result), *_real_table(result), *_volume_table(result)]
    return "\n".join(parts).rstrip() + "\n"


_INTRODUCTION = """# Phantoms

Made-up patients of the four anatomies, with the tissues of the paper's data sets, to train, try and test with
when the real data is not at hand. They are implicit shapes under a random smooth deformation; a seed is a
patient, the same one at any resolution. `anatomica phantom --help` says how to make them, and each comes with
its truth in a JSON file: parameters, landmarks, centrelines, radii and Betti numbers.

This page is written by `anatomica phantom-population`; the numbers are measured on the label maps. Published
values are adults'. Volumes and diameters are those of the patients without a pathology."""


def _heading(result: dict[str, Any]) -> list[str]:
    count, wrong = result["patients"], len({line.split(":")[0] for line in result["wrong_topology"]})
    least = min(result["least_dice"].values(), default=float("nan"))
    sick = ", ".join(
        f"`{name}` {100 * x['rate']:.0f} % ({x['found']} of {count})"
        for name, x in result["pathologies"].items()
    )
    name = result["anatomy"]
    lines = [
        "",
        f"## {name.capitalize()}",
        "",
        f"![Sixteen {name} phantoms](images/phantoms-{name}.png)",
        "",
        f"{count} patients at {result['resolution']}^3, seeds {result['first_seed']} to "
        f"{result['first_seed'] + count - 1}: {result['distinct']} distinct label maps; the stated topology "
        f"is true in {count - wrong} of {count}; {result['cpu_seconds_each']} s of one core each.",
    ]
    if result["compared"]:
        lines.append(
            f"The same patient at {PAPER_GRID}^3, resampled, agrees with Dice {least:.3f} or more in every "
            f"tissue of the first {result['compared']} patients."
        )
    return [*lines, "", f"Pathologies and their share of the population: {sick}."]


def _published_table(result: dict[str, Any]) -> list[str]:
    if not result["published"]:
        return []
    lines = [
        "",
        "| | phantoms, mean ± SD | published, mean ± SD | within one SD | source |",
        "|---|---:|---:|---|---|",
    ]
    for row in result["published"]:
        unit = "" if row["unit"] == "1" else f" {row['unit']}"
        fits = "no" if row["name"] in outside({"published": [row]}) else "yes"
        lines.append(
            f"| {row['name']} | {row['mean']:.3g} ± {row['sd']:.2g}{unit} | {row['published_mean']:.3g} ± "
            f"{row['published_sd']:.2g}{unit} | {fits} | {row['source']} |"
        )
    return lines


def _real_table(result: dict[str, Any]) -> list[str]:
    """Features of all patients beside real ones, one line per structure."""
    rows = result.get("real")
    if not rows:
        return []
    real = REAL[result["anatomy"]]
    units = {x["feature"]: x["unit"] for x in rows}
    lines = [
        "",
        f"All patients, with and without a pathology, against {real.count} real ones ({real.source}). A cell "
        "is the real mean, how many real SDs the phantoms' mean is off, and the ratio of their SD to the "
        "real one. Centroids are relative to the common centroid of the structures; extents are square roots "
        "of the covariance's eigenvalues.",
        "",
        "| | " + " | ".join(f"{name}, {unit}" for name, unit in units.items()) + " |",
        "|---|" + "---:|" * len(units),
    ]
    for structure in real.structures:
        cells = [
            f"{x['real_mean']:.1f}; {x['z']:+.1f}; {x['sd_ratio']:.1f}"
            for x in rows
            if x["structure"] == structure
        ]
        lines.append(f"| {structure} | " + " | ".join(cells) + " |")
    return lines


def _volume_table(result: dict[str, Any]) -> list[str]:
    table = ANATOMIES[result["anatomy"]].table
    lines = [
        "",
        "| tissue | mean, mL | SD | 5th to 95th percentile | least Dice |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in result["volumes_ml"].items():
        dice = result["least_dice"].get(name)
        lines.append(
            f"| {name}, {table[name].full_name} | {row['mean']:.3g} | {row['sd']:.2g} | {row['p5']:.3g} to "
            f"{row['p95']:.3g} | {'' if dice is None else dice} |"
        )
    return lines
