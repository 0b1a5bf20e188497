"""Pages of docs with results: prose by people; between markers that name a results file, links to it and its
state (`results: NAME`), or the table itself (`table: NAME`).

A table of older code or weights is marked as such, on the page and at its own top.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from anatomica.errors import AnatomicaError
from anatomica.evaluate.provenance import outdated
from anatomica.files import read_json, write_text

PAGES = (Path("docs/results.md"), Path("docs/meshes.md"), Path("docs/studio.md"))
MARKS = re.compile(
    r"(?P<start><!-- (?P<kind>results|table): (?P<name>[a-z-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
BANNER = re.compile(r"^> \*\*Of older .*\n\n", re.MULTILINE)
CURRENT = "of this code and these weights"


def update_page(page: Path, results: Path) -> dict[str, str]:
    """Fill the page's markers and mark the tables in RESULTS; returns the state of each table."""
    if not page.is_file():
        raise AnatomicaError(f"{page} is not there; it needs markers like <!-- results: geometric -->")
    states: dict[str, str] = {}

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        content = read_result(results / f"{name}.json")
        if content is None or not (results / f"{name}.md").is_file():
            body = f"Not run yet: there is no `{name}.md` with a `{name}.json` in the results.\n"
        else:
            states[name] = outdated(content["provenance"]) or CURRENT
            mark_table(results / f"{name}.md", content["provenance"])
            if found["kind"] == "table":
                body = (results / f"{name}.md").read_text(encoding="utf-8")
            else:
                body = links(name, content, results, page, states[name])
        return f"{found['start']}{body}{found['end']}"

    text = MARKS.sub(fill, page.read_text(encoding="utf-8"))
    write_text(page, text)
    return states


def read_result(path: Path) -> dict[str, Any] | None:
    """The content of a results file, if it is there and says where it comes from."""
    if not path.is_file():
        return None
    try:
        content = read_json(path)
    except ValueError as error:
        raise AnatomicaError(f"{path} cannot be read: {error}; make it again") from None
    return content if isinstance(content, dict) and "provenance" in content else None


def links(name: str, content: dict[str, Any], results: Path, page: Path, state: str) -> str:
    """One line: table, summary and figure, how many samples, what made them and whether that is older."""
    folder = Path(os.path.relpath(results, page.parent)).as_posix()
    kinds = {"md": "table", "json": "numbers", "png": "figure"}
    there = {kind: title for kind, title in kinds.items() if (results / f"{name}.{kind}").is_file()}
    listed = ", ".join(f"[{title}]({folder}/{name}.{kind})" for kind, title in there.items())
    samples = sum(cell["samples"] for cell in content.get("cells", ()))
    count = f"; {samples} samples" if samples else ""
    told = state if state == CURRENT else f"**{state}**"
    return f"`{name}`: {listed}{count}; {told} (commit {content['provenance']['commit']})\n"


def mark_table(table: Path, about: dict[str, Any]) -> None:
    """Put a banner under the title of a table that is of older code or weights, or take it away."""
    text = BANNER.sub("", table.read_text(encoding="utf-8"))
    if state := outdated(about):
        banner = f"> **{state.capitalize()}** than this checkout's: made at commit {about['commit']}.\n\n"
        title = re.match(r"# .*\n+", text)
        at = title.end() if title else 0
        text = text[:at] + banner + text[at:]
    write_text(table, text)
