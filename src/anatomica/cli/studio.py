"""anatomica studio: the local web app."""

from __future__ import annotations

from typing import Annotated

import typer

from anatomica.cli.output import Output, with_output
from anatomica.errors import AnatomicaError


def register(app: typer.Typer) -> None:
    app.command("studio")(with_output(studio))


def studio(
    output: Output,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 8270,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the default browser.")
    ] = True,
) -> None:
    """Start the studio: place control domains with the mouse, type targets, watch the anatomy come.

    The server listens on this machine only. The address that it prints works once; the browser that opened it
    keeps a cookie. Ctrl-C ends it, and with it its patients: download what you want to keep.

    Examples:

    - `anatomica studio`

    - `anatomica studio --port 9000 --no-browser`
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise AnatomicaError("the studio needs more packages: pip install 'anatomica[studio]'") from None
    from anatomica.studio.serve import serve

    def said(address: str) -> None:
        output.print(f"The studio is at {address}")
        output.print("Ctrl-C ends it.", style="dim")
        output.result({"address": address})

    serve(port, browser, said, lambda line: output.print(line, style="yellow"))
