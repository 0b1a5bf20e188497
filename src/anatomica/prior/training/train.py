"""Training: two plain loops, one for the autoencoder, one for the denoiser in its latent space.

Both read a tensor of label maps that fits in memory, write a run folder (run.json, log.jsonl, loss.png,
checkpoint.safetensors) and can be stopped and resumed at any step with the same result.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import UInt8
from torch import Tensor, nn

from anatomica.anatomy.catalogue import RECORD, Anatomy, to_card
from anatomica.data.dataset import LabelMapDataset
from anatomica.errors import AnatomicaError
from anatomica.files import write_text
from anatomica.prior.autoencoder import Autoencoder, Crop
from anatomica.prior.edm import EDM, LatentScaler, build_denoiser
from anatomica.prior.layers import use_checkpointing
from anatomica.prior.presets import Preset, TrainingConfig
from anatomica.prior.seeds import seeded
from anatomica.prior.settings import to_dict
from anatomica.prior.training.augment import augment
from anatomica.prior.training.budget import Budget, learning_rate
from anatomica.prior.training.checkpoint import EMA, RunState, load_checkpoint, load_into, save_checkpoint
from anatomica.prior.training.crops import tissue_crop
from anatomica.prior.training.evaluate import reconstruction
from anatomica.prior.training.latents import cached_latents
from anatomica.prior.training.log import RunLog
from anatomica.prior.training.muon import Muon
from anatomica.prior.training.objectives import AutoencoderObjective, DenoiserObjective
from anatomica.prior.training.parallel import Team, join_team
from anatomica.prior.training.points import draw_points
from anatomica.prior.training.random import batch_indices, generator

CHECKPOINT = "checkpoint.safetensors"
PER_COMPONENT = 4
"""Latents for each principal component of the Gaussian: fewer would fit the patients, not the population."""


@dataclass(frozen=True)
class RunOptions:
    """How to run, as opposed to what to train."""

    seed: int = 0
    device: str = "cpu"
    resume: bool = False
    bf16: bool = False
    compile: bool = False
    checkpointing: bool = False
    checkpoint_minutes: float = 2.0
    quiet: bool = False


def train_autoencoder(
    labels: UInt8[Tensor, "m n n n"],
    run: Path,
    about: Anatomy,
    config: Preset,
    budget: Budget,
    options: RunOptions = RunOptions(),
    held_out: UInt8[Tensor, "v n n n"] | None = None,
    start: Autoencoder | None = None,
    same_latents: bool = False,
    field_only: bool = False,
    since: dict[str, Any] | None = None,
) -> Autoencoder:
    """Fit encoder and both decoders to label maps (values are label indices); returns the EMA's model.

    With `start` the training of a given autoencoder continues; a field of other sizes or
    decoders of another kind of output start from nothing.
    With `same_latents` its encoder stays as it is, and a denoiser trained in its latent space remains valid;
    with `field_only` its convolutional decoder does too. `since` says where the start is from.
    """
    team = join_team(options.device)
    training = config.train_autoencoder
    classes = len(about.table)
    _check_data(labels, config, classes)
    model = fresh(lambda: Autoencoder(classes, config.autoencoder), options.seed).to(team.device)
    if start is not None:
        load_into(model.encoder, start.encoder.state_dict(), "the start's encoder")
        same_output = start.config.column == config.autoencoder.column
        if same_output:
            load_into(model.conv_decoder, start.conv_decoder.state_dict(), "the start's decoder")
        if same_output and start.config.field == config.autoencoder.field:
            load_into(model.field, start.field.state_dict(), "the start's field")
    model.encoder.requires_grad_(not same_latents)
    model.conv_decoder.requires_grad_(not field_only)
    model.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    use_checkpointing(model, options.checkpointing)
    conv_batch = training.batch if training.conv_batch is None else training.conv_batch
    conv_share = 0.0 if field_only else conv_batch / training.batch
    objective = AutoencoderObjective(model, training.kl, conv_share)
    factor, n, crop = config.autoencoder.factor, config.autoencoder.n, training.crop

    def batch(step: int, share: float) -> tuple[Any, ...]:
        """Labels, posterior noise and drawn points of this process's share of the step's batch."""
        cropping = 0 < crop < n and share < training.crop_until and training.points > 0
        size, count = (crop, training.points // 4) if cropping else (n, training.points)
        latent = (config.autoencoder.latent_channels, *[size // factor] * 3)
        rows = batch_indices(options.seed, step, training.batch, len(labels))[team.share(training.batch)]
        first = team.share(training.batch).start
        maps, starts, noise, uniform = [], [], [], []
        for place, row in enumerate(rows.tolist(), start=first):
            random = generator(options.seed, 102, step, place)
            moved = torch.rand((), generator=random) < training.augment
            whole = augment(labels[row], random) if moved else labels[row]
            for _ in range(2 if cropping else 1):
                part, start = tissue_crop(whole, size, factor, random)
                maps.append(part)
                starts.append(start)
                noise.append(torch.randn(latent, generator=random))
                uniform.append(torch.rand(count, generator=random))
        shown = torch.stack(maps).to(team.device)
        drawn = draw_points(shown, count, torch.stack(uniform)) if count else None
        where = Crop((torch.stack(starts) / n).to(team.device), size / n) if cropping else None
        return shown, torch.stack(noise).to(team.device), drawn, where

    def validate(ema: EMA) -> str:
        if held_out is None or not len(held_out):
            return ""
        copy = Autoencoder(classes, config.autoencoder).to(team.device)
        copy.load_state_dict(ema.state)
        return reconstruction(copy, held_out[:4], about.table).summary()

    kind = "decoders" if same_latents else "autoencoder"
    describe = _describe(kind, about, config, training, budget, options, len(labels), since)
    ema = loop(objective, model, batch, run, training, budget, options, team, describe, validate)
    model.load_state_dict(ema.state)
    return model.eval()


def train_denoiser(
    labels: UInt8[Tensor, "m n n n"] | LabelMapDataset,
    autoencoder: Autoencoder,
    run: Path,
    about: Anatomy,
    config: Preset,
    budget: Budget,
    options: RunOptions = RunOptions(),
    start: EDM | None = None,
    since: dict[str, Any] | None = None,
) -> tuple[EDM, LatentScaler]:
    """Fit the denoiser to the label maps' latents, encoded once; returns the EMA's model and the scaler.

    A data set on a finer grid than the autoencoder's is encoded from its tissues' fractions.

    With `start` a trained denoiser is trained on; its latents need not be quite the same. Its Gaussian is not
    kept but fitted to these latents, with at most one component for every few of them; a start without a
    Gaussian, where this one has one, starts from nothing.
    """
    team = join_team(options.device)
    training = config.train_denoiser
    latents, scaler = cached_latents(labels, autoencoder.to(team.device), run, training, options.seed, team)
    z_all = scaler.standardise(latents)
    c, n = config.autoencoder.latent_channels, config.autoencoder.latent_n
    components = min(config.edm.components, len(z_all) // PER_COMPONENT)
    config = replace(config, edm=replace(config.edm, components=components))
    model = fresh(lambda: build_denoiser(c, n, config.unet, config.edm), options.seed).to(team.device)
    if model.gaussian is not None:
        model.gaussian.fit(z_all.to(team.device))
    if start is not None and (start.gaussian is None) == (model.gaussian is None):
        load_into(model.network, start.network.state_dict(), "the start's denoiser")
    else:
        since = None
    model.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]
    use_checkpointing(model, options.checkpointing)
    objective = DenoiserObjective(model)

    def batch(step: int, share_of_run: float) -> tuple[Any, ...]:
        """Clean latents, noise and noise levels; the levels of a batch are stratified over the lognormal."""
        share = team.share(training.batch)
        rows = batch_indices(options.seed, step, training.batch, len(z_all))
        random = generator(options.seed, 103, step)
        noise = torch.randn(len(rows), *z_all.shape[1:], generator=random)
        uniform = (torch.arange(len(rows)) + torch.rand(len(rows), generator=random)) / len(rows)
        uniform = uniform.clamp(1e-6, 1 - 1e-6)
        return tuple(x[share].to(team.device) for x in (z_all[rows], noise, uniform))

    describe = _describe("denoiser", about, config, training, budget, options, len(labels), since)
    ema = loop(objective, model, batch, run, training, budget, options, team, describe, lambda _: "")
    model.load_state_dict(ema.state)
    return model.eval(), scaler


def loop(
    objective: nn.Module,
    model: Autoencoder | EDM,
    batch: Callable[[int, float], tuple[Any, ...]],
    run: Path,
    training: TrainingConfig,
    budget: Budget,
    options: RunOptions,
    team: Team,
    describe: dict[str, Any],
    validate: Callable[[EMA], str],
) -> EMA:
    """The loop itself, the same for both: draw, step, average, log, save; until the budget is spent.

    Asked to stop before that (Ctrl-C, SIGTERM), it saves the run and raises KeyboardInterrupt.
    """
    run.mkdir(parents=True, exist_ok=True)
    optimizer = make_optimizer(model, training)
    ema, progress = EMA(model, training.ema), RunState()
    path = run / CHECKPOINT
    if options.resume:
        progress, before = load_checkpoint(path, model, ema, optimizer)
        _check_same_run(before, describe, path)
        describe |= {"since": before["since"]} if "since" in before else {}
    elif path.exists():
        raise AnatomicaError(f"{run} already holds a run; continue it with --resume or choose another --out")
    elif team.leads:
        write_text(run / "run.json", json.dumps(describe, indent=2))
    stepper = team.wrap(objective)
    if options.compile:
        stepper = torch.compile(stepper, dynamic=False)  # type: ignore[assignment]
    saved = time.monotonic()
    next_check = 0.1 * (int(10 * budget.progress(progress.step, progress.elapsed_s)) + 1)
    with (
        _stop_signals() as stop,
        RunLog(run, _title(describe), progress.step, options.quiet or not team.leads) as log,
    ):
        while True:
            share = team.agree(budget.progress(progress.step, progress.elapsed_s))
            if share >= 1 or team.any(stop["asked"]):
                break
            began = time.monotonic()
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(training, share)
            drawn = batch(progress.step, share)  # outside of autocast: coordinates need their digits
            with torch.autocast(team.device.type, torch.bfloat16, enabled=options.bf16):
                loss, terms = stepper(*drawn)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), training.clip)
            if not torch.isfinite(norm):
                raise AnatomicaError(
                    f"training diverged at step {progress.step} (loss {loss.item()}); lower lr"
                )
            optimizer.step()
            ema.update(model, progress.step)
            values = team.mean(torch.stack([loss.detach(), *(t.detach() for t in terms.values())]))
            progress.elapsed_s += time.monotonic() - began
            lr = optimizer.param_groups[0]["lr"]
            if team.leads:
                named = dict(zip(("loss", *terms), values.tolist(), strict=True))
                log.step(progress.step, share, named | {"lr": lr})
            progress.step += 1
            if team.leads and time.monotonic() - saved > 60 * options.checkpoint_minutes:
                save_checkpoint(path, model, ema, optimizer, progress, describe)
                saved = time.monotonic()
            if team.leads and share >= next_check:
                next_check += 0.1
                log.note(f"{share:4.0%}  step {progress.step}  {log.shown()}  {validate(ema)}")
        if team.leads:
            save_checkpoint(path, model, ema, optimizer, progress, describe)
            done = "done" if share >= 1 else "stopped; continue with --resume"
            log.note(f"{done}: step {progress.step}, {progress.elapsed_s / 60:.1f} min  {validate(ema)}")
    if share < 1:
        raise KeyboardInterrupt  # nothing that stands on a finished run may go on
    return ema


def make_optimizer(model: Autoencoder | EDM, training: TrainingConfig) -> torch.optim.AdamW:
    adam: dict[str, Any] = {"lr": training.lr, "betas": (0.9, 0.99), "weight_decay": training.weight_decay}
    if training.optimizer == "muon":
        return Muon(model, model.last_layers(), **adam)
    return torch.optim.AdamW(model.parameters(), **adam)


@contextmanager
def _stop_signals() -> Iterator[dict[str, bool]]:
    """Ctrl-C and SIGTERM ask the loop to finish its step and save; a second Ctrl-C ends it at once."""
    asked = {"asked": False}

    def ask(number: int, _: object) -> None:
        if asked["asked"] and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked["asked"] = True

    try:
        before = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread: nobody can press Ctrl-C here
        before = {}
    try:
        yield asked
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)


M = TypeVar("M", bound=nn.Module)


def fresh(build: Callable[[], M], seed: int) -> M:
    """Initial weights from the seed, without touching the global random state of the caller."""
    with torch.random.fork_rng(devices=[]):
        torch.random.set_rng_state(seeded(seed).get_state())
        return build()


def _describe(
    kind: str,
    about: Anatomy,
    config: Preset,
    training: TrainingConfig,
    budget: Budget,
    options: RunOptions,
    maps: int,
    since: dict[str, Any] | None,
) -> dict[str, Any]:
    """What a run is, for run.json, the checkpoint and the card."""
    model = {
        "autoencoder": to_dict(config.autoencoder),
        "unet": to_dict(config.unet),
        "edm": to_dict(config.edm),
    }
    return {
        "kind": kind,
        **to_card(about),
        "preset": config.name,
        "classes": len(about.table),
        "seed": options.seed,
        "training": to_dict(training),
        "budget": vars(replace(budget)),
        "maps": maps,
        **({} if since is None else {"since": since}),
        **(model if kind == "denoiser" else {"autoencoder": model["autoencoder"]}),
    }


def _check_same_run(before: dict[str, Any], now: dict[str, Any], path: Path) -> None:
    """A resumed run must be the same run, or its checkpoint means nothing; an imported model says less."""
    before = json.loads(json.dumps(before))
    now = json.loads(json.dumps(now))
    if before.get(RECORD) != now.get(RECORD) and before.get("anatomy") == now["anatomy"]:
        raise AnatomicaError(f"{path} was trained with another record of {now['anatomy']} anatomy")
    for key in ("kind", "anatomy", "seed", "training", "autoencoder", "unet", "edm", "maps"):
        if key in before and before[key] != now.get(key):
            raise AnatomicaError(f"{path} was trained with {key} {before.get(key)}, now it is {now.get(key)}")


def _check_data(labels: Tensor, config: Preset, classes: int) -> None:
    if not len(labels):
        raise AnatomicaError("there are no label maps to train on")
    if labels.shape[1] != config.autoencoder.n:
        raise AnatomicaError(
            f"the label maps have {labels.shape[1]} voxels per edge, "
            f"preset {config.name} needs {config.autoencoder.n}"
        )
    if int(labels.max()) >= classes:
        raise AnatomicaError(
            f"label index {int(labels.max())} in the data, but the table has {classes} labels"
        )


def _title(describe: dict[str, Any]) -> str:
    return f"{describe['anatomy']} {describe['kind']}"
