"""`anatomica cohort`: one real tiny cohort from the spec to the exports, and mistakes in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from fake_patients import MAKER, content, spec
from typer.testing import CliRunner

from anatomica.cli import app
from anatomica.cohort.drawing import Drawing
from anatomica.cohort.engine import state
from anatomica.cohort.feasible import infeasible, refuse_hopeless
from anatomica.cohort.plan import make_plan
from anatomica.cohort.spec import EXAMPLE, parse_spec
from anatomica.cohort.worker import Job, Worker
from anatomica.errors import AnatomicaError
from anatomica.prior.percentiles import percentiles_of
from anatomica.prior.zoo import load_model
from tiny_prior import save_tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_model(tmp_path_factory.mktemp("model") / "tiny", patients=12)


def write_spec(path: Path, model: Path, **more: object) -> Path:
    content = {
        "name": "tiny",
        "anatomy": "coronary",
        "size": 2,
        "model": str(model),
        "include": [],
        "tries": 1,
    }
    path.write_text(yaml.safe_dump(content | {"model": str(model)} | more))
    return path


def run(*words: object) -> dict:
    result = CliRunner().invoke(app, ["cohort", *map(str, words), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def test_a_real_cohort_from_spec_to_exports(tiny: Path, tmp_path: Path) -> None:
    path, out = write_spec(tmp_path / "c.yaml", tiny, exports=["nnunet"], images="synth"), tmp_path / "out"
    assert run("draw", path, "--out", out, "--dry-run")["size"] == 2
    assert not out.exists()
    found = run("draw", path, "--out", out, "--workers", 1)
    assert found["flow"]["kept"] == 2
    assert (Path(found["exports"][0]) / "dataset.json").is_file()
    assert run("status", out)["finished"] == 2
    assert {x.name for x in out.iterdir()} >= {"cohort.html", "cohort.json", "cohort.csv", "patients.png"}
    before = content(out)
    assert run("add", out, 1, "--workers", 1)["flow"]["kept"] == 3
    after = content(out)
    assert {k: after[k] for k in before} == before
    assert len(run("export", out, "monai", "bids")["folders"]) == 2
    assert state(out).complete


def test_another_worker_draws_the_same_patient(tiny: Path, tmp_path: Path) -> None:
    from anatomica.cohort.drawing import open_drawing
    from anatomica.cohort.maker import maker_of

    wanted = parse_spec(write_spec(tmp_path / "c.yaml", tiny).read_text())
    for name in ("a", "b"):
        make_plan(wanted, maker_of(wanted)).save(tmp_path / name)
        Worker(Job(tmp_path / name, open_drawing)).one(1)
    assert content(tmp_path / "a") == content(tmp_path / "b")
    other = make_plan(wanted, MAKER)
    with pytest.raises(AnatomicaError, match="begun with other code"):
        open_drawing(other)


def test_requests_beyond_the_population_are_infeasible() -> None:
    known = percentiles_of([{"lumen.mean_diameter_mm": 2.5 + 0.1 * i} for i in range(11)], "test")
    plan = make_plan(spec(targets={"lumen.mean_diameter_mm": {"choice": [2, 3]}}), MAKER)
    values = {dict(plan.request(i).targets)["lumen.mean_diameter_mm"]: plan.request(i) for i in range(40)}
    assert infeasible(values[3.0], plan, known) == ""
    assert "the training population has 2.5 to 3.5" in infeasible(values[2.0], plan, known)
    assert infeasible(values[2.0], plan, None) == ""


def test_requests_that_contradict_themselves_are_infeasible() -> None:
    """A lumen of 3 mm has 7 mm2, and lies within the vessel."""
    targets = {"lumen.mean_diameter_mm": 3, "vessel.area_mm2": {"choice": [5, 15]}}
    plan = make_plan(spec(targets=targets), MAKER)
    requests = {dict(r.targets)["vessel.area_mm2"]: r for r in map(plan.request, range(40))}
    assert "cannot be held together" in infeasible(requests[5.0], plan, None)
    assert infeasible(requests[15.0], plan, None) == ""


def test_a_condition_that_nobody_of_the_population_meets_is_refused() -> None:
    known = percentiles_of([{"vessel.area_mm2": 10.0 + i} for i in range(11)], "test")
    refuse_hopeless(make_plan(spec(include=["vessel.area_mm2 < 11"]), MAKER), known)
    plan = make_plan(spec(include=["vessel.area_mm2 < 5"]), MAKER)
    refuse_hopeless(plan, None)
    with pytest.raises(AnatomicaError, match=r"'vessel\.area_mm2 < 5': the training population has 10 to 20"):
        refuse_hopeless(plan, known)


def test_an_infeasible_request_is_reported_and_replaced_only_if_asked(tiny: Path) -> None:
    known = percentiles_of([{"lumen.mean_diameter_mm": 9.0 + 0.1 * i} for i in range(11)], "test")
    drawing = Drawing(load_model(tiny), known, None)
    for replaced, attempts in ((False, 1), (True, 5)):
        patient = drawing(make_plan(spec(replace=replaced), MAKER), 0)
        assert patient.label_map is None
        assert patient.record["outcome"] == "infeasible"
        assert len(patient.record["attempts"]) == attempts


def test_init_writes_a_spec_that_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "cohort.yaml"
    run("init", path)
    assert parse_spec(path.read_text()) == parse_spec(EXAMPLE)
    again = CliRunner().invoke(app, ["cohort", "init", str(path)])
    assert isinstance(again.exception, AnatomicaError)
    assert "properties" in run("schema")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["resume", "nowhere"], "not a cohort's folder"),
        (["draw", "none.yaml", "--out", "x"], "does not exist"),
    ],
)
def test_mistakes_are_one_sentence(words: list[str], expected: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["cohort", *words])
    assert isinstance(result.exception, AnatomicaError)
    assert expected in str(result.exception)
