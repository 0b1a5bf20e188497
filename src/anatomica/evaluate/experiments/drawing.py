"""Drawing the samples of a cell, one batch at a time, by any method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.evaluate.baselines.conditioned import Baseline, task_moments
from anatomica.evaluate.experiments.plan import Method
from anatomica.evaluate.experiments.targets import Target
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.generation.draw import draw
from anatomica.generation.options import Options
from anatomica.generation.sample import Sample
from anatomica.guidance.solver import Guidance
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample as it is kept: label indices, what the quality metrics read, and its share of the cost."""

    labels: UInt8[np.ndarray, "n n n"]
    morphology: Float[np.ndarray, " f"]
    clouds: Float[np.ndarray, "t p 3"]
    seconds: float
    """Processor time, all threads: what else runs on the machine does not count."""


def draw_cell(
    model: Model,
    method: Method,
    steps: int | None,
    seeds: Sequence[int],
    resolved: Sequence[tuple[Resolved, ...]],
    baseline: Baseline | None = None,
    conditions: Sequence[tuple[Moments, Tensor]] = (),
) -> list[Drawn]:
    """One sample per seed as decoded; `resolved` guides (one tuple per sample), `conditions` are a baseline's
    targets. Nothing is repaired, drawn again or begun in a layout: tables are of the methods themselves."""
    options = Options(
        guidance=method.guidance or Guidance(),
        tries=1,
        repair=False,
        layouts=False,
        decoder=method.decoder,
        steps=steps,
        batch=len(seeds),
    )
    denoiser = None
    if method.conditioning is not None:
        assert baseline is not None
        names = ("mass", "centroid", "covariance")
        moments = Moments(*(torch.stack([getattr(m, name) for m, _ in conditions]) for name in names))
        denoiser = baseline.denoiser(moments, torch.stack([valid for _, valid in conditions]))
    asked = resolved if method.guidance is not None else ()
    return [_drawn(model, s) for s in draw(model, seeds, asked, options, denoiser=denoiser)]


def _drawn(model: Model, sample: Sample) -> Drawn:
    labels, classes = torch.from_numpy(model.table.index[sample.label_map.array]), len(model.table)
    return Drawn(
        labels.numpy(),
        morphology(labels[None], classes)[0],
        tissue_clouds(labels, classes),
        sample.cpu_seconds,
    )


def condition_of(target: Target, spec: Spec) -> tuple[Moments, Tensor]:
    """A patient's moments as a baseline was trained to read them."""
    assert target.reference is not None
    return task_moments(target.reference, spec)
