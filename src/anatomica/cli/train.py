"""`anatomica train`: the autoencoder, the denoiser, the conditional baselines."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anatomica.anatomy.bounds import MOST_SEED
from anatomica.cli.checks import check_cache, check_option, usable_device
from anatomica.cli.numbers import not_negative, positive
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.anatomy.catalogue import Anatomy
    from anatomica.prior.autoencoder import Autoencoder
    from anatomica.prior.presets import Preset, TrainingConfig
    from anatomica.prior.training.budget import Budget
    from anatomica.prior.zoo import Model

train = typer.Typer(
    name="train",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Train the models of an anatomy from a cache that `anatomica prepare` made.

First the autoencoder, then the denoiser, into the same run folder; then `export`. Ctrl-C saves; `--resume`
goes on as if nothing had happened. Several processes: `torchrun --nproc-per-node 2 -m anatomica train ...`
""",
)

AnatomyOption = Annotated[
    str | None,
    typer.Option("--anatomy", "-a", help="Refuse a cache of another anatomy than this name or YAML file."),
]
Data = Annotated[Path, typer.Option("--data", "-d", help="The cache's folder.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="The run's folder; made if it is not there.")]
PresetName = Annotated[str, typer.Option("--preset", "-p", help="small (64^3, CPU) or paper (128^3, GPU).")]
Steps = Annotated[int | None, typer.Option("--steps", min=1, help="Optimizer steps.")]
Minutes = Annotated[
    float | None,
    typer.Option(
        "--minutes", parser=positive, metavar="<float>", help="Training time; the schedule fits it."
    ),
]
Lr = Annotated[
    float | None,
    typer.Option(
        "--lr", parser=positive, metavar="<float>", help="Peak learning rate; default: the preset's."
    ),
]
BatchSize = Annotated[int | None, typer.Option("--batch", min=1, help="Batch over all processes.")]
Optimizer = Annotated[str | None, typer.Option("--optimizer", help="adamw or muon; default: the preset's.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=MOST_SEED, help="Of initial weights, data order and noise.")
]
From = Annotated[
    str | None,
    typer.Option("--from", help="Start from this model's weights: a shipped anatomy or a model's folder."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the run's checkpoint.")]
Device = Annotated[
    str, typer.Option("--device", callback=lambda name: usable_device(name), help="cpu, cuda, ...")
]
Bf16 = Annotated[bool, typer.Option("--bf16", help="bfloat16 autocast.")]
Compile = Annotated[bool, typer.Option("--compile", help="torch.compile the objective.")]
Recompute = Annotated[bool, typer.Option("--checkpointing", help="Recompute blocks: less memory, more time.")]


def register(app: typer.Typer) -> None:
    app.add_typer(train)


@train.command()
@with_output
def autoencoder(
    output: Output,
    data: Data,
    out: Out,
    anatomy: AnatomyOption = None,
    preset: PresetName = "small",
    steps: Steps = None,
    minutes: Minutes = None,
    lr: Lr = None,
    batch: BatchSize = None,
    optimizer: Optimizer = None,
    full_grid: Annotated[
        bool, typer.Option("--full-grid", help="Train on every voxel instead of drawn points.")
    ] = False,
    kl: Annotated[
        float | None,
        typer.Option(
            "--kl",
            parser=not_negative,
            metavar="<float>",
            help="Weight of the KL, summed over the latent; default: the preset's.",
        ),
    ] = None,
    seed: Seed = 0,
    start: From = None,
    resume: Resume = False,
    device: Device = "cpu",
    bf16: Bf16 = False,
    compile: Compile = False,
    checkpointing: Recompute = False,
) -> None:
    """Encoder, convolutional decoder and neural field.

    Example: `anatomica train autoencoder -a cardiac -d caches/cardiac -o runs/cardiac --minutes 20`
    """
    from anatomica.prior.presets import preset as preset_of
    from anatomica.prior.training.train import RunOptions, train_autoencoder

    about = _about(data, anatomy)
    config = preset_of(preset, about.column)
    training = _override(config.train_autoencoder, lr, batch, optimizer)
    if full_grid:
        training = dataclasses.replace(training, points=0)
    if kl is not None:
        training = dataclasses.replace(training, kl=kl)
    config = dataclasses.replace(config, train_autoencoder=training)
    maps, held_out = _load(data, config)
    options = RunOptions(seed, device, resume, bf16, compile, checkpointing, quiet=output.quiet)
    budget = _budget(steps, minutes, training, len(maps))
    model, since = _start(start, about, "autoencoder")
    known = model and model.autoencoder
    train_autoencoder(maps, out / "autoencoder", about, config, budget, options, held_out, known, since=since)
    output.result(_trained(out / "autoencoder"))


@train.command()
@with_output
def decoders(
    output: Output,
    data: Data,
    out: Out,
    anatomy: AnatomyOption = None,
    preset: PresetName = "small",
    steps: Steps = None,
    minutes: Minutes = None,
    lr: Lr = None,
    batch: BatchSize = None,
    optimizer: Optimizer = None,
    seed: Seed = 1,
    start: From = None,
    field_only: Annotated[
        bool, typer.Option("--field-only", help="Leave the convolutional decoder as it is: half the time.")
    ] = False,
    resume: Resume = False,
    device: Device = "cpu",
    bf16: Bf16 = False,
    compile: Compile = False,
    checkpointing: Recompute = False,
) -> None:
    """Continue the training of both decoders of the run's autoencoder or of a model; the latent space stays.

    A field whose sizes are not the preset's starts from nothing, in the preset's sizes. Examples:

        anatomica train decoders -a cardiac -d caches/cardiac -o runs/cardiac --minutes 20

        anatomica train decoders -a spinal -d caches/spinal -o runs/spinal --from spinal --field-only

        anatomica train export runs/spinal --from spinal -d caches/spinal -o models/spinal
    """
    from anatomica.prior.card import steps_of
    from anatomica.prior.presets import preset as preset_of
    from anatomica.prior.training.train import RunOptions, train_autoencoder

    about = _about(data, anatomy)
    config = preset_of(preset, about.column)
    model, since = _start(start, about, "autoencoder")
    if model is None:
        known, before = _autoencoder_of(out, about)
        since = {"steps": steps_of(before)}
    else:
        known = model.autoencoder
    training = _override(config.train_autoencoder, lr, batch, optimizer)
    if field_only:
        # Crops save the convolutional decoder's time; the field's points cost the same anywhere.
        training = dataclasses.replace(training, crop_until=0.0)
    sizes = dataclasses.replace(known.config, field=config.autoencoder.field)
    config = dataclasses.replace(config, train_autoencoder=training, autoencoder=sizes)
    maps, held_out = _load(data, config)
    options = RunOptions(seed, device, resume, bf16, compile, checkpointing, quiet=output.quiet)
    budget = _budget(steps, minutes, training, len(maps))
    train_autoencoder(
        maps,
        out / "decoders",
        about,
        config,
        budget,
        options,
        held_out,
        known,
        same_latents=True,
        field_only=field_only,
        since=since,
    )
    output.result(_trained(out / "decoders"))


@train.command()
@with_output
def denoiser(
    output: Output,
    data: Data,
    out: Out,
    anatomy: AnatomyOption = None,
    preset: PresetName = "small",
    steps: Steps = None,
    minutes: Minutes = None,
    lr: Lr = None,
    batch: BatchSize = None,
    optimizer: Optimizer = None,
    seed: Seed = 0,
    start: From = None,
    fine: Annotated[
        Path | None,
        typer.Option(
            "--fine",
            help="A cache of the same patients on a finer grid: latents are encoded from each tissue's share "
            "of a voxel, which says where in it a border lies.",
        ),
    ] = None,
    resume: Resume = False,
    device: Device = "cpu",
    bf16: Bf16 = False,
    compile: Compile = False,
    checkpointing: Recompute = False,
) -> None:
    """The diffusion model in the latent space of the run's autoencoder, or of the model of --from.

    With --from the noise levels of its training and the components of its Gaussian stay those of the start.

    Examples:

        anatomica train denoiser -a cardiac -d caches/cardiac -o runs/cardiac --minutes 40

        anatomica train denoiser -a cardiac -d caches/mine -o runs/mine --from cardiac --minutes 20

        anatomica train export runs/mine --from cardiac -d caches/mine -o models/mine

        anatomica train denoiser -d caches/aortic --fine caches/aortic-128 -o runs/aortic --from aortic
    """
    from anatomica.data.dataset import LabelMapDataset
    from anatomica.prior.presets import preset as preset_of
    from anatomica.prior.training.run import has_autoencoder
    from anatomica.prior.training.train import RunOptions, train_denoiser

    about = _about(data, anatomy)
    config = preset_of(preset, about.column)
    training = _override(config.train_denoiser, lr, batch, optimizer)
    known, since = _start(start, about, "denoiser")
    if known is not None and not has_autoencoder(out):
        model = known.autoencoder
    else:
        model, _ = _autoencoder_of(out, about)
    config = dataclasses.replace(config, train_denoiser=training, autoencoder=model.config)
    if known is not None and known.denoiser.config.components:
        config = dataclasses.replace(config, edm=known.denoiser.config)
    if fine is None:
        maps = LabelMapDataset(data, "train", model.config.n).load_all()
    else:
        check_cache(fine, about, data)
        maps = LabelMapDataset(fine, "train")
        if maps.n <= model.config.n:
            raise AnatomicaError(
                f"--fine {fine} has {maps.n} voxels per edge, not more than the model's {model.config.n}"
            )
    options = RunOptions(seed, device, resume, bf16, compile, checkpointing, quiet=output.quiet)
    budget = _budget(steps, minutes, training, len(maps) * training.copies)
    train_denoiser(
        maps, model, out / "denoiser", about, config, budget, options, known and known.denoiser, since
    )
    output.result(_trained(out / "denoiser"))


@train.command()
@with_output
def baseline(
    output: Output,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of all baselines.")] = Path(
        "runs/baselines"
    ),
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="Only this task, repeatable; default: all four.")
    ] = None,
    conditioning: Annotated[
        list[str] | None, typer.Option("--conditioning", "-c", help="explicit or implicit; default: both.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Shipped anatomy or a model's folder.")] = "cardiac",
    minutes: Annotated[
        float, typer.Option("--minutes", parser=positive, metavar="<float>", help="Training time of each.")
    ] = 6.0,
    steps: Steps = None,
    lr: Lr = None,
    from_scratch: Annotated[
        bool, typer.Option("--from-scratch", help="Start from random weights, not from the model's.")
    ] = False,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """The paper's baselines: denoisers conditioned on a task's moments, for `anatomica evaluate geometric`.

    Without --task and --conditioning all eight are trained, one after the other: --minutes each, and a few
    more the first time for encoding and measuring. What is finished is skipped, what was interrupted goes on.

    Example: `anatomica train baseline -d caches/cardiac -o runs/baselines -t right-ventricle -c implicit`
    """
    import time

    from anatomica.data.dataset import LabelMapDataset
    from anatomica.evaluate.baselines.conditioned import folder_name
    from anatomica.evaluate.baselines.training import CONDITIONINGS, train_baseline, tuning
    from anatomica.prior.training.budget import Budget
    from anatomica.prior.training.train import CHECKPOINT, RunOptions
    from anatomica.prior.zoo import load_model
    from anatomica.spec.tasks import GEOMETRIC

    prior = load_model(model, device)
    check_cache(data, prior.about, model)
    for asked in conditioning or ():
        if asked not in CONDITIONINGS:
            raise AnatomicaError(f"unknown conditioning {asked!r}; allowed: {', '.join(CONDITIONINGS)}")
    maps = LabelMapDataset(data, "train", prior.n).load_all()
    budget = Budget(steps) if steps is not None else Budget(minutes=minutes)
    training = _override(tuning(prior, from_scratch), lr, None)
    began, runs = time.monotonic(), []
    for name in task or GEOMETRIC:
        for kind in CONDITIONINGS:
            if conditioning and str(kind) not in conditioning:
                continue
            resume = (out / folder_name(name, kind) / CHECKPOINT).exists()
            options = RunOptions(seed, device, resume, quiet=output.quiet)
            made = train_baseline(prior, maps, name, kind, out, budget, options, from_scratch, training)
            spent = (time.monotonic() - began) / 60
            output.print(f"{out / folder_name(name, kind)}: {made.hash}, {spent:.1f} min in all")
            runs.append({"task": name, "conditioning": str(kind), "hash": made.hash})
    output.result({"folder": out, "baselines": runs})


def _trained(run: Path) -> dict[str, Any]:
    """What a finished run says for itself: its folder, steps and time, and the last step's losses."""
    from anatomica.prior.training.checkpoint import read_checkpoint
    from anatomica.prior.training.log import read_log
    from anatomica.prior.training.train import CHECKPOINT

    _, header = read_checkpoint(run / CHECKPOINT)
    *_, last = read_log(run / "log.jsonl") or [{}]
    return {"folder": run, **header["progress"], "last": last}


def _start(name: str | None, about: Anatomy, kind: str) -> tuple[Model | None, dict[str, Any] | None]:
    """The model of --from, and what the new run's record says of it."""
    from anatomica.prior.card import trained_steps
    from anatomica.prior.zoo import load_model

    if name is None:
        return None, None
    model = load_model(name)
    if model.anatomy != about.name:
        raise AnatomicaError(f"--from {name} is a model of {model.anatomy} anatomy, not {about.name}")
    if model.about != about:
        raise AnatomicaError(f"--from {name} has another record of {about.name} anatomy than the cache")
    return model, {"model": model.hash, "steps": trained_steps(model.card, kind)}


def _override(
    training: TrainingConfig, lr: float | None, batch: int | None, optimizer: str | None = None
) -> TrainingConfig:
    if optimizer not in (None, "adamw", "muon"):
        raise AnatomicaError(f"unknown optimizer {optimizer!r}; allowed: adamw, muon")
    return dataclasses.replace(
        training,
        lr=training.lr if lr is None else lr,
        batch=training.batch if batch is None else batch,
        optimizer=training.optimizer if optimizer is None else optimizer,
    )


def _budget(steps: int | None, minutes: float | None, training: TrainingConfig, count: int) -> Budget:
    """What the user said, or the preset's epochs."""
    from anatomica.prior.training.budget import Budget

    if steps is None and minutes is None:
        steps = max(1, training.epochs * count // training.batch)
    return Budget(steps, minutes)


def _about(data: Path, anatomy: str | None) -> Anatomy:
    """The cache's anatomy, which --anatomy must be if it is given."""
    from anatomica.data.cache import open_cache

    about = open_cache(data).anatomy
    check_option(anatomy, about, data)
    return about


def _load(data: Path, config: Preset):
    """Training and held-out maps of a cache, at the preset's resolution."""
    from anatomica.data.dataset import LabelMapDataset

    n = config.autoencoder.n
    return (LabelMapDataset(data, split, n).load_all() for split in ("train", "validation"))


def _autoencoder_of(run: Path, about: Anatomy) -> tuple[Autoencoder, dict[str, Any]]:
    """The run's autoencoder and its description; refuses one of another anatomy."""
    from anatomica.anatomy.catalogue import from_card
    from anatomica.prior.training.run import read_autoencoder

    model, record = read_autoencoder(run)
    found = from_card(record, str(run))
    if found.name != about.name:
        raise AnatomicaError(f"{run} holds an autoencoder of {found.name} anatomy, not {about.name}")
    if found != about:
        raise AnatomicaError(f"{run} has another record of {about.name} anatomy than the cache")
    return model, record
