"""Drawing the samples of a cell, one batch at a time, by any method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.evaluate.baselines.conditioned import Baseline, task_moments
from anatomica.evaluate.experiments.plan import Method
from anatomica.evaluate.experiments.targets import Target
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.generation.draw import decode, draw
from anatomica.generation.options import Options
from anatomica.generation.sample import Sample
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.solver import Guidance
from anatomica.guidance.sub_voxel import measure_fine
from anatomica.measurement.certificate import OUTSIDE, all_met, certificate
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import BETTI
from anatomica.spec.spec import Spec


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample as it is kept: label indices, what the quality metrics read, and its share of the cost."""

    labels: UInt8[np.ndarray, "n n n"]
    morphology: Float[np.ndarray, " f"]
    clouds: Float[np.ndarray, "t p 3"]
    seconds: float
    """Processor time, all threads: what else runs on the machine does not count."""
    verdict: dict[str, Any] = field(default_factory=dict)
    """Of a judged method: what `judged` says."""


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
    targets. Nothing is repaired, drawn again or begun in a layout: tables are of the methods themselves.
    Samples of a judged method are as `generate` gives them, and come with a verdict."""
    options = Options(
        guidance=method.guidance or Guidance(),
        tries=method.tries,
        repair=method.judged,
        scouts=method.judged,
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
    known = list(resolved) or [()] * len(seeds)
    asked = known if method.guidance is not None else ()
    made = []
    for sample, own in zip(draw(model, seeds, asked, options, denoiser=denoiser), known, strict=True):
        said = judged(model, sample, own) if method.judged else {}
        made.append(_drawn(model, sample, said))
    return made


def _drawn(model: Model, sample: Sample, verdict: dict[str, Any]) -> Drawn:
    labels, classes = torch.from_numpy(model.table.index[sample.label_map.array]), len(model.table)
    return Drawn(
        labels.numpy(),
        morphology(labels[None], classes)[0],
        tissue_clouds(labels, classes),
        sample.cpu_seconds,
        verdict,
    )


def judged(model: Model, sample: Sample, resolved: Sequence[Resolved]) -> dict[str, Any]:
    """The product's own verdict at n, the target at 2n of the same latent, and what it took.

    Asked of a sample that was drawn without constraints, too: `met` is measured, not remembered.
    """
    n = sample.label_map.shape[0]
    z = sample.latent[None].to(model.device)
    fine = measure_fine(Prediction.of(model, z), resolved, n)
    checks = certificate(sample.label_map, resolved, model.about, fine)
    (twice,) = decode(model, z, 2 * n)
    finer = certificate(twice, resolved, model.about)
    met, plausible = all_met(checks), sample.plausible
    return {
        "met": met,
        "met_2n": all_met(finer),
        "counts_2n": all(c.met for c in finer if c.quantity in BETTI),
        "contained": all(c.met for c in checks if c.quantity == OUTSIDE),
        "plausible": plausible,
        "valid": met and plausible,
        "unusual": [str(odd) for odd in sample.unusual],
        "unmet": sorted({f"{c.constraint}: {c.quantity}" for c in checks if not c.met}),
        "drawn": sample.drawn,
        "mended": sample.mended,
        "clock_s": round(sample.seconds, 3),
    }


def condition_of(target: Target, spec: Spec) -> tuple[Moments, Tensor]:
    """A patient's moments as a baseline was trained to read them."""
    assert target.reference is not None
    return task_moments(target.reference, spec)
