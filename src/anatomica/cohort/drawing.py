"""Draw a patient of a cohort: from its request, until it is as asked, plausible and far from training."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from anatomica.anatomy.bounds import MOST_SEED
from anatomica.anatomy.label_map import LabelMap
from anatomica.cohort.feasible import asked, infeasible
from anatomica.cohort.patient import OUTCOMES, Outcome, Patient
from anatomica.cohort.plan import EVERYBODY, Plan, Request
from anatomica.cohort.privacy import Crowd
from anatomica.cohort.rules import Condition
from anatomica.cohort.training_phantoms import moments_of_map
from anatomica.generation.choose import ANOTHER_SEED
from anatomica.generation.draw import decode, generate
from anatomica.generation.options import Options
from anatomica.generation.sample import Sample
from anatomica.generation.scouts import scout
from anatomica.measurement.vocabulary.statistics import statistics
from anatomica.prior.percentiles import Percentiles
from anatomica.prior.zoo import Model
from anatomica.spec.asks import Asks, ask
from anatomica.spec.vocabulary import entries
from anatomica.spec.vocabulary_tables import LEADS

REPLACEMENTS = 4
"""New requests at most in place of one that failed all its tries, if the spec wants it replaced."""
SCREENED = 24
"""Seeds whose unguided patients are looked at, at most, for one of the stratum: a rare one of 10 % is then
missed in 8 % of the tries (0.9^24)."""
SCREENING_STEPS = 8
"""Steps of those patients: they only tell whether a layout is of the stratum."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A sample with what decides whether it is kept."""

    sample: Sample
    quantities: dict[str, float]
    moments: np.ndarray
    nearest: float | None
    outcome: Outcome


@dataclass(frozen=True, eq=False)
class Drawing:
    """Draws patients with a model: calling it is `Draw`. It is opened once per worker."""

    model: Model
    percentiles: Percentiles | None
    crowd: Crowd | None

    def __call__(self, plan: Plan, index: int) -> Patient:
        attempts: list[dict[str, Any]] = []
        found: tuple[Candidate, int] | None = None
        for turn in range(1 + REPLACEMENTS * plan.spec.replace):
            request = plan.request(index, turn)
            missing = infeasible(request, plan, self.percentiles)
            found = None if missing else self.drawn(request, plan)
            outcome: Outcome = found[0].outcome if found else "infeasible"
            attempts.append(
                {**request.to_dict(), "outcome": outcome, "drawn": found[1] if found else 0, "why": missing}
            )
            if found and outcome == "kept":
                return Patient(_record(plan, index, attempts, found[0]), found[0].sample.label_map)
        return Patient(_record(plan, index, attempts, found[0] if found else None), None)

    def drawn(self, request: Request, plan: Plan) -> tuple[Candidate, int]:
        """The first candidate that is kept, or the best of all tries; and how many were drawn."""
        best: Candidate | None = None
        seed = request.seed
        for turn in range(plan.spec.tries):
            seed = self.screened(request, plan, seed)
            options = Options(tries=1, resolution=plan.spec.resolution)
            wanted = led(request, plan)
            (sample,) = generate(self.model, wanted, seeds=[seed], options=options)
            found = self.judged(sample, request, plan)
            if best is None or OUTCOMES.index(found.outcome) < OUTCOMES.index(best.outcome):
                best = found
            if best.outcome == "kept":
                return best, turn + 1
            seed = (seed + ANOTHER_SEED) % (MOST_SEED + 1)
        assert best is not None
        return best, plan.spec.tries

    def screened(self, request: Request, plan: Plan, seed: int) -> int:
        """The next seed whose unguided patient is of the stratum, if one is found soon: noise decides the
        layout, and guidance to lengths and widths rarely changes how branches leave."""
        wanted = plan.stratum(request.stratum)
        if not wanted:
            return seed
        for step in range(SCREENED):
            tried = (seed + step * ANOTHER_SEED) % (MOST_SEED + 1)
            (label_map,) = decode(self.model, scout(self.model, tried, SCREENING_STEPS), self.model.n)
            found = measured(label_map, self.model, [c.key for c in wanted])
            if all(c.met(found) for c in wanted):
                return tried
        return seed

    def judged(self, sample: Sample, request: Request, plan: Plan) -> Candidate:
        """What a sample is worth to its request."""
        quantities = measured(sample.label_map, self.model)
        moments = moments_of_map(sample.label_map)
        nearest = None if self.crowd is None else self.crowd.nearest(moments)[1]

        def missed(conditions: Sequence[Condition]) -> bool:
            return any(not c.met(quantities) for c in conditions)

        outcome: Outcome = "kept"
        if plan.spec.valid and not all(c.met for c in sample.checks if c.constraint in dict(request.targets)):
            outcome = "unmet"
        elif plan.spec.valid and not sample.plausible:
            outcome = "implausible"
        elif missed(plan.stratum(request.stratum)):
            outcome = "other stratum"
        elif missed(plan.include):
            outcome = "excluded"
        elif plan.spec.privacy is not None and self.crowd is not None and nearest is not None:
            too_near = nearest < self.crowd.limit(plan.spec.privacy.percent)
            outcome = "too near" if too_near else "kept"
        return Candidate(sample, quantities, moments, nearest, outcome)


def open_drawing(plan: Plan, device: str = "cpu") -> Drawing:
    """The model of a plan, ready to draw; another model than the plan's is an error.

    A worker has one thread: several workers with several threads each wait for one another, and sums would
    be rounded as a machine's cores have it.
    """
    from anatomica.cohort.maker import load_for, population_of

    torch.set_num_threads(1)
    model = load_for(plan, device)
    return Drawing(
        model, population_of(plan.spec), None if model.population is None else Crowd.of(model.population)
    )


def seconds_per_candidate(plan: Plan, device: str = "cpu") -> float:
    """How long one candidate of the first request takes here, by drawing it."""
    drawing = open_drawing(plan, device)
    start = time.perf_counter()
    drawing.drawn(plan.request(0), replace(plan, spec=plan.spec.model_copy(update={"tries": 1})))
    return time.perf_counter() - start


def led(request: Request, plan: Plan) -> Asks | None:
    """What a request asks of `generate`, with what leads a sample into its stratum: that is no target, and a
    sample may be of the stratum without it."""
    texts = [
        text
        for one in plan.stratum(request.stratum)
        if one.key in LEADS
        for text in LEADS[one.key][one.range[0] >= 1]
    ]
    wanted = asked(request)
    return wanted if not texts else ask(() if wanted is None else wanted.texts, *texts)


def measured(label_map: LabelMap, model: Model, keys: Sequence[str] | None = None) -> dict[str, float]:
    """The named quantities of a label map that it has, at its own resolution."""
    if not entries(model.anatomy):
        return {}
    _, found = statistics(label_map, model.about, label_map.shape[0], keys)
    return {x.entry.key: float(f"{x.value:.9g}") for x in found if x.value is not None}


def _record(
    plan: Plan, index: int, attempts: Sequence[Mapping[str, Any]], found: Candidate | None
) -> dict[str, Any]:
    last = attempts[-1]
    record: dict[str, Any] = {
        "schema": "anatomica.cohort-patient/1",
        "index": index,
        "key": plan.key(index),
        "outcome": last["outcome"],
        "stratum": last["stratum"] or EVERYBODY,
        "targets": last["targets"],
        "attempts": list(attempts),
    }
    if found is not None:
        sample = found.sample
        record |= {
            "seed": sample.seed,
            "met": all(c.met for c in sample.checks if c.constraint in last["targets"]),
            "plausible": sample.plausible,
            "unusual": [str(x) for x in sample.unusual],
            "quantities": found.quantities,
            "moments": [[None if np.isnan(x) else float(f"{x:.6g}") for x in row] for row in found.moments],
            "nearest_training": None if found.nearest is None else float(f"{found.nearest:.6g}"),
        }
    return record
