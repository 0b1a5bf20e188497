"""anatomica cohort: many patients with stated distributions, drawn on one machine or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from anatomica.cli.cohort_plan import flow_table, plan_dict, print_plan, print_time
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

if TYPE_CHECKING:
    from anatomica.cohort.engine import State
    from anatomica.cohort.executors import Executor
    from anatomica.cohort.plan import Plan

app = typer.Typer(
    help="Cohorts: virtual populations with stated distributions, and proof.", no_args_is_help=True
)
Folder = Annotated[Path, typer.Argument(help="The cohort's folder.")]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, max=1024, help="Default: one per core."),
]
ExecutorName = Annotated[str, typer.Option("--executor", help="local (processes of this machine) or ray.")]
Address = Annotated[str | None, typer.Option(help="Ray: an existing cluster's address; default: a new one.")]
Gpus = Annotated[float, typer.Option(min=0, help="Ray: GPUs per worker, fractions allowed.")]
Device = Annotated[str, typer.Option(help="Where the model runs: cpu or cuda.")]


def register(main: typer.Typer) -> None:
    main.add_typer(app, name="cohort")


@app.command("init")
@with_output
def init(
    output: Output,
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("cohort.yaml"),
) -> None:
    """Write a commented example of a cohort spec.

    Example: `anatomica cohort init cohort.yaml`
    """
    from anatomica.cohort.spec import EXAMPLE
    from anatomica.files import write_text

    if path.exists():
        raise AnatomicaError(f"{path} exists already; give another name")
    write_text(path, EXAMPLE)
    output.print(f"Wrote {path}; next: anatomica cohort draw {path} --out DIR --dry-run")
    output.result({"file": path})


@app.command("schema")
@with_output
def schema_command(output: Output) -> None:
    """Print the JSON Schema of cohort specs, for editors that check YAML while you type."""
    import json

    from anatomica.cohort.spec import schema

    found = schema()
    output.print(json.dumps(found, indent=2))
    output.result(found)


@app.command("draw")
@with_output
def draw(
    output: Output,
    spec: Annotated[Path, typer.Argument(help="A cohort spec (YAML); see: anatomica cohort init.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The cohort's folder; on a cluster a shared one.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and print the plan; time one candidate; keep nothing.")
    ] = False,
    images: Annotated[
        str | None, typer.Option(help="synth: exports come with images made from labels.")
    ] = None,
    workers: Workers = None,
    executor: ExecutorName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
    device: Device = "cpu",
) -> None:
    """Draw a cohort, report on it and export it. The same command goes on where it was stopped.

    Run it on several machines with the same folder, and they share the work. Examples:

        anatomica cohort draw cohort.yaml --out out/cohort --dry-run

        anatomica cohort draw cohort.yaml --out out/cohort --workers 8
    """
    from anatomica.anatomy.strict_yaml import read_text
    from anatomica.cli.checks import usable_device, writable_folder
    from anatomica.cohort.drawing import seconds_per_candidate
    from anatomica.cohort.engine import begin
    from anatomica.cohort.feasible import refuse_hopeless
    from anatomica.cohort.maker import maker_of, population_of
    from anatomica.cohort.patients_csv import MOST_BYTES, header
    from anatomica.cohort.plan import make_plan
    from anatomica.cohort.report import REFERENCE, save_spec_text
    from anatomica.cohort.spec import CohortSpec, parse_spec
    from anatomica.files import write_text

    text = read_text(spec, "cohort spec")
    wanted = parse_spec(text, str(spec))
    if images is not None:
        if images != "synth":
            raise AnatomicaError(f"unknown images {images!r}; allowed: synth")
        wanted = CohortSpec.model_validate(wanted.model_dump(by_alias=True) | {"images": images})
    plan = make_plan(wanted, maker_of(wanted), spec.parent)
    refuse_hopeless(plan, population_of(wanted))
    if wanted.reference is not None:
        header(spec.parent / wanted.reference)
    found = plan_dict(plan)
    if dry_run:
        found["seconds_per_candidate"] = seconds_per_candidate(plan, usable_device(device))
        print_plan(output, plan, found)
        print_time(output, plan, found["seconds_per_candidate"], workers)
        output.result(found)
        return
    if found["infeasible"] == plan.size:
        raise AnatomicaError(f"every request is infeasible: {found['infeasible_example']}")
    writable_folder(out)
    plan = begin(plan, out)
    save_spec_text(out, text)
    if wanted.reference is not None:
        table = read_text(spec.parent / wanted.reference, "reference table", MOST_BYTES)
        write_text(out / REFERENCE, table)
    print_plan(output, plan, found)
    finish(output, out, plan, workers, executor, address, gpus, device)


@app.command("resume")
@with_output
def resume(
    output: Output,
    folder: Folder,
    workers: Workers = None,
    executor: ExecutorName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
    device: Device = "cpu",
) -> None:
    """Go on with a cohort that was stopped, here or on another machine that sees the folder.

    Example: `anatomica cohort resume out/cohort`
    """
    from anatomica.cohort.plan import read_plan

    finish(output, folder, read_plan(folder), workers, executor, address, gpus, device)


@app.command("add")
@with_output
def add(
    output: Output,
    folder: Folder,
    more: Annotated[int, typer.Argument(min=1, help="Patients to add.")],
    workers: Workers = None,
    executor: ExecutorName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
    device: Device = "cpu",
) -> None:
    """Enlarge a cohort; the patients that it has stay as they are.

    Example: `anatomica cohort add out/cohort 100`
    """
    from anatomica.cohort.plan import read_plan

    plan = read_plan(folder).grown(more)
    plan.save(folder)
    finish(output, folder, plan, workers, executor, address, gpus, device)


@app.command("status")
@with_output
def status(output: Output, folder: Folder) -> None:
    """How far a cohort is, and what became of its requests.

    Example: `anatomica cohort status out/cohort`
    """
    from anatomica.cohort.engine import run_notes, state
    from anatomica.cohort.summary import flow, read_cohort

    now, found = state(folder), flow(read_cohort(folder))
    output.print(f"{now.finished} of {now.size} finished, {now.claimed} being drawn")
    output.print(flow_table(found))
    output.result(
        {
            "size": now.size,
            "finished": now.finished,
            "claimed": now.claimed,
            "flow": found,
            "run": run_notes(folder),
        }
    )


@app.command("report")
@with_output
def report(
    output: Output,
    folder: Folder,
    reference: Annotated[Path | None, typer.Option(help="A CSV of real patients to compare with.")] = None,
) -> None:
    """Write cohort.html, cohort.json and cohort.csv of the patients that are finished.

    Example: `anatomica cohort report out/cohort --reference patients.csv`
    """
    from anatomica.cohort.report import write_cohort_report

    found = write_cohort_report(folder, reference)
    output.print(flow_table(found["flow"]))
    output.print(f"Wrote {folder / 'cohort.html'}, cohort.json and cohort.csv")
    output.result(found)


@app.command("export")
@with_output
def export_command(
    output: Output,
    folder: Folder,
    kinds: Annotated[list[str], typer.Argument(help="nifti, mesh, nnunet, bids or monai; several allowed.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: exports/ in the cohort.")] = None,
    images: Annotated[str | None, typer.Option(help="synth: paired images made from the labels.")] = None,
) -> None:
    """Write the kept patients as files or as a data set for training.

    Example: `anatomica cohort export out/cohort nnunet --images synth`
    """
    from anatomica.cohort.exports import export
    from anatomica.cohort.spec import Export
    from anatomica.cohort.summary import read_cohort
    from anatomica.errors import nearest

    known = get_args(Export)
    for kind in kinds:
        if kind not in known:
            raise AnatomicaError(
                f"unknown export {kind!r}{nearest(kind, known)}; allowed: {', '.join(known)}"
            )
    if images not in (None, "synth"):
        raise AnatomicaError(f"unknown images {images!r}; allowed: synth")
    wanted: Any = kinds
    written = export(read_cohort(folder), wanted, out or folder / "exports", images is not None)
    for path in written:
        output.print(f"Wrote {path}")
    output.result({"folders": [str(x) for x in written]})


def finish(
    output: Output,
    folder: Path,
    plan: Plan,
    workers: int | None,
    executor: str,
    address: str | None,
    gpus: float,
    device: str,
) -> None:
    """Draw what is left, then report and export; Ctrl-C leaves a valid partial cohort."""
    from anatomica.cohort.exports import export
    from anatomica.cohort.report import REFERENCE, write_cohort_report
    from anatomica.cohort.summary import read_cohort

    state = run(output, folder, plan, make_executor(folder, executor, workers, address, gpus, device))
    spec = plan.spec
    if not state.finished:
        raise typer.Exit(1)
    reference = folder / REFERENCE
    found = write_cohort_report(folder, reference if reference.is_file() else None)
    output.print(flow_table(found["flow"]))
    written = []
    if state.complete and found["flow"]["kept"]:
        written = export(read_cohort(folder), spec.exports, folder / "exports", spec.images == "synth")
    output.print(
        f"Wrote {folder / 'cohort.html'}, cohort.json and cohort.csv{''.join(f', {x}' for x in written)}"
    )
    output.result({**found, "folder": str(folder), "exports": [str(x) for x in written]})
    if not state.complete:
        output.print(f"Stopped: go on with: anatomica cohort resume {folder}")
        raise typer.Exit(1)


def make_executor(
    folder: Path, name: str, workers: int | None, address: str | None, gpus: float, device: str
) -> Executor:
    """The executor of that name for the shipped way of drawing."""
    from anatomica.cli.checks import usable_device
    from anatomica.cohort.drawing import open_drawing
    from anatomica.cohort.executors.cluster import RayExecutor
    from anatomica.cohort.executors.local import LocalExecutor
    from anatomica.cohort.worker import Job
    from anatomica.errors import nearest
    from anatomica.machine import usable_cores

    known: tuple[str, ...] = get_args(Literal["local", "ray"])
    if name not in known:
        raise AnatomicaError(f"unknown executor {name!r}{nearest(name, known)}; allowed: {', '.join(known)}")
    if name == "local" and (address is not None or gpus):
        raise AnatomicaError("--address and --gpus belong to --executor ray")
    if name == "local":  # a cluster's machines may have what this one lacks
        usable_device(device)
    job = Job(folder, open_drawing, device)
    if name == "ray":
        return RayExecutor(job, workers, address, gpus)
    return LocalExecutor(job, workers or usable_cores())


def run(output: Output, folder: Path, plan: Plan, executor: Executor) -> State:
    """Draw what is left, with a bar of patients, patients per minute and time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from anatomica.cohort.engine import carry_out, state

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    began = state(folder)
    with Progress(*columns, console=output.console, transient=True) as bar:
        task = bar.add_task("patients", total=plan.size, completed=began.finished, rate="")

        def done(one: Any) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, advance=1, rate="" if speed is None else f"{60 * speed:.1f} per minute")

        try:
            return carry_out(folder, executor, done)
        except KeyboardInterrupt:
            return state(folder)
