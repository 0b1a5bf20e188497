"""The engine: every patient once, whoever draws it and whatever is killed; the same bytes in the end."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fake_patients import LOG, MAKER, InProcess, content, open_fake, open_fatal, planned, spec, undisturbed

from anatomica.cohort.engine import begin, carry_out, run_notes, state
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.plan import make_plan, read_plan
from anatomica.cohort.worker import Done, Job, Worker
from anatomica.errors import AnatomicaError

HERE = Path(__file__).parent


def drawn(folder: Path) -> Counter[str]:
    path = folder / LOG
    return Counter(path.read_text().split()) if path.is_file() else Counter()


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spawned processes import the fake patients."""
    monkeypatch.setenv("PYTHONPATH", str(HERE))


def test_two_local_workers_give_the_bytes_of_one_process(tmp_path: Path, importable: None) -> None:
    expected = undisturbed(tmp_path / "a")
    planned(tmp_path / "b")
    told: list[Done] = []
    job = Job(tmp_path / "b", open_fake, str(tmp_path / "b"))
    now = carry_out(tmp_path / "b", LocalExecutor(job, 2), told.append)
    assert now.complete
    assert content(tmp_path / "b") == expected
    assert sorted(x.index for x in told) == list(range(40))
    assert set(drawn(tmp_path / "b").values()) == {1}
    assert run_notes(tmp_path / "b")["patients"] == 40
    assert not list((tmp_path / "b" / "claims").iterdir())


def test_a_worker_that_dies_is_started_again_and_a_fatal_patient_is_named(
    tmp_path: Path, importable: None
) -> None:
    planned(tmp_path, size=8)
    with pytest.raises(AnatomicaError, match="patient 5 ended its process 3 times"):
        carry_out(tmp_path, LocalExecutor(Job(tmp_path, open_fatal), 1))
    assert state(tmp_path).finished >= 5
    assert carry_out(tmp_path, InProcess(Job(tmp_path, open_fake))).complete


def test_a_stopped_cohort_goes_on_and_draws_nothing_twice(tmp_path: Path) -> None:
    planned(tmp_path)
    job = Job(tmp_path, open_fake, str(tmp_path))

    def stop(one: Done) -> None:
        if one.index == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(tmp_path, InProcess(job), stop)
    assert state(tmp_path).finished == 13
    assert carry_out(tmp_path, InProcess(job)).complete
    assert set(drawn(tmp_path).values()) == {1}


def test_a_grown_cohort_keeps_its_patients(tmp_path: Path) -> None:
    before = undisturbed(tmp_path)
    read_plan(tmp_path).grown(10).save(tmp_path)
    job = Job(tmp_path, open_fake, str(tmp_path))
    assert carry_out(tmp_path, InProcess(job)) == state(tmp_path)
    after = content(tmp_path)
    assert {k: after[k] for k in before} == before
    assert set(drawn(tmp_path)) == {str(i) for i in range(40, 50)}


def test_patients_that_others_have_claimed_are_waited_for(tmp_path: Path) -> None:
    plan = planned(tmp_path, size=3)
    worker = Worker(Job(tmp_path, open_fake))
    path = worker.store.claims / f"{plan.key(1)}.0"
    path.write_text("elsewhere/boot/1/2")
    seen = []

    def note(one: Done) -> None:
        seen.append(one.index)
        if len(seen) == 2:  # the other machine gives up
            path.unlink()

    assert carry_out(tmp_path, InProcess(Job(tmp_path, open_fake)), note, wait=0.01).complete
    assert seen == [0, 2, 1]


def test_a_folder_of_another_spec_or_code_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    assert begin(make_plan(spec(), MAKER), tmp_path).spec == plan.spec
    with pytest.raises(AnatomicaError, match="another spec"):
        begin(make_plan(spec(seed=9), MAKER), tmp_path)
    other = type(MAKER)("other", "fake")
    with pytest.raises(AnatomicaError, match="another model or code"):
        begin(make_plan(spec(), other), tmp_path)
    with pytest.raises(AnatomicaError, match="not a cohort's folder"):
        state(tmp_path / "nothing")
