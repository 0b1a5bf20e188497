"""The examples run and do what they say."""

import runpy
from pathlib import Path

import nibabel as nib
import pytest
from typer.testing import CliRunner

from anatomica.cli import app

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_guided_heart(tmp_path, capsys) -> None:
    runpy.run_path(str(EXAMPLES / "guided_heart.py"))["main"](tmp_path, steps=4)
    said = capsys.readouterr().out
    assert "step 4 of 4: right ventricle" in said
    assert said.count("right ventricle: ") == 2
    assert nib.load(tmp_path / "heart-1.nii.gz").shape == (64, 64, 64)  # type: ignore[attr-defined]


def test_potential_as_loss_closes_the_ring() -> None:
    assert runpy.run_path(str(EXAMPLES / "potential_as_loss.py"))["train"](weight=0.005) == (1, 1, 0)


@pytest.mark.slow
def test_demo(tmp_path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)], env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "4 of 4 valid" in result.output
    written = {p.name for p in tmp_path.iterdir()}
    assert written >= {"patient.nii.gz", "patient.png", "report.html", "contact-sheet.png"}
    assert len([name for name in written if name.startswith("cardiac-") and name.endswith(".nii.gz")]) == 4
