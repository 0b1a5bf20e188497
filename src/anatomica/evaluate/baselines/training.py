"""Training of the baselines: the unconditional denoiser with further inputs, tuned on a task's moments."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, UInt8
from safetensors.torch import load_file, save
from torch import Tensor, nn

from anatomica.errors import AnatomicaError
from anatomica.evaluate.baselines.conditioned import (
    Baseline,
    Conditioning,
    Filled,
    Ranges,
    channels,
    condition,
    folder_name,
    load_baseline,
    task_moments,
    widen,
)
from anatomica.files import write_atomic
from anatomica.measurement.moments import Moments
from anatomica.prior.edm import EDM, build_network, training_sigmas
from anatomica.prior.presets import TrainingConfig, UNetConfig, preset
from anatomica.prior.settings import from_dict, to_dict
from anatomica.prior.training.augment import augment
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.latents import cached_latents
from anatomica.prior.training.parallel import join_team
from anatomica.prior.training.random import batch_indices, generator
from anatomica.prior.training.train import RunOptions, fresh, loop
from anatomica.prior.zoo import Model
from anatomica.spec.spec import Spec
from anatomica.spec.tasks import task as task_of

CONDITIONINGS: tuple[Conditioning, ...] = ("explicit", "implicit")
DROPOUT = 0.1
"""Share of implicit channels that are left out in training, so that the model can do without them."""


class BaselineObjective(nn.Module):
    """The denoiser's objective with a condition: E omega(sigma) |D(z + n; sigma | G) - z|^2."""

    def __init__(self, model: EDM) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        z: Float[Tensor, "b c h w d"],
        noise: Float[Tensor, "b c h w d"],
        uniform: Float[Tensor, " b"],
        G: Float[Tensor, "b g h w d"],
    ) -> tuple[Float[Tensor, ""], dict[str, Tensor]]:
        sigma = training_sigmas(self.model.config, uniform)
        denoise = EDM(Filled(self.model.network, G), self.model.config, self.model.gaussian)
        error = ((denoise(z + sigma.view(-1, 1, 1, 1, 1) * noise, sigma) - z) ** 2).flatten(1).mean(1)
        return (self.model.loss_weight(sigma) * error).mean(), {"mse": error.mean()}


def tuning(model: Model, from_scratch: bool) -> TrainingConfig:
    """The preset's denoiser training; tuning starts from good weights, so its steps are smaller and more."""
    config = replace(preset(model.card.get("preset", "small")).train_denoiser, copies=2)
    return config if from_scratch else replace(config, lr=config.lr / 2, batch=(config.batch + 1) // 2)


def train_baseline(
    model: Model,
    labels: UInt8[Tensor, "m n n n"],
    task: str,
    conditioning: Conditioning,
    out: Path,
    budget: Budget,
    options: RunOptions = RunOptions(),
    from_scratch: bool = False,
    training: TrainingConfig | None = None,
) -> Baseline:
    """Fit a baseline of `task` into OUT/<task>-<conditioning>; latents and moments in OUT serve all."""
    spec, team = task_of(task), join_team(options.device)
    if spec.anatomy != model.anatomy:
        raise AnatomicaError(f"task {task!r} is about {spec.anatomy} anatomy, the model is {model.anatomy}")
    training = training or tuning(model, from_scratch)
    latents, _ = cached_latents(labels, model.autoencoder.to(team.device), out, training, options.seed, team)
    z_all = model.scaler.standardise(latents.to(model.device)).cpu()
    moments, valid = cached_moments(labels, model, spec, training, options.seed, out)
    ranges = Ranges.of(moments, valid)
    extra, n = channels(conditioning, valid.shape[1]), model.latent_shape[-1]
    unet = from_dict(UNetConfig, model.card["unet"])

    def build() -> EDM:
        network = build_network(model.latent_shape[0], n, unet, model.denoiser.config)
        if not from_scratch:
            network.load_state_dict(model.denoiser.network.state_dict())
        return EDM(widen(network, extra), model.denoiser.config, model.denoiser.gaussian)

    edm = fresh(build, options.seed).to(team.device)
    edm.to(memory_format=torch.channels_last_3d)  # type: ignore[call-overload]

    def batch(step: int, share_of_run: float) -> tuple[Any, ...]:
        """Clean latents, noise, stratified noise levels and the condition, some of its channels left out."""
        rows = batch_indices(options.seed, step, training.batch, len(z_all))
        random = generator(options.seed, 105, step)
        noise = torch.randn(len(rows), *z_all.shape[1:], generator=random)
        uniform = (torch.arange(len(rows)) + torch.rand(len(rows), generator=random)) / len(rows)
        shown = valid[rows]
        if conditioning == "implicit":
            shown = shown & (torch.rand(shown.shape, generator=random) >= DROPOUT)
        G = condition(conditioning, take(moments, rows), shown, ranges, n)
        part = team.share(training.batch)
        given = (z_all[rows], noise, uniform.clamp(1e-6, 1 - 1e-6), G)
        return tuple(x[part].to(team.device) for x in given)

    describe: dict[str, Any] = {
        "kind": f"{conditioning} baseline of {task}",
        "anatomy": model.anatomy,
        "task": task,
        "conditioning": conditioning,
        "from_scratch": from_scratch,
        "model": model.hash,
        "ranges": asdict(ranges),
        "extra_channels": extra,
        "unet": to_dict(unet),
        "training": to_dict(training),
        "budget": vars(replace(budget)),
        "seed": options.seed,
        "maps": len(labels),
    }
    run = out / folder_name(task, conditioning)
    loop(BaselineObjective(edm), edm, batch, run, training, budget, options, team, describe, lambda _: "")
    return load_baseline(run, model)


def take(moments: Moments, rows: Tensor) -> Moments:
    return Moments(moments.mass[rows], moments.centroid[rows], moments.covariance[rows])


def cached_moments(
    labels: UInt8[Tensor, "m n n n"], model: Model, spec: Spec, training: TrainingConfig, seed: int, out: Path
) -> tuple[Moments, Bool[Tensor, "versions k"]]:
    """A task's moments of the same versions of every map, in the same order, as `cached_latents` encodes."""
    key = hashlib.sha256(f"{spec.model_dump_json()} {training.copies} {training.augment} {seed}".encode())
    key.update(labels[:: max(1, len(labels) // 16)].contiguous().numpy().tobytes())
    path = out / f"moments-{spec.name}-{key.hexdigest()[:16]}.safetensors"
    if path.is_file():
        kept = load_file(path)
        return Moments(kept["mass"], kept["centroid"], kept["covariance"]), kept["valid"]
    found = []
    for copy in range(training.copies):
        for i, known in enumerate(labels):
            moved = augment(known, generator(seed, 104, copy, i), training.augment) if copy else known
            found.append(task_moments(model.label_map(moved.numpy()), spec))
    moments = Moments(
        *(torch.stack([getattr(m, name) for m, _ in found]) for name in ("mass", "centroid", "covariance"))
    )
    valid = torch.stack([v for _, v in found])
    out.mkdir(parents=True, exist_ok=True)
    kept = {"mass": moments.mass, "centroid": moments.centroid, "covariance": moments.covariance}
    write_atomic(path, save(kept | {"valid": valid}))
    return moments, valid
