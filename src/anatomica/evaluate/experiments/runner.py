"""Running cells: samples in batches, each kept under its content hash, so that nothing is drawn twice.

CACHE/samples/<hash>.npz    label map, morphology and clouds of a sample
CACHE/numbers/<hash>.json   what was measured of it against its target

A killed run loses the batch in flight; the next one goes on and ends with the same table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.drawing import Drawn, Features, condition_of, draw_cell
from anatomica.evaluate.experiments.estimate import Estimate, Paces, in_words, unknown_kinds
from anatomica.evaluate.experiments.identity import DRAWING, MEASURING, code_version, content_hash
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measuring import measure_sample
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.store import load_arrays, load_numbers, save_arrays, save_numbers
from anatomica.evaluate.experiments.targets import Target, resolve_like, targets
from anatomica.generation.options import Options
from anatomica.prior.settings import to_dict

Tell = Callable[[str], None]
PARTS = {"labels", "morphology", "clouds", "seconds"}
"""What is kept of a sample."""


@dataclass(frozen=True, eq=False)
class Finished:
    """A cell with the samples there are of it."""

    cell: Cell
    numbers: list[dict[str, Any]]
    keys: tuple[str, ...]

    def first(self, count: int) -> Finished:
        """The cell with its first samples only, to be compared with one that has no more."""
        return Finished(self.cell, self.numbers[:count], self.keys[:count])

    def values(self, *path: str) -> np.ndarray:
        """One number of every sample, by its place in the JSON; NaN where it is missing."""

        def at(content: Any) -> float:
            for key in path:
                content = None if content is None else content.get(key)
            return float("nan") if content is None else float(content)

        return np.array([at(n) for n in self.numbers])


@dataclass
class Runner:
    """Draws and measures what is missing, reads what is there."""

    lab: Lab
    profile: Profile
    tell: Tell
    _targets: dict[str, list[Target]] = field(default_factory=dict)
    _whole: set[str] = field(default_factory=set)

    @cached_property
    def paces(self) -> Paces:
        return Paces.at(self.lab.cache / "paces.json", self.profile.steps)

    def run(
        self, cells: Sequence[Cell], chosen: Callable[[Cell], bool] = lambda cell: True
    ) -> list[Finished]:
        """Run the chosen cells; return all cells of which there are samples."""
        ready = [c for c in cells if self._can(c, tell=chosen(c))]
        mine = [c for c in ready if chosen(c)]
        for place, cell in enumerate(mine):
            self._run_cell(cell, mine[place + 1 :])
        return [f for f in (self.finished(cell) for cell in ready) if f.keys]

    def estimate(self, name: str, cells: Sequence[Cell]) -> Estimate:
        """What of an experiment is missing, and how long it will take.

        One sample of every kind that was never timed here is drawn for it, and not kept.
        """
        ready = [c for c in cells if self._can(c, tell=False)]
        open_ = [(c, missing) for c in ready if (missing := self._missing(c))]
        for cell in unknown_kinds([c for c, _ in open_], self.paces):
            began = time.monotonic()
            self._drawn(cell, 0, 1)
            self.paces.add(cell, time.monotonic() - began, 1)
        seconds = sum(missing * self.paces.of(c) for c, missing in open_)
        return Estimate(name, sum(c.count for c in ready), sum(missing for _, missing in open_), seconds)

    def _missing(self, cell: Cell) -> int:
        return sum(not self._sample(key).is_file() for key, _ in self._keys(cell))

    def finished(self, cell: Cell) -> Finished:
        """What the cache has of a cell, up to its first missing sample."""
        keys, numbers = [], []
        for key, number_key in self._keys(cell):
            found = load_numbers(self._numbers(number_key))
            if found is None or not self._has(key):
                break
            keys.append(key)
            numbers.append(found)
        return Finished(cell, numbers, tuple(keys))

    def load(self, key: str) -> Drawn:
        """A kept sample."""
        kept = load_arrays(self._sample(key))
        if kept is None or not kept.keys() >= PARTS:
            raise AnatomicaError(
                f"{self._sample(key)} was damaged since it was checked; run the same command again"
            )
        verdict = json.loads(str(kept["verdict"])) if "verdict" in kept else {}
        features = Features(kept["morphology"], kept["clouds"])
        finer = Features(kept["morphology_2n"], kept["clouds_2n"]) if "clouds_2n" in kept else None
        return Drawn(kept["labels"], features, float(kept["seconds"]), finer, verdict)

    def _has(self, key: str) -> bool:
        """Whether a sample is kept and undamaged; each is read and checked once."""
        if key not in self._whole:
            kept = load_arrays(self._sample(key))
            if kept is None or not kept.keys() >= PARTS:
                return False
            self._whole.add(key)
        return True

    def target(self, cell: Cell, index: int) -> Target:
        return self._targets_of(cell)[index]

    def _can(self, cell: Cell, tell: bool) -> bool:
        """Whether a cell's model, and its baseline if it needs one, are there; says what is missing."""
        if not self.lab.has_model(cell.spec.anatomy):
            if tell:
                self.tell(f"left out: {cell.name}: no model of {cell.spec.anatomy}")
            return False
        kind = cell.method.conditioning
        if kind is not None and self.lab.baseline(cell.task, kind, cell.spec.anatomy) is None:
            if tell:
                how = f"anatomica train baseline --task {cell.task} --conditioning {kind}"
                self.tell(f"left out: {cell.name}: not trained ({how} --out {self.lab.baselines})")
            return False
        return True

    def _run_cell(self, cell: Cell, later: Sequence[Cell]) -> None:
        pairs = self._keys(cell)
        size = self.profile.batch
        for start in range(0, len(pairs), size):
            part = pairs[start : start + size]
            # A batch is drawn whole, whichever of it is missing: the same batch gives the same bits.
            if not all(self._has(key) for key, _ in part):
                began = time.monotonic()
                self._draw(cell, start, [key for key, _ in part])
                spent = (time.monotonic() - began) / len(part)
                self.paces.add(cell, spent, len(part))
                left = self._left(cell, len(pairs) - start - len(part), later)
                done = start + len(part)
                self.tell(f"{cell.name}: {done} of {len(pairs)}, {spent:.1f} s per sample, about {left} left")
            for offset, (key, number_key) in enumerate(part):
                if load_numbers(self._numbers(number_key)) is None:
                    self._measure(cell, start + offset, key, number_key)

    def _draw(self, cell: Cell, start: int, keys: Sequence[str]) -> None:
        for key, made in zip(keys, self._drawn(cell, start, len(keys)), strict=True):
            finer = {} if made.finer is None else made.finer._asdict()
            save_arrays(
                self._sample(key),
                labels=made.labels,
                **made.features._asdict(),
                **{f"{name}_2n": values for name, values in finer.items()},
                seconds=np.array(made.seconds),
                verdict=np.array(json.dumps(made.verdict)),
            )

    def _drawn(self, cell: Cell, start: int, count: int) -> list[Drawn]:
        """Samples of a cell from `start` on."""
        model = self.lab.model(cell.spec.anatomy)
        asked = self._targets_of(cell)[start : start + count]
        resolved, conditions, baseline = [], [], None
        if cell.method.guidance is not None or cell.method.judged:
            same = cell.spec == cell.measured
            resolved = [t.resolved if same else resolve_like(self.lab, cell.spec, t) for t in asked]
        if cell.method.conditioning is not None:
            baseline = self.lab.baseline(cell.task, cell.method.conditioning, cell.spec.anatomy)
            conditions = [condition_of(t, cell.measured) for t in asked]
        seeds = range(cell.first + start, cell.first + start + count)
        return draw_cell(model, cell.method, self.profile.steps, seeds, resolved, baseline, conditions)

    def _measure(self, cell: Cell, index: int, key: str, number_key: str) -> None:
        made = self.load(key)
        label_map = self.lab.label_map(cell.spec.anatomy, torch.from_numpy(made.labels))
        target = self._targets_of(cell)[index]
        content = {
            "sample": key,
            "seed": cell.first + index,
            "case": target.case,
            "seconds": round(made.seconds, 3),
            **measure_sample(label_map, cell.measured, target),
            **made.verdict,
        }
        save_numbers(self._numbers(number_key), content)

    def _keys(self, cell: Cell) -> list[tuple[str, str]]:
        """(sample, numbers) hashes of a cell's samples."""
        model, method = self.lab.model(cell.spec.anatomy), cell.method
        baseline = None
        if method.conditioning is not None:
            found = self.lab.baseline(cell.task, method.conditioning, cell.spec.anatomy)
            baseline = None if found is None else found.hash
        shared = {
            "weights": model.hash,
            "method": method.identity(),
            "baseline": baseline,
            "sampling": to_dict(Options(**method.how(self.profile.steps)).sampling(method.sampled(model))),
            "code": code_version(DRAWING),
        }
        free = method.guidance is None and method.conditioning is None and not method.judged
        spec = None if free else cell.spec.model_dump(mode="json", exclude={"description"})
        measured = cell.measured.model_dump(mode="json", exclude={"description"})
        keys = []
        for seed, target in enumerate(self._targets_of(cell), start=cell.first):
            about = target.identity
            key = content_hash(shared | {"spec": spec, "target": None if free else about, "seed": seed})
            code = code_version(MEASURING)
            keys.append((key, content_hash({"of": key, "measured": measured, "target": about, "code": code})))
        return keys

    def _targets_of(self, cell: Cell) -> list[Target]:
        name = content_hash([cell.measured.model_dump(mode="json"), cell.count])
        if name not in self._targets:
            self._targets[name] = targets(self.lab, cell.measured, cell.count)
        return self._targets[name]

    def _left(self, cell: Cell, here: int, later: Sequence[Cell]) -> str:
        """Time for the samples that are missing, by what each kind took so far."""
        return in_words(here * self.paces.of(cell) + sum(self.paces.of(c) * self._missing(c) for c in later))

    def _sample(self, key: str) -> Path:
        return self.lab.cache / "samples" / f"{key}.npz"

    def _numbers(self, key: str) -> Path:
        return self.lab.cache / "numbers" / f"{key}.json"
