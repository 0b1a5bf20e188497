"""Drawing the samples of a cell, a batch at a time, by any method."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.evaluate.baselines.conditioned import Baseline, task_moments
from anatomica.evaluate.experiments.plan import Method
from anatomica.evaluate.experiments.targets import Target, batched
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.generation.draw import decode
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.sampler import Denoiser, SamplingConfig, sample
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


def draw(
    model: Model,
    method: Method,
    config: SamplingConfig,
    seeds: Sequence[int],
    resolved: Sequence[tuple[Resolved, ...]],
    baseline: Baseline | None = None,
    conditions: Sequence[tuple[Moments, Tensor]] = (),
) -> list[Drawn]:
    """One sample a seed; `resolved` guides (one tuple a sample), `conditions` are a baseline's targets."""
    began = time.process_time()
    guiding = batched(resolved) if method.guidance is not None else ()
    z = sample(
        _denoiser(model, method, guiding, baseline, conditions),
        model.latent_shape,
        seeds,
        config,
        device=model.device,
    )
    if method.guidance is not None:
        z = method.guidance.finish(model, guiding, z, model.n)
    maps = decode(model, z, model.n, method.decoder)
    seconds = (time.process_time() - began) / len(seeds)
    made = []
    for label_map in maps:
        labels = torch.from_numpy(model.table.index[label_map.array])
        classes = len(model.table)
        made.append(
            Drawn(
                labels.numpy(),
                morphology(labels[None], classes)[0],
                tissue_clouds(labels, classes),
                seconds,
            )
        )
    return made


def _denoiser(
    model: Model,
    method: Method,
    guiding: Sequence[Resolved],
    baseline: Baseline | None,
    conditions: Sequence[tuple[Moments, Tensor]],
) -> Denoiser:
    if method.guidance is not None:
        return method.guidance.denoiser(model, guiding)
    if method.conditioning is not None:
        assert baseline is not None
        names = ("mass", "centroid", "covariance")
        moments = Moments(*(torch.stack([getattr(m, name) for m, _ in conditions]) for name in names))
        return baseline.denoiser(moments, torch.stack([valid for _, valid in conditions]))
    return model.denoiser


def condition_of(target: Target, spec: Spec) -> tuple[Moments, Tensor]:
    """A patient's moments as a baseline was trained to read them."""
    assert target.reference is not None
    return task_moments(target.reference, spec)


def sampling(model: Model, steps: int | None) -> SamplingConfig:
    return replace(model.sampling, steps=steps or model.sampling.steps)
