"""`anatomica phantom`: what is written, and what a user is told."""

import json

import pytest
import typer
from typer.testing import CliRunner

from anatomica.anatomy.nifti import load
from anatomica.cli.phantom import register
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError


def run(*arguments):
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=True)
    if isinstance(result.exception, Exception):
        raise result.exception
    return result


def test_writes_maps_truths_and_a_sheet(tmp_path):
    out = tmp_path / "hearts"
    said = run("phantom", "-a", "cardiac", "-c", 2, "--seed", 7, "-n", 32, "-p", "dilated-rv", "-o", out)
    assert "2 cardiac phantoms at 32^3" in said.output
    assert (out / "contact-sheet.png").read_bytes().startswith(b"\x89PNG")
    truth = json.loads((out / "cardiac-000008.truth.json").read_text())
    assert truth["pathology"] == "dilated-rv"
    assert truth["betti"]["LA+RA"] == [2, 0, 0]
    written, made = load(out / "cardiac-000008.nii.gz"), phantom("cardiac", 8, 32, "dilated-rv").label_map
    assert (written.array == made.array).all()
    assert written.table.tissues == made.table.tissues


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(AnatomicaError, match="unknown anatomy 'kidney'; allowed: cardiac, aortic"):
        run("phantom", "-a", "kidney", "-o", tmp_path)
    with pytest.raises(AnatomicaError, match="allowed: none, aneurysm"):
        run("phantom", "-a", "aortic", "-p", "dilated-rv", "-o", tmp_path)
    with pytest.raises(AnatomicaError, match="multiple of 16"):
        run("phantom", "-n", 60, "-o", tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(AnatomicaError, match="is a file"):
        run("phantom", "-o", file)


def test_population_page(tmp_path, monkeypatch):
    monkeypatch.setattr("anatomica.cli.phantom.SHEET", 1)
    arguments = ["-a", "aortic", "-c", 3, "--compared", 0, "--results", tmp_path, "--docs", tmp_path]
    run("phantom-population", *arguments)
    page = (tmp_path / "phantoms.md").read_text()
    assert "## Aortic" in page
    assert "| ascending aorta |" in page
    assert "Hager 2002" in page
    result = json.loads((tmp_path / "phantoms-aortic.json").read_text())
    assert result["distinct"] == 3
    assert result["wrong_topology"] == []
    assert (tmp_path / "images" / "phantoms-aortic.png").exists()
