"""`anatomica phantom` and `anatomica phantom-population`: made-up patients, and what they measure."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anatomica.cli.anatomies import PHANTOM_HELP
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.data.phantoms import Phantom

SHEET = 16
"""Patients on a contact sheet."""


def register(app: typer.Typer) -> None:
    app.command("phantom")(with_output(phantom))
    app.command("phantom-population")(with_output(phantom_population))


def phantom(
    output: Output,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write to; made if it is not there.")],
    anatomy: Annotated[str, typer.Option("--anatomy", "-a", help=PHANTOM_HELP)] = "cardiac",
    count: Annotated[int, typer.Option("--count", "-c", min=1, help="How many patients.")] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first patient's number.")] = 0,
    resolution: Annotated[
        int, typer.Option("--resolution", "-n", help="Voxels per edge, a multiple of 16; the paper's is 128.")
    ] = 64,
    pathology: Annotated[
        str | None,
        typer.Option(
            "--pathology",
            "-p",
            help="Give every patient this one, or `none`. Left out: as often as in the population.",
        ),
    ] = None,
) -> None:
    """Make patients: a NIfTI label map and a truth JSON each, and one contact sheet.

    A seed is a patient: the same seed is the same anatomy at any resolution, and `--pathology` changes
    nothing but what the pathology changes. The truth holds the parameters, valve centres and other landmarks,
    centrelines with radii (all in mm, RAS) and the Betti numbers of each structure, which `anatomica
    measure` confirms.

    Examples:

    `anatomica phantom --anatomy cardiac --count 16 --out hearts`

    `anatomica phantom --anatomy cardiac --pathology dilated-rv --seed 7 --resolution 128 --out one-heart`

    To train on phantoms, make a cache instead: `anatomica prepare phantoms --help`.
    """
    from rich.progress import Progress

    from anatomica.anatomy.bounds import check_seed
    from anatomica.anatomy.nifti import save
    from anatomica.data.phantoms import phantom as make
    from anatomica.files import write_text

    if out.exists() and not out.is_dir():
        raise AnatomicaError(f"{out} is a file; give a folder to write the phantoms to")
    check_seed(seed, count)
    images, titles, written = [], [], []
    with Progress(console=output.console, transient=True) as bar:
        for number in bar.track(range(seed, seed + count), description=f"{anatomy} phantoms"):
            made = make(anatomy, number, resolution, pathology)
            name = f"{anatomy}-{number:06d}"
            save(made.label_map, out / f"{name}.nii.gz")
            truth = json.dumps(made.truth.as_json(), indent=1) + "\n"
            write_text(out / f"{name}.truth.json", truth)
            about = {"seed": number, "pathology": made.truth.pathology}
            written.append(about | {"label_map": out / f"{name}.nii.gz"})
            if len(images) < SHEET:
                images.append(_picture(made))
                titles.append(_title(made))
    _sheet(images, titles, out / "contact-sheet.png")
    output.print(f"{count} {anatomy} phantoms at {resolution}^3 written to {out}")
    output.result({"anatomy": anatomy, "resolution": resolution, "folder": out, "phantoms": written})


def phantom_population(
    output: Output,
    anatomy: Annotated[
        list[str] | None,
        typer.Option("--anatomy", "-a", help="Which to measure, may be given more than once; default: all."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-c", min=2, help="Patients per anatomy.")] = 200,
    resolution: Annotated[int, typer.Option("--resolution", "-n", help="Voxels per edge.")] = 64,
    compared: Annotated[
        int, typer.Option("--compared", min=0, help="Patients also drawn at 128^3, to compare resolutions.")
    ] = 16,
    results: Annotated[Path, typer.Option("--results", help="Folder of the JSON files.")] = Path("results"),
    docs: Annotated[Path, typer.Option("--docs", help="Folder of the page and its pictures.")] = Path("docs"),
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            help="Real patients instead: a folder of NIfTI label maps, or a CSV of spinal keypoints.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="How the real files' labels are named: a vocabulary's name or a YAML mapping."),
    ] = None,
) -> None:
    """Compare a population with published normal values; write JSON, a page and contact sheets.

    The page, phantoms.md, is made from the JSON files of all anatomies measured so far. Exit code 1 means
    that a mean lies outside one published SD or that the stated topology is true in less than 99 % of the
    patients.

    With --against the phantoms of one anatomy are compared with your real patients instead: volumes,
    centroids and principal extents of the structures (spines: spacing and turns by level), how well a
    nearest-neighbour classifier tells the two apart (1-NNA) and the Frechet distance. JSON and a picture go
    to the --results folder; the picture shows your patients.

    Examples:

    `anatomica phantom-population --anatomy cardiac --count 200`

    `anatomica phantom-population --anatomy cardiac --against hearts --labels mapping.yaml`

    `anatomica phantom-population --anatomy spinal --against keypoints.csv.gz`
    """
    if against is not None:
        from anatomica.cli.against import compare_with_real

        compare_with_real(output, against, anatomy or [], labels, count, resolution, results)
        return
    if labels is not None:
        raise AnatomicaError("--labels names the labels of real files; give their folder with --against")
    from rich.progress import Progress

    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.anatomy.catalogue import anatomy as anatomy_of
    from anatomica.data.phantom_population import measure, outside, page
    from anatomica.data.phantoms import phantom as make
    from anatomica.evaluate.provenance import provenance
    from anatomica.files import write_text

    names = [anatomy_of(name).name for name in anatomy or ANATOMIES]
    complaints = []
    results.mkdir(parents=True, exist_ok=True)
    for name in names:
        with Progress(console=output.console, transient=True) as bar:
            task = bar.add_task(f"{name} phantoms", total=count + SHEET)
            result = measure(name, count, 0, resolution, compared, partial(bar.advance, task))
            images, titles = [], []
            for number in range(SHEET):
                made = make(name, number, 128)
                images.append(_picture(made))
                titles.append(_title(made))
                bar.advance(task)
        _sheet(images, titles, docs / "images" / f"phantoms-{name}.png")
        content = result | {"provenance": provenance("data.phantom_population", {})}
        text = json.dumps(content, indent=1) + "\n"
        write_text(results / f"phantoms-{name}.json", text)
        wrong = len({line.split(":")[0] for line in result["wrong_topology"]})
        complaints += [f"{name}: {value} is more than one published SD off" for value in outside(result)]
        if wrong > 0.01 * count:
            complaints.append(f"{name}: the stated topology is wrong in {wrong} of {count}")
        output.print(f"{name}: {count} patients measured")
    known = [results / f"phantoms-{name}.json" for name in ANATOMIES]
    text = page(json.loads(path.read_text(encoding="utf-8")) for path in known if path.exists())
    write_text(docs / "phantoms.md", text)
    for line in complaints:
        output.print(line, style="yellow")
    measured = {"anatomies": names, "count": count, "page": docs / "phantoms.md"}
    output.result(measured | {"complaints": complaints})
    if complaints:
        raise typer.Exit(1)


def _picture(made: Phantom):
    """The view in which each anatomy is known at a glance."""
    from anatomica.anatomy.catalogue import anatomy
    from anatomica.report.render import Camera, render

    view = anatomy(made.truth.anatomy).camera
    camera = Camera(view.azimuth_deg, view.elevation_deg, view.zoom)
    return render(made.label_map, camera, 200, ghost=view.ghost).image


def _title(made: Phantom) -> str:
    truth = made.truth
    return f"{truth.seed}" if truth.pathology is None else f"{truth.seed}: {truth.pathology}"


def _sheet(images: list, titles: list[str], path: Path) -> None:
    """Write a contact sheet; shaded labels need no more than 256 colours, and so a third of the bytes."""
    from anatomica.report.render import contact_sheet

    contact_sheet(images, path, titles, columns=min(4, len(images)), colours=256)
