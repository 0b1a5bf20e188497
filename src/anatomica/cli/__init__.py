"""The command line: one file per command, heavy imports inside the commands so that --help is instant."""

from __future__ import annotations

import importlib
import os
import sys

import typer

from anatomica.errors import AnatomicaError

app = typer.Typer(
    name="anatomica",
    help="Generate and measure 3D anatomy under localized geometric and topological constraints.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

# Modules of this folder, each with a `register(app)` that adds its commands.
_MODULES = (
    "measure",
    "anatomies",
    "phantom",
    "prepare",
    "train",
    "weights",
    "generate",
    "evaluate",
    "models",
    "info",
    "demo",
    "bench",
)
for _name in _MODULES:
    importlib.import_module(f"anatomica.cli.{_name}").register(app)


def main() -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2, never a traceback."""
    from rich.console import Console

    try:
        app()
    except (AnatomicaError, OSError) as error:
        if os.environ.get("ANATOMICA_DEBUG"):
            raise
        console = Console(stderr=True)
        console.print("error:", style="bold red", end=" ")
        console.print(_sentence(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)


def _sentence(error: AnatomicaError | OSError) -> str:
    """The error in words; the system's come with the file they are about."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
