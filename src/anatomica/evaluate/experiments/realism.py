"""Realism: phantoms, unconditional and guided samples beside real patients, by sizes, places and extents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anatomica.anatomy.label_map import LabelMap
from anatomica.data.phantoms import phantom
from anatomica.data.realism import features, real_cases
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.tables import markdown, shown
from anatomica.evaluate.likeness import compare
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.provenance import provenance
from anatomica.files import write_json, write_text
from anatomica.generation.draw import generate
from anatomica.generation.options import Options
from anatomica.prior.zoo import load_model
from anatomica.spec.tasks import task

NAME = "realism"
ANATOMY = "cardiac"
TASK = "right-ventricle"
"""What guided samples are asked for: each real patient's own ventricle, in its box."""
PHANTOMS = 5_000_000
"""The first phantom that is compared: none of them was trained on."""
SAMPLES = {"quick": 18, "here": 64, "paper": 256}
"""Phantoms, and samples of each kind."""


def run(
    out: Path,
    tell: Callable[[str], None],
    folder: Path,
    labels: str | None,
    count: int,
    models: Path | None = None,
) -> dict[str, Any]:
    """Measure all kinds against the label maps of a folder, and write OUT/realism.md and .json."""
    model = load_model(ANATOMY if models is None else models / ANATOMY)
    real = list(real_cases(folder, model.about, labels).values())
    structures = [x for x in model.table.tissues if all(x in one.present() for one in real)]
    if not structures:
        raise AnatomicaError(
            f"the files in {folder} have no tissue of {ANATOMY} anatomy in common; see --labels"
        )
    options = Options(tries=1)

    def phantoms(first: int) -> list[LabelMap]:
        return [phantom(ANATOMY, PHANTOMS + first + i, model.n).label_map for i in range(count)]

    def unconditional() -> list[LabelMap]:
        tell(f"drawing {count} unconditional samples ...")
        return [s.label_map for s in generate(model, seeds=range(count), options=options)]

    def guided() -> list[LabelMap]:
        found = []
        for i in range(count):
            seeds, reference = [10_000 + i], real[i % len(real)]
            (sample,) = generate(model, task(TASK), seeds=seeds, reference=reference, options=options)
            found.append(sample.label_map)
            tell(f"guided: {i + 1} of {count}")
        return found

    kinds = {
        "phantoms": phantoms(0),
        "unconditional samples": unconditional(),
        f"samples with a real {TASK.replace('-', ' ')}": guided(),
    }
    true = _features(real, structures)
    rows = {kind: compare(_features(maps, structures), true, structures) for kind, maps in kinds.items()}
    content = {
        "real": len(real),
        "structures": structures,
        "kinds": rows,
        "provenance": provenance(f"evaluate.experiments.{NAME}", {ANATOMY: model.hash}),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / f"{NAME}.json", content)
    write_text(out / f"{NAME}.md", table(rows, len(real), structures))
    return {
        "one_nna": {kind: x["one_nna"] for kind, x in rows.items()},
        "written": [out / f"{NAME}.md", out / f"{NAME}.json"],
    }


def _features(maps: Sequence[LabelMap], structures: Sequence[str]) -> np.ndarray:
    """One row per label map that has all structures."""
    return np.stack([features(one, structures) for one in maps if {*structures} <= {*one.present()}])


def table(rows: dict[str, dict[str, Any]], real: int, structures: Sequence[str]) -> str:
    """realism.md: each kind's likeness, then the features that are farthest off."""
    lines = [
        [
            kind,
            str(x["phantoms"]),
            shown(Interval(*x["one_nna"])),
            shown(Interval(*x["one_nna_alike"])),
            f"{x['frechet'][0]:.0f}",
            f"{x['frechet_floor'][0]:.0f}",
            f"{x['rms_z']:.2f}",
            f"{x['sd_ratios'][0]:.2f} to {x['sd_ratios'][1]:.2f}",
        ]
        for kind, x in rows.items()
    ]
    header = ("Kind", "n", "1-NNA", "if alike", "Frechet", "real halves", "RMS z", "SD ratios")
    text = f"# Realism: beside {real} real patients\n\n" + markdown(header, lines)
    text += (
        f"\nVolumes, centroids and principal extents of {', '.join(structures)}. 1-NNA: how often a "
        "nearest-neighbour classifier tells the kinds apart (0.5 is alike), with the spread over draws of as "
        "many as there are real patients; beside it the same of two halves of one kind. z: a mean's distance "
        "from the real one, in real SDs. n counts those that have all of these tissues.\n\nFarthest off:\n\n"
    )
    for kind, x in rows.items():
        worst = sorted(x["features"], key=lambda f: -abs(f["z"]))[:4]
        listed = ", ".join(f"{f['structure']} {f['feature']} {f['z']:+.1f}" for f in worst)
        text += f"- {kind}: {listed}\n"
    return text + (
        f"\n{real} patients of one study show whether means and spreads are near; they cannot show rare "
        "anatomies, and what their labels do not have is not compared.\n"
    )
