"""The examples run and do what they say."""

import json
import runpy
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.cli import app
from anatomica.mesh import surface_of
from anatomica.mesh.tetrahedra import TetOptions, tetrahedralize

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_guided_heart(tmp_path, capsys) -> None:
    runpy.run_path(str(EXAMPLES / "guided_heart.py"))["main"](tmp_path, steps=4)
    said = capsys.readouterr().out
    assert "step 4 of 4: right ventricle" in said
    assert said.count("right ventricle: ") == 2
    assert nib.load(tmp_path / "heart-1.nii.gz").shape == (64, 64, 64)  # type: ignore[attr-defined]


def test_potential_as_loss_closes_the_ring() -> None:
    assert runpy.run_path(str(EXAMPLES / "potential_as_loss.py"))["train"](weight=0.005) == (1, 1, 0)


def test_the_transmural_coordinate_of_a_shell_is_the_closed_form() -> None:
    example = runpy.run_path(str(EXAMPLES / "transmural_laplace.py"))
    inner, outer, n = 5.0, 9.0, 22
    away = np.linalg.norm(np.indices((n, n, n)) - (n - 1) / 2, axis=0)
    array = np.select([away < inner, away < outer], [2, 1], 0).astype(np.uint8)
    table = LabelTable.from_names({1: "Myo", 2: "LV"})
    mesh, _ = tetrahedralize(surface_of(LabelMap(array, np.eye(4), table)), TetOptions(edge_mm=2.5))
    heart = example["Heart"](mesh.vertices, mesh.tetrahedra, mesh.material, {"Myo": 1, "LV": 2})
    u = example["transmural"](heart)
    r = np.linalg.norm(mesh.vertices - (n - 1) / 2, axis=1)
    own = ~np.isnan(u)
    assert 0 <= u[own].min() < u[own].max() <= 1
    expected = (1 / inner - 1 / r[own]) / (1 / inner - 1 / outer)
    assert np.abs(u[own] - expected).max() < 0.15  # the border is that of voxels, 0.1 mm rough
    assert np.abs(u[own] - expected).mean() < 0.04
    middles, normals = example["inner_faces"](heart)
    outwards = (middles - (n - 1) / 2) / np.linalg.norm(middles - (n - 1) / 2, axis=1, keepdims=True)
    assert ((normals * outwards).sum(axis=1) > 0.6).all()
    rays, elsewhere = example["along_rays"](heart, example["Sampler"](heart, u), 2.5)
    assert elsewhere == 0, "every normal of a shell goes through it"
    assert len(rays) > 100
    assert all(3.5 < ray.length_mm < 7 for ray in rays)
    assert max(ray.fall for ray in rays) < 1e-9


def test_a_fall_is_against_the_highest_value_before() -> None:
    ray = runpy.run_path(str(EXAMPLES / "transmural_laplace.py"))["Ray"]
    assert ray(np.array([0.1, 0.5, 0.4, 0.6, 0.3, 0.9]), 1.0).fall == pytest.approx(0.3)
    assert ray(np.array([0.1, 0.5, 0.5]), 1.0).fall == 0


@pytest.mark.slow
def test_transmural_laplace(tmp_path, capsys) -> None:
    runpy.run_path(str(EXAMPLES / "transmural_laplace.py"))["main"](tmp_path, results=tmp_path)
    assert "the proofs hold" in capsys.readouterr().out
    numbers = json.loads((tmp_path / "transmural.json").read_text())
    assert numbers["rays"] > 500
    assert numbers["falling"] == 0
    assert (tmp_path / "wall.png").stat().st_size > 10_000


@pytest.mark.slow
def test_demo(tmp_path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "4 of 4 valid" in result.output
    written = {p.name for p in tmp_path.iterdir()}
    assert written >= {"patient.nii.gz", "patient.png", "report.html", "contact-sheet.png"}
    assert len([name for name in written if name.startswith("cardiac-") and name.endswith(".nii.gz")]) == 4
