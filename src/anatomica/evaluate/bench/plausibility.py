"""Do the rules of plausibility notice what is wrong, and leave patients alone? Held-out patients, spoiled.

Phantoms that no model has seen, each as it is and spoiled in every way of `evaluate.spoil`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.data.phantoms import phantom
from anatomica.evaluate.bench.writing import Tell, write_bench
from anatomica.evaluate.metrics.bootstrap import share_interval
from anatomica.evaluate.spoil import WAYS
from anatomica.generation.plausibility import oddities
from anatomica.prior.zoo import Model, load_model

FIRST = 900_000
"""Patients from this number on are in no training set."""
CLEAN = "as they are"


def run(out: Path, patients: int, models: Sequence[str], tell: Tell = lambda _: None) -> dict[str, Any]:
    """Judge the patients of every model, tell its line, write out/plausibility.json and .md."""
    found, weights = {}, {}
    for name in models:
        model = load_model(name)
        weights[model.anatomy] = model.hash
        found[model.anatomy] = called_implausible(model, patients)
        tell(
            f"{model.anatomy}: "
            + ", ".join(f"{way} {a} of {b}" for way, (a, b) in found[model.anatomy].items())
        )
    result = {"patients": patients, "first_seed": FIRST, "called_implausible": found}
    return write_bench(out, "plausibility", result, _markdown(result), weights)


def called_implausible(model: Model, patients: int) -> dict[str, tuple[int, int]]:
    """For each way how many label maps were called implausible, and of how many."""
    counts = {way: [0, 0] for way in (CLEAN, *WAYS)}
    for seed in range(FIRST, FIRST + patients):
        random = np.random.default_rng(seed)
        whole = phantom(model.about.phantom or model.anatomy, seed, model.n).label_map
        labels = whole.table.index[whole.array]
        for way, count in counts.items():
            spoiled = labels if way == CLEAN else WAYS[way](labels, random)
            if spoiled is not None:
                count[0] += bool(oddities(model, model.label_map(spoiled)))
                count[1] += 1
    return {way: (caught, of) for way, (caught, of) in counts.items()}


def _markdown(result: dict[str, Any]) -> str:
    table = result["called_implausible"]
    spoiled = [(a, b) for ways in table.values() for way, (a, b) in ways.items() if way != CLEAN]
    caught, of = (sum(x) for x in zip(*spoiled, strict=True))
    lines = [
        f"Phantoms that no model has seen, {result['patients']} per anatomy, as they are and spoiled in "
        f"{len(WAYS)} ways: percentage called implausible, with 95 % intervals. "
        f"Of all {of} spoiled ones {100 * caught / of:.1f} % are.",
        "",
        "| patients | " + " | ".join(table) + " |",
        "|---|" + "---|" * len(table),
    ]
    lines += [
        f"| {way} | " + " | ".join(_share(*ways[way]) for ways in table.values()) + " |"
        for way in (CLEAN, *WAYS)
    ]
    return "\n".join(lines) + "\n"


def _share(caught: int, of: int) -> str:
    if not of:
        return "-"
    value, low, high = (100 * x for x in share_interval([i < caught for i in range(of)]))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"
