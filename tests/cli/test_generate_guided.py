"""`anatomica generate` under constraints, on an untrained model: options, recipes, refusals, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from anatomica.cli import app, main
from anatomica.data.phantoms import phantom
from anatomica.nifti import save
from tiny_prior import save_tiny_model

WALL = """name: wall
anatomy: coronary
constraints:
- name: wall
  structure: [Ve]
  domain: {family: global, grid: [8, 8, 8]}
  target: {%s}
  %s
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return str(save_tiny_model(tmp_path_factory.mktemp("guided") / "model", patients=40))


def spec_file(folder: Path, target: str, more: str = "match: []") -> str:
    path = folder / "spec.yaml"
    path.write_text(WALL % (target, more))
    return str(path)


def generate(out: Path, options: str, *arguments: str) -> tuple[dict, str]:
    """report.json and what was said on screen."""
    command = ["generate", *options.split(), *arguments, "--out", str(out)]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "140"})
    assert result.exit_code == 0, result.output
    return json.loads((out / "report.json").read_text()), result.output


def labels(path: Path) -> np.ndarray:
    return np.asarray(nib.load(path).dataobj)  # type: ignore[attr-defined]


def test_spec_until_met_and_recipe(model: str, tmp_path: Path) -> None:
    """An extreme target is called one, drawn as often as allowed, and ends in "not met" with a valid label
    map; the recipe makes the same label map again without the spec's file."""
    spec = spec_file(tmp_path, "volume_ml: 19, centroid_mm: [90, 0, 0], betti: {b0: 9}")
    options = "--samples 1 --seed 4 --steps 2 --until-met 2"
    first, said = generate(tmp_path / "a", options, "--model", model, "--spec", spec)
    assert "outside the training population" in said
    assert "0 of 1 meet every constraint; 1 sample (2 drawn)" in said
    assert [s["drawn"] for s in first["samples"]] == [2]
    assert not any(c["met"] for s in first["samples"] for c in s["checks"] if c["quantity"] != "components")
    array = labels(tmp_path / "a" / "coronary-000004.nii.gz")
    assert array.shape == (16, 16, 16)
    assert set(np.unique(array)) <= {0, 1, 2, 3}
    (tmp_path / "spec.yaml").unlink()
    again, _ = generate(tmp_path / "b", "", "--model", model, "--recipe", str(tmp_path / "a" / "report.json"))
    one, other = (labels(tmp_path / folder / "coronary-000004.nii.gz") for folder in "ab")
    np.testing.assert_array_equal(one, other)
    assert again["recipe"]["arguments"] == first["recipe"]["arguments"]
    assert again["samples"][0]["checks"] == first["samples"][0]["checks"]


def test_what_is_met_is_drawn_once(model: str, tmp_path: Path) -> None:
    """Any wall between none and twice the cube will do."""
    path = spec_file(tmp_path, "mass: 1.0", "tolerance: {mass_percent: 100}")
    options = "--samples 1 --steps 2 --until-met 5"
    report, said = generate(tmp_path / "o", options, "--model", model, "--spec", path)
    assert report["met"] == report["samples"][0]["drawn"] == 1
    assert "1 of 1 meet every constraint" in said


def test_task_like_a_patient(model: str, tmp_path: Path) -> None:
    """Domains and targets of a file, by the paper's solver; the recipe does not need the file."""
    patient = tmp_path / "patient.nii.gz"
    save(phantom("coronary", 3, 32).label_map, patient)
    options = "--task multiscale-vessel-small --samples 1 --steps 2 --solver gradient"
    report, _ = generate(tmp_path / "a", options, "--model", model, "--like", str(patient))
    checks = report["samples"][0]["checks"]
    placed = {c["domain"] for c in checks}
    assert len(placed) + len(report["not_placed"]) == 16
    assert {c["quantity"] for c in checks} == {"volume", "centroid", "shape", "spread"}
    patient.unlink()
    generate(tmp_path / "b", "", "--model", model, "--recipe", str(tmp_path / "a" / "report.json"))
    a, b = (labels(tmp_path / folder / "coronary-000000.nii.gz") for folder in "ab")
    np.testing.assert_array_equal(a, b)


def test_betti_task_needs_no_patient(model: str, tmp_path: Path) -> None:
    options = "--task calcium-count --samples 1 --steps 1 --solver gradient"
    report, said = generate(tmp_path, options, "--model", model)
    assert [c["quantity"] for c in report["samples"][0]["checks"]] == ["components", "loops", "voids"]
    assert "components" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--task multiscale-vessel-small", "--like FILE"),
        ("--task right-ventricle --like-phantom 1", "model is coronary"),
        ("--task calcium-count --solver newton", "unknown solver 'newton'; allowed: gauss-newton, gradient"),
        ("--task calcium-count --decoder mlp", "unknown decoder"),
        ("--task calcium-count --method rk4", "unknown method"),
        ("--task calcium-count --spec x.yaml", "not both"),
        ("--like-phantom 1", "add --task or --spec"),
        ("--recipe nothing.json", "is not a report.json"),
    ],
)
def test_mistakes_are_one_sentence(model, tmp_path, monkeypatch, capsys, options, message) -> None:
    assert message in refusal(monkeypatch, capsys, options, "--model", model, "--out", str(tmp_path))


def refusal(monkeypatch, capsys, options: str, *arguments: str) -> str:
    """What the real entry point says about a mistake: exit code 2, one sentence, no traceback."""
    monkeypatch.setattr("sys.argv", ["anatomica", "generate", *options.split(), *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert "Traceback" not in said
    return " ".join(said.split())


def test_a_recipe_of_another_model_is_refused(model, tmp_path, monkeypatch, capsys) -> None:
    report, _ = generate(tmp_path / "a", "--samples 1 --steps 1", "--model", model)
    report["recipe"]["model"]["hash"] = "f" * 16
    other = tmp_path / "other.json"
    other.write_text(json.dumps(report))
    arguments = "--model", model, "--recipe", str(other), "--out", str(tmp_path / "b")
    assert "would differ" in refusal(monkeypatch, capsys, "", *arguments)


def test_ctrl_c_leaves_finished_samples_and_a_valid_report(model: str, tmp_path: Path) -> None:
    """A real process, interrupted after two of a thousand samples are on disk."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "anatomica", "generate", "--model", model, "--out", str(out)]
    command += [
        "--spec",
        spec_file(tmp_path, "mass: 0.3"),
        "--samples",
        "1000",
        "--steps",
        "2",
        "--batch",
        "1",
    ]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"COLUMNS": "140"},
        # A shell's background jobs ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while len(list(out.glob("*.nii.gz"))) < 2 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    files = sorted(p.name for p in out.glob("coronary-*.nii.gz"))
    report = json.loads((out / "report.json").read_text())
    assert [f"coronary-{s['seed']:06d}.nii.gz" for s in report["samples"]] == files
    assert 2 <= len(files) < 1000
    assert f"Stopped: {len(files)} of 1000 samples are finished and reported." in said
    assert all(labels(out / name).shape == (16, 16, 16) for name in files)
    assert (out / "report.html").read_text().endswith("</html>\n")
    assert not list(out.glob(".*.tmp"))
