"""Reports and metrics: closed forms, known sets, and pages that hold what they promise."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_patients import open_fake, planned
from scipy import ndimage, stats

from anatomica.anatomy.nifti import load
from anatomica.cohort.privacy import Crowd, features
from anatomica.cohort.report import write_cohort_report
from anatomica.cohort.rules import Condition
from anatomica.cohort.store import Store
from anatomica.cohort.summary import covered, flow, joint, memorisation, read_cohort, targets, topology
from anatomica.cohort.training_phantoms import training_phantoms
from anatomica.cohort.worker import Job, Worker
from anatomica.evaluate.metrics.agreement import against_distribution, against_values, energy_distance
from anatomica.evaluate.metrics.coverage import coverage, vendi_score
from anatomica.evaluate.metrics.frechet import morphology
from anatomica.prior.population import population_moments
from anatomica.prior.zoo import load_model
from tiny_prior import ellipsoids


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cohort")
    planned(folder)
    worker = Worker(Job(folder, open_fake))
    for index in range(30):
        worker.one(index)
    return folder


def test_the_report_holds_what_it_promises(folder: Path) -> None:
    found = write_cohort_report(folder)
    assert found["flow"]["kept"] == 30
    assert found["flow"]["left"] == 10
    rows = list(csv.DictReader(io.StringIO((folder / "cohort.csv").read_text())))
    assert len(rows) == 30
    assert float(rows[0]["requested lumen.mean_diameter_mm"]) == pytest.approx(
        float(rows[0]["lumen.mean_diameter_mm"]), rel=0.01
    )
    page = (folder / "cohort.html").read_text()
    for words in (
        "Requested and achieved",
        "Jointly",
        "Topology",
        "Plausibility",
        "Evidence",
        "Question of interest",
        "data:image/png",
    ):
        assert words in page
    assert "ompliant" not in page
    assert "http" not in page.replace("http-equiv", "")
    kept = json.loads((folder / "cohort.json").read_text())
    assert kept["recipe"]["spec"]["name"] == "fake"


def test_achieved_values_agree_with_requests_and_shifted_ones_do_not(folder: Path) -> None:
    cohort = read_cohort(folder)
    assert all(row["requests"]["within"] for row in targets(cohort).values())
    rows = joint(cohort)
    assert rows is not None
    (pair,) = rows["correlations"]
    assert pair["asked"] == -0.5
    assert pair["achieved"] == pytest.approx(pair["requested"], abs=0.01)
    assert rows["energy_distance"] < rows["energy_band"]
    for r in cohort.records:
        r["quantities"]["lumen.mean_diameter_mm"] += 1.0
    assert not targets(cohort)["lumen.mean_diameter_mm"]["distribution"]["within"]
    assert flow(cohort)["candidates"] == 30


def test_ks_is_that_of_scipy_and_wasserstein_that_of_a_shift() -> None:
    x = np.random.default_rng(0).normal(size=300)
    found = against_distribution(x, stats.norm.cdf, stats.norm.ppf)
    assert found.ks == pytest.approx(stats.kstest(x, "norm").statistic)
    assert found.band == pytest.approx(stats.kstwobign.ppf(0.95) / np.sqrt(300), rel=1e-3)
    assert against_values(x, x + 0.5).wasserstein == pytest.approx(0.5)
    assert energy_distance(x[:, None], x[:, None]) == pytest.approx(0)
    assert energy_distance(x[:, None] + 3, x[:, None]) > 1


def test_coverage_knows_copies_strangers_and_a_collapsed_set() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(200, 3))
    assert coverage(real, real) == (1, 1, 1)
    assert coverage(real + 100, real) == (0, 0, 0)
    alike = coverage(rng.normal(size=(200, 3)), real)
    collapsed = coverage(real[:1] + 1e-3 * rng.normal(size=(200, 3)), real)
    assert min(alike) > 0.8
    assert collapsed.precision == 1
    assert collapsed.coverage < 0.1
    assert collapsed.recall < 0.1


def test_the_vendi_score_counts_different_samples() -> None:
    far = np.eye(7) * 1000
    assert vendi_score(far, 1.0) == pytest.approx(7)
    assert vendi_score(np.repeat(far, 5, axis=0), 1.0) == pytest.approx(7)
    assert vendi_score(np.zeros((7, 3)), 1.0) == pytest.approx(1)


def test_features_of_moments_are_those_of_label_maps() -> None:
    maps = ellipsoids(12)
    moments = population_moments(maps, 4)
    assert np.allclose(features(moments.double().numpy()), morphology(maps, 4), atol=1e-5)
    crowd = Crowd.of(moments)
    number, distance = crowd.nearest(moments[5].double().numpy())
    assert number == 5
    assert distance == pytest.approx(0, abs=1e-6)
    assert crowd.limit(0) == pytest.approx(crowd.own.min())
    other = population_moments(ellipsoids(1, seed=9), 4)[0].double().numpy()
    z = np.abs(crowd.standardised(other[None]) - crowd.points)
    assert crowd.nearest(other)[1] == pytest.approx(np.sqrt((z**2).mean(1)).min())
    assert isinstance(moments, torch.Tensor)


def test_coverage_quality_and_memorisation_of_a_cohort(folder: Path) -> None:
    cohort = read_cohort(folder)
    maps = ellipsoids(90)
    crowd = Crowd.of(population_moments(maps[30:], 4))
    rows = population_moments(maps[:30], 4).double().numpy()
    for record, moments in zip(cohort.records, rows, strict=True):
        record["moments"] = [[None if np.isnan(x) else float(x) for x in row] for row in moments]
        record["nearest_training"] = crowd.nearest(moments)[1]
    found = covered(cohort, crowd)
    assert found["precision"] > 0.7
    assert found["coverage"] > 0.5
    assert 1 < found["vendi"] <= 30
    low, high = found["one_nna_floor"][1:]
    assert low - 0.1 < found["one_nna"][0] < high + 0.1
    assert memorisation(cohort, crowd)["nearer"] <= 3
    copied = population_moments(maps[30:60], 4).double().numpy()
    for record, moments in zip(cohort.records, copied, strict=True):
        record["nearest_training"] = crowd.nearest(moments)[1]
    assert memorisation(cohort, crowd)["nearer"] == 30


def test_conditions_hold_only_of_patients_that_have_the_quantity() -> None:
    assert Condition("a", "<", 3).met({"a": 2})
    assert not Condition("a", "<", 3).met({"b": 2})
    assert not Condition("a", "!=", 3).met({"a": 3})


def test_topology_counts_patients_by_their_betti_numbers(folder: Path) -> None:
    counted = topology(read_cohort(folder))
    assert counted["patients"] == 30
    found = counted["tissues"]
    assert {name: sum(counts.values()) for name, counts in found.items()} == dict.fromkeys(found, 30)
    record = read_cohort(folder).kept[0]
    label_map = load(Store(folder).map_path(record["key"]))
    for name, counts in found.items():
        pieces: Any = ndimage.label(label_map.array == label_map.table[name].id)  # by faces
        assert any(numbers.split()[0] == str(pieces[1]) for numbers in counts)


def test_training_phantoms_are_drawn_again_and_strangers_are_noticed() -> None:
    model = load_model("coronary")
    found = training_phantoms(model)
    assert found is not None
    assert found.patient(3) is not None
    assert set(found.train).isdisjoint(found.held_out)
    assert model.population is not None
    crowd = Crowd.of(model.population)
    own = crowd.nearest(model.population[3].numpy())
    assert own == (3, pytest.approx(0, abs=1e-3))
    assert min(crowd.nearest(x)[1] for x in found.held_out_moments(3)) > 0.05
    model.population[0] += 0.01
    assert training_phantoms(model) is None
