"""anatomica measure and anatomica tasks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anatomica.cli.anatomies import ANATOMY_HELP
from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError, naming

if TYPE_CHECKING:
    from rich.table import Table

    from anatomica.anatomy.catalogue import Anatomy
    from anatomica.measurement.measure import Measurement
    from anatomica.spec.spec import Spec


def register(app: typer.Typer) -> None:
    app.command("measure")(with_output(measure_command))
    app.add_typer(tasks_app, name="tasks")


def measure_command(
    output: Output,
    source: Annotated[
        Path,
        typer.Argument(
            help="A multi-label NIfTI, a folder of masks named after tissues, or a folder of label maps."
        ),
    ],
    anatomy: Annotated[str, typer.Option(help=ANATOMY_HELP)],
    task: Annotated[str | None, typer.Option(help="One of the paper's tasks (see: anatomica tasks).")] = None,
    spec: Annotated[Path | None, typer.Option(help="Your own spec as YAML.")] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="How the file's labels are named: a vocabulary's name or a YAML mapping."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the numbers and the picture.")] = None,
    resolution: Annotated[
        int | None,
        typer.Option(
            help="Voxels along the anatomy's cube; default: 128, for long scans down to 64.",
            min=16,
            max=512,
        ),
    ] = None,
) -> None:
    """Measure a segmentation in mL and mm: how big, where, what shape, how many pieces.

    Without --task or --spec all named quantities of the anatomy are measured (see: anatomica quantities) and
    shown beside the training population; of a folder of label maps as one CSV, one row per file. Tissues of
    an anatomy of your own are measured as a whole. Examples:

        anatomica measure heart.nii.gz --anatomy cardiac --out out/heart

        anatomica measure heart.nii.gz --anatomy cardiac --task right-ventricle --out out/rv

        anatomica measure segmentations/ --anatomy aortic --labels totalsegmentator --out out/aorta
    """
    import json

    from anatomica.anatomy.catalogue import PAPER_GRID
    from anatomica.anatomy.catalogue import anatomy as named
    from anatomica.anatomy.label_map import affordable
    from anatomica.anatomy.nifti import load
    from anatomica.cli.checks import writable_folder
    from anatomica.cli.statistics import measure_all
    from anatomica.files import write_text
    from anatomica.measurement.measure import measure, to_dict
    from anatomica.measurement.vocabulary.statistics import COARSEST
    from anatomica.report.wires import measurement_picture
    from anatomica.spec.vocabulary import entries

    kind = named(anatomy)
    if out is not None:
        writable_folder(out)
    wanted = pick_spec(task, spec, kind)
    if wanted is None and entries(kind.name):
        measure_all(output, source, kind, labels, out, resolution)
        return
    label_map = load(source, kind, labels)
    with naming(source):
        if resolution is None:
            resolution = affordable(label_map, kind, PAPER_GRID, COARSEST)
        result = measure(label_map, wanted, resolution, kind)
    if not any(bool(m.domains.valid.any()) for m in result.measured):
        reasons = "; ".join(f"{m.constraint.name}: {m.domains.reasons[0]}" for m in result.measured)
        present = ", ".join(label_map.present()) or "none"
        raise AnatomicaError(f"{source}: nothing to measure ({reasons}); tissues in the file: {present}")
    output.print(measurement_table(result))
    if result.frame.edge_mm > kind.edge_mm * 1.001:
        output.print(
            f"The cube was enlarged from {kind.edge_mm:g} to {result.frame.edge_mm:g} mm to hold all tissue.",
            style="dim",
        )
    if out is not None:
        write_text(out / "measurement.json", json.dumps(to_dict(result), indent=1) + "\n")
        measurement_picture(result, out / "measurement.png")
        output.print(f"Wrote {out / 'measurement.json'} and {out / 'measurement.png'}")
    output.result(to_dict(result))


def pick_spec(task: str | None, path: Path | None, about: Anatomy | None) -> Spec | None:
    """The spec that --task or --spec names, checked against the anatomy if it is known."""
    from anatomica.spec.tasks import task as named_task
    from anatomica.spec.yaml import load_spec

    if task is not None and path is not None:
        raise AnatomicaError("give --task or --spec, not both")
    if task is None and path is None:
        return None
    wanted = named_task(task) if task is not None else load_spec(path)  # type: ignore[arg-type]
    return wanted if about is None else wanted.of(about)


def measurement_table(result: Measurement) -> Table:
    """Requested structures and what was measured, in mL and mm."""
    from rich.markup import escape
    from rich.table import Table

    from anatomica.measurement.measure import domain_dict

    table = Table(title=escape(f"{result.spec.name} ({result.frame.anatomy.name})"))
    for name, side in (
        ("constraint", "left"),
        ("domain", "left"),
        ("volume, section or wall", "right"),
        ("centroid mm (R, A, S)", "right"),
        ("ellipsoid semi-axes mm", "right"),
        ("components loops voids", "right"),
    ):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    for m in result.measured:
        for k in range(m.domains.count):
            d = domain_dict(m, k, result.frame)
            label = m.constraint.domain.family + (
                f" {k + 1}/{m.domains.count}" if m.domains.count > 1 else ""
            )
            if not d["valid"]:
                reason = f"[yellow]not measured: {escape(d['reason'])}[/]"
                table.add_row(escape(m.constraint.name), label, reason)
                continue
            table.add_row(
                escape(m.constraint.name),
                label,
                size_in_words(d),
                ", ".join(f"{x:.1f}" for x in d["centroid_mm"]),
                " x ".join(f"{x:.1f}" for x in d["ellipsoid_semi_axes_mm"]),
                f"{d['betti']['b0']} {d['betti']['b1']} {d['betti']['b2']}",
            )
    return table


def size_in_words(domain: dict[str, Any]) -> str:
    """A domain's volume; where it is a section its area and diameter, where it is a ray the wall's thickness.

    >>> size_in_words({"volume_ml": 1.6, "area_mm2": 804.2, "diameter_mm": 32.0})
    '804 mm2, diameter 32.0 mm'
    """
    if "area_mm2" in domain:
        return f"{domain['area_mm2']:.3g} mm2, diameter {domain['diameter_mm']:.1f} mm"
    if "thickness_mm" in domain:
        return f"{domain['thickness_mm']:.3g} mm thick"
    return f"{domain['volume_ml']:.4g} mL"


tasks_app = typer.Typer(help="The paper's tasks by name.", invoke_without_command=True)


@tasks_app.callback()
@with_output
def tasks_list(output: Output, context: typer.Context) -> None:
    """List the paper's tasks; `anatomica tasks show NAME` prints one as YAML to start your own spec from."""
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from anatomica.spec.tasks import TASKS

    table = Table("task", "anatomy", "structures", "what")
    for name, spec in TASKS.items():
        tissues = " / ".join(" + ".join(c.structure) for c in spec.constraints)
        table.add_row(name, spec.anatomy, tissues, spec.description)
    output.print(table)
    output.result(
        {
            "tasks": [
                {
                    "name": name,
                    "anatomy": spec.anatomy,
                    "structures": [c.structure for c in spec.constraints],
                    "description": spec.description,
                }
                for name, spec in TASKS.items()
            ]
        }
    )


@tasks_app.command("show")
@with_output
def tasks_show(output: Output, name: Annotated[str, typer.Argument(help="A task's name.")]) -> None:
    """Print a task as YAML."""
    from anatomica.spec.tasks import task
    from anatomica.spec.yaml import dump_spec

    spec = task(name)
    output.print(dump_spec(spec).rstrip("\n"))
    output.result(spec.model_dump(mode="json"))


@tasks_app.command("schema")
@with_output
def tasks_schema(output: Output) -> None:
    """Print the JSON Schema of specs, for editors that check YAML while you type."""
    import json

    from anatomica.spec.spec import Spec

    schema = Spec.model_json_schema()
    output.print(json.dumps(schema, indent=2))
    output.result(schema)
