"""Results say what made them, and the page says when that is not today's code or weights."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from anatomica.evaluate import provenance
from anatomica.evaluate.experiments import identity
from anatomica.evaluate.experiments.page import update_page
from anatomica.prior.zoo import load_model, shipped_hash
from anatomica.version import __version__

MODULE = "evaluate.experiments.geometric"


def test_a_result_of_today_is_not_outdated() -> None:
    about = provenance.provenance(MODULE, {"cardiac": shipped_hash("cardiac")})
    assert json.loads(json.dumps(about)) == about
    assert provenance.outdated(about) == ""
    assert provenance.outdated(about | {"code": "0"}) == "of older code"
    assert provenance.outdated(about | {"weights": {"cardiac": "0"}}) == "of older weights"
    assert (
        provenance.outdated(about | {"code": None, "weights": {"heart": "0"}}) == "of older code and weights"
    )
    hashes = f"code {about['code']}, weights cardiac {shipped_hash('cardiac')}."
    assert provenance.made_by(about) == f"Made by commit {about['commit']}, {hashes}"


def test_the_hash_on_the_card_is_the_model_s() -> None:
    assert shipped_hash("coronary") == load_model("coronary").hash


def test_pictures_do_not_make_a_table_older() -> None:
    counted = identity._imported(MODULE, provenance.PICTURES)
    assert {"guidance.gauss_newton", "evaluate.metrics.frechet", "evaluate.experiments.runner"} <= counted
    assert not any(name.split(".")[0] == "report" for name in counted)
    assert "evaluate.experiments.figures" in identity._imported(MODULE)
    assert "evaluate.experiments.figures" not in counted


def test_the_commit_is_that_of_the_checkout_the_package_is_part_of(tmp_path: Path, monkeypatch) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(provenance, "PACKAGE", package)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    installed = f"version {__version__}"
    assert provenance.commit() == installed
    git("init", "-q")
    # A virtual environment inside a checkout of something else is not part of it.
    assert provenance.commit() == installed
    git("add", ".")
    git("commit", "-q", "-m", "first")
    assert provenance.commit() == git("rev-parse", "--short", "HEAD")
    (package / "__init__.py").write_text("x = 1\n")
    assert provenance.commit() == git("rev-parse", "--short", "HEAD") + "-dirty"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("git") is None
    assert provenance.commit() == installed


def write_result(folder: Path, name: str, about: dict) -> None:
    folder.mkdir(exist_ok=True)
    content = {"provenance": about, "cells": [{"samples": 3}, {"samples": 4}]}
    (folder / f"{name}.json").write_text(json.dumps(content))
    (folder / f"{name}.md").write_text("# Title\n\n| a |\n")


def test_the_page_keeps_prose_and_links_tables_with_their_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page, results = Path("docs/results.md"), Path("results")
    page.parent.mkdir()
    marks = (f"<!-- results: {name} -->\nold\n<!-- end -->\n" for name in ("new", "older", "missing"))
    page.write_text("Prose.\n" + "More.\n".join(marks))
    today = provenance.provenance(MODULE, {})
    write_result(results, "new", today)
    write_result(results, "older", today | {"code": "0", "commit": "abc"})
    (results / "new.png").write_bytes(b"")
    states = update_page(page, results)
    assert states == {"new": "of this code and these weights", "older": "of older code"}
    first = page.read_text()
    assert first.count("More.\n") == 2
    assert "old\n" not in first
    links = "`new`: [table](../results/new.md), [numbers](../results/new.json), [figure](../results/new.png)"
    assert f"{links}; 7 samples; of this code and these weights (commit {today['commit']})\n" in first
    assert "[numbers](../results/older.json); 7 samples; **of older code** (commit abc)\n" in first
    assert "Not run yet: there is no `missing.md`" in first
    banner = "# Title\n\n> **Of older code** than this checkout's: made at commit abc.\n\n| a |\n"
    assert (results / "older.md").read_text() == banner
    assert (results / "new.md").read_text() == "# Title\n\n| a |\n"
    update_page(page, results)
    assert page.read_text() == first
    assert (results / "older.md").read_text() == banner
    # Made again by today's code, the table loses its banner.
    (results / "older.json").write_text(json.dumps({"provenance": today}))
    assert update_page(page, results)["older"] == "of this code and these weights"
    assert (results / "older.md").read_text() == "# Title\n\n| a |\n"


def test_a_page_can_hold_the_table_itself(tmp_path: Path) -> None:
    page, results = tmp_path / "page.md", tmp_path / "results"
    page.write_text("Prose.\n<!-- table: new -->\nold\n<!-- end -->\nMore.\n")
    update_page(page, results)
    assert "Not run yet" in page.read_text()
    write_result(results, "new", provenance.provenance(MODULE, {}))
    update_page(page, results)
    text = "Prose.\n<!-- table: new -->\n# Title\n\n| a |\n<!-- end -->\nMore.\n"
    assert page.read_text() == text
    write_result(results, "new", provenance.provenance(MODULE, {}) | {"code": "0", "commit": "abc"})
    update_page(page, results)
    assert "| a |" in page.read_text()
    assert "> **Of older code** than this checkout's: made at commit abc." in page.read_text()
