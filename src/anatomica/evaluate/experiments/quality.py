"""Generation quality of a cell's samples, and the floor: the same numbers for as many real patients."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.store import load_numbers, save_numbers
from anatomica.evaluate.metrics.bootstrap import Interval
from anatomica.evaluate.metrics.quality import Patients, Quality, compare


def quality(runner: Runner, done: Finished) -> Quality:
    """Quality of the samples of a cell."""
    lab, anatomy = runner.lab, done.cell.spec.anatomy
    drawn = [runner.load(key) for key in done.keys]
    samples = Patients(
        done.keys,
        torch.from_numpy(np.stack([d.labels for d in drawn])),
        np.stack([d.morphology for d in drawn]),
        np.stack([d.clouds for d in drawn]),
    )
    return _kept(lab, anatomy, samples)


def floor(lab: Lab, anatomy: str, count: int) -> Quality:
    """Quality of the first `count` training patients: what a perfect generator would get."""
    real = lab.training(anatomy)
    return _kept(lab, anatomy, real.at(range(min(count, len(real)))))


def _kept(lab: Lab, anatomy: str, samples: Patients) -> Quality:
    """From the cache, or computed and put there."""
    real = lab.others(anatomy)
    sets = [[*p.ids, hashlib.sha256(p.morphology.tobytes()).hexdigest()] for p in (samples, real)]
    name = content_hash([anatomy, *sets, code_version("evaluate.metrics.quality")])
    path = lab.cache / "quality" / f"{name}.json"
    kept = load_numbers(path)
    if kept is not None:
        first, second, third = (Interval(*kept[key]) for key in ("fmd", "nna", "diversity"))
        return Quality(kept["count"], first, second, third, kept["spread"], kept["presence"])
    made = compare(samples, real, len(lab.model(anatomy).table))
    save_numbers(path, made.as_json())
    return made


def qualities(
    runner: Runner, done: Sequence[Finished]
) -> tuple[list[Quality], dict[tuple[str, int], Quality]]:
    """Quality of each cell, and the floor for each anatomy and count among them."""
    found = []
    for f in done:
        runner.tell(f"quality of {f.cell.name}")
        found.append(quality(runner, f))
    wanted = sorted({(f.cell.spec.anatomy, q.count) for f, q in zip(done, found, strict=True)})
    return found, {key: floor(runner.lab, *key) for key in wanted}
