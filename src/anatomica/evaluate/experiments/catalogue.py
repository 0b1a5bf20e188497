"""All experiments by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments import (
    geometric,
    guidance_weight,
    memorisation,
    multiscale,
    paper_weights,
    partial_decoding,
    softmax_temperature,
    topological,
    topological_resolution,
    topological_speed,
    validity,
)
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import Cell, Profile
from anatomica.evaluate.experiments.runner import Finished, Runner


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its cells, and how finished ones are written."""

    name: str
    summary: str
    cells: Callable[[Profile, Lab], list[Cell]]
    write: Callable[[Runner, Sequence[Finished], Path], None]


EXPERIMENTS = {
    module.NAME: Experiment(module.NAME, (module.__doc__ or "").strip(), module.cells, module.write)
    for module in (
        geometric,
        topological,
        partial_decoding,
        topological_speed,
        guidance_weight,
        softmax_temperature,
        topological_resolution,
        multiscale,
        memorisation,
        validity,
        paper_weights,
    )
}


def experiment(name: str) -> Experiment:
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise AnatomicaError(f"unknown experiment {name!r}; allowed: {', '.join(EXPERIMENTS)}") from None
