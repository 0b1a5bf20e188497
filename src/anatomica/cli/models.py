"""anatomica models: what is shipped, and how good it was measured to be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anatomica.cli.output import Output, with_output


def register(app: typer.Typer) -> None:
    app.command("models")(with_output(models_command))


def models_command(
    output: Output,
    folder: Annotated[
        list[Path] | None, typer.Argument(help="Model folders; default: the shipped weights.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
) -> None:
    """The trained models with the numbers of their cards.

    Dice is of held-out patients' reconstruction: by the field, by the convolutional decoder, of one against
    the other, and of the field on a grid twice as fine; then the tissue with the least. `FMD` is the Frechet
    distance of unconditional samples from held-out patients, in brackets that of as many training patients;
    `KS` the Kolmogorov-Smirnov distance of volumes, mean over the tissues; `nearest` the Dice of a sample's
    nearest training patient, in brackets that of a held-out patient's. A dash: not measured.

    Examples:

    - `anatomica models`
    - `anatomica models runs/models/cardiac --markdown`
    """
    from rich.markup import escape
    from rich.table import Table

    from anatomica.prior.card import card_numbers, read_card
    from anatomica.prior.zoo import folder_of, shipped

    cards = [card_numbers(read_card(folder_of(name))) for name in (folder or shipped())]
    output.result({"models": cards})
    if not cards:
        output.print("No weights are shipped with this package; `anatomica train all` makes them.")
        return
    rows = [[key, *(card[key] for card in cards)] for key in cards[0]]
    if markdown:
        rows.insert(1, ["---"] * len(rows[0]))
        output.print("\n".join(f"| {' | '.join(r)} |" for r in rows))
        return
    table = Table(*map(escape, rows[0]))
    for row in rows[1:]:
        table.add_row(*map(escape, row))
    output.print(table)
