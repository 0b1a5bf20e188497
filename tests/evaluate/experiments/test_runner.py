"""Experiments with an untrained tiny model: batches, resuming, tables."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.cli.evaluate import run
from anatomica.data.cache import half_of
from anatomica.errors import AnatomicaError
from anatomica.evaluate.experiments.catalogue import EXPERIMENTS
from anatomica.evaluate.experiments.drawing import draw_cell
from anatomica.evaluate.experiments.estimate import Paces
from anatomica.evaluate.experiments.everything import run_all
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.measuring import measure_sample
from anatomica.evaluate.experiments.plan import GRADIENT_L, NEWTON_L, UNCONDITIONAL, Cell, profile, resampled
from anatomica.evaluate.experiments.rows import PAPER
from anatomica.evaluate.experiments.runner import Runner
from anatomica.evaluate.experiments.targets import targets
from anatomica.evaluate.experiments.validity import PERCENTILES, simple_asks
from anatomica.evaluate.metrics.nna import one_nna
from anatomica.evaluate.metrics.quality import compare, told_apart
from anatomica.measurement.placing import batched
from anatomica.prior.zoo import load_model
from anatomica.spec.tasks import TASKS, task
from anatomica.spec.yaml import parse_spec
from tiny_prior import save_tiny_model

TASK = "calcium-count"
PHANTOMS = 40
WALL = parse_spec(
    "name: wall\nanatomy: coronary\nconstraints:\n- name: wall\n  structure: [Ve]\n  mass_threshold: 1.0e-9\n"
    "  domain: {family: cylindrical, grid: [1, 8, 8], extent: [16, 16, 32], levels: 1, angles: 2}\n"
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("lab")
    save_tiny_model(folder / "models" / "coronary")
    made = Lab(folder / "cache", folder / "baselines", PHANTOMS, models=folder / "models", quiet=True)
    made.held_out("coronary")  # some tests read its phantoms as a cache of the user's
    return made


def test_held_out_patients_are_never_training_patients(lab: Lab) -> None:
    training, held_out = lab.training("coronary"), lab.held_out("coronary")
    assert len(training) + len(held_out) == PHANTOMS
    assert not set(training.ids) & set(held_out.ids)
    assert held_out.maps.shape[1:] == (16, 16, 16)
    assert held_out.clouds.shape == (len(held_out), 3, 256, 3)


def test_targets_are_of_one_half_and_quality_of_the_other(lab: Lab) -> None:
    held_out, asked, others = (f("coronary") for f in (lab.held_out, lab.asked, lab.others))
    assert sorted((*asked.ids, *others.ids)) == sorted(held_out.ids)
    assert {half_of(id) for id in asked.ids} == {"test"}
    assert {half_of(id) for id in others.ids} == {"development"}
    tuned = replace(lab, half="development")
    assert tuned.asked("coronary").ids == others.ids
    assert {t.case for t in targets(lab, WALL, 4)} <= set(asked.ids)


@pytest.mark.parametrize("method", [GRADIENT_L, NEWTON_L], ids=lambda m: m.key)
def test_samples_with_different_targets_do_not_disturb_one_another(lab: Lab, method) -> None:
    """A batch of samples, each guided in its own domains to its own patient, is the samples one by one."""
    model = lab.model("coronary")
    asked = targets(lab, WALL, 2)
    assert asked[0].case != asked[1].case
    guiding = [t.resolved for t in asked]
    z = torch.randn(2, *model.latent_shape, generator=torch.Generator().manual_seed(0))
    sigma = torch.tensor([1.0, 1.0])
    together = method.guidance.denoiser(model, batched(guiding))(z, sigma)
    alone = [method.guidance.denoiser(model, g)(z[i : i + 1], sigma[:1]) for i, g in enumerate(guiding)]
    assert not torch.allclose(together, model.denoiser(z, sigma), atol=1e-4)
    torch.testing.assert_close(together, torch.cat(alone), atol=2e-4, rtol=1e-3)
    both = draw_cell(model, method, 2, [0, 1], guiding)
    assert both[0].labels.shape == (16, 16, 16)
    assert both[0].seconds > 0


def arguments(lab: Lab, cache: Path, out: Path) -> dict[str, Any]:
    return {
        "profile": "quick",
        "samples": 4,
        "steps": 2,
        "eta": None,
        "only": [TASK, "unconditional"],
        "data": lab.cache / f"phantoms-{PHANTOMS}",
        "models": lab.models,
        "baselines": lab.baselines,
        "half": "test",
        "cache": cache,
        "out": out,
        "batch": 1,
        "list_cells": False,
    }


def test_a_killed_run_goes_on_and_gives_the_same_table(lab: Lab, tmp_path: Path) -> None:
    caches = [tmp_path / name for name in ("killed", "whole")]
    given = arguments(lab, caches[0], tmp_path / "a")
    options = [f"--{k}={given[k]}" for k in ("samples", "steps", "data", "models", "cache", "out", "batch")]
    only = ["--only", TASK, "--only", "unconditional"]
    command = [sys.executable, "-m", "anatomica", "evaluate", "topological", *only, *options]
    with subprocess.Popen(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 120
        while not any((caches[0] / "samples").glob("*.npz")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    before = {p: p.stat().st_mtime_ns for p in (caches[0] / "samples").glob("*.npz")}
    assert before
    said: list[str] = []
    run("topological", said.append, **given)
    assert all(p.stat().st_mtime_ns == then for p, then in before.items())
    run("topological", said.append, **arguments(lab, caches[1], tmp_path / "b"))
    tables = [(tmp_path / x / "topological.md").read_text() for x in ("a", "b")]
    # Whoever works on the checkout may commit in between.
    assert tables[0].rpartition("\nMade by")[0] == tables[1].rpartition("\nMade by")[0]
    assert TASK in tables[0]
    assert (tmp_path / "a" / "topological.png").stat().st_size > 1000
    summary = json.loads((tmp_path / "a" / "topological.json").read_text())
    assert summary["cells"][0]["samples"] == 4
    assert set(summary["provenance"]) >= {"commit", "code", "weights"}
    assert f"Made by commit {summary['provenance']['commit']}" in tables[0]
    content = json.loads((caches[0] / "results" / "topological-samples.json").read_text())
    assert (caches[0] / "results" / "topological-samples.png").stat().st_size > 1000
    samples = content["cells"][0]["samples"]
    assert [s["seed"] for s in samples] == [0, 1, 2, 3]
    assert set(samples[0]) >= {"betti", "betti_without_specks", "seconds", "volumes_ml", "met"}
    assert "| real, coronary | real patients | 4 |" in tables[0]
    # Nothing is left to draw: a third run only writes.
    said.clear()
    run("topological", said.append, **given)
    assert not [line for line in said if "per sample" in line]
    wrong: dict[str, Any] = {**given, "only": ["hearts"]}
    with pytest.raises(AnatomicaError, match="neither a task nor a method"):
        run("topological", said.append, **wrong)


def test_validity_judges_every_method_alike(lab: Lab, tmp_path: Path, monkeypatch) -> None:
    """An untrained model has no valid sample, and the table says so first."""
    # Pieces are also counted on a grid twice as fine as the task's, which is for models of 128^3 voxels.
    monkeypatch.setitem(TASKS, TASK, resampled(task(TASK), 16))
    given: dict[str, Any] = {
        **arguments(lab, lab.cache, tmp_path),
        "only": [TASK, "ours", "polish", "unconditional"],
    }
    run("validity", lambda _: None, **given)
    table = (tmp_path / "validity.md").read_text()
    assert table.index(f"- {TASK}: 0 [") < table.index("| Task |")
    for title in ("Uncond.", "Uncond. + polish", "ours"):
        assert f"| {TASK} | {title} | 4 |" in table
    content = json.loads((lab.cache / "results" / "validity-samples.json").read_text())
    sample = content["cells"][0]["samples"][0]
    assert sample["valid"] == (sample["met"] and sample["plausible"])
    assert set(sample) >= {"met_2n", "counts_2n", "contained", "unmet", "unusual"}


def test_every_row_is_judged_alike_and_can_be_drawn_again(lab: Lab, tmp_path: Path, monkeypatch) -> None:
    """The table says what its rows had, what is lost, and a command that gives one row again."""
    monkeypatch.setitem(TASKS, TASK, resampled(task(TASK), 16))
    rows = ["unconditional", "polish", "paper", "paper-polish", "ours"]
    given: dict[str, Any] = arguments(lab, lab.cache, tmp_path / "a") | {"only": [TASK, *rows], "samples": 2}
    run("topological", lambda _: None, **given)
    table = (tmp_path / "a" / "topological.md").read_text()
    assert table.index("A cell is one of four tasks") < table.index("| Task |")
    for title in ("Uncond.", "Uncond. + polish", "paper's update", "paper's update + polish", "ours"):
        assert table.count(f"| {TASK} | {title} | 2 |") == 2  # precision, then quality
    assert "2 stochastic steps, noise 80 to 0.01, rho 1, churn 40" in table
    assert "Targets are of **test** patients" in table
    summary = json.loads((tmp_path / "a" / "topological.json").read_text())["summary"]
    for row in summary.values():
        assert row.keys() >= {"B0", "B1", "B2", "met_2n", "plausible_2n", "quality", "quality_2n"}
    (command,) = re.findall(r"`anatomica (evaluate topological .*?)`", table)
    words = [*shlex.split(command), "--cache", str(lab.cache), "--out", str(tmp_path / "b")]
    shutil.rmtree(lab.cache / "samples")
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    again = (tmp_path / "b" / "topological.md").read_text()
    (row,) = (line for line in again.splitlines() if line.startswith(f"| {TASK} | ours |") and " / " in line)
    assert row.replace("**", "") in table.replace("**", "")
    assert f"| {TASK} | Uncond. |" not in again


def test_simple_asks_are_volumes_of_the_population() -> None:
    model = load_model("coronary")
    asks = simple_asks(model)
    assert len(asks) == 3 * len(PERCENTILES)
    ml: list[Any] = [ask.constraints[0].target.volume_ml for ask in asks[:5]]
    assert ml == sorted(ml)
    assert model.population is not None
    mass = model.population[:, 1, 0] * model.edge_mm**3 / 1000
    assert ml[2] == pytest.approx(float(mass[mass > 0].median()), rel=0.02)


def test_topology_is_measured_raw_and_without_specks(lab: Lab) -> None:
    spec = task("calcium-count")
    done = Runner(lab, profile("quick", 2, 1), lambda _: None).run(
        [Cell(TASK, GRADIENT_L, resampled(spec, 8), spec, 2, (("resolution", 8),))]
    )
    numbers = done[0].numbers
    assert len(numbers) == 2
    assert all(len(n["betti"]) == len(n["betti_without_specks"]) == 3 for n in numbers)
    assert all(n["betti"][0] >= n["betti_without_specks"][0] for n in numbers)
    assert done[0].values("seconds").shape == (2,)
    assert np.isnan(done[0].values("fidelity", "mass")).all()


def test_fidelity_is_measured_against_each_samples_own_patient(lab: Lab) -> None:
    runner = Runner(lab, profile("quick", 2, 1), lambda _: None)
    done = runner.run([Cell("wall", UNCONDITIONAL, WALL, WALL, 2)])[0]
    assert [n["case"] for n in done.numbers] == [t.case for t in targets(lab, WALL, 2)]
    assert np.isfinite(done.values("fidelity", "mass")).all()
    # A patient is its own target, without error.
    target = runner.target(done.cell, 0)
    assert target.reference is not None
    itself = measure_sample(target.reference, WALL, target)
    assert itself["fidelity"] == {"mass": 0, "centroid": 0, "covariance": 0, "absent": 0}
    assert itself["met"]


def test_real_patients_pass_for_real(lab: Lab) -> None:
    held_out = lab.held_out("coronary")
    found = compare(lab.training("coronary"), held_out, 4)
    assert found.fmd.value > 0
    assert 0 <= found.nna.low <= found.nna.value <= found.nna.high <= 1
    same = compare(held_out, held_out, 4)
    assert same.fmd.value == pytest.approx(0, abs=1e-4)
    assert same.nna.value == 0
    assert same.spread == pytest.approx(1)


def test_1nna_is_averaged_over_disjoint_sets() -> None:
    normal = np.random.default_rng(0).normal
    real, samples = normal(size=(11, 2, 32, 3)), normal(0.3, size=(4, 2, 32, 3))
    parts = [real[:4], real[4:8]]  # the last three make no set
    assert told_apart(samples, real) == pytest.approx(np.mean([one_nna(samples, p) for p in parts], axis=0))
    assert told_apart(samples, real[:3]) == pytest.approx(one_nna(samples[:3], real[:3]))


def test_what_cannot_be_run_is_said(lab: Lab) -> None:
    said: list[str] = []
    spec = task("right-ventricle")
    runner = Runner(lab, profile("quick"), said.append)
    assert runner.run([Cell("right-ventricle", NEWTON_L, spec, spec, 2)]) == []
    assert "no model of cardiac" in said[0]


def test_what_is_missing_is_estimated_and_pace_is_kept(lab: Lab) -> None:
    """One sample is timed and not kept; after the run nothing is missing, and other runners know the pace."""
    cell = Cell(TASK, UNCONDITIONAL, task(TASK), task(TASK), 3, first=700)
    told: list[str] = []
    runner = Runner(lab, profile("quick", steps=2), told.append)
    before = runner.estimate("topological", [cell])
    assert (before.samples, before.missing) == (3, 3)
    assert before.seconds == pytest.approx(3 * runner.paces.of(cell))
    assert before.seconds > 0
    runner.run([cell])
    after = Runner(lab, profile("quick", steps=2), told.append)
    assert after.estimate("topological", [cell]) == ("topological", 3, 0, 0.0)
    assert after.paces.knows(cell)


def test_a_kind_that_was_never_timed_is_estimated_roughly(tmp_path: Path) -> None:
    paces = Paces.at(tmp_path / "paces.json")
    slow = Cell(TASK, replace(NEWTON_L, key="new"), task(TASK), task(TASK), 1)
    paces.add(Cell(TASK, UNCONDITIONAL, task(TASK), task(TASK), 1), 2.0, 3)
    paces.add(Cell(TASK, UNCONDITIONAL, task(TASK), task(TASK), 1), 6.0, 1)
    assert paces.of(slow) == pytest.approx(3.0)  # the mean of the others
    assert Paces.at(tmp_path / "paces.json").known == paces.known
    paper = Cell(TASK, PAPER, task(TASK), task(TASK), 1)
    quick = Paces.at(tmp_path / "paces.json", steps=10)
    assert quick.of(paper) == pytest.approx(paces.of(paper) / 10)
    assert not quick.knows(Cell(TASK, UNCONDITIONAL, task(TASK), task(TASK), 1))  # timed in other steps


def test_everything_is_estimated_before_anything_is_run(lab: Lab, tmp_path: Path) -> None:
    told: list[str] = []
    found = run_all(lab, profile("quick", samples=2, steps=1), told.append, tmp_path, dry=True)
    estimated = {e["experiment"] for e in found["estimates"]}
    assert {"topological", "multiscale", "validity"} <= estimated
    left_out = {line.split(": ")[1] for line in told if line.startswith("left out")}
    assert set(EXPERIMENTS) <= estimated | left_out  # the tiny lab has coronaries only
    assert any(line.startswith("all ") for line in told)
    assert not list(tmp_path.iterdir())
