"""The one pipeline from noise to a certified label map. `generate` and everything else draw through it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from anatomica.anatomy.bounds import MOST_SEED
from anatomica.anatomy.label_map import LabelMap
from anatomica.errors import AnatomicaError
from anatomica.generation.choose import ANOTHER_SEED, GUIDED_TRIES, TRIES, again, better, start
from anatomica.generation.options import Decoder, Options
from anatomica.generation.plausibility import oddities
from anatomica.generation.repair import as_in_patients, repair
from anatomica.generation.resolve import refuse_unseen, resolve_for
from anatomica.generation.sample import Callback, Progress, Sample
from anatomica.generation.windows import begin_in_view
from anatomica.guidance.polish import polish_mended
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.sub_voxel import measure_fine
from anatomica.guidance.trace import Trace
from anatomica.measurement.certificate import Check, badness, certificate, outside_ml
from anatomica.measurement.goals import Goal, Row, constraints_in, goals_in
from anatomica.measurement.measure import Fine
from anatomica.measurement.placing import Resolved, batched
from anatomica.prior.field import decode_labels
from anatomica.prior.sampler import Denoiser, Step, sample
from anatomica.prior.whole_levels import settle_levels
from anatomica.prior.zoo import Model
from anatomica.spec.asks import Asks
from anatomica.spec.spec import Spec

Constraints = tuple[Row, ...]


def generate(
    model: Model,
    spec: Spec | Asks | None = None,
    *,
    seeds: Sequence[int],
    reference: LabelMap | None = None,
    options: Options = Options(),
    callback: Callback | None = None,
) -> list[Sample]:
    """Label maps of new patients, one per seed; the same seed gives the same patient in any batch.

    What is asked is a spec, or named quantities: `ask({"lv.volume_ml": 140})`. A spec's domains, and the
    targets it leaves to `Constraint.match`, come from `reference` (any label map of the anatomy).

    >>> samples = generate(load_model("cardiac"), task("right-ventricle"), seeds=range(4))  # doctest: +SKIP
    """
    resolved = () if spec is None else resolve_for(model, spec, reference)
    return list(draw(model, seeds, [resolved] * len(seeds), options, callback=callback))


def draw(
    model: Model,
    seeds: Sequence[int],
    asked: Sequence[Constraints] = (),
    options: Options = Options(),
    *,
    denoiser: Denoiser | None = None,
    callback: Callback | None = None,
) -> Iterator[Sample]:
    """Samples one batch at a time, each chosen among up to `options.tries` candidates.

    `asked` holds every seed's constraints; left out, or empty tuples, nothing is asked. A sample is drawn
    again while it is not valid: met, if something is asked, and plausible.
    `denoiser` replaces the model's (a baseline's); then the constraints only certify. `callback` sees every
    step. Ctrl-C first yields the candidates that are finished.
    """
    asked = list(asked) or [()] * len(seeds)
    options.voxels(model)
    if options.guidance.solver == "gradient" and denoiser is None:
        for constraints in asked:
            refuse_unseen(constraints)
    size = options.together(model, any(asked))
    for first in range(0, len(seeds), size):
        part = slice(first, first + size)
        wanted = dict(zip((int(s) for s in seeds[part]), asked[part], strict=True))
        yield from _draw_batch(model, wanted, options, denoiser, callback)


def _draw_batch(
    model: Model,
    wanted: dict[int, Constraints],
    options: Options,
    denoiser: Denoiser | None,
    callback: Callback | None,
) -> Iterator[Sample]:
    """The best candidates of the seeds of one batch."""
    guided = any(wanted.values())
    best: dict[int, Sample] = {}
    try:
        for turn in range(options.tries or (GUIDED_TRIES if guided else TRIES)):
            missing = [s for s in wanted if s not in best or again(best[s])]
            if not missing:
                break
            drawn = [(s + turn * ANOTHER_SEED) % (MOST_SEED + 1) for s in missing]
            asked = [wanted[s] for s in missing]
            if not guided:
                begin = partial(start, missing, best, turn)
            else:
                begin = partial(begin_in_view, model, drawn, asked) if options.scouts else None
            told = None if callback is None else _teller(callback, missing, turn)
            found = _candidates(model, drawn, asked, options, denoiser, begin, told)
            for seed, new in zip(missing, found, strict=True):
                best[seed] = better(best.get(seed), _named(new, seed))
    except KeyboardInterrupt:
        yield from (best[s] for s in wanted if s in best)
        raise
    yield from (best[s] for s in wanted)


def _candidates(
    model: Model,
    seeds: Sequence[int],
    asked: Sequence[Constraints],
    options: Options,
    denoiser: Denoiser | None,
    begin: Callable[[], Float[Tensor, "b c h w d"] | None] | None,
    told: Callable[[Step, list], None] | None,
) -> list[Sample]:
    """One candidate per seed: sampled, polished, decoded, repaired, certified and compared with patients."""
    clock, cpu = time.perf_counter(), time.process_time()
    config, n = options.sampling(model), options.voxels(model)
    constraints = {id(rows): constraints_in(rows) for rows in asked}
    together = batched([constraints[id(rows)] for rows in asked])
    goals = [goals_in(rows) for rows in asked]
    guidance = options.guidance if (together or any(goals)) and denoiser is None else None
    if denoiser is None:
        denoiser = model.denoiser if guidance is None else guidance.denoiser(model, together, goals)
    trace = Trace(model, together) if options.trace and together else None

    def see(step: Step) -> None:
        errors = [] if trace is None else trace.look(step.index + 1, step.count, step.denoised)
        if told is not None:
            told(step, errors)

    seen = None if trace is None and told is None else see
    first = None if begin is None else begin()
    z = sample(denoiser, model.latent_shape, seeds, config, device=model.device, callback=seen, start=first)
    z = settle_levels(model.autoencoder, model.scaler, model.denoiser.gaussian, z)
    if guidance is not None:
        z = guidance.finish(model, together, z, n, goals)
    z = _mended(model, z, n, options, together, goals)
    if trace is not None:
        trace.finish(config.steps + 1, z)
    maps = decode(model, z, n, options.decoder)
    by_field = options.decoder == "field"
    share = len(seeds)
    clock, cpu = (time.perf_counter() - clock) / share, (time.process_time() - cpu) / share
    made = []
    for i, (label_map, constraints) in enumerate(zip(maps, asked, strict=True)):
        now = Prediction.of(model, z[i : i + 1])
        fine = measure_fine(now, constraints, n, label_map) if by_field else ()
        label_map, checks, mended = _finished(model, label_map, constraints, options, fine)
        made.append(
            Sample(
                seed=seeds[i],
                label_map=label_map,
                latent=z[i].cpu(),
                seconds=clock,
                cpu_seconds=cpu,
                checks=checks,
                outside_ml=outside_ml(label_map, constraints_in(constraints), model.about),
                drawn_seed=seeds[i],
                mended=mended,
                unusual=oddities(model, label_map, mended),
                curves=() if trace is None else trace.curves(i),
                diagrams=() if trace is None else trace.diagrams(i),
            )
        )
    return made


def _mended(
    model: Model,
    z: Float[Tensor, "b c h w d"],
    n: int,
    options: Options,
    constraints: Sequence[Resolved],
    goals: Sequence[Sequence[Goal]],
) -> Float[Tensor, "b c h w d"]:
    """The latents with what repair would change set right, where the model knows what patients look like."""
    if not options.repair or model.neighbours is None or options.decoder != "field":
        return z
    mend = partial(as_in_patients, neighbours=model.neighbours)
    return polish_mended(model, constraints, z, n, options.guidance.newton, mend, goals)


def _finished(
    model: Model, label_map: LabelMap, constraints: Constraints, options: Options, fine: Sequence[Fine] = ()
) -> tuple[LabelMap, tuple[Check, ...], int]:
    """The label map, repaired if that loses no met target, its checks, and how many voxels changed."""
    checks = certificate(label_map, constraints, model.about, fine)
    if not options.repair:
        return label_map, checks, 0
    repaired = repair(model, label_map)
    if not repaired.changed:
        return label_map, checks, 0
    after = certificate(repaired.label_map, constraints, model.about, fine)
    if badness(after)[0] > badness(checks)[0]:
        return label_map, checks, 0
    return repaired.label_map, after, repaired.changed


def _named(candidate: Sample, seed: int) -> Sample:
    """The candidate under the seed of the sample that it is for."""
    return replace(candidate, seed=seed)


def _teller(callback: Callback, seeds: Sequence[int], turn: int) -> Callable[[Step, list], None]:
    return lambda step, errors: callback(Progress(tuple(seeds), turn, step, errors))


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
