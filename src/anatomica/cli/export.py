"""anatomica export: meshes and DICOM files of label maps, with proof."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anatomica.cli.anatomies import ANATOMY_HELP
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError, naming

if TYPE_CHECKING:
    from rich.console import Console

    from anatomica.mesh.export import Exported, Tick
    from anatomica.prior.zoo import Model

READ = "How the label maps are read"
FILL = "Tetrahedra"


def register(app: typer.Typer) -> None:
    app.command("export")(with_output(export_command))


def export_command(
    output: Output,
    source: Annotated[
        Path,
        typer.Argument(
            help="A label map (NIfTI), the folder of a generate run, a folder of label maps, or a folder of "
            "masks named after tissues."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")],
    to: Annotated[
        list[str] | None,
        typer.Option(
            "--to",
            help="Repeatable, or several with commas. Surfaces: stl, ply, vtp, gltf. Tetrahedra: vtu, xdmf, "
            "inp (Abaqus), msh (Gmsh), opencarp, febio, simvascular. DICOM: dicom-seg, rtstruct.",
        ),
    ] = None,
    tissue: Annotated[
        list[str] | None, typer.Option("--tissue", "-t", help="Only this tissue, repeatable; default: all.")
    ] = None,
    centreline: Annotated[
        list[str] | None,
        typer.Option(help="Also the centreline of this vessel with radii (.vtp), repeatable."),
    ] = None,
    edge_mm: Annotated[
        float | None,
        typer.Option(
            "--edge-mm",
            help="Edge length to aim at; default: 3 voxels.",
            min=1e-3,
            max=1e3,
            rich_help_panel=FILL,
        ),
    ] = None,
    tolerance_mm: Annotated[
        float | None,
        typer.Option(
            "--tolerance-mm",
            help="How far the surface may move; default: 0.15 voxels.",
            min=1e-4,
            max=1e3,
            rich_help_panel=FILL,
        ),
    ] = None,
    fine: Annotated[
        list[str] | None,
        typer.Option(help="Finer in and near this tissue, repeatable.", rich_help_panel=FILL),
    ] = None,
    fine_edge_mm: Annotated[
        float | None,
        typer.Option(
            "--fine-edge-mm",
            help="Edge length there; default: half of the other.",
            min=1e-3,
            max=1e3,
            rich_help_panel=FILL,
        ),
    ] = None,
    threads: Annotated[
        int, typer.Option(help="Cores for fTetWild.", min=1, max=1024, rich_help_panel=FILL)
    ] = 1,
    ct: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the patient's own CT series for dicom-seg and rtstruct; without it a synthetic "
            "series is written, marked as synthetic."
        ),
    ] = None,
    anatomy: Annotated[
        str | None, typer.Option("--anatomy", "-a", help=ANATOMY_HELP, rich_help_panel=READ)
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How the files name their labels: a vocabulary or a YAML mapping.", rich_help_panel=READ
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="The model folder that made the samples, if not a shipped one.", rich_help_panel=READ
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make what is there already again.")] = False,
) -> None:
    """Turn label maps into meshes for simulation, with proof, or into DICOM segmentations and contours.

    Examples:

    - `anatomica export out/hearts --to vtp --out out/meshes`

    - `anatomica export heart.nii.gz --to stl,vtu --edge-mm 2 --fine Myo --fine-edge-mm 1 --out out/heart`

    - `anatomica export out/coronaries --to simvascular --tissue Lu --centreline Lu --out out/flow`

    - `anatomica export aorta.nii.gz --anatomy aortic --labels totalsegmentator --to dicom-seg --ct series/
    --out out/seg`

    All tissues share one surface: what lies between two of them is there once, for both. Samples of
    `anatomica generate` have their vertices on the border of the neural field, found from the latent beside
    each label map; other label maps are smoothed. Either way all volumes are those of the voxels.

    Every mesh is measured again and the proof printed: closed, oriented, nothing crossing, volumes and Betti
    numbers of the label map; tetrahedra all there, none inverted, with a histogram of their angles.
    NAME-mesh.json holds proof, material names, space and unit. The exit code is 1 if a proof does not hold.

    Points are RAS mm (openCARP: micrometres). Tetrahedra of a whole heart take minutes. Ctrl-C keeps the
    finished label maps; the same command again goes on, since files that were made in the same way are not
    made again.
    """
    from anatomica.anatomy.catalogue import anatomy as named
    from anatomica.cli.checks import writable_folder
    from anatomica.mesh.case import case_name, cases
    from anatomica.mesh.export import ExportOptions, export
    from anatomica.mesh.tetrahedra import TetOptions

    options = ExportOptions(
        kinds=tuple(dict.fromkeys(kind for text in to or () for kind in text.split(",") if kind)),
        tissues=tuple(tissue or ()),
        centrelines=tuple(centreline or ()),
        tet=TetOptions(
            edge_mm=edge_mm,
            tolerance_mm=tolerance_mm,
            fine=tuple(fine or ()),
            fine_edge_mm=fine_edge_mm,
            threads=threads,
        ),
        ct=ct,
        overwrite=overwrite,
    )
    about = None if anatomy is None else named(anatomy)
    paths = cases(source, about, labels)
    writable_folder(out)
    find = _models(model)
    made: list[Exported] = []
    errors: dict[str, str] = {}
    stopped = False
    with progress(output.console, len(paths)) as (tick, done):
        for path in paths:
            try:
                with naming(path):
                    made.append(export(path, out, options, about, labels, find, tick(case_name(path))))
            except AnatomicaError as error:
                if len(paths) == 1:
                    raise
                errors[case_name(path)] = str(error)
            except KeyboardInterrupt:
                stopped = True
                break
            done()
            if made and made[-1].name == case_name(path):
                show(output, made[-1], model)
    for name, error in errors.items():
        output.print(f"{name}: {error}", style="red")
    output.print(outcome(made, errors, out))
    if stopped:
        output.print(f"Stopped: {len(made)} of {len(paths)} label maps are exported.")
    output.result(
        {"folder": out, "errors": errors, "cases": [_plain(x) for x in made], "to": list(options.kinds)}
    )
    if stopped:
        raise typer.Exit(130)
    if errors or not all(x.holds for x in made):
        raise typer.Exit(1)


def _models(folder: Path | None):
    """A finder of models by anatomy: the given folder's, else the shipped one; each is read once."""
    from anatomica.prior.zoo import load_model, shipped

    known: dict[str, Model | None] = {}
    own = None if folder is None else load_model(folder)  # a folder that is none is said before the work

    def find(name: str) -> Model | None:
        if own is None and name not in known:
            known[name] = load_model(name) if name in shipped() else None
        return own or known[name]

    return find


@contextmanager
def progress(console: Console, count: int) -> Iterator[tuple]:
    """A bar over the label maps with what is being done; of tetrahedra the time, since fTetWild does not say
    how far it is."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("exporting", total=count)

        def tick(name: str) -> Tick:
            def show(step: str, seconds: float) -> None:
                spent = f", {seconds:.0f} s" if seconds else ""
                bar.update(task, description=f"{name}: {step}{spent}")

            return show

        yield tick, lambda: bar.update(task, advance=1)


def show(output: Output, case: Exported, model: Path | None) -> None:
    """The proofs of one case and what was written; `model` is what --model gave."""
    from anatomica.mesh.proof import proof_table
    from anatomica.mesh.tetproof import histogram_lines, tet_table

    if case.there_before:
        output.print(f"{case.name}: was exported like this before (--overwrite makes it again)", style="dim")
        return
    if case.surface is not None:
        table = proof_table(case.surface)
        place = "the field's own border" if case.on_field else "the voxels, smoothed"
        table.title = f"{case.name}: surface against label map, vertices from {place}"
        output.print(table)
    note = case.note
    if model is not None and case.surface is not None and not case.on_field and not note:
        note = f"there is no latent beside the label map, so {model} is not used"
    if note:
        output.print(f"{case.name}: vertices from the voxels only: {note}", style="yellow")
    if case.tetrahedra is not None:
        output.print(tet_table(case.tetrahedra))
        output.print("smallest dihedral angle of each tetrahedron")
        for line in histogram_lines(case.tetrahedra):
            output.print(line)


def outcome(made: list[Exported], errors: dict[str, str], out: Path) -> str:
    """The last line: how many cases, proofs and files."""
    proofs = [p for x in made for p in (x.surface, x.tetrahedra) if p is not None]
    held = sum(p.holds for p in proofs)
    proved = f"{held} of {len(proofs)} proofs hold; " if proofs else ""
    failed = f", {len(errors)} failed" if errors else ""
    files = sum(len(x.files) for x in made)
    cases = f"{len(made)} of {len(made) + len(errors)} label maps exported"
    return f"{cases}{failed}; {proved}{files} files in {out}"


def _plain(case: Exported) -> dict[str, object]:
    return {
        "name": case.name,
        "files": [str(x) for x in case.files],
        "there_before": case.there_before,
        "on_field": case.on_field,
        "note": case.note,
        "surface": None if case.surface is None else case.surface.to_dict(),
        "tetrahedra": None if case.tetrahedra is None else case.tetrahedra.to_dict(),
    }
