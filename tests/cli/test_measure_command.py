import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from anatomica.anatomy import nifti
from anatomica.cli import app, main
from oracles import two_ventricles

run = CliRunner()


@pytest.fixture(scope="module")
def heart(tmp_path_factory):
    path = tmp_path_factory.mktemp("heart") / "heart.nii.gz"
    nifti.save(two_ventricles(48), path)
    return path


def sentence(monkeypatch, capsys, *arguments: str) -> str:
    """What the real entry point says about a mistake: exit code 2, one sentence, no traceback."""
    monkeypatch.setattr("sys.argv", ["anatomica", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "Traceback" not in said
    return said


def test_measure_writes_table_json_and_picture(heart, tmp_path) -> None:
    result = run.invoke(
        app,
        [
            *["measure", "--anatomy", "cardiac", "--task", "right-ventricle", "--resolution", "48", "--out"],
            str(tmp_path),
            str(heart),
        ],
        env={"COLUMNS": "160"},
    )
    assert result.exit_code == 0, result.output
    assert "right ventricle" in result.output
    data = json.loads((tmp_path / "measurement.json").read_text())
    assert data["schema"] == "anatomica.measurement/1"
    assert data["constraints"][0]["domains"][0]["volume_ml"] > 10
    with Image.open(tmp_path / "measurement.png") as image:
        picture = np.asarray(image)
    assert picture.shape[0] > 500
    assert len(np.unique(picture.reshape(-1, picture.shape[-1]), axis=0)) > 100


def test_tasks_are_listed_and_shown() -> None:
    assert "vertebrae-connectivity" in run.invoke(app, ["tasks"], env={"COLUMNS": "200"}).output
    assert "family: interface" in run.invoke(app, ["tasks", "show", "mitral-valve"]).output
    assert json.loads(run.invoke(app, ["tasks", "schema"]).output)["title"] == "Spec"


def test_mistakes(heart, tmp_path, monkeypatch, capsys) -> None:
    def said(*arguments: str) -> str:
        return sentence(monkeypatch, capsys, "measure", *arguments)

    text = tmp_path / "text.nii.gz"
    text.write_text("not an image")
    spec = tmp_path / "spec.yaml"
    spec.write_text("name: x\nanatomy: cardiac\nconstraints: []\nextra: 1\n")
    assert "no such file" in said("nowhere.nii.gz", "--anatomy", "cardiac")
    assert "text.nii.gz" in said(str(text), "--anatomy", "cardiac")
    assert "unknown anatomy 'head'" in said(str(heart), "--anatomy", "head")
    assert "unknown task 'walk'" in said(str(heart), "--anatomy", "cardiac", "--task", "walk")
    assert "is about coronary anatomy" in said(str(heart), "--anatomy", "cardiac", "--task", "calcium-count")
    assert "line 4" in said(str(heart), "--anatomy", "cardiac", "--spec", str(spec))
    empty = said(str(heart), "--anatomy", "cardiac", "--task", "aortic-trunk")
    assert "nothing to measure" in empty
    assert "LA, LV, RV" in empty
    assert "not both" in said(str(heart), "--anatomy", "cardiac", "--task", "walk", "--spec", str(spec))
