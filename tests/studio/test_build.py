"""The committed page is what its sources give: built anew with `npm ci`, the same bytes."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "anatomica" / "studio" / "page"


def hashes(folder: Path) -> dict[str, str]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def test_the_page_needs_no_network() -> None:
    """Everything is loaded from the server itself."""
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert "//" not in text.replace("<!doctype", "")
    assert "<style" not in text
    for css in PAGE.rglob("*.css"):
        assert "url(" not in css.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_new_build_is_the_committed_one(tmp_path: Path) -> None:
    web = tmp_path / "web"
    shutil.copytree(ROOT / "web", web, ignore=shutil.ignore_patterns("node_modules"))
    for command in (
        ["npm", "ci"],
        ["npm", "run", "check"],
        ["npm", "run", "build", "--", "--outDir", "page"],
    ):
        done = subprocess.run(command, cwd=web, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert hashes(web / "page") == hashes(PAGE)
