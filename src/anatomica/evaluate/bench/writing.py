"""How a benchmark's results are written: numbers as JSON, a table as Markdown, both with their provenance."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from anatomica.evaluate.provenance import made_by, provenance
from anatomica.files import write_text

Tell = Callable[[RenderableType], None]
"""Shows a line or a table to the person who waits."""


def write_bench(
    out: Path,
    name: str,
    result: dict[str, Any],
    table: str,
    weights: Mapping[str, str],
    module: str | None = None,
) -> dict[str, Any]:
    """Write OUT/<name>.json and OUT/<name>.md; returns the result with its provenance.

    `module` decides the numbers; without it `evaluate.bench.<name>`.
    """
    about = provenance(module or f"evaluate.bench.{name}", weights)
    result = result | {"provenance": about}
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / f"{name}.json", json.dumps(result, indent=1) + "\n")
    write_text(out / f"{name}.md", f"{table}\n{made_by(about)}\n")
    return result


def memory(megabytes: float | None) -> str:
    """Peak memory in words."""
    return "not known on this system" if megabytes is None else f"{megabytes:.0f} MB"
