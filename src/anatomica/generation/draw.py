"""Generation: seeds and a spec in, label maps with certificates out. Behind `anatomica generate`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.anatomy.label_map import LabelMap, to_cube
from anatomica.errors import AnatomicaError
from anatomica.generation.plausibility import Oddity, oddities
from anatomica.generation.repair.mending import mend
from anatomica.guidance.solver import Guidance
from anatomica.guidance.trace import Curve, Error, Features, Watch
from anatomica.measurement.certificate import Check, all_met, badness, certify, worth_another
from anatomica.measurement.measure import measure_cube
from anatomica.measurement.placing import Resolved, resolve
from anatomica.prior.field import decode_labels
from anatomica.prior.sampler import Step, sample
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec

Decoder = Literal["field", "conv"]
TRIES = 12
"""Unconditional samples are drawn up to this often until they are like a training patient."""
VARIED = 7
"""The first of these tries vary the odd sample, so that a rare layout is not exchanged for a frequent one."""
ANOTHER_SEED = 1_000_003
"""Candidate j of a sample has the seed s + j * this prime, so that no two samples share candidates."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One generated patient: its seed, its label map and the standardised latent it was decoded from.

    `checks` say what was asked and achieved, `drawn` how many candidates it was chosen from, and
    `drawn_seed` which seed the chosen one has, `mended` how many voxels have another label than the decoder
    gave them; `unusual` says what makes it unlike every training patient. `curves` and `features` are there
    if they were asked for.
    """

    seed: int
    label_map: LabelMap
    latent: Float[Tensor, "c h w d"]
    seconds: float
    checks: tuple[Check, ...] = ()
    drawn: int = 1
    drawn_seed: int = 0
    mended: int = 0
    unusual: tuple[Oddity, ...] = ()
    curves: tuple[Curve, ...] = ()
    features: tuple[Features, ...] = ()

    @property
    def met(self) -> bool:
        return all_met(self.checks)


class Progress(NamedTuple):
    """What a callback sees once a step of a batch: whose it is, the sampler's step, and with `curves` the
    errors of each sample."""

    seeds: tuple[int, ...]
    turn: int
    step: Step
    errors: list[list[Error]]


Callback = Callable[[Progress], None]


def generate(model: Model, spec: Spec | None = None, *, seeds: Sequence[int], **how) -> list[Sample]:
    """Label maps of new patients, one a seed; the same seed gives the same patient in any batch.

    `how` is that of `generate_each`.

    >>> samples = generate(load_model("cardiac"), task("right-ventricle"), seeds=range(4))  # doctest: +SKIP
    """
    return list(generate_each(model, spec, seeds=seeds, **how))


def generate_each(
    model: Model,
    spec: Spec | None = None,
    *,
    seeds: Sequence[int],
    reference: LabelMap | None = None,
    resolved: Sequence[Resolved] | None = None,
    guidance: Guidance = Guidance(),
    until_met: int | None = None,
    steps: int | None = None,
    method: str | None = None,
    decoder: Decoder = "field",
    resolution: int | None = None,
    batch: int = 8,
    mending: bool = True,
    curves: bool = False,
    callback: Callback | None = None,
) -> Iterator[Sample]:
    """`generate` as a stream, one batch at a time.

    A spec's domains, and the targets it leaves to `Constraint.match`, come from `reference` (any label map of
    the anatomy); or both have been placed already and are `resolved`. With `until_met`, samples whose
    certificate fails are drawn again, up to that many times in all, and the best is kept; without a spec
    samples that are unlike every training patient are, up to `TRIES` times by default. With `mending`,
    pieces of tissues in places where no training patient has them are given to what they touch, unless that
    would cost a met target. With `curves` the constraints are also measured at every step, which takes a
    little time; `callback` sees every step.

    Ctrl-C first yields the candidates that are finished.
    """
    if decoder == "conv" and resolution not in (None, model.n):
        raise AnatomicaError(
            f"the convolutional decoder writes {model.n}^3 voxels alone; use decoder 'field'"
        )
    if resolved is None:
        resolved = () if spec is None else resolve_for(model, spec, reference)
    if guidance.solver == "gradient":
        _refuse_spread_alone(resolved)
    n = resolution or model.n
    config = replace(
        model.sampling, steps=steps or model.sampling.steps, method=method or model.sampling.method
    )
    denoiser = guidance.denoiser(model, resolved) if resolved else model.denoiser
    turns = max(1, until_met or (TRIES if spec is None else 1))
    for start in range(0, len(seeds), max(1, batch)):
        chosen = [int(s) for s in seeds[start : start + max(1, batch)]]
        best: dict[int, Sample] = {}
        try:
            for turn in range(turns):
                open_seeds = [s for s in chosen if s not in best or _again(best[s], spec)]
                if not open_seeds:
                    break
                began = time.perf_counter()
                drawn = [s + turn * ANOTHER_SEED for s in open_seeds]
                watch = Watch(model, resolved) if curves and resolved else None
                see = _seen(open_seeds, turn, watch, callback)
                start = _start(model, open_seeds, drawn, best, turn) if spec is None else None
                how = {"device": model.device, "callback": see, "start": start}
                z = sample(denoiser, model.latent_shape, drawn, config, **how)
                if resolved:
                    z = guidance.finish(model, resolved, z, n)
                if watch is not None:
                    watch.finish(config.steps + 1, z)
                maps = decode(model, z, n, decoder)
                seconds = (time.perf_counter() - began) / len(drawn)
                for i, (seed, label_map) in enumerate(zip(open_seeds, maps, strict=True)):
                    checks = certificate(label_map, spec, resolved)
                    mended = 0
                    if mending:
                        label_map, checks, mended = mend_sample(model, label_map, checks, spec, resolved)
                    new = Sample(
                        seed,
                        label_map,
                        z[i].cpu(),
                        seconds,
                        checks,
                        drawn_seed=drawn[i],
                        mended=mended,
                        unusual=oddities(model, label_map, mended),
                        curves=() if watch is None else watch.curves(i),
                        features=() if watch is None else watch.features(i),
                    )
                    best[seed] = better(best.get(seed), new)
        except KeyboardInterrupt:
            yield from (best[s] for s in chosen if s in best)
            raise
        yield from (best[s] for s in chosen)


def better(old: Sample | None, new: Sample) -> Sample:
    """The better of two candidates, with the time and the number of draws of both.

    Fewer unmet checks first, then fewer oddities, of the odd the least mended, then smaller errors.
    """
    if old is None:
        return new

    def key(sample: Sample) -> tuple[int, int, int, float]:
        unmet, error = badness(sample.checks)
        return unmet, len(sample.unusual), sample.mended if sample.unusual else 0, error

    kept = new if key(new) < key(old) else old
    return replace(kept, seconds=old.seconds + new.seconds, drawn=old.drawn + new.drawn)


def _start(
    model: Model, seeds: Sequence[int], drawn: Sequence[int], best: dict[int, Sample], turn: int
) -> Float[Tensor, "b c h w d"] | None:
    """What a try of unconditional samples begins with: layouts, the odd samples, or noise (None)."""
    if model.layouts is None and 0 < turn <= VARIED:
        return torch.stack([best[s].latent for s in seeds])
    return model.layout(seeds if turn <= VARIED else drawn)


def _again(sample: Sample, spec: Spec | None) -> bool:
    """Whether another candidate is wanted: one that meets more, or without a spec one that is an anatomy."""
    return bool(sample.unusual) if spec is None else worth_another(sample.checks)


def _seen(
    seeds: Sequence[int], turn: int, watch: Watch | None, callback: Callback | None
) -> Callable[[Step], None] | None:
    """The sampler's callback: look at the errors, then tell the caller's."""
    if watch is None and callback is None:
        return None

    def see(step: Step) -> None:
        errors = [] if watch is None else watch.look(step.index + 1, step.count, step.denoised)
        if callback is not None:
            callback(Progress(tuple(seeds), turn, step, errors))

    return see


def resolve_for(model: Model, spec: Spec, reference: LabelMap | None = None) -> tuple[Resolved, ...]:
    """A spec's constraints in the model's own frame, whose centre is 0 mm."""
    if spec.anatomy != model.anatomy:
        raise AnatomicaError(
            f"spec {spec.name!r} is about {spec.anatomy} anatomy, the model is {model.anatomy}"
        )
    frame = Frame.model(anatomy(model.anatomy), model.n)
    cube = None
    if reference is not None:
        array = to_cube(reference, frame.anatomy, model.n).array
        cube = LabelMap(array, frame.affine, reference.table)
    resolved = resolve(spec, frame, cube)
    if not any(bool(r.domains.valid.any()) for r in resolved):
        reasons = "; ".join(f"{r.constraint.name}: {r.domains.reasons[0]}" for r in resolved)
        raise AnatomicaError(f"the reference has no valid domain for {spec.name!r} ({reasons})")
    free = [r.constraint.name for r in resolved if not _has_target(r)]
    if free:
        raise AnatomicaError(
            f"constraint {free[0]!r} has no target: give a number, or a reference (--like FILE) to match"
        )
    return resolved


def _has_target(r: Resolved) -> bool:
    return r.wanted.any_moment or r.wanted.betti is not None


def _refuse_spread_alone(resolved: Sequence[Resolved]) -> None:
    """The paper's update does not see the spread: a constraint on nothing else would have no slope."""
    for r in resolved:
        w = r.wanted
        if all(x is None for x in (w.mass, w.centroid, w.shape, w.betti)):
            raise AnatomicaError(
                f"constraint {r.constraint.name!r} asks for a spread alone, which the gradient solver does "
                "not see; use --solver gauss-newton"
            )


def certificate(label_map: LabelMap, spec: Spec | None, resolved: Sequence[Resolved]) -> tuple[Check, ...]:
    """The checks of a finished label map, measured hard at its own resolution."""
    if spec is None:
        return ()
    return certify(measure_cube(label_map, spec, tuple(resolved)), resolved)


def mend_sample(
    model: Model,
    label_map: LabelMap,
    checks: tuple[Check, ...],
    spec: Spec | None,
    resolved: Sequence[Resolved],
) -> tuple[LabelMap, tuple[Check, ...], int]:
    """The label map mended by the model's neighbours, its checks, and how many voxels changed.

    A label map that would meet fewer of its targets stays as it was.
    """
    if model.neighbours is None:
        return label_map, checks, 0
    index = label_map.table.index[label_map.array]
    mended = model.label_map(mend(index, model.neighbours))
    changed = int((mended.array != label_map.array).sum())
    if not changed:
        return label_map, checks, 0
    new = certificate(mended, spec, resolved)
    unmet, unmet_before = badness(new)[0], badness(checks)[0]
    return (mended, new, changed) if unmet <= unmet_before else (label_map, checks, 0)


@torch.no_grad()
def decode(model: Model, z: Float[Tensor, "b c h w d"], n: int, decoder: Decoder = "field") -> list[LabelMap]:
    """Label maps (argmax) of standardised latents."""
    latent = model.scaler.restore(z)
    if decoder == "field":
        index = decode_labels(model.autoencoder.field, latent, n)
    elif decoder == "conv":
        index = model.autoencoder.decode_conv(latent).argmax(1).to(torch.uint8)
    else:
        raise AnatomicaError(f"unknown decoder {decoder!r}; allowed: field, conv")
    return [model.label_map(i.numpy()) for i in index.cpu()]
