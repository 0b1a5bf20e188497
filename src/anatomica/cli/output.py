"""What every command says, and where: --quiet and --json, and tables of which nothing is cut."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TextIO, get_type_hints

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

P = ParamSpec("P")
SHORTEST = 8
"""Letters per line that a column of a table keeps on a terminal too narrow for it."""
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object; everything else goes to standard error.")
]


@dataclass(frozen=True)
class Output:
    """Where a command writes: `print` and `console` (progress bars) are for people, `result` for programs."""

    console: Console
    programs: TextIO | None
    """The standard output under --json."""
    quiet: bool

    def print(self, what: RenderableType, style: str | None = None) -> None:
        """A line or a table for people. Square brackets are text; lines are wrapped by the terminal only."""
        from rich.table import Table

        if isinstance(what, Table):
            print_table(self.console, what)
        else:
            self.console.print(what, style=style, markup=False, highlight=False, soft_wrap=True)

    def result(self, content: Mapping[str, Any]) -> None:
        """The command's outcome as one JSON object, under --json; a command calls this once, at its end."""
        if self.programs is not None:
            self.result_in_pieces([json.dumps(content, indent=1, default=_plain), "\n"])

    def result_in_pieces(self, pieces: Iterable[str]) -> None:
        """The same of an outcome too large for the memory: its JSON, piece by piece."""
        if self.programs is not None:
            self.programs.writelines(pieces)
            self.programs.flush()


def with_output(command: Callable[Concatenate[Output, P], None]) -> Callable[P, None]:
    """Give a command the options --quiet and --json; it gets an `Output` as its first argument.

    Under --json whatever else is printed, by this package or by a library, goes to standard error.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from rich.console import Console

        quiet, as_json = bool(kwargs.pop("quiet")), bool(kwargs.pop("json"))
        programs = sys.stdout if as_json else None
        with redirect_stdout(sys.stderr if as_json else sys.stdout):
            command(Output(Console(quiet=quiet), programs, quiet), *args, **kwargs)

    _, *parameters = inspect.signature(command).parameters.values()
    hints = get_type_hints(command, include_extras=True)
    options = {"quiet": Quiet, "json": Json}
    given = [p.replace(annotation=hints[p.name]) for p in parameters]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=kind)
        for name, kind in options.items()
    ]
    run.__signature__ = inspect.Signature([*given, *added])  # pyright: ignore[reportAttributeAccessIssue]
    run.__annotations__ = {p.name: p.annotation for p in (*given, *added)}
    return run


def print_table(console: Console, table: Table) -> None:
    """Print a table of which nothing is cut: as wide as it is, or wrapped to the width of a terminal."""
    from rich.measure import Measurement

    width = console.width
    options = console.options.update(max_width=10**6)
    natural = Measurement.get(console, options, table).maximum
    if natural > width and console.is_terminal:
        natural = _wrap(console, table, natural, width)
    console.width = max(natural, width)
    console.print(table, crop=False)
    console.width = width


def _wrap(console: Console, table: Table, natural: int, width: int) -> int:
    """Narrow the widest columns until the table fits; returns its width then.

    Columns are wrapped between words; if that does not do, words of all columns but the first, which holds
    the names, are folded, down to SHORTEST letters.
    """
    from rich.measure import Measurement

    options = console.options.update(max_width=10**6)
    cells = [[column.header, *column.cells] for column in table.columns]
    needs = [[Measurement.get(console, options, cell) for cell in column] for column in cells]
    words = [max(m.minimum for m in column) for column in needs]
    widths = [max(m.maximum for m in column) for column in needs]
    borders = natural - sum(widths)
    for least in (words, [words[0], *(min(w, SHORTEST) for w in words[1:])]):
        while sum(widths) + borders > width and widths != least:
            widest = max(range(len(widths)), key=lambda i: widths[i] if widths[i] > least[i] else -1)
            widths[widest] -= 1
    for column, chosen in zip(table.columns, widths, strict=True):
        column.width = chosen
        column.overflow = "fold"
    return sum(widths) + borders


def _plain(value: object) -> object:
    """Values that commands have at hand and JSON does not know."""
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
