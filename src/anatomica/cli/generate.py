"""anatomica generate: new patients from a trained model, under constraints, with proof."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.generation import Sample
    from anatomica.models.zoo import Model


def register(app: typer.Typer) -> None:
    app.command()(generate)


def generate(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for label maps, pictures and the report.")],
    anatomy: Annotated[
        str | None, typer.Option("--anatomy", "-a", help="cardiac, aortic, spinal or coronary.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="One of the paper's tasks (see: anatomica tasks).")] = None,
    spec: Annotated[Path | None, typer.Option(help="Your own spec as YAML.")] = None,
    like: Annotated[
        Path | None, typer.Option(help="A label map whose domains and measures are the targets.")
    ] = None,
    like_phantom: Annotated[
        int | None, typer.Option(help="The same from the phantom with this seed.", min=0)
    ] = None,
    labels: Annotated[str | None, typer.Option(help="How --like names its labels.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="A report.json: make its label maps again.")] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="A model folder of your own, instead of the shipped one.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", "-s", min=1, help="How many patients.")] = 8,
    seed: Annotated[int, typer.Option(min=0, help="The first patient's seed; then seed + 1, ...")] = 0,
    until_met: Annotated[
        int, typer.Option(min=1, help="Draw a sample up to this often until its constraints are met.")
    ] = 1,
    solver: Annotated[
        str, typer.Option(help="gauss-newton (tolerances) or gradient (the paper's, with weights).")
    ] = "gauss-newton",
    decoder: Annotated[str, typer.Option(help="field (Anatomica-L) or conv (Anatomica-V).")] = "field",
    steps: Annotated[int | None, typer.Option(min=1, help="Sampling steps; default: the model's.")] = None,
    method: Annotated[str | None, typer.Option(help="Sampler: euler, multistep or stochastic.")] = None,
    resolution: Annotated[
        int | None, typer.Option("--resolution", "-n", min=8, max=512, help="Voxels an edge of the output.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Samples computed together.")] = 8,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")] = "cpu",
) -> None:
    """Generate label maps, alone or under constraints, and say what was asked and what was achieved.

    Writes a NIfTI a sample, a contact sheet, report.json and report.html. Examples:

        anatomica generate --anatomy cardiac --samples 8 --out out/hearts

        anatomica generate --task right-ventricle --like patient.nii.gz --samples 4 --out out/rv

        anatomica generate --spec big-ventricle.yaml --until-met 4 --out out/big
    """
    from rich.console import Console

    arguments: dict[str, Any] = {
        "task": task,
        "like": None if like is None else str(like),
        "like_phantom": like_phantom,
        "labels": labels,
        "samples": samples,
        "seed": seed,
        "until_met": until_met,
        "solver": solver,
        "decoder": decoder,
        "steps": steps,
        "method": method,
        "resolution": resolution,
    }
    wanted_spec = None
    if recipe is not None:
        arguments, wanted_spec, anatomy = read_recipe(recipe)
    else:
        from anatomica.cli.measure import pick_spec

        wanted_spec = pick_spec(task, spec, anatomy)
    run(Console(), out, arguments, wanted_spec, anatomy, model, batch, device)


def read_recipe(path: Path) -> tuple[dict[str, Any], Any, str]:
    """Arguments, spec and anatomy of a report.json."""
    import json

    from anatomica.spec import Spec

    try:
        recipe = json.loads(path.read_text(encoding="utf-8"))["recipe"]
        spec = None if recipe["spec"] is None else Spec.model_validate(recipe["spec"])
        return recipe["arguments"], spec, recipe["model"]["anatomy"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AnatomicaError(f"{path} is not a report.json of anatomica generate ({error})") from None


def run(console, out: Path, arguments: dict[str, Any], spec, anatomy, model, batch: int, device: str) -> None:
    """Generate as the arguments say, save each sample as it is finished, then write the report."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from anatomica.generation import generate_each, resolve_for
    from anatomica.models.zoo import load_model
    from anatomica.nifti import save
    from anatomica.report import recipe as make_recipe
    from anatomica.report import report_table, write_report
    from anatomica.solvers import Guidance

    if arguments["solver"] not in ("gauss-newton", "gradient"):
        raise AnatomicaError(f"unknown solver {arguments['solver']!r}; allowed: gauss-newton, gradient")
    kind = anatomy or (spec.anatomy if spec is not None else "cardiac")
    prior = load_model(model if model is not None else kind, device)
    reference = read_reference(arguments, prior)
    resolved = () if spec is None else resolve_for(prior, spec, reference)
    variant = "V" if arguments["decoder"] == "conv" and arguments["solver"] == "gradient" else "L"
    guidance = Guidance(solver=arguments["solver"], variant=variant)
    seeds = range(arguments["seed"], arguments["seed"] + arguments["samples"])
    made: list[Sample] = []
    began = time.perf_counter()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    try:
        with Progress(*columns, console=console, transient=True) as bar:
            total = (arguments["steps"] or prior.sampling.steps) * -(-len(seeds) // batch)
            task = bar.add_task("sampling", total=total)
            for sample in generate_each(
                prior,
                spec,
                seeds=seeds,
                reference=reference,
                guidance=guidance,
                until_met=arguments["until_met"],
                steps=arguments["steps"],
                method=arguments["method"],
                decoder=arguments["decoder"],
                resolution=arguments["resolution"],
                batch=batch,
                callback=lambda step: bar.advance(task),
            ):
                save(sample.label_map, out / f"{prior.anatomy}-{sample.seed:06d}.nii.gz")
                made.append(sample)
    except KeyboardInterrupt:
        console.print(f"Stopped: {len(made)} of {len(seeds)} samples are finished and reported.")
    if not made:
        raise AnatomicaError("stopped before the first sample was finished; nothing was written")
    seconds = time.perf_counter() - began
    _picture(made, out / "contact-sheet.png")
    write_report(out, made, spec, resolved, make_recipe(prior, spec, arguments))
    console.print(report_table(made) if spec is not None else _volumes(prior, made))
    met = f"{sum(s.met for s in made)} of {len(made)} meet every constraint; " if spec is not None else ""
    drawn = sum(s.drawn for s in made)
    rate = 60 * len(made) / seconds
    console.print(
        f"{met}{len(made)} samples ({drawn} drawn) in {seconds:.1f} s ({rate:.1f} a minute), "
        f"peak memory {_peak_mb():.0f} MB, model {prior.hash}; see {out / 'report.html'}",
        highlight=False,
    )


def read_reference(arguments: dict[str, Any], model: Model):
    """The anatomy that domains and targets are taken from, if any."""
    from anatomica.data.phantoms import phantom
    from anatomica.labels import anatomy
    from anatomica.nifti import load

    if arguments["like"] is not None and arguments["like_phantom"] is not None:
        raise AnatomicaError("give --like or --like-phantom, not both")
    if arguments["like"] is not None:
        return load(Path(arguments["like"]), anatomy(model.anatomy), arguments["labels"])
    if arguments["like_phantom"] is not None:
        return phantom(model.anatomy, arguments["like_phantom"], model.n).label_map
    return None


def _picture(made: Sequence[Sample], path: Path) -> None:
    from anatomica.render import contact_sheet, render

    images = [render(s.label_map, size=240).image for s in made[:64]]
    contact_sheet(images, path, [f"seed {s.seed}" for s in made[:64]])


def _volumes(model: Model, made: Sequence[Sample]):
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
