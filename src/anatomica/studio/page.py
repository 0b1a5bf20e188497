"""The built page, as it lies in the package (`page/`): `web/` has its sources."""

from __future__ import annotations

import mimetypes
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from anatomica.errors import AnatomicaError

KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
"""What the system may know otherwise; a module of another type is not run."""


class PageFile(NamedTuple):
    data: bytes
    media_type: str


def page_files() -> dict[str, PageFile]:
    """All files of the page, by their path in it."""
    found = dict(_walk(files("anatomica.studio") / "page"))
    if "index.html" not in found:
        raise AnatomicaError("the studio's page is not in this installation; build it with `make page`")
    return found


def _walk(folder: Traversable, before: str = ""):
    for item in folder.iterdir() if folder.is_dir() else ():
        if item.is_dir():
            yield from _walk(item, f"{before}{item.name}/")
        else:
            yield f"{before}{item.name}", PageFile(item.read_bytes(), _kind(item.name))


def _kind(name: str) -> str:
    ending = name[name.rfind(".") :]
    return KINDS.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
