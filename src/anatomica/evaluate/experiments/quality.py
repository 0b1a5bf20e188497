"""Generation quality of a cell's samples, and the floor: the same numbers for as many real patients."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from anatomica.evaluate.experiments.identity import code_version, content_hash
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.rows import UNCONDITIONAL
from anatomica.evaluate.experiments.runner import Finished, Runner
from anatomica.evaluate.experiments.store import load_numbers, save_numbers
from anatomica.evaluate.metrics.bootstrap import Interval, share_interval
from anatomica.evaluate.metrics.quality import Patients, Quality, compare
from anatomica.generation.plausibility import oddities


@dataclass(frozen=True)
class Grids:
    """A cell's quality on the grid of its label maps and on one twice as fine (None if there is none), and
    that of as many of its task's unconditional samples: distances grow as sets shrink."""

    n: Quality
    twice: Quality | None
    free: Quality | None
    free_twice: Quality | None

    def pairs(self) -> list[tuple[str, Quality, Quality]]:
        """(grid, own, unconditional) where both are known."""
        both = (("n", self.n, self.free), ("2n", self.twice, self.free_twice))
        return [(grid, q, free) for grid, q, free in both if q is not None and free is not None]


def quality(runner: Runner, done: Finished) -> Quality:
    """Quality of the samples of a cell."""
    found = _quality(runner, done, finer=False)
    assert found is not None
    return found


def _quality(runner: Runner, done: Finished, finer: bool) -> Quality | None:
    lab, anatomy = runner.lab, done.cell.spec.anatomy
    drawn = [runner.load(key) for key in done.keys]
    features = [d.finer if finer else d.features for d in drawn]
    read = [x for x in features if x is not None]
    if len(read) < len(drawn):
        return None
    samples = Patients(
        done.keys,
        torch.from_numpy(np.stack([d.labels for d in drawn])),
        np.stack([x.morphology for x in read]),
        np.stack([x.clouds for x in read]),
    )
    return _kept(lab, anatomy, samples)


def floor(lab: Lab, anatomy: str, count: int) -> Quality:
    """Quality of the first `count` training patients: what a perfect generator would get."""
    real = lab.training(anatomy)
    return _kept(lab, anatomy, real.at(range(min(count, len(real)))))


def _kept(lab: Lab, anatomy: str, samples: Patients) -> Quality:
    """From the cache, or computed and put there."""
    real = lab.others(anatomy)
    sets = [[_digest(p.maps.numpy()), _digest(p.morphology), _digest(p.clouds)] for p in (samples, real)]
    name = content_hash([anatomy, *sets, code_version("evaluate.metrics.quality")])
    path = lab.cache / "quality" / f"{name}.json"
    kept = load_numbers(path)
    if kept is not None:
        first, second, third = (Interval(*kept[key]) for key in ("fmd", "nna", "diversity"))
        return Quality(kept["count"], first, second, third, kept["spread"], kept["presence"])
    made = compare(samples, real, len(lab.model(anatomy).table))
    save_numbers(path, made.as_json())
    return made


def _digest(x: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()


def implausible_patients(lab: Lab, anatomy: str) -> Interval:
    """Percentage of the held-out patients that targets are taken from whom the rules call implausible."""
    real, model = lab.asked(anatomy), lab.model(anatomy)
    digest = _digest(real.maps.numpy())
    name = content_hash([digest, model.hash, code_version("generation.plausibility")])
    path = lab.cache / "quality" / f"{name}.json"
    kept = load_numbers(path)
    if kept is None:
        kept = {"odd": [bool(oddities(model, lab.label_map(anatomy, x))) for x in real.maps]}
        save_numbers(path, kept)
    return Interval(*(100 * x for x in share_interval(kept["odd"])))


def qualities(
    runner: Runner, done: Sequence[Finished]
) -> tuple[list[Quality], dict[tuple[str, int], Quality]]:
    """Quality of each cell, and the floor for each anatomy and count among them."""
    found = []
    for f in done:
        runner.tell(f"quality of {f.cell.name}")
        found.append(quality(runner, f))
    return found, floors(runner.lab, done)


def floors(lab: Lab, done: Sequence[Finished]) -> dict[tuple[str, int], Quality]:
    """Real against real, for each anatomy and count of the cells."""
    wanted = sorted({(f.cell.spec.anatomy, len(f.keys)) for f in done})
    return {key: floor(lab, *key) for key in wanted}


def grids(runner: Runner, done: Sequence[Finished]) -> dict[str, Grids]:
    """Quality of each judged cell on both grids, by the cell's name."""
    unguided = {f.cell.task: f for f in done if f.cell.method.key == UNCONDITIONAL.key}
    found = {}
    for f in done:
        runner.tell(f"quality of {f.cell.name}")
        beside = unguided.get(f.cell.task)
        if beside is not None:
            beside = beside.first(len(f.keys)) if len(beside.keys) >= len(f.keys) else None
        twice, free, free_twice = (
            None if x is None else _quality(runner, x, finer)
            for x, finer in ((f, True), (beside, False), (beside, True))
        )
        found[f.cell.name] = Grids(quality(runner, f), twice, free, free_twice)
    return found
