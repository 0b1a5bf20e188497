"""`anatomica prepare`: what the user types and reads."""

import shutil
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from anatomica.cli.prepare import register
from anatomica.data import open_cache
from anatomica.errors import AnatomicaError

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
import trees


def run(*arguments) -> str:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    result = CliRunner().invoke(app, ["prepare", *map(str, arguments)], catch_exceptions=True)
    if isinstance(result.exception, Exception):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_phantoms(tmp_path):
    out = tmp_path / "cache"
    said = run("phantoms", "--anatomy", "coronary", "--count", 3, "--resolution", 32, "--out", out)
    assert f"{out}: 3 cases at 32^3" in said
    assert len(open_cache(out).cases) == 3


def test_spines_tell_what_was_left_out_and_why(tmp_path):
    root = trees.verse(tmp_path / "data")
    said = run("verse", "--root", root, "--out", tmp_path / "a", "-n", 32, "-j", 1)
    assert "4 cases at 32^3" in said
    assert "3 left out" in said
    assert "left out sub-verse901" in said
    assert "unreadable: 2" in said
    assert "missing: 1" in said
    said = run("verse", "--root", root, "--out", tmp_path / "b", "-n", 32, "-j", 1, "--no-missing")
    assert "5 cases at 32^3" in said
    for folder in (root / "derivatives").iterdir():
        if folder.name != "sub-verse901":
            shutil.rmtree(folder)
    with pytest.raises(AnatomicaError, match="no case is left"):
        run("verse", "--root", root, "--out", tmp_path / "c", "-n", 32, "-j", 1)


def test_generic_with_a_yaml_mapping(tmp_path):
    heart = trees.balls("cardiac", trees.HEART)
    trees.write(tmp_path / "data" / "a.nii.gz", heart.array * 10, heart.affine)
    mapping = tmp_path / "mine.yaml"
    mapping.write_text("".join(f"{x.id * 10}: {x.name}\n" for x in heart.table.labels[1:]))
    base = ("generic", "-a", "cardiac", "--root", tmp_path / "data", "--labels", mapping, "-n", 32, "-j", 1)
    assert "1 cases" in run(*base, "--out", tmp_path / "out")
    mapping.write_text('10: RV\n"*": background\n')  # another mapping may not go into the same cache
    with pytest.raises(AnatomicaError, match="made with options="):
        run(*base, "--out", tmp_path / "out")


def test_other_sources(tmp_path):
    small = ("-n", 32, "-j", 1)
    aortas, spines, arteries = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    trees.aortas(aortas, 1)
    trees.ctspine1k(spines)
    trees.pullbacks(arteries, (130,))
    run("totalsegmentator", "-a", "aortic", "--root", aortas, "--out", tmp_path / "1", *small)
    run("ctspine1k", "--root", spines, "--out", tmp_path / "2", *small)
    run("disrupt-cad", "--root", arteries, "--out", tmp_path / "3", "--crops", 1, *small)
    assert [len(open_cache(tmp_path / str(i)).cases) for i in (1, 2, 3)] == [1, 3, 1]


def test_a_cache_is_not_written_over_data(tmp_path):
    study = tmp_path / "study"
    heart = trees.balls("cardiac", trees.HEART)
    trees.write(study / "cases" / "a.nii.gz", heart.array, heart.affine)
    (study / "cases" / "report.txt").write_text("mine")
    before = trees.tree_bytes(study)
    base = ("generic", "-a", "cardiac", "-n", 16, "-j", 1)
    for root, out, match in (
        (study / "cases", study, "--root .* lies inside --out .*written over the data"),
        (study, study, "lies inside"),
        (study, study / "cases", "--out .* lies inside --root"),
    ):
        with pytest.raises(AnatomicaError, match=match):
            run(*base, "--root", root, "--out", out)
    with pytest.raises(AnatomicaError, match="neither empty nor a cache"):
        run("phantoms", "-a", "coronary", "--count", 1, "-n", 32, "--out", study)
    with pytest.raises(AnatomicaError, match="neither empty nor a cache"):
        run("phantoms", "-a", "coronary", "--count", 1, "-n", 32, "--out", study / "cases" / "report.txt")
    assert trees.tree_bytes(study) == before


def test_mistakes_are_said(tmp_path):
    with pytest.raises(AnatomicaError, match="no such folder"):
        run("verse", "--root", tmp_path / "none", "--out", tmp_path / "out")
    with pytest.raises(AnatomicaError, match="lies inside"):
        run("verse", "--root", tmp_path, "--out", tmp_path / "out")
    with pytest.raises(AnatomicaError, match="vertebrae, not tissues of aortic"):
        run("verse", "--anatomy", "aortic", "--root", tmp_path, "--out", tmp_path.parent / "out")
    (tmp_path / "data").mkdir()
    with pytest.raises(AnatomicaError, match="known vocabularies"):
        run(
            "generic",
            "-a",
            "spinal",
            "--root",
            tmp_path / "data",
            "--labels",
            "verze",
            "--out",
            tmp_path / "o",
        )


@pytest.mark.parametrize(
    "command", ["phantoms", "totalsegmentator", "ctspine1k", "verse", "disrupt-cad", "generic"]
)
def test_help_teaches_by_example(command):
    assert f"anatomica prepare {command}" in " ".join(run(command, "--help").replace("│", " ").split())
