"""The command line: one file per command, heavy imports inside the commands so that --help is instant."""

from __future__ import annotations

import importlib
import os
import sys

import typer

from anatomica.errors import AnatomicaError
from anatomica.machine import wait_without_spinning

UNFORESEEN = 70
"""The exit code of an error in the program itself (EX_SOFTWARE of sysexits.h)."""

LONGEST = 1000
"""Letters of an error that are printed."""

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
    "quantities",
    "anatomies",
    "phantom",
    "prepare",
    "train",
    "weights",
    "generate",
    "export",
    "evaluate",
    "cohort",
    "models",
    "info",
    "studio",
    "demo",
    "bench",
)
for _name in _MODULES:
    importlib.import_module(f"anatomica.cli.{_name}").register(app)


def main() -> None:
    """Run the command line; a user's mistake is one sentence on stderr and exit code 2, never a traceback.

    An error that nobody foresaw is one too, with exit code 70; the traceback goes into a file.
    """
    wait_without_spinning()
    try:
        _check_folder()
        app()
    except (AnatomicaError, OSError, MemoryError) as error:
        if os.environ.get("ANATOMICA_DEBUG"):
            raise
        _say(_sentence(error))
        sys.exit(2)
    except Exception as error:
        if os.environ.get("ANATOMICA_DEBUG"):
            raise
        from anatomica.cli.last_resort import unforeseen

        _say(unforeseen(error, sys.argv))
        sys.exit(UNFORESEEN)


def _check_folder() -> None:
    """Libraries end the process without a word where the current folder is gone."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise AnatomicaError("the current folder does not exist any more; change to another one") from None


def _say(sentence: str) -> None:
    from rich.console import Console

    console = Console(stderr=True)
    console.print("error:", style="bold red", end=" ")
    console.print(" ".join(sentence.split()), markup=False, highlight=False, soft_wrap=True)


def _sentence(error: AnatomicaError | OSError | MemoryError) -> str:
    """The error in words; the system's come with the file they are about."""
    if isinstance(error, MemoryError):
        return f"not enough memory ({error})" if str(error) else "not enough memory"
    if isinstance(error, OSError) and error.strerror:
        return _short(f"{error.filename}: {error.strerror}" if error.filename else error.strerror)
    return _short(str(error)) or type(error).__name__


def _short(sentence: str) -> str:
    """Whoever gives a value of many thousand letters does not want to read them all again."""
    return sentence if len(sentence) <= LONGEST else f"{sentence[:400]} ... {sentence[-400:]}"
