"""`anatomica train export|check|all`: write a run as a model, measure a model, make all weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.checks import check_cache
from anatomica.cli.numbers import not_negative, positive
from anatomica.cli.output import Output, with_output
from anatomica.cli.train import Data, train

MEASURED = 200
"""Training patients whose named quantities give the card's percentiles; one takes a second or so."""


def register(app: typer.Typer) -> None:
    train.command()(with_output(export))
    train.command()(with_output(check))
    train.command("all")(with_output(all_))


def export(
    output: Output,
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's folder.")],
    data: Annotated[
        Path | None, typer.Option("--data", "-d", help="Its cache: measures quality and population.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", help="Take the part that the run did not train, decoders or denoiser, of this model."
        ),
    ] = None,
    fine: Annotated[
        Path | None,
        typer.Option("--fine", help="A cache of the same patients on a finer grid; phantoms need none."),
    ] = None,
    private: Annotated[
        bool | None,
        typer.Option(
            "--private/--not-private",
            help="Keep no numbers of single patients in the folder, only percentiles and a fitted Gaussian; "
            "default: unless the data are phantoms.",
        ),
    ] = None,
) -> None:
    """Write a run as a model folder (fp16 safetensors and card.json) that `load_model` reads.

    Example: `anatomica train export runs/cardiac --data caches/cardiac --out models/cardiac`
    """
    from anatomica.anatomy.catalogue import from_card
    from anatomica.prior.training.run import export_run, read_autoencoder
    from anatomica.prior.training.weights import held_out_maps
    from anatomica.prior.zoo import load_model

    base = None if start is None else load_model(start)
    maps = held_out = finer = None
    notes: dict[str, object] = {}
    if data is not None:
        from anatomica.data.dataset import LabelMapDataset

        if base is not None:
            about, n = base.about, base.n
        else:
            autoencoder, record = read_autoencoder(run)
            about, n = from_card(record, str(run)), autoencoder.config.n
        for cache in (data, fine):
            if cache is not None:
                check_cache(cache, about, run)
        maps = LabelMapDataset(data, "train", n).load_all()
        validation = LabelMapDataset(data, "validation", n)
        held_out, finer = held_out_maps(validation, about.name, fine)
        source = str(validation.cache.settings.get("source", "unknown"))
        private = source != "phantoms" if private is None else private
        sources = [source] if private else sorted({case.source for case in validation.cases})
        notes["data"] = {"sources": sources[:8], "train": len(maps), "held_out": len(held_out)}
    folder = export_run(run, out, maps, held_out, finer, notes=notes, base=base, private=bool(private))
    size = sum(p.stat().st_size for p in folder.iterdir()) / 1e6
    output.print(f"wrote {folder} ({size:.1f} MB)")
    output.result({"folder": folder, "megabytes": round(size, 1), "hash": load_model(folder).hash})


def check(
    output: Output,
    model: Annotated[Path, typer.Argument(help="A model's folder; its card gets the numbers.")],
    data: Data,
    samples: Annotated[int, typer.Option("--samples", min=8, help="Unconditional samples to draw.")] = 64,
    eta: Annotated[
        float | None,
        typer.Option(
            "--eta",
            parser=not_negative,
            metavar="<float>",
            help="Fresh noise of its multistep sampler; the card keeps it.",
        ),
    ] = None,
    fine: Annotated[
        Path | None,
        typer.Option("--fine", help="A cache of the same patients on a finer grid; phantoms need none."),
    ] = None,
    curve: Annotated[
        Path | None, typer.Option("--curve", help="Also measure every sampler; a plot goes into this folder.")
    ] = None,
) -> None:
    """Measure a model: reconstruction of held-out patients, and samples compared with the population.

    Of samples: volumes, Frechet distance, Dice to the nearest training patient. The card also gets which
    tissues touch in the training patients, by which `anatomica generate` repairs label maps, and percentiles
    of their named quantities if it has none (see: anatomica quantities population).

    Example: `anatomica train check models/cardiac --data caches/cardiac`
    """
    import json
    from dataclasses import replace

    from anatomica.data.dataset import LabelMapDataset
    from anatomica.evaluate.experiments.prior import quality, sampling_curve
    from anatomica.prior.card import write_card
    from anatomica.prior.neighbours import neighbours_of
    from anatomica.prior.percentiles import measured, percentiles_of
    from anatomica.prior.redraw import redraw_limits
    from anatomica.prior.sampler import sampling_to_dict
    from anatomica.prior.training.evaluate import reconstruction
    from anatomica.prior.training.run import HELD_OUT, MOST_PATIENTS, REDRAWN
    from anatomica.prior.training.weights import held_out_maps
    from anatomica.prior.zoo import load_model
    from anatomica.spec.vocabulary import entries

    prior = load_model(model)
    check_cache(data, prior.about, model)
    maps = LabelMapDataset(data, "train", prior.n).load_all()
    held_out, finer = held_out_maps(LabelMapDataset(data, "validation", prior.n), prior.anatomy, fine)
    neighbours = neighbours_of(maps[:MOST_PATIENTS].numpy(), len(prior.table))
    limits = prior.card.get("redrawn")
    if limits is None:
        limits = redraw_limits(prior.autoencoder, prior.denoiser, prior.scaler, maps[:REDRAWN])
    sampling = prior.sampling if eta is None else replace(prior.sampling, eta=eta)
    card = prior.card | {"redrawn": limits}
    prior = replace(prior, sampling=sampling, neighbours=neighbours, card=card)
    numbers = {
        "sampling": sampling_to_dict(sampling),
        "neighbours": neighbours.to_dict(prior.table),
        "reconstruction": reconstruction(
            prior.autoencoder, held_out[:HELD_OUT], prior.table, finer
        ).as_dict(),
        "samples": quality(prior, maps, held_out, samples),
    }
    if entries(prior.anatomy) and "quantities" not in prior.card:  # those of more patients are kept
        measured_maps = maps[:MEASURED].numpy()
        patients = (prior.label_map(one) for one in measured_maps)
        source = f"{len(measured_maps)} training patients at {prior.n}^3"
        found = percentiles_of(
            measured(patients, prior.about), source, extremes=not prior.card.get("private", False)
        )
        numbers["quantities"] = found.to_dict()
    write_card(model, prior.card | numbers)
    output.print(json.dumps(numbers, indent=2))
    if curve is not None:
        sampling_curve(prior, held_out, curve, tell=output.print)
    output.result({"folder": model, **numbers})


def all_(
    output: Output,
    out: Annotated[Path, typer.Option("--out", "-o", help="Caches and runs go here.")] = Path("runs"),
    weights: Annotated[
        Path | None, typer.Option("--weights", help="Where models go; default: the package's weights.")
    ] = None,
    anatomy: Annotated[list[str] | None, typer.Option("--anatomy", "-a", help="Only these.")] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Phantoms per anatomy.")] = 4000,
    autoencoder_minutes: Annotated[
        float, typer.Option(parser=positive, metavar="<float>", help="Per anatomy.")
    ] = 20.0,
    denoiser_minutes: Annotated[
        float, typer.Option(parser=positive, metavar="<float>", help="Per anatomy.")
    ] = 45.0,
    workers: Annotated[int, typer.Option("--workers", "-j", min=1, help="Processes that draw phantoms.")] = 2,
) -> None:
    """Every shipped weight from nothing: draw phantoms, train, export. About 70 minutes per anatomy, 2 cores.

    What is finished is skipped, what was interrupted goes on: run it again after a stop.
    """
    import time

    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.prior.training.weights import make_weights
    from anatomica.prior.zoo import WEIGHTS

    began, written = time.monotonic(), []
    for name in anatomy or list(ANATOMIES):
        target = (WEIGHTS if weights is None else weights) / name
        minutes = autoencoder_minutes, denoiser_minutes
        make_weights(name, out / name, target, count, *minutes, workers, quiet=output.quiet)
        spent = (time.monotonic() - began) / 60
        output.print(f"wrote {target}; {spent:.1f} min in all")
        written.append(target)
    output.result({"models": written})
