"""The store: one owner per patient, whatever happens to processes; files whole or not at all."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fake_patients import content, fake_patient, open_fake, planned

from anatomica.cohort.store import Store
from anatomica.cohort.worker import Job, Worker
from anatomica.files import CannotWriteError
from anatomica.machine import has_ended, this_process
from full_disk import full_disk


def test_of_many_that_claim_at_once_exactly_one_succeeds(tmp_path: Path) -> None:
    store, got = Store(tmp_path), []
    barrier = threading.Barrier(16)

    def ask() -> None:
        barrier.wait()
        got.append(store.claim("a" * 32))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    (claim,) = [x for x in got if x is not None]
    assert store.claim("a" * 32) is None
    claim.release()
    again = store.claim("a" * 32)
    assert again is not None
    again.release()


def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from anatomica.cohort.store import Store\n"
    code += f"assert Store(Path({str(tmp_path)!r})).claim('b' * 32) is not None; print('ok')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr
    store = Store(tmp_path)
    assert [x.name for x in store.claims.iterdir()] == ["b" * 32 + ".0"]
    claim = store.claim("b" * 32)
    assert claim is not None
    assert claim.path.name == "b" * 32 + ".1"
    claim.release()


def test_claims_of_ended_processes_are_not_counted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    claim = store.claim("a" * 32)
    assert claim is not None
    machine = this_process().rsplit("/", 2)[0]
    (store.claims / f"{'b' * 32}.0").write_text(f"{machine}/1/1")
    (store.claims / f"{'c' * 32}.0").write_text("elsewhere/boot/1/2")
    assert store.claimed() == {"a" * 32, "c" * 32}
    claim.release()


def test_this_process_has_not_ended_and_another_machine_is_not_known(tmp_path: Path) -> None:
    own = this_process()
    machine, pid, started = own.rsplit("/", 2)
    assert not has_ended(own)
    assert has_ended(f"{machine}/{pid}/1")  # the id was given to another process since
    assert not has_ended(f"elsewhere/{pid}/{started}")


def test_a_claim_of_another_machine_is_void_after_its_lease(tmp_path: Path) -> None:
    store = Store(tmp_path, lease=5.0)
    path = store.claims / ("c" * 32 + ".0")
    path.write_text("elsewhere/boot/1/2")
    assert store.claim("c" * 32) is None
    old = time.time() - 6
    os.utime(path, (old, old))
    claim = store.claim("c" * 32)
    assert claim is not None
    claim.release()


def test_a_claim_is_renewed_while_it_is_held(tmp_path: Path) -> None:
    store = Store(tmp_path, lease=0.6)
    claim = store.claim("d" * 32)
    assert claim is not None
    old = time.time() - 60
    os.utime(claim.path, (old, old))
    deadline = time.time() + 20
    while claim.path.stat().st_mtime < time.time() - 30 and time.time() < deadline:
        time.sleep(0.05)
    assert claim.path.stat().st_mtime > time.time() - 30
    claim.release()


def test_who_slept_through_a_lease_has_lost_the_claim(tmp_path: Path) -> None:
    store = Store(tmp_path)
    claim = store.claim("e" * 32)
    assert claim is not None
    assert store.holds(claim)
    (store.claims / ("e" * 32 + ".1")).write_text(this_process())
    assert not store.holds(claim)
    claim.release()


def test_a_finished_patient_is_not_claimed_again(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    store = Store(tmp_path)
    store.put(plan.key(0), fake_patient(plan, 0))
    assert store.claim(plan.key(0)) is None
    assert store.finished() == {plan.key(0)}
    assert not list(store.claims.iterdir())
    assert Worker(Job(tmp_path, open_fake)).one(0).state == "there"


@pytest.mark.parametrize("moment", range(3))
def test_a_full_disk_leaves_a_store_that_can_go_on(tmp_path: Path, moment: int) -> None:
    planned(tmp_path)
    worker = Worker(Job(tmp_path, open_fake))
    with full_disk(moment):
        if moment < 2:
            with pytest.raises(CannotWriteError, match="No space left"):
                worker.one(0)
            assert not content(tmp_path) or not worker.store.finished()
        else:
            assert worker.one(0).state == "drawn"
    assert not list(worker.store.claims.iterdir())
    assert worker.one(0).state == ("there" if moment == 2 else "drawn")


def test_what_killed_processes_left_is_cleared(tmp_path: Path) -> None:
    plan, store = planned(tmp_path), Store(tmp_path)
    key, other = plan.key(0), plan.key(1)
    store.put(other, fake_patient(plan, 1))
    left = store.record_path(key).parent / f".{key}.json.0123456789abcdef.tmp"
    left.parent.mkdir(exist_ok=True)
    left.write_bytes(b"half")
    (store.claims / f"{other}.0").write_text(this_process())
    machine = this_process().rsplit("/", 2)[0]
    (store.claims / f"{key}.0").write_text(f"{machine}/1/1")
    store.clear()
    assert not left.exists()
    assert not list(store.claims.iterdir())
    assert store.finished() == {other}
