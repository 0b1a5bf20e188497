"""Composition: two to five of the paper's tasks and named quantities, of different families, at random on one
heart and all from one patient; how often they are met together, and valid, against their number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.data.cache import Half
from anatomica.evaluate.experiments.asks import FIRST, Draw, Drawn, drawn, failures, kept_at
from anatomica.evaluate.experiments.tables import markdown, shown
from anatomica.evaluate.metrics.bootstrap import Interval, share_interval
from anatomica.evaluate.provenance import provenance
from anatomica.files import write_json, write_text
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import task

NAME = "composition"
ANATOMY = "cardiac"
NUMBERS = (2, 3, 4, 5)
GEOMETRIC = ("right-ventricle", "mitral-valve", "aortic-trunk", "myocardium-wall")
TOPOLOGICAL = ("atrial-separation",)
VOCABULARY = ("la.volume_ml", "ra.volume_ml", "lv.mass_g")
"""Families: the paper's boxes, sections and walls; its count; named quantities, up to `CHANGE` percent more
or less than the patient's own."""
CHANGE = 5
SAMPLES = {"quick": 2, "here": 16, "paper": 128}
"""Specs of each number of tasks and quantities."""
PATIENTS = 4_000_000
"""The first phantom that targets are taken from."""


def composed(count: int, turn: int) -> Spec:
    """A spec of so many tasks and quantities, at least one of them geometric and one of another family.

    >>> len(composed(3, 0).name.split(" + "))
    3
    """
    random = np.random.default_rng((count, turn))
    others = TOPOLOGICAL + VOCABULARY
    chosen = [str(random.choice(GEOMETRIC)), str(random.choice(others))]
    left = [name for name in GEOMETRIC + others if name not in chosen]
    chosen += [str(x) for x in random.choice(left, count - 2, replace=False)]
    constraints = [c for name in chosen if name not in VOCABULARY for c in task(name).constraints]
    asks = [f"{key} = {random.integers(-CHANGE, CHANGE + 1):+d} %" for key in chosen if key in VOCABULARY]
    return Spec(
        name=" + ".join(chosen), anatomy=ANATOMY, constraints=constraints, ask=tuple(asks), place="prediction"
    )


def draws(samples: int, first: int) -> list[Draw]:
    found = []
    for count in NUMBERS:
        for turn in range(samples):
            spec, seed = composed(count, turn), first + 10_000 * count + turn
            found.append(Draw(f"{count} together", (spec.name, *spec.ask), seed, spec, PATIENTS + seed))
    return found


def run(
    out: Path,
    tell: Callable[[str], None],
    samples: int,
    cache: Path,
    models: Path | None = None,
    half: Half = "test",
) -> dict[str, Any]:
    """Draw what is not kept yet, and write OUT/composition.md and .json."""
    model: Model = load_model(ANATOMY if models is None else models / ANATOMY)
    rows: list[Drawn] = []
    for one in draws(samples, FIRST[half]):
        row = drawn(model, one, kept_at(cache, model, one))
        rows.append(row)
        state = "valid" if row.valid else "met" if row.met else "not met"
        tell(f"{row.kind}: {row.asks[0]}: {state} ({row.cpu_seconds:.1f} s)")
    content = {
        "summary": summaries(rows),
        "targets": half,
        "samples": [asdict(x) for x in rows],
        "provenance": provenance(f"evaluate.experiments.{NAME}", {ANATOMY: model.hash}),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{NAME}.json", content)
    write_text(out / f"{NAME}.md", table(rows))
    return {"summary": content["summary"], "written": [out / f"{NAME}.md", out / f"{NAME}.json"]}


def summaries(rows: list[Drawn]) -> list[dict[str, Any]]:
    """Percentages met and valid, with intervals, by how many were asked together."""
    found = []
    for kind in dict.fromkeys(x.kind for x in rows):
        own = [x for x in rows if x.kind == kind]
        found.append(
            {
                "asked": kind,
                "draws": len(own),
                "met": list(_percent([x.met for x in own])),
                "valid": list(_percent([x.valid for x in own])),
                "cpu_seconds": float(np.mean([x.cpu_seconds for x in own])),
            }
        )
    return found


def _percent(hits: list[bool]) -> Interval:
    return Interval(*(100 * x for x in share_interval(np.array(hits))))


def table(rows: list[Drawn]) -> str:
    """composition.md."""
    lines = [
        [
            x["asked"],
            str(x["draws"]),
            shown(Interval(*x["met"])),
            shown(Interval(*x["valid"])),
            f"{x['cpu_seconds']:.1f}",
        ]
        for x in summaries(rows)
    ]
    return (
        "# Composition\n\n"
        + markdown(("Asked together", "n", "all met %", "valid %", "CPU s"), lines)
        + "\nTasks of the paper and named quantities at random on hearts, at least one with a place and one "
        "count or quantity, all of one phantom that the model has not seen; one draw each. Intervals are "
        "Wilson's, 95 %.\n" + failures(rows)
    )
