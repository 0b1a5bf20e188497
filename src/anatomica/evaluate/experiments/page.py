"""docs/results.md: prose by people, numbers by the program between markers that name an experiment."""

from __future__ import annotations

import re
from pathlib import Path

from anatomica.errors import AnatomicaError

MARKS = re.compile(r"(<!-- results: (?P<name>[a-z/-]+) -->\n)(?P<old>.*?)(<!-- end -->)", re.DOTALL)


def update_page(page: Path, results: Path) -> list[str]:
    """Put results/<name>.md between each pair of markers; returns the names that had results."""
    if not page.is_file():
        raise AnatomicaError(f"{page} is not there; it needs markers like <!-- results: geometric -->")
    filled = []

    def fill(found: re.Match[str]) -> str:
        name = found["name"]
        path = results / f"{name}.md"
        if not path.is_file():
            body = f"Not run yet: `anatomica evaluate {name} --profile here`.\n"
        else:
            filled.append(name)
            body = _nested(path.read_text(encoding="utf-8"), path.parent, page)
        return f"{found[1]}{body}{found[4]}"

    page.write_text(MARKS.sub(fill, page.read_text(encoding="utf-8")), encoding="utf-8")
    return filled


def _nested(text: str, results: Path, page: Path) -> str:
    """A results page as a part of another one: without its title, with pictures found from there."""
    text = re.sub(r"\A# .*\n+", "", text)
    back = Path(*[".."] * len(page.parent.parts)) if not page.is_absolute() else None
    folder = results.resolve() if back is None else back / results
    return re.sub(r"!\[(.*?)\]\((.*?)\)", rf"![\1]({folder.as_posix()}/\2)", text)
