"""`anatomica evaluate`: where it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.cli.evaluate import run
from anatomica.errors import AnatomicaError

NOTHING: dict[str, Any] = {
    "samples": None,
    "steps": None,
    "eta": None,
    "only": None,
    "data": None,
    "models": None,
    "half": "test",
    "batch": None,
}


@pytest.mark.parametrize(
    ("options", "folder"),
    [
        ("", "out/evaluation-quick"),
        ("--profile quick", "out/evaluation-quick"),
        ("--profile here", "results"),
        ("--profile paper", "results"),
        ("--profile quick --out results", "results"),
    ],
)
def test_a_quick_look_does_not_replace_results(monkeypatch, options: str, folder: str) -> None:
    given = []
    monkeypatch.setattr("anatomica.cli.evaluate.run", lambda *arguments: given.extend(arguments))
    result = CliRunner().invoke(app, ["evaluate", "geometric", *options.split()])
    assert result.exit_code == 0, result.output
    assert Path(folder) in given


def test_docs_are_made_of_results(monkeypatch) -> None:
    seen = []
    monkeypatch.setattr(
        "anatomica.evaluate.experiments.page.update_page", lambda page, out: seen.append((page, out)) or {}
    )
    assert CliRunner().invoke(app, ["evaluate", "docs"]).exit_code == 0
    assert seen == [
        (Path("docs") / name, Path("results")) for name in ("results.md", "meshes.md", "studio.md")
    ]


def test_out_is_checked_before_anything_is_sampled(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "anatomica.evaluate.experiments.runner.Runner.run", lambda *_: pytest.fail("samples were drawn")
    )
    (tmp_path / "file").write_text("not a folder")
    folders: dict[str, Any] = {"baselines": tmp_path, "cache": tmp_path, "out": tmp_path / "file"}
    with pytest.raises(AnatomicaError, match="not a folder that can be written to"):
        run("topological", print, "quick", **NOTHING, **folders, list_cells=False)


def test_a_list_names_what_only_leaves(tmp_path) -> None:
    options = ["--only", "unconditional", "--only", "mitral-valve", "--list", "--json"]
    result = CliRunner().invoke(app, ["evaluate", "validity", *options, "--cache", str(tmp_path)])
    assert result.exit_code == 0, result.output
    cells = json.loads(result.stdout)["cells"]
    assert [(c["task"], c["method"]) for c in cells] == [("mitral-valve", "unconditional")]
