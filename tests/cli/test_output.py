"""Every command has --quiet and --json; tables show every name whole, piped or on a narrow terminal."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.table import Table
from typer.main import get_command
from typer.testing import CliRunner

from anatomica.anatomy.nifti import save
from anatomica.cli import app
from anatomica.cli.output import Output, print_table, with_output
from anatomica.data.phantoms import phantom
from anatomica.spec.tasks import TASKS

NOT_YET: set[str] = set()


def commands(command, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Every command that does something, with its options."""
    children = getattr(command, "commands", {})
    if not children or command.invoke_without_command:
        yield name.strip(), {option for p in command.params for option in p.opts}
    for key, child in children.items():
        yield from commands(child, f"{name} {key}")


EVERY = dict(commands(get_command(app)))


def test_the_walk_finds_commands_of_all_depths() -> None:
    assert {"measure", "tasks", "tasks show", "prepare verse", "train all", "bench guidance"} <= set(EVERY)


@pytest.mark.parametrize("name", sorted(set(EVERY) - NOT_YET))
def test_every_command_has_quiet_and_json(name: str) -> None:
    assert {"--quiet", "-q", "--json"} <= EVERY[name]


@pytest.fixture(scope="module")
def heart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heart") / "heart.nii.gz"
    save(phantom("cardiac", 3, 32).label_map, path)
    return path


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ("tasks", "tasks"),
        ("tasks show calcium-count", "constraints"),
        ("tasks schema", "properties"),
        ("models", "models"),
        ("info", "versions"),
        ("measure HEART --anatomy cardiac --task right-ventricle --resolution 32", "constraints"),
        ("phantom --resolution 32 --out OUT", "phantoms"),
        ("prepare phantoms --anatomy coronary --count 2 --resolution 32 --out OUT", "cases"),
        ("bench homology --size 8 --rounds 1 --out OUT", "provenance"),
        ("evaluate geometric --list", "cells"),
    ],
)
def test_json_is_all_there_is_on_standard_output(
    arguments: str, key: str, heart: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Measured in a process of its own, and not known on every system.
    monkeypatch.setattr("anatomica.evaluate.bench.homology.extra_memory_mb", lambda n: None)
    words = [{"HEART": str(heart), "OUT": str(tmp_path / "out")}.get(w, w) for w in arguments.split()]
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == 0, result.output
    assert key in json.loads(result.stdout)
    assert result.stderr
    silent = CliRunner().invoke(app, [*words, "--json", "--quiet"])
    assert key in json.loads(silent.stdout)
    assert silent.stderr == ""


def test_what_libraries_print_goes_to_standard_error_too() -> None:
    small = typer.Typer()

    @small.command()
    @with_output
    def command(output: Output, count: int = 1) -> None:
        print("a library talks")
        output.print("[not markup]")
        output.result({"count": count, "folder": Path("a")})

    assert CliRunner().invoke(small, []).stdout == "a library talks\n[not markup]\n"
    assert CliRunner().invoke(small, ["-q"]).output == "a library talks\n"
    result = CliRunner().invoke(small, ["--count", "3", "--json"])
    assert json.loads(result.stdout) == {"count": 3, "folder": "a"}
    assert result.stderr == "a library talks\n[not markup]\n"


def test_a_mistake_is_one_sentence_on_standard_error_and_no_json() -> None:
    command = [sys.executable, "-m", "anatomica", "tasks", "show", "nothing", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")


def test_piped_tables_show_every_name_whole() -> None:
    command = [sys.executable, "-m", "anatomica", "tasks"]
    environment = os.environ | {"COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout
    for name, spec in TASKS.items():
        (line,) = (line for line in done.stdout.splitlines() if f" {name} " in line)
        assert spec.description in line


@pytest.mark.parametrize("width", [80, 60, 40])
def test_narrow_terminals_wrap_tables_and_cut_nothing(width: int) -> None:
    table = Table("name", "what", "number")
    rows = {
        "multiscale-myocardium-small": ("LV/RV/LA/RA/Ao/PA/SVC/IVC/PV/Myo, sixteen rays", "1.25"),
        "a": ("b", "12345678901234567890"),
    }
    for name, rest in rows.items():
        table.add_row(name, *rest)
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, color_system=None)
    print_table(console, table)
    lines = file.getvalue().splitlines()
    assert console.width == width
    # 27 letters of the name, 8 of each other column, borders and padding.
    assert max(map(len, lines)) <= max(width, 27 + 2 * 8 + 10)
    assert any("multiscale-myocardium-small" in line for line in lines)
    for column in range(3):
        shown = "".join(line.split("│")[column + 1].strip() for line in lines if "│" in line)
        given = "".join([name, *rest][column].replace(" ", "") for name, rest in rows.items())
        assert shown.replace(" ", "") == given
