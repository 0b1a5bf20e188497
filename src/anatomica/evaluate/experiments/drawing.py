"""Drawing the samples of a cell, one batch at a time, by any method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from anatomica.anatomy.label_map import LabelMap
from anatomica.evaluate.baselines.conditioned import Baseline, task_moments
from anatomica.evaluate.experiments.plan import Method
from anatomica.evaluate.experiments.targets import Target
from anatomica.evaluate.metrics.clouds import tissue_clouds
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.generation.draw import decode, draw
from anatomica.generation.options import Options
from anatomica.generation.plausibility import oddities
from anatomica.generation.sample import Sample
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.solver import Guidance
from anatomica.guidance.sub_voxel import measure_fine
from anatomica.measurement.certificate import OUTSIDE, all_met, certificate
from anatomica.measurement.measure import Fine
from anatomica.measurement.moments import Moments
from anatomica.measurement.placing import Resolved
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import BETTI
from anatomica.spec.spec import Spec


class Features(NamedTuple):
    """What the quality metrics read of a label map."""

    morphology: Float[np.ndarray, " f"]
    clouds: Float[np.ndarray, "t p 3"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A sample as it is kept: label indices, what the quality metrics read, and its share of the cost."""

    labels: UInt8[np.ndarray, "n n n"]
    features: Features
    seconds: float
    """Processor time, all threads: what else runs on the machine does not count."""
    finer: Features | None = None
    """Of a judged method: what they read of the same latent on a grid twice as fine."""
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
    targets. Nothing is repaired, drawn again or begun in a scout: sweeps are of the methods themselves.
    Samples of a judged method are as `generate` gives them, and come with a verdict."""
    model = method.sampled(model)
    options = Options(
        guidance=method.guidance or Guidance(),
        tries=method.tries,
        repair=method.judged,
        scouts=method.judged and method.conditioning is None,
        decoder=method.decoder,
        **method.how(steps),
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
        features = features_of(model, sample.label_map)
        labels = model.table.index[sample.label_map.array]
        if not method.judged:
            made.append(Drawn(labels, features, sample.cpu_seconds))
            continue
        twice = decode_twice(model, sample) if method.decoder == "field" else None
        finer = None if twice is None else features_of(model, twice)
        said = judged(model, sample, own, twice)
        made.append(Drawn(labels, features, sample.cpu_seconds, finer, said))
    return made


def features_of(model: Model, label_map: LabelMap) -> Features:
    labels, classes = torch.from_numpy(model.table.index[label_map.array]), len(model.table)
    return Features(morphology(labels[None], classes)[0], tissue_clouds(labels, classes))


def decode_twice(model: Model, sample: Sample) -> LabelMap:
    """The sample's latent on a grid twice as fine, as it is decoded."""
    (twice,) = decode(model, sample.latent[None].to(model.device), 2 * sample.label_map.shape[0])
    return twice


def judged(
    model: Model, sample: Sample, resolved: Sequence[Resolved], twice: LabelMap | None
) -> dict[str, Any]:
    """The product's own verdict at n, that on the same latent at 2n, and what it took.

    Asked of a sample that was drawn without constraints, too: `met` is measured, not remembered. `twice` is
    None of the convolutional decoder, which writes one grid only and has no field between its voxels.
    """
    fine: tuple[Fine, ...] = ()
    again: dict[str, bool | None] = {"met_2n": None, "counts_2n": None, "plausible_2n": None}
    if twice is not None:
        now = Prediction.of(model, sample.latent[None].to(model.device))
        fine = measure_fine(now, resolved, sample.label_map.shape[0])
        finer = certificate(twice, resolved, model.about)
        again["met_2n"] = all_met(finer)
        again["counts_2n"] = all(c.met for c in finer if c.quantity in BETTI)
        again["plausible_2n"] = not oddities(model, twice)
    checks = certificate(sample.label_map, resolved, model.about, fine)
    met, plausible = all_met(checks), sample.plausible
    return {
        "met": met,
        **again,
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
