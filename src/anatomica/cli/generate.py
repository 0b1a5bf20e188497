"""`anatomica generate`: new patients from a trained model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from anatomica.generate import Sample
    from anatomica.models.zoo import Model


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for label maps and pictures.")],
    anatomy: Annotated[
        str, typer.Option("--anatomy", "-a", help="A shipped model: cardiac, aortic, spinal or coronary.")
    ] = "cardiac",
    model: Annotated[
        Path | None, typer.Option("--model", help="A model folder of your own, instead of --anatomy.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-s", min=1, help="How many patients.")] = 8,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="The first patient's seed; then seed + 1, ...")
    ] = 0,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Sampling steps; default: the model's.")
    ] = None,
    method: Annotated[
        str | None, typer.Option("--method", help="Sampler: euler, multistep or stochastic.")
    ] = None,
    decoder: Annotated[str, typer.Option("--decoder", help="field (any resolution) or conv.")] = "field",
    resolution: Annotated[
        int | None, typer.Option("--resolution", "-n", min=8, max=512, help="Voxels an edge of the output.")
    ] = None,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Samples computed together.")] = 8,
    device: Annotated[str, typer.Option("--device", help="cpu, cuda, cuda:1, ...")] = "cpu",
) -> None:
    """Generate label maps: a NIfTI a sample, a contact sheet, and volumes beside the training population's.

    Example: `anatomica generate --anatomy cardiac --samples 8 --seed 0 --out samples`
    """
    from rich.console import Console
    from rich.progress import Progress

    from anatomica.generate import generate_each
    from anatomica.models.zoo import load_model
    from anatomica.nifti import save

    console = Console()
    prior = load_model(model if model is not None else anatomy, device)
    seeds = range(seed, seed + samples)
    count = steps or prior.sampling.steps
    began = time.perf_counter()
    made: list[Sample] = []
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("sampling", total=count * -(-samples // batch))
        stream = generate_each(
            prior,
            seeds=seeds,
            steps=steps,
            method=method,
            decoder=decoder,  # type: ignore[arg-type]
            resolution=resolution,
            batch=batch,
            callback=lambda _: bar.advance(task),
        )
        for sample in stream:
            save(sample.label_map, out / f"{prior.anatomy}-{sample.seed:06d}.nii.gz")
            made.append(sample)
    seconds = time.perf_counter() - began
    _picture(made, out / "contact-sheet.png")
    console.print(_volumes(prior, made))
    console.print(
        f"{samples} samples in {seconds:.1f} s ({60 * samples / seconds:.1f} a minute), peak memory "
        f"{_peak_mb():.0f} MB, model {prior.hash}; written to {out}",
        highlight=False,
    )


def _picture(made: list[Sample], path: Path) -> None:
    from anatomica.render import contact_sheet, render

    images = [render(s.label_map, size=240).image for s in made[:64]]
    contact_sheet(images, path, [f"seed {s.seed}" for s in made[:64]])


def _volumes(model: Model, made: list[Sample]):
    """Volumes in mL, a row a tissue, beside the population's 5th, 50th and 95th percentile."""
    from rich.table import Table

    population = model.card.get("population", {})
    table = Table(title=f"{model.anatomy}: volumes in mL")
    table.add_column("tissue")
    shown = made[:8]
    for sample in shown:
        table.add_column(f"seed {sample.seed}", justify="right")
    for title in ("training 5 %", "50 %", "95 %"):
        table.add_column(title, justify="right", style="dim")
    for name in model.table.tissues:
        known = population.get(name, {}).get("volume_ml", {})
        row = []
        for sample in shown:
            volume = sample.label_map.volume_ml(name)
            outside = bool(known) and not known["1"] <= volume <= known["99"]
            row.append(f"[yellow]{volume:.4g}[/]" if outside else f"{volume:.4g}")
        table.add_row(name, *row, *(f"{known[p]:.4g}" if known else "" for p in ("5", "50", "95")))
    return table


def _peak_mb() -> float:
    """Largest resident memory of this process so far."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
