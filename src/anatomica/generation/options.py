"""How samples are drawn: the options that Python, the command line and recipes share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from anatomica.errors import AnatomicaError
from anatomica.guidance.solver import Guidance
from anatomica.prior.sampler import SamplingConfig
from anatomica.prior.zoo import Model

Decoder = Literal["field", "conv"]
MOST_STEPS, MOST_TRIES, MOST_BATCH = 10_000, 1000, 1024
"""Far more than any sampler, patience or memory has use for."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Everything that decides how samples are drawn, except the model, the seeds and what is asked."""

    guidance: Guidance = field(default_factory=Guidance)
    """How constraints act on sampling."""
    tries: Annotated[int, Field(ge=1, le=MOST_TRIES)] | None = None
    """Candidates per sample at most: drawn until one is valid, and the best is kept. None: the default."""
    repair: bool = True
    """Whether misplaced pieces of a tissue are given to what they touch."""
    scouts: bool = True
    """Whether samples with constraints or asks of vertebrae begin in a scout: an unguided sample that shows
    them."""
    decoder: Decoder = "field"
    """What writes the label map."""
    resolution: Annotated[int, Field(ge=8, le=512)] | None = None
    """Voxels along the cube's edge; None: the model's."""
    steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    """Sampling steps; None: the model's."""
    method: Literal["euler", "multistep", "stochastic"] | None = None
    """Sampler; None: the model's."""
    batch: Annotated[int, Field(ge=1, le=MOST_BATCH)] = 8
    """Samples computed together; on a CPU those under constraints are computed one by one (`together`)."""
    trace: bool = False
    """Whether errors are measured at every step, for charts and progress bars; takes a little time."""

    def sampling(self, model: Model) -> SamplingConfig:
        """The model's sampler with these options."""
        own = model.sampling
        return replace(own, steps=self.steps or own.steps, method=self.method or own.method)

    def together(self, model: Model, guided: bool) -> int:
        """How many samples are computed together.

        Rounding depends on the batch, and a solver with thresholds amplifies it. On a CPU, where a batch
        saves next to nothing, samples under constraints are computed one by one: the same in any batch.
        """
        return 1 if guided and model.device.type == "cpu" else self.batch

    def voxels(self, model: Model) -> int:
        """Voxels along the edge of the output."""
        if self.decoder == "conv" and self.resolution not in (None, model.n):
            raise AnatomicaError(
                f"the convolutional decoder writes only {model.n}^3 voxels; use decoder 'field'"
            )
        return self.resolution or model.n


OPTIONS = TypeAdapter(Options)
"""Reads and writes options as plain data, with every value checked."""
