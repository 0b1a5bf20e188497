"""A cohort's folder with damaged files: refused by name, never read as something else."""

import json
from pathlib import Path

import pytest

from anatomica.cohort.engine import run_notes
from anatomica.cohort.patient import Patient
from anatomica.cohort.patients_csv import header
from anatomica.cohort.plan import Maker, make_plan, read_plan
from anatomica.cohort.spec import parse_spec
from anatomica.cohort.store import Store
from anatomica.errors import AnatomicaError

SPEC = "{name: a, anatomy: aortic, size: 3, targets: {ao.tortuosity: {uniform: [1.05, 1.35]}}}"


def test_a_plan_that_was_changed_is_refused(tmp_path: Path) -> None:
    plan = make_plan(parse_spec(SPEC), Maker("", ""))
    plan.save(tmp_path)
    assert read_plan(tmp_path).keys == plan.keys
    path = tmp_path / "plan.json"
    path.write_text(path.read_text().replace('"size": 3', '"size": 4', 1))
    with pytest.raises(AnatomicaError, match=r"plan\.json cannot be read: its checksum does not fit"):
        read_plan(tmp_path)
    path.write_text("[" * 100_000)
    with pytest.raises(AnatomicaError, match="nested too deeply"):
        read_plan(tmp_path)


def test_a_record_that_was_changed_is_refused(tmp_path: Path) -> None:
    store, key = Store(tmp_path), "ab" + 30 * "0"
    store.put(key, Patient({"outcome": "kept", "index": 0}, None))
    assert store.record(key) == {"outcome": "kept", "index": 0}
    path = store.record_path(key)
    path.write_text(path.read_text().replace("kept", "unmet"))
    with pytest.raises(AnatomicaError, match="delete it and resume the cohort"):
        store.record(key)
    path.unlink()
    with pytest.raises(AnatomicaError, match="is not there any more"):
        store.record(key)


@pytest.mark.parametrize("text", ["", "[]", '{"patients": "x"}', json.dumps({"patients": 1})])
def test_notes_on_a_run_decide_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    assert run_notes(tmp_path) == {"patients": 0, "worker_seconds": 0.0, "driver_seconds": 0.0}


def test_a_table_of_endless_fields_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "patients.csv"
    path.write_text('a,"' + "x" * 200_000)
    with pytest.raises(AnatomicaError, match="is not a table with commas"):
        header(path)
