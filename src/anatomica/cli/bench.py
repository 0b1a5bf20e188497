"""anatomica bench: cost against the rivals, measured in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.output import Output, with_output

app = typer.Typer(help="Benchmarks: cost as ratios against a rival in the same run.", no_args_is_help=True)


def register(main: typer.Typer) -> None:
    main.add_typer(app, name="bench")


def writable(out: Path) -> Path:
    """The folder of the results, checked before the minutes that a benchmark takes."""
    from anatomica.cli.checks import writable_folder

    return writable_folder(out)


@app.command("homology")
@with_output
def homology_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for homology.json and homology.md.", callback=writable)
    ] = Path("results"),
    size: Annotated[
        list[int] | None,
        typer.Option(min=8, max=512, help="Edge of the volume, repeatable; default 64 and 128."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; medians are reported.", min=1)] = 5,
    gudhi_up_to: Annotated[int, typer.Option(help="Largest size at which gudhi runs as well.")] = 64,
) -> None:
    """Persistent homology against cripser and gudhi on four generated inputs, one core each."""
    from anatomica.evaluate.bench.homology import run

    output.result(run(out, size or (64, 128), rounds, gudhi_up_to, tell=output.print))


@app.command("measure")
@with_output
def measure_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for measure.json and measure.md.", callback=writable)
    ] = Path("results"),
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; medians are reported.", min=1)] = 15,
) -> None:
    """Parsing and moments: cost against the number of domains, the grid, and one pass over memory."""
    from anatomica.evaluate.bench.measure import run

    output.result(run(out, rounds, tell=output.print))


@app.command("floor")
@with_output
def floor_command(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for floor.json and floor.md.", callback=writable)] = Path(
        "results"
    ),
    patients: Annotated[int, typer.Option(help="Patients per task.", min=1)] = 12,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
) -> None:
    """What a true patient, voxelised on two grids, achieves of each task: the floor of its tolerances."""
    from anatomica.evaluate.bench.floor import run

    output.result(run(out, patients, task, tell=output.print))


@app.command("plausibility")
@with_output
def plausibility_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for plausibility.json and .md.", callback=writable)
    ] = Path("results"),
    patients: Annotated[int, typer.Option(help="Patients per anatomy.", min=2)] = 50,
    model: Annotated[
        list[str] | None, typer.Option(help="A shipped anatomy or a model folder, repeatable; default: all.")
    ] = None,
) -> None:
    """How many patients, as they are and spoiled in eight ways, are called implausible."""
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.evaluate.bench.plausibility import run

    output.result(run(out, patients, tuple(model or ANATOMIES), tell=output.print))


@app.command("generation")
@with_output
def generation_command(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for generation.json and .md.", callback=writable)] = Path(
        "results"
    ),
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; medians are reported.", min=1)] = 3,
    model: Annotated[
        list[str] | None, typer.Option(help="A shipped anatomy or a model folder, repeatable; default: all.")
    ] = None,
) -> None:
    """Seconds per unconditional sample, by itself and in a batch of eight, and the share of the U-Net.

    With the shipped hearts also the whole `anatomica generate` against its sampling, quiet and beside a busy
    process.
    """
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.evaluate.bench.generation import run

    output.result(run(out, rounds, tuple(model or ANATOMIES), tell=output.print))


@app.command("memory")
@with_output
def memory_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for memory.json and memory.md.", callback=writable)
    ] = Path("results"),
    samples: Annotated[int, typer.Option("--samples", "-s", help="How many patients.", min=10)] = 2000,
    steps: Annotated[int, typer.Option(help="Sampling steps.", min=1)] = 2,
    model: Annotated[str, typer.Option(help="A shipped anatomy or a model folder.")] = "cardiac",
) -> None:
    """Memory of `anatomica generate` after 10 samples and at its end."""
    from anatomica.evaluate.bench.memory import run

    output.result(run(out, samples, steps, model, tell=output.print))


@app.command("guidance")
@with_output
def guidance_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for guidance.json and guidance.md.", callback=writable)
    ] = Path("results"),
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; medians are reported.", min=1)] = 5,
    batch: Annotated[int, typer.Option(help="Samples per step.", min=1)] = 4,
    targets: Annotated[int, typer.Option(help="Held-out phantoms to be met.", min=1)] = 4,
    model: Annotated[str, typer.Option(help="A shipped cardiac model or a model folder.")] = "cardiac",
    preset: Annotated[
        str | None,
        typer.Option(
            help="Time partial decoding in this preset's sizes too; `paper` takes about ten minutes and "
            "12 GB more on two cores."
        ),
    ] = None,
) -> None:
    """Guided against unguided steps, decoders and grids against one another, time to a met sample."""
    from anatomica.evaluate.bench.guidance import run

    output.result(run(out, rounds, batch, targets, model, preset, tell=output.print))


@app.command("mesh-proof")
@with_output
def mesh_proof_command(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for mesh-proof.json and .md.", callback=writable)] = Path(
        "results"
    ),
    samples: Annotated[int, typer.Option("--samples", "-s", help="Samples per anatomy.", min=1)] = 50,
    resolution: Annotated[int, typer.Option("--resolution", "-n", help="Voxels per edge.", min=16)] = 128,
    model: Annotated[
        list[str] | None, typer.Option(help="A shipped anatomy or a model folder, repeatable; default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The first sample's seed.", min=0)] = 0,
    tetrahedra: Annotated[
        int, typer.Option(help="Samples per anatomy that are filled with tetrahedra, minutes each.", min=0)
    ] = 1,
    cache: Annotated[Path, typer.Option(help="Finished samples are kept here.")] = Path("out/mesh-proof"),
) -> None:
    """How often the proof of a mesh holds, over generated samples of every anatomy.

    Ctrl-C keeps what is finished; the same command again goes on.
    """
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.evaluate.bench.mesh_proof import run

    models = tuple(model or ANATOMIES)
    output.result(run(out, models, samples, resolution, tetrahedra, seed, cache, tell=output.print))


@app.command("mesh")
@with_output
def mesh_command(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for mesh.json and mesh.md.", callback=writable)] = Path(
        "results"
    ),
    rounds: Annotated[int, typer.Option(help="Interleaved rounds; medians are reported.", min=1)] = 3,
    resolution: Annotated[int, typer.Option("--resolution", "-n", help="Voxels per edge.", min=16)] = 128,
    anatomy: Annotated[
        list[str] | None, typer.Option("--anatomy", "-a", help="Repeatable; default: all four.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the phantoms.", min=0)] = 0,
) -> None:
    """Surfaces against VTK's surface nets and marching cubes per tissue: time, volumes, open edges."""
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.evaluate.bench.mesh import run

    output.result(run(out, tuple(anatomy or ANATOMIES), resolution, rounds, seed, tell=output.print))


@app.command("cohort")
@with_output
def cohort_command(
    output: Output,
    out: Annotated[
        Path, typer.Option(help="Folder for cohort.json and cohort.md.", callback=writable)
    ] = Path("results"),
    patients: Annotated[int, typer.Option(help="Fake patients per timed run.", min=8)] = 60,
    many: Annotated[int, typer.Option(help="Requests of the simulated cluster.", min=100)] = 100_000,
) -> None:
    """Two workers against one, the driver's overhead and memory, and a plan of a cluster's cohort."""
    from anatomica.cohort.bench import run

    output.result(run(out, patients, many, tell=output.print))


@app.command("quantities")
@with_output
def quantities_command(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for quantities.json and .md.", callback=writable)] = Path(
        "results"
    ),
    phantoms: Annotated[int, typer.Option(help="Phantoms per anatomy.", min=1)] = 100,
    resolution: Annotated[int, typer.Option("--resolution", "-n", help="Voxels per edge.", min=32)] = 128,
    anatomy: Annotated[
        list[str] | None, typer.Option("--anatomy", "-a", help="Repeatable; default: all four.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The first phantom's seed.", min=0)] = 100_000,
    cache: Annotated[
        Path, typer.Option(help="Where each phantom's numbers are kept, so that a stopped run goes on.")
    ] = Path("out/quantities"),
) -> None:
    """Named quantities measured on phantoms against the truth of their analytic shapes: bias, mean and 95th
    percentile of the error, worst first.

    Example: `anatomica bench quantities --phantoms 10 --anatomy spinal --out out`
    """
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.evaluate.bench.quantities import run

    names = tuple(anatomy or ANATOMIES)
    output.result(run(out, phantoms, resolution, names, seed, cache, tell=output.print))
