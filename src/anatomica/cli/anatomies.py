"""`anatomica anatomies`: the shipped anatomies, and a record to start one's own from."""

from __future__ import annotations

from typing import Annotated

import typer

from anatomica.anatomy.records import NAMES
from anatomica.cli.output import Output, with_output

ANATOMY_HELP = f"{', '.join(NAMES)}, or a YAML file of your own (see: anatomica anatomies)."
PHANTOM_HELP = f"{', '.join(NAMES[:-1])} or {NAMES[-1]}."

anatomies = typer.Typer(
    name="anatomies", help="The anatomies, and a record to start your own from.", invoke_without_command=True
)


def register(app: typer.Typer) -> None:
    app.add_typer(anatomies)


@anatomies.callback()
@with_output
def anatomies_list(output: Output, context: typer.Context) -> None:
    """List the shipped anatomies.

    `anatomica anatomies show NAME` prints one as YAML to start your own from; every `--anatomy` option takes
    such a file, and caches, runs and models made with it keep a copy.
    """
    if context.invoked_subcommand is not None:
        return
    from rich.table import Table

    from anatomica.anatomy.catalogue import ANATOMIES

    table = Table("anatomy", "cube, mm", "what", "tissues")
    for about in ANATOMIES.values():
        table.add_row(about.name, f"{about.edge_mm:g}", about.title, " ".join(about.table.tissues))
    output.print(table)
    rows = ((x.name, x.edge_mm, x.title, x.table.tissues) for x in ANATOMIES.values())
    output.result({name: {"edge_mm": mm, "title": title, "tissues": t} for name, mm, title, t in rows})


@anatomies.command("show")
@with_output
def anatomies_show(output: Output, name: Annotated[str, typer.Argument(help="A shipped anatomy.")]) -> None:
    """Print a shipped anatomy as YAML; give yours another `name`.

    Example: `anatomica anatomies show cardiac > mine.yaml`
    """
    from anatomica.anatomy.catalogue import ANATOMIES
    from anatomica.anatomy.records import shipped_text
    from anatomica.errors import AnatomicaError, nearest

    if name not in ANATOMIES:
        known = ", ".join(ANATOMIES)
        raise AnatomicaError(f"unknown anatomy {name!r}{nearest(name, ANATOMIES)}; allowed: {known}")
    # A record of one's own has no phantoms.
    lines = shipped_text(name).splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("phantom:"))
    output.print(text.rstrip("\n"))
    output.result({"name": name, "yaml": text})
