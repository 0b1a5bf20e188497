"""anatomica quantities: the vocabulary of clinical quantities, and a population's percentiles of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError

quantities = typer.Typer(
    help="Clinical quantities by name, with unit, definition and percentiles.", invoke_without_command=True
)


def register(app: typer.Typer) -> None:
    app.add_typer(quantities, name="quantities")


@quantities.callback()
@with_output
def quantities_list(
    output: Output,
    context: typer.Context,
    anatomy: Annotated[
        list[str] | None, typer.Option("--anatomy", "-a", help="Only of these anatomies; default: all.")
    ] = None,
) -> None:
    """List the quantities that can be measured and asked for, with the population's 5th to 95th percentile.

    Example: `anatomica quantities --anatomy aortic`
    """
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.anatomy.catalogue import anatomy as named
    from anatomica.prior.percentiles import read_percentiles
    from anatomica.prior.zoo import WEIGHTS
    from anatomica.report.statistics import shown
    from anatomica.spec.vocabulary import entries, families

    rows = []
    table = Table("quantity", "unit", "5 to 95 % of the population", "what", "source")
    for name in anatomy or ANATOMIES:
        about = named(name)
        if not entries(about.name):
            raise AnatomicaError(f"there are no named quantities of {about.name} anatomy")
        known = read_percentiles(WEIGHTS / about.name)
        for e in (*entries(about.name), *families(about)):
            there = known is not None and e.key in known.quantiles
            seen = [known.value(e.key, p) for p in (5, 95)] if known is not None and there else None
            text = "" if seen is None else f"{shown(seen[0])} to {shown(seen[1])}"
            table.add_row(e.key, e.unit, text, e.definition, e.source)
            rows.append(
                {
                    "key": e.key,
                    "anatomy": e.anatomy,
                    "unit": e.unit,
                    "percentiles_5_95": seen,
                    "definition": e.definition,
                    "source": e.source,
                    "tolerance": e.tolerance,
                    "tolerance_unit": e.tolerance_unit,
                }
            )
    output.print(table)
    output.print(
        "A and B are tissues or vertebrae by their short names. Values of single files: anatomica measure. "
        "Ways to ask for them: docs/quantities.md.",
        style="dim",
    )
    output.result({"quantities": rows})


@quantities.command("population")
@with_output
def population(
    output: Output,
    model: Annotated[str, typer.Argument(help="A shipped model's name or a model's folder.")],
    data: Annotated[
        Path | None,
        typer.Option("--data", "-d", help="A cache of its training patients; default: fresh phantoms."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-c", min=8, help="Patients to measure.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The first phantom's seed.")] = 1_000_000,
) -> None:
    """Measure a population and write the percentiles of its quantities into a model's card.

    Nothing else of the card changes; `anatomica train check` writes them among other numbers. Patients are
    measured on the model's own grid. Examples:

        anatomica quantities population cardiac --count 400

        anatomica quantities population models/cardiac --data caches/cardiac
    """
    from rich.progress import Progress

    from anatomica.cli.checks import check_cache
    from anatomica.data.dataset import LabelMapDataset
    from anatomica.data.phantoms import phantom
    from anatomica.prior.card import write_card
    from anatomica.prior.percentiles import measured, percentiles_of
    from anatomica.prior.zoo import WEIGHTS, load_model
    from anatomica.spec.vocabulary import entries

    prior = load_model(model)
    about, n = prior.about, prior.n
    if not entries(about.name):
        raise AnatomicaError(f"there are no named quantities of {about.name} anatomy")
    folder = Path(model) if Path(model).is_dir() else WEIGHTS / model
    if data is None:
        if about.phantom is None:
            raise AnatomicaError(f"there are no phantoms of {about.name} anatomy; give --data CACHE")
        source = f"phantoms {seed} to {seed + count - 1} at {n}^3"
        patients = (phantom(about.name, number, n).label_map for number in range(seed, seed + count))
    else:
        check_cache(data, about, folder)
        maps = LabelMapDataset(data, "train", n).load_all()[:count].numpy()
        count = len(maps)
        source = f"{count} training patients at {n}^3"
        patients = (prior.label_map(one) for one in maps)
    rows = []
    with Progress(console=output.console, transient=True) as bar:
        for patient in bar.track(patients, total=count, description=f"{about.name} patients"):
            rows += measured([patient], about)
    found = percentiles_of(rows, source, extremes=not prior.card.get("private", False))
    write_card(folder, prior.card | {"quantities": found.to_dict()})
    output.print(f"wrote {len(found.quantiles)} quantities of {count} patients into the card of {folder}")
    output.result({"folder": folder, "quantities": len(found.quantiles), "source": source})


@quantities.command("draw")
@with_output
def draw(
    output: Output,
    anatomy: Annotated[list[str] | None, typer.Option("--anatomy", "-a", help="Default: all.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The phantom's seed.")] = 100_001,
    resolution: Annotated[int, typer.Option("--resolution", "-n", min=32, help="Voxels along it.")] = 128,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path("out"),
) -> None:
    """Draw on a phantom where quantities are measured: OUT/quantities-ANATOMY.png, one panel per family.

    Example: `anatomica quantities draw --anatomy aortic --out out/definitions`
    """
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.anatomy.catalogue import anatomy as named
    from anatomica.cli.checks import writable_folder
    from anatomica.data.phantoms import phantom
    from anatomica.measurement.vocabulary.subject import Subject
    from anatomica.report.definitions import draw_definitions

    writable_folder(out)
    written = []
    for name in anatomy or ANATOMIES:
        about = named(name)
        path = out / f"quantities-{about.name}.png"
        draw_definitions(Subject(phantom(about.name, seed, resolution).label_map, about), path)
        output.print(f"wrote {path}")
        written.append(path)
    output.result({"written": written, "seed": seed})
