"""The engine: every patient once, whoever draws it and whatever is killed; the same bytes in the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_patients import LOG, MAKER, PAUSE, content, open_fake, open_fatal, planned, spec

from anatomica.cohort.engine import begin, carry_out, run_notes, state
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.plan import make_plan, read_plan
from anatomica.cohort.worker import Done, Job, Worker
from anatomica.errors import AnatomicaError

HERE = Path(__file__).parent


class InProcess:
    """An executor without processes, for tests of everything else."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def __enter__(self) -> InProcess:
        self.worker = Worker(self.job)
        return self

    def __exit__(self, *what: object) -> None: ...

    def run(self, indices) -> Iterator[Done]:
        for index in indices:
            yield self.worker.one(index)


def undisturbed(folder: Path, **changes: object) -> dict[str, bytes]:
    planned(folder, **changes)
    carry_out(folder, InProcess(Job(folder, open_fake)))
    return content(folder)


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
    other = type(MAKER)("other", None, "fake")
    with pytest.raises(AnatomicaError, match="another model or code"):
        begin(make_plan(spec(), other), tmp_path)
    with pytest.raises(AnatomicaError, match="not a cohort's folder"):
        state(tmp_path / "nothing")


DRIVER = """
import sys
from pathlib import Path
from anatomica.cohort.engine import carry_out
from anatomica.cohort.worker import Job
from fake_patients import open_fake
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    job = Job(folder, open_fake, str(folder), 5.0)
    if sys.argv[2] == "ray":
        from anatomica.cohort.executors.cluster import RayExecutor as Executor
    else:
        from anatomica.cohort.executors.local import LocalExecutor as Executor
    carry_out(folder, Executor(job, 2), wait=0.2)
"""


def start_driver(folder: Path, executor: str) -> subprocess.Popen:
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    environment = os.environ | {"PYTHONPATH": paths, PAUSE: "0.02", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(folder), executor], env=environment)


def children(pid: int) -> list[int]:
    """All processes below one, however deep."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True).stdout
    parents = [tuple(map(int, line.split())) for line in found.splitlines()]
    below, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        new = [a for a, b in parents if b == parent]
        below += new
        ahead += new
    return below


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", "ray"])
def test_kill_9_at_20_moments_loses_nothing_and_draws_nothing_twice(tmp_path: Path, executor: str) -> None:
    """Workers and the driver are killed in turn; at most what was in flight is drawn again."""
    expected = undisturbed(tmp_path / "a", size=600)
    folder = tmp_path / "b"
    planned(folder, size=600)
    rng = random.Random(5)
    driver, in_flight = start_driver(folder, executor), 0
    moment = 0
    for moment in range(20):
        finished = state(folder).finished
        while state(folder).finished < finished + 3 and driver.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0.0, 0.3))
        if driver.poll() is not None:
            break
        in_flight += 2
        if moment % 2:
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
            driver = start_driver(folder, executor)
        else:
            below = children(driver.pid)
            if below:
                os.kill(rng.choice(below), signal.SIGKILL)
    assert moment == 19, "the cohort was finished before all moments came"
    if driver.wait(600):  # killed together with Ray's own processes
        driver = start_driver(folder, executor)
        assert driver.wait(600) == 0
    assert state(folder).complete
    assert content(folder) == expected
    twice = sum(n - 1 for n in drawn(folder).values())
    assert twice <= in_flight


@pytest.mark.slow
def test_two_ray_nodes_share_a_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parent)]))
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    from anatomica.cohort.executors.cluster import RayExecutor

    expected = undisturbed(tmp_path / "a")
    planned(tmp_path / "b")
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes.add_node(num_cpus=1)
        job = Job(tmp_path / "b", open_fake, str(tmp_path / "b"))
        assert carry_out(tmp_path / "b", RayExecutor(job, 2, nodes.address)).complete
    finally:
        nodes.shutdown()
    assert content(tmp_path / "b") == expected
    assert set(drawn(tmp_path / "b").values()) == {1}
