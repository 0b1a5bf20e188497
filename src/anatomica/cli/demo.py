"""anatomica demo: the main job in a few minutes, from nothing but the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.output import Output, with_output

TASK = "right-ventricle"
TRIES, BATCH = 2, 4
PATIENT = 100_000
"""The seed of the phantom whose right ventricle is asked for; the shipped weights have not seen it."""


def register(app: typer.Typer) -> None:
    app.command("demo")(with_output(demo))


def demo(
    output: Output,
    out: Annotated[Path, typer.Option(help="Folder for label maps, pictures and the report.")] = Path("demo"),
    samples: Annotated[int, typer.Option(min=1, help="How many hearts.")] = 4,
) -> None:
    """Four new hearts that share one right ventricle: measure it in a patient, ask for it, check what came.

    The patient is a phantom. With a file of your own:

    `anatomica generate --task right-ventricle --like patient.nii.gz --samples 4 --out out/rv`
    """
    from anatomica.anatomy.nifti import save
    from anatomica.cli.checks import writable_folder
    from anatomica.cli.measure import measurement_table
    from anatomica.cli.sampling import run
    from anatomica.data.phantoms import phantom
    from anatomica.generation.options import Options
    from anatomica.generation.recipe import Arguments
    from anatomica.generation.resolve import resolve_for
    from anatomica.measurement.measure import measure
    from anatomica.prior.zoo import load_model
    from anatomica.report.wires import measurement_picture
    from anatomica.spec.tasks import task

    writable_folder(out)
    model, spec = load_model("cardiac"), task(TASK)
    with output.console.status("a patient: drawing and measuring ..."):
        patient = phantom(model.anatomy, PATIENT, model.n).label_map
        save(patient, out / "patient.nii.gz")
        measured = measure(patient, spec, model.n)
        measurement_picture(measured, out / "patient.png")
    output.print(measurement_table(measured))
    arguments = Arguments(like_phantom=PATIENT, samples=samples, options=Options(tries=TRIES, batch=BATCH))
    run(output, out, arguments, model, spec, resolve_for(model, spec, patient))
    output.print(
        f"Label maps (open them in 3D Slicer) and pictures are in {out}/; the same again, as a command:\n"
        f"anatomica generate --task {TASK} --like-phantom {PATIENT} --samples {samples} "
        f"--until-met {TRIES} --batch {BATCH} --out out/rv",
    )
