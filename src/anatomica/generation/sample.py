"""A generated patient, and what a callback sees while one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.generation.plausibility import Oddity
from anatomica.guidance.trace import Curve, DomainDiagram, Error
from anatomica.measurement.certificate import Check, all_met
from anatomica.prior.sampler import Step


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """What is to be said of one generated patient, without its label map.

    `checks` say what was asked and achieved, `outside_ml` how much of each constraint's structure lies
    outside its domains; `unusual` says what makes it unlike every training patient.
    `drawn` is the number of candidates it was chosen from, `drawn_seed` the seed of the chosen one, and
    `mended` the number of voxels whose label repair changed. `curves` and `diagrams` are there if a trace was
    asked for. `seconds` are of the clock, `cpu_seconds` of all threads.
    """

    seed: int
    seconds: float
    cpu_seconds: float = 0.0
    checks: tuple[Check, ...] = ()
    outside_ml: dict[str, float] = field(default_factory=dict)
    drawn: int = 1
    drawn_seed: int = 0
    mended: int = 0
    unusual: tuple[Oddity, ...] = ()
    curves: tuple[Curve, ...] = ()
    diagrams: tuple[DomainDiagram, ...] = ()

    @property
    def met(self) -> bool:
        """Every asked quantity is within its tolerance."""
        return all_met(self.checks)

    @property
    def plausible(self) -> bool:
        """Nothing about it is unlike the training patients."""
        return not self.unusual

    @property
    def valid(self) -> bool:
        """Met and plausible."""
        return self.met and self.plausible


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample(Outcome):
    """One generated patient: its outcome, its label map and the standardised latent it was decoded from."""

    label_map: LabelMap
    latent: Float[Tensor, "c h w d"]

    @property
    def outcome(self) -> Outcome:
        """The sample without what takes memory."""
        return Outcome(**{f.name: getattr(self, f.name) for f in fields(Outcome)})


class Progress(NamedTuple):
    """What a callback sees once per step of a batch: its seeds, the candidate's number, the sampler's step,
    and with a trace the errors of each sample."""

    seeds: tuple[int, ...]
    turn: int
    step: Step
    errors: list[list[Error]]


Callback = Callable[[Progress], None]
