"""kill -9 of workers and of the driver: nothing is lost, nothing is done twice, the bytes are the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_patients import LOG, content, fake_patient, logged, open_fake, open_fatal, planned, undisturbed

from anatomica.cohort.drawing import open_drawing
from anatomica.cohort.engine import carry_out, state
from anatomica.cohort.patient import Draw, Patient
from anatomica.cohort.plan import Plan
from anatomica.cohort.store import Store
from anatomica.cohort.worker import Done, Job
from anatomica.errors import AnatomicaError

HERE = Path(__file__).parent
DRIVER = """
import sys
from pathlib import Path
from anatomica.cohort.engine import carry_out
from anatomica.cohort.worker import Done, Job
from anatomica.errors import AnatomicaError
from test_kills import open_watched
if __name__ == "__main__":
    folder, address = Path(sys.argv[1]), sys.argv[2]
    job = Job(folder, open_watched, str(folder), 5.0)
    if address:
        from anatomica.cohort.executors.cluster import RayExecutor
        executor = RayExecutor(job, 2, address)
    else:
        from anatomica.cohort.executors.local import LocalExecutor
        executor = LocalExecutor(job, 2)
    carry_out(folder, executor, wait=0.2)
"""
WORKERS = ("spawn_main", "ray::_Actor")
"""What the command lines of workers contain."""


def open_watched(plan: Plan, device: str) -> Draw:
    """Fake patients of 20 ms; the log tells who began each, and whether it was there already."""
    store = Store(Path(device))

    def draw(plan: Plan, index: int) -> Patient:
        key = plan.key(index)
        logged(Path(device), f"{index} {os.getpid()} {int(store.done(key))}")
        time.sleep(0.02)
        return fake_patient(plan, index)

    return draw


def start_driver(folder: Path, address: str) -> subprocess.Popen:
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", DRIVER, str(folder), address], env=environment)


def workers_below(pid: int) -> list[int]:
    """The workers' processes below one, however deep."""
    listed = subprocess.run(["ps", "-wweo", "pid=,ppid=,args="], capture_output=True, text=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    below, ahead = [], [pid]
    while ahead:
        parent = ahead.pop()
        for row in rows:
            if int(row[1]) == parent:
                ahead.append(int(row[0]))
                if len(row) > 2 and any(name in row[2] for name in WORKERS):
                    below.append(int(row[0]))
    return below


def killed_at(moments: int, folder: Path, address: str, cluster: int | None = None) -> set[int]:
    """Draw a cohort, killing a worker and the driver in turn; returns the workers that were killed.

    A driver takes its workers with it.
    """
    rng, killed = random.Random(5), set[int]()
    driver = start_driver(folder, address)
    try:
        for moment in range(moments):
            finished = state(folder).finished
            while state(folder).finished < finished + 3 and driver.poll() is None:
                time.sleep(0.02)
            time.sleep(rng.uniform(0.0, 0.3))
            assert driver.poll() is None, f"the driver ended before moment {moment}"
            below = workers_below(cluster or driver.pid)
            if moment % 2:
                os.kill(driver.pid, signal.SIGKILL)
                driver.wait()
                killed.update(below)
                driver = start_driver(folder, address)
            else:
                one = rng.choice(below)
                killed.add(one)
                os.kill(one, signal.SIGKILL)
        assert driver.wait(300) == 0
    finally:
        if driver.poll() is None:
            driver.kill()
            driver.wait()
    return killed


def check(folder: Path, expected: dict[str, bytes], killed: set[int]) -> None:
    """0 lost, 0 twice, the same bytes: only what a killed process had begun is begun again."""
    assert state(folder).complete
    assert content(folder) == expected
    begun: dict[int, list[int]] = defaultdict(list)
    for line in (folder / LOG).read_text().splitlines():
        index, pid, was_there = map(int, line.split())
        assert not was_there, f"patient {index} was there already"
        begun[index].append(pid)
    assert len(begun) == state(folder).size
    for index, pids in begun.items():
        assert set(pids[:-1]) <= killed, f"patient {index} was begun by {pids}, of which {killed} were killed"
    again = sum(len(pids) - 1 for pids in begun.values())
    assert again <= len(killed)


@pytest.mark.parametrize("moments", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_of_local_workers_and_drivers(tmp_path: Path, moments: int) -> None:
    size = 40 * moments
    expected = undisturbed(tmp_path / "a", size=size)
    planned(tmp_path / "b", size=size)
    killed = killed_at(moments, tmp_path / "b", "")
    check(tmp_path / "b", expected, killed)


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two Ray nodes of one core each on this machine."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 32)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parent)]))
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes.add_node(num_cpus=1)
        yield nodes
    finally:
        nodes.shutdown()


@pytest.mark.slow
def test_kills_of_workers_and_drivers_on_two_ray_nodes(tmp_path: Path, two_nodes: Any) -> None:
    expected = undisturbed(tmp_path / "a", size=1200)
    planned(tmp_path / "b", size=1200)
    killed = killed_at(20, tmp_path / "b", two_nodes.address, os.getpid())
    check(tmp_path / "b", expected, killed)


@pytest.mark.slow
def test_two_ray_nodes_share_a_cohort(tmp_path: Path, two_nodes: Any) -> None:
    from anatomica.cohort.executors.cluster import RayExecutor

    expected = undisturbed(tmp_path / "a")
    planned(tmp_path / "b")
    job = Job(tmp_path / "b", open_fake, str(tmp_path / "b"))
    executor = RayExecutor(job, address=two_nodes.address)
    assert carry_out(tmp_path / "b", executor).complete
    assert content(tmp_path / "b") == expected
    indices = (tmp_path / "b" / LOG).read_text().split()
    assert sorted(map(int, indices)) == list(range(40))


@pytest.mark.slow
def test_a_ray_node_that_leaves_takes_no_patient_with_it(tmp_path: Path, two_nodes: Any) -> None:
    from anatomica.cohort.executors.cluster import RayExecutor

    expected = undisturbed(tmp_path / "a", size=300)
    planned(tmp_path / "b", size=300)
    second, told = two_nodes.list_all_nodes()[-1], []

    def leave(one: Done) -> None:
        told.append(one)
        if len(told) == 20:
            two_nodes.remove_node(second, allow_graceful=False)

    job = Job(tmp_path / "b", open_watched, str(tmp_path / "b"), 5.0)
    executor = RayExecutor(job, 2, two_nodes.address)
    assert carry_out(tmp_path / "b", executor, leave, wait=0.2).complete
    assert content(tmp_path / "b") == expected


@pytest.mark.slow
def test_what_goes_wrong_on_a_cluster_is_one_sentence(tmp_path: Path, two_nodes: Any) -> None:
    from anatomica.cohort.executors.cluster import RayExecutor

    planned(tmp_path, size=8)
    with pytest.raises(AnatomicaError, match="patient 5 ended its worker 3 times"):
        carry_out(tmp_path, RayExecutor(Job(tmp_path, open_fatal), address=two_nodes.address))
    with pytest.raises(AnatomicaError, match="begun with other code"):
        carry_out(tmp_path, RayExecutor(Job(tmp_path, open_drawing), address=two_nodes.address))
    with pytest.raises(AnatomicaError, match=r"room for a worker: one core and 0\.5 GPUs"):
        carry_out(tmp_path, RayExecutor(Job(tmp_path, open_fake), address=two_nodes.address, gpus=0.5))
    assert carry_out(tmp_path, RayExecutor(Job(tmp_path, open_fake), address=two_nodes.address)).complete
