"""anatomica quantities: the vocabulary of clinical quantities, and a population's percentiles of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.anatomies import PHANTOM_HELP
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
    from anatomica.spec.vocabulary import entries

    rows = []
    table = Table("quantity", "unit", "5 to 95 % of the population", "what", "source")
    for name in anatomy or ANATOMIES:
        about = named(name)
        if not entries(about.name):
            raise AnatomicaError(f"there are no named quantities of {about.name} anatomy")
        known = read_percentiles(WEIGHTS / about.name)
        for e in entries(about.name):
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
    output.result({"quantities": rows})


@quantities.command("population")
@with_output
def population(
    output: Output,
    anatomy: Annotated[str, typer.Option("--anatomy", "-a", help=PHANTOM_HELP)],
    count: Annotated[int, typer.Option("--count", "-c", min=8, help="Phantoms to draw.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The first phantom's seed.")] = 1_000_000,
    resolution: Annotated[int, typer.Option("--resolution", "-n", help="Voxels an edge.")] = 128,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A model's folder; default: the shipped model's.")
    ] = None,
) -> None:
    """Measure freshly drawn phantoms and write their percentiles beside a model's card (quantities.json).

    Example: `anatomica quantities population --anatomy cardiac --count 200`
    """
    from rich.progress import Progress

    from anatomica.anatomy.catalogue import anatomy as named
    from anatomica.data.phantoms import phantom
    from anatomica.files import write_json
    from anatomica.prior.percentiles import FILE, measured, percentiles_of
    from anatomica.prior.zoo import WEIGHTS

    about = named(anatomy)
    folder = WEIGHTS / about.name if out is None else out
    if not folder.is_dir():
        raise AnatomicaError(f"{folder} is not a folder; give a model's")
    rows = []
    with Progress(console=output.console, transient=True) as bar:
        for number in bar.track(range(seed, seed + count), description=f"{about.name} phantoms"):
            rows += measured([phantom(about.name, number, resolution).label_map], about)
    source = f"phantoms {seed} to {seed + count - 1} at {resolution}^3"
    found = percentiles_of(rows, source)
    write_json(folder / FILE, found.to_dict())
    output.print(f"wrote {folder / FILE}: {len(found.quantiles)} quantities of {count} phantoms")
    output.result({"file": folder / FILE, "quantities": len(found.quantiles), "source": source})
