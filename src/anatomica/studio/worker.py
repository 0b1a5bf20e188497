"""The process that draws: one order at a time, everything that happens told as messages.

A process of its own, so that the page stays quick while torch computes, a job can be ended in the middle of
anything, and a crash (of memory, say) takes nothing else along.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.generation.draw import decode, draw
from anatomica.generation.feasibility import compare
from anatomica.generation.recipe import Arguments, make_recipe
from anatomica.generation.resolve import resolve_for, with_counts
from anatomica.generation.sample import Progress, Sample
from anatomica.measurement.goals import Goal, allowed, constraints_in, error, goals_in, sides
from anatomica.measurement.vocabulary.plan import Missing
from anatomica.measurement.vocabulary.statistics import find
from anatomica.measurement.vocabulary.subject import Subject
from anatomica.prior.zoo import Model, load_model
from anatomica.spec.spec import Spec
from anatomica.studio.patients import Run
from anatomica.studio.surfaces import patient_frame, step_frame

COARSE = 32
"""Voxels along the edge of the predictions that are shown while sampling."""
SHARE = 0.2
"""The part of the time that may go into surfaces: nearly every guided step of a heart is shown."""


@dataclass(frozen=True, eq=False)
class Order:
    """What to draw; `warm` only loads the model, so that the first job begins at once."""

    job: str
    anatomy: str
    spec: Spec | None = None
    reference: LabelMap | None = None
    arguments: Arguments = field(default_factory=Arguments)
    warm: bool = False


@dataclass(frozen=True, eq=False)
class Finished:
    """A patient; the frame's id is the seed, the server gives it its own."""

    sample: Sample
    frame: bytes


@dataclass(frozen=True)
class Failed:
    """A job that ended with an error, in a sentence for the page; `details` are for the terminal."""

    sentence: str
    details: str = ""


@dataclass(frozen=True)
class Ended:
    """A job that ended as it should, or because it was cancelled."""

    cancelled: bool = False


Message = dict[str, Any] | bytes | Run | Finished | Failed | Ended
"""Events and frames go to the page as they are; the rest is for the server."""


class Cancelled(Exception):
    """The page does not want the rest."""


def work(pipe: Connection, stop: Event) -> None:
    """The process's own loop; it ends when the server does."""
    models: dict[str, Model] = {}

    def send(message: Message) -> None:
        pipe.send_bytes(pickle.dumps(message))

    while True:
        try:
            order: Order = pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return
        try:
            send(_obey(order, models, send, stop))
        except (BrokenPipeError, ConnectionError):
            return


def _obey(order: Order, models: dict[str, Model], send: Callable[[Message], None], stop: Event) -> Message:
    try:
        if order.anatomy not in models:
            models[order.anatomy] = load_model(order.anatomy)
        if not order.warm:
            run(order, models[order.anatomy], send, stop.is_set)
        return Ended()
    except Cancelled:
        return Ended(cancelled=True)
    except AnatomicaError as mistake:
        return Failed(str(mistake))
    except MemoryError:
        return Failed("there is not enough memory for this job; ask for fewer samples")
    except Exception as failure:
        return Failed(f"the job failed ({type(failure).__name__}: {failure})", traceback.format_exc())


def run(
    order: Order, model: Model, send: Callable[[Message], None], stopped: Callable[[], bool] = lambda: False
) -> None:
    """Draw what is ordered, through the same function as the command line."""
    spec = None if order.spec is None else with_counts(order.spec.of(model.about), model)
    resolved = () if spec is None else resolve_for(model, spec, order.reference)
    arguments = order.arguments
    send(
        Run(
            order.job,
            spec,
            constraints_in(resolved),
            make_recipe(model, spec, resolved, arguments),
            compare(model, resolved),
        )
    )
    tell = Teller(order.job, model, goals_in(resolved), send, stopped)
    options = replace(arguments.options, trace=True)
    seeds = range(arguments.seed, arguments.seed + arguments.samples)
    for sample in draw(model, seeds, [resolved] * len(seeds), options, callback=tell):
        send(Finished(sample, patient_frame(str(sample.seed), sample.label_map)))
        if stopped():
            raise Cancelled


class Teller:
    """The sampler's callback: every step as an event, now and then a surface, and the end if it is wanted.

    Errors of constraints and of named quantities come with every step. The latter are measured on coarse
    predictions: 25 to 45 ms of a core for each sample and step.
    """

    def __init__(
        self,
        job: str,
        model: Model,
        goals: Sequence[Goal],
        send: Callable[[Message], None],
        stopped: Callable[[], bool],
    ) -> None:
        self.job, self.model, self.goals, self.send, self.stopped = job, model, goals, send, stopped
        self.next_look = 0.0

    def __call__(self, progress: Progress) -> None:
        if self.stopped():
            raise Cancelled
        step, now = progress.step, time.perf_counter()
        show = now >= self.next_look
        seen = step.denoised if self.goals else step.denoised[:1]
        coarse = decode(self.model, seen, COARSE) if self.goals or show else []
        if show:
            self.send(step_frame(self.job, progress.seeds[0], step.index + 1, coarse[0]))
            self.next_look = now + (time.perf_counter() - now) / SHARE
        for i, seed in enumerate(progress.seeds):
            errors = [
                error_dict(e.constraint, e.quantity, e.error, e.tolerance)
                for e in (progress.errors[i] if progress.errors else [])
            ]
            if self.goals:
                errors += goal_errors(self.goals, Subject(coarse[i], self.model.about))
            self.send(
                {
                    "type": "step",
                    "job": self.job,
                    "seed": seed,
                    "turn": progress.turn,
                    "step": step.index + 1,
                    "steps": step.count,
                    "errors": errors,
                }
            )


def goal_errors(goals: Sequence[Goal], s: Subject) -> list[dict[str, Any]]:
    """Named quantities of one label map against what is asked; those that it does not have are left out."""
    found = []
    for goal in goals:
        values = {key: find(s, key).value for key in goal.ask.keys}
        known = {key: value for key, value in values.items() if value is not None}
        if len(known) == len(values):
            with suppress(Missing):
                off, most = error(goal, sides(goal.ask, known)), allowed(goal, known)
                found.append(error_dict(goal.name, "", off, most))
    return found


def error_dict(constraint: str, quantity: str, off: float, tolerance: float) -> dict[str, Any]:
    """One error of one step; a count that is off by one counts as one tolerance."""
    return {
        "constraint": constraint,
        "quantity": quantity,
        "error": off,
        "tolerance": tolerance,
        "in_tolerances": off / tolerance if tolerance > 0 else off,
    }
