"""`anatomica phantom`: what is written, and what a user is told."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from anatomica.anatomy.nifti import load, save
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


def test_phantoms_against_a_folder(tmp_path):
    """Other phantoms as the real ones: the table, the numbers, the picture."""
    folder = tmp_path / "real"
    for seed in range(100, 104):
        save(phantom("cardiac", seed, 32).label_map, folder / f"heart-{seed}.nii.gz")
    out = tmp_path / "out"
    arguments = ["-a", "cardiac", "--against", folder, "-c", 20, "-n", 32, "--results", out]
    said = run("phantom-population", *arguments).output
    assert "20 phantoms against 4 real cases" in said
    assert "1-NNA" in said
    result = json.loads((out / "phantoms-cardiac-against.json").read_text())
    assert result["real"] == 4
    assert len(result["features"]) == 35
    assert result["without_pathology"]["phantoms"] < 20
    assert (out / "phantoms-cardiac-against.png").read_bytes().startswith(b"\x89PNG")


def test_phantoms_against_keypoints(tmp_path):
    file = tmp_path / "keypoints.csv"
    rows, rng = ["scan,kind,level,x_mm,y_mm,z_mm"], np.random.default_rng(0)
    for scan in range(60):
        for i in range(1, 6):
            x, y, z = rng.normal(0, 1, 3) - [0, 0, 36 * i]
            rows.append(f"s{scan},body,L{i},{x:.2f},{y:.2f},{z:.2f}")
    file.write_text("\n".join(rows) + "\n")
    arguments = ["-a", "spinal", "--against", file, "-c", 3, "-n", 32, "--results", tmp_path]
    said = run("phantom-population", *arguments).output
    assert "3 phantoms against 60 real columns" in said
    assert json.loads((tmp_path / "phantoms-spinal-against.json").read_text())["real_columns"] == 60


def test_mistakes_about_real_patients(tmp_path):
    with pytest.raises(AnatomicaError, match="give one --anatomy"):
        run("phantom-population", "--against", tmp_path)
    with pytest.raises(AnatomicaError, match="does not exist"):
        run("phantom-population", "-a", "cardiac", "--against", tmp_path / "nowhere")
    with pytest.raises(AnatomicaError, match="spines are compared with a CSV file"):
        run("phantom-population", "-a", "spinal", "--against", tmp_path)
    with pytest.raises(AnatomicaError, match="has 0 NIfTI files"):
        run("phantom-population", "-a", "cardiac", "--against", tmp_path)
    with pytest.raises(AnatomicaError, match="give their folder with --against"):
        run("phantom-population", "-a", "cardiac", "--labels", "mapping.yaml")
