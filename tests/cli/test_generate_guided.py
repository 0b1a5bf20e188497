"""`anatomica generate` under constraints, on an untrained model: options, recipes, refusals, Ctrl-C."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from typer.testing import CliRunner

from anatomica.anatomy.nifti import save
from anatomica.cli import app, main
from anatomica.cli.sampling import keep_each
from anatomica.data.phantoms import phantom
from anatomica.prior.zoo import load_model
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
    spec = spec_file(tmp_path, "volume_ml: 1.9, centroid_mm: [6, 0, 0], betti: {b0: 9}")
    options = "--samples 1 --seed 4 --steps 2 --until-met 2"
    first, said = generate(tmp_path / "a", options, "--model", model, "--spec", spec)
    assert "outside the training population" in said
    assert "0 of 1 valid (1 unmet); 1 sample (2 drawn)" in said
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


def test_what_is_met_but_implausible_is_drawn_again(model: str, tmp_path: Path) -> None:
    """Any wall between none and twice the cube will do, but an untrained map is unlike every patient."""
    path = spec_file(tmp_path, "mass: 1.0", "tolerance: {mass_percent: 100}")
    options = "--samples 1 --steps 2 --until-met 5"
    report, said = generate(tmp_path / "o", options, "--model", model, "--spec", path)
    assert report["met"] == 1
    assert report["valid"] == 0
    assert report["samples"][0]["drawn"] == 5
    assert "0 of 1 valid (1 met, but implausible)" in said


def test_task_like_a_patient(model: str, tmp_path: Path) -> None:
    """Domains and targets of a file, by the paper's solver; the recipe does not need the file."""
    patient = tmp_path / "patient.nii.gz"
    save(phantom("coronary", 3, 32).label_map, patient)
    options = "--task multiscale-vessel-small --samples 1 --steps 2 --until-valid 1 --solver gradient"
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
    options = "--task calcium-count --samples 1 --steps 1 --until-valid 1 --solver gradient"
    report, said = generate(tmp_path, options, "--model", model)
    assert [c["quantity"] for c in report["samples"][0]["checks"]] == ["components", "loops", "voids"]
    assert "components" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--task multiscale-vessel-small", "--like FILE"),
        ("--task right-ventricle --like-phantom 1", "about cardiac anatomy, not about coronary"),
        ("--task calcium-count --solver newton", "unknown solver 'newton'; allowed: gauss-newton, gradient"),
        ("--task calcium-count --decoder mlp", "unknown decoder"),
        ("--task calcium-count --method rk4", "unknown method"),
        ("--task calcium-count --spec x.yaml", "not both"),
        ("--like-phantom 1", "add --set, --task or --spec"),
        ("--recipe nothing.json", "is not a report.json"),
        ("--task calcium-count --device cdua", "--device 'cdua' cannot be used"),
        ("--task calcium-count --device cuda:99", "this machine has: cpu"),
    ],
)
def test_mistakes_are_one_sentence(model, tmp_path, monkeypatch, capsys, options, message) -> None:
    assert message in refusal(monkeypatch, capsys, options, "--model", model, "--out", str(tmp_path))


@pytest.mark.parametrize("below", ["", "deeper"])
def test_out_is_checked_before_anything_is_sampled(model, tmp_path, monkeypatch, capsys, below) -> None:
    monkeypatch.setattr("anatomica.generation.draw.sample", lambda *_, **__: pytest.fail("was sampled"))
    (tmp_path / "file").write_text("not a folder")
    out = str(tmp_path / "file" / below)
    said = refusal(monkeypatch, capsys, "--task calcium-count", "--model", model, "--out", out)
    assert f"--out {out!r} is not a folder that can be written to" in said


def test_a_full_disk_is_one_sentence(model, tmp_path, monkeypatch, capsys) -> None:
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x.nii.gz")

    monkeypatch.setattr("anatomica.anatomy.nifti.write_together", full)
    options = "--samples 1 --steps 1"
    said = refusal(monkeypatch, capsys, options, "--model", model, "--out", str(tmp_path))
    assert "error: x.nii.gz: No space left on device" in said


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
    del report["recipe"]["checksum"]  # with it any change is refused
    report["recipe"]["model"]["hash"] = "f" * 16
    other = tmp_path / "other.json"
    other.write_text(json.dumps(report))
    arguments = "--model", model, "--recipe", str(other), "--out", str(tmp_path / "b")
    assert "would differ" in refusal(monkeypatch, capsys, "", *arguments)


def test_a_recipe_of_before_there_were_scouts_is_refused(model, tmp_path, monkeypatch, capsys) -> None:
    report, _ = generate(tmp_path / "a", "--samples 1 --steps 1", "--model", model)
    del report["recipe"]["checksum"]  # with it any change is refused
    report["recipe"]["model"]["layouts"] = None
    options = report["recipe"]["arguments"]["options"]
    options["layouts"] = options.pop("scouts")
    older = tmp_path / "older.json"
    older.write_text(json.dumps(report))
    arguments = "--model", model, "--recipe", str(older), "--out", str(tmp_path / "b")
    assert "the argument 'scouts' is missing" in refusal(monkeypatch, capsys, "", *arguments)


def test_a_recipe_samples_as_it_says(model, tmp_path, monkeypatch, capsys) -> None:
    """With its own sampler settings, whatever the model's card says by then."""
    report, _ = generate(tmp_path / "a", "--samples 1 --steps 4", "--model", model)
    again = "--model", model, "--recipe", str(tmp_path / "a" / "report.json")
    del report["recipe"]["checksum"]  # with it any change is refused
    for eta, same in ((1.0, True), (0.0, False)):
        report["recipe"]["model"]["sampling"]["eta"] = eta
        (tmp_path / "a" / "report.json").write_text(json.dumps(report))
        generate(tmp_path / "b", "", *again)
        a, b = (labels(tmp_path / x / "coronary-000000.nii.gz") for x in "ab")
        assert np.array_equal(a, b) == same
    report["recipe"]["model"]["sampling"]["eta"] = "much"
    (tmp_path / "a" / "report.json").write_text(json.dumps(report))
    said = refusal(monkeypatch, capsys, "", *again, "--out", str(tmp_path / "c"))
    assert "eta: input should be a valid number, found 'much'" in said


@pytest.mark.parametrize(
    "option",
    ["--samples 8", "-s 8", "--seed 3", "--steps 2", "--task calcium-count", "--resolution 32", "--batch 8"],
)
def test_a_recipe_decides_everything_else(model, tmp_path, monkeypatch, capsys, option) -> None:
    """Also where the option says what is the default anyway."""
    arguments = "--model", model, "--recipe", "report.json", "--out", str(tmp_path)
    said = refusal(monkeypatch, capsys, option, *arguments)
    assert f"{option.replace('-s ', '--samples ').split()[0]} is decided by the recipe" in said


def test_a_recipe_of_another_version_is_made_with_a_warning(model: str, tmp_path: Path) -> None:
    report, _ = generate(tmp_path / "a", "--samples 1 --steps 1", "--model", model)
    again = "--model", model, "--device", "cpu", "--recipe", str(tmp_path / "a" / "report.json")
    assert "warning" not in generate(tmp_path / "b", "", *again)[1]
    report["recipe"]["torch"] = "1.0.0"
    (tmp_path / "a" / "report.json").write_text(json.dumps(report))
    said = " ".join(generate(tmp_path / "c", "", *again)[1].split())
    assert "was made with torch 1.0.0, now" in said
    assert "label maps may differ" in said


def test_what_could_not_be_placed_is_said_and_not_met(model: str, tmp_path: Path) -> None:
    """A patient without calcium; the recipe of it says the same."""
    label_map = phantom("coronary", 3, 32).label_map
    array = np.where(label_map.array == label_map.table.id_of("Ca"), 0, label_map.array)
    save(replace(label_map, array=array), tmp_path / "patient.nii.gz")
    any_wall = spec_file(tmp_path, "mass: 1.0", "tolerance: {mass_percent: 100}\n  match: []")
    grid = "domain: {family: global, grid: [8, 8, 8]}"
    with Path(any_wall).open("a") as file:
        file.write(f"- {{name: calcium, structure: [Ca], {grid}}}\n")
    options = "--samples 1 --steps 1 --until-valid 1"
    like = "--like", str(tmp_path / "patient.nii.gz")
    first = generate(tmp_path / "a", options, "--model", model, "--spec", any_wall, *like)
    recipe = str(tmp_path / "a" / "report.json")
    second = generate(tmp_path / "b", "", "--model", model, "--recipe", recipe)
    for report, said in (first, second):
        assert report["met"] == 0
        assert report["samples"][0]["met"] is False
        assert "0 of 1 valid" in said
        assert "calcium could not be placed (Ca does not occur), so it was not asked for" in said
    assert "calcium could not be placed" in (tmp_path / "a" / "report.html").read_text()


def stop_when(samples: list[int], failing: list[int], batch: int) -> tuple[int, bool, list[int]]:
    """(counted, stopped, on disk) where Ctrl-C comes while these are saved, once for each mention."""
    disk: list[int] = []

    def keep(sample: int) -> None:
        if sample in failing:
            failing.remove(sample)
            raise KeyboardInterrupt
        disk.append(sample)

    return *keep_each(samples, keep, batch), disk  # type: ignore[arg-type]


def test_ctrl_c_while_saving_keeps_the_rest_of_the_batch() -> None:
    assert stop_when([1, 2, 3, 4], [], 2) == (4, False, [1, 2, 3, 4])
    assert stop_when([1, 2, 3, 4, 5, 6, 7], [4], 3) == (6, True, [1, 2, 3, 4, 5, 6])
    # A second one is meant.
    assert stop_when([1, 2, 3, 4, 5, 6], [1, 2], 3) == (1, True, [1])
    assert stop_when([1, 2, 3], [2, 2], 3) == (1, True, [1])


def test_ctrl_c_does_not_report_files_of_an_earlier_run(model, tmp_path, monkeypatch) -> None:
    """Seed 0 is there from before; this run is stopped twice while it saves its own."""
    generate(tmp_path, "--samples 1 --steps 1", "--model", model)
    (tmp_path / "report.json").unlink()

    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anatomica.anatomy.nifti.save", interrupted)
    command = ["generate", "--model", model, "--samples", "1", "--steps", "1", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 130
    assert "Stopped: 0 of 1 samples" in result.output
    assert not (tmp_path / "report.json").exists()


def test_the_demo_says_the_command_that_makes_the_same(tmp_path, monkeypatch) -> None:
    runs = []
    # Phantoms start at 32^3; nothing is sampled.
    prior = replace(load_model(save_tiny_model(tmp_path / "model", "cardiac")), n=32)
    monkeypatch.setattr("anatomica.prior.zoo.load_model", lambda *_: prior)
    monkeypatch.setattr("anatomica.cli.sampling.run", lambda *given: runs.append(given[2:]))
    said = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--samples", "9"]).output
    command = next(line for line in said.splitlines() if line.startswith("anatomica generate"))
    result = CliRunner().invoke(app, command.split()[1:])
    assert result.exit_code == 0, result.output
    (first, _, spec, placed, *_), (second, _, spec_again, placed_again, *_) = runs
    assert first == second
    assert spec == spec_again
    assert placed[0].domains.t.equal(placed_again[0].domains.t)
    assert placed[0].wanted.values["mass"].equal(placed_again[0].wanted.values["mass"])


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
