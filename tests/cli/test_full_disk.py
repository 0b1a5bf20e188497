"""A disk that is full at any moment of any command: one sentence, nothing half-written, the same bytes later.

The disk is full from the n-th file on, for every n: each write of the package ends with `os.fsync`, which
fails as the system's does. The slow tests mount small disks instead, for which a user needs the rights.
"""

import gzip
import json
from pathlib import Path

import pytest
import torch

import full_disk
from anatomica.anatomy.nifti import save
from anatomica.cli import _sentence
from anatomica.data.phantoms import phantom
from anatomica.prior.training.checkpoint import read_checkpoint
from full_disk import COMMANDS, Run, each_full_moment, same_files
from tiny_prior import save_tiny_model


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, Path]:
    """A model and a patient."""
    folder = tmp_path_factory.mktemp("made")
    save_tiny_model(folder / "model")
    save(phantom("coronary", 3, 32).label_map, folder / "patient.nii.gz")
    spec = full_disk.write_cohort(folder / "cohort.yaml", folder / "model")
    return {"model": folder / "model", "patient": folder / "patient.nii.gz", "cohort": spec}


def check_whole(out: Path) -> None:
    """Whatever has its final name is whole."""
    for file in out.rglob("*.json"):
        json.loads(file.read_text())
    for file in out.rglob("*.nii.gz"):
        gzip.decompress(file.read_bytes())
    for file in out.rglob("*.png"):
        assert file.read_bytes().endswith(b"IEND\xaeB`\x82")


LEAST = {"generate": 6, "prepare": 6, "phantom": 3, "measure": 3, "export": 6, "cohort": 8}
"""Moments of each command at which its disk is full: 32, and more in training and evaluation."""


@pytest.mark.parametrize(("name", "least"), list(LEAST.items()))
def test_nothing_is_half_written_and_the_next_run_is_the_same(
    name, least, made, tmp_path, monkeypatch
) -> None:
    if name == "cohort":
        monkeypatch.setattr("anatomica.cohort.executors.local.LocalExecutor", full_disk.InProcess)
    run = full_disk.command(COMMANDS[name], **made)
    whole = tmp_path / "whole"
    run(whole)
    wanted = same_files(whole)
    moments = 0
    for out in each_full_moment(run, tmp_path / "full"):
        check_whole(out)
        run(out)
        assert same_files(out) == wanted
        moments += 1
    assert moments >= least


def same_weights(one: Path, other: Path) -> None:
    found, _ = read_checkpoint(one / "checkpoint.safetensors")
    wanted, _ = read_checkpoint(other / "checkpoint.safetensors")
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


def same_numbers(one: Path, other: Path) -> None:
    found, wanted = same_files(one), same_files(other)
    assert found.keys() == wanted.keys()
    assert all(found[name] == wanted[name] for name in wanted if name.endswith(".json"))


def test_training_goes_on_to_the_same_weights(tmp_path) -> None:
    run = full_disk.training()
    run(tmp_path / "whole")
    moments = 0
    for out in each_full_moment(run, tmp_path / "full"):
        run(out)
        same_weights(out, tmp_path / "whole")
        moments += 1
    assert moments >= 3


def test_an_evaluation_goes_on_to_the_same_numbers(tmp_path) -> None:
    run = full_disk.evaluation(tmp_path / "lab")
    run(tmp_path / "whole")
    moments = 0
    for out in each_full_moment(run, tmp_path / "full"):
        run(out)
        same_numbers(out, tmp_path / "whole")
        moments += 1
    assert moments >= 4


MOMENTS = 6
"""Sizes of disk per command: 48 in all."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [*COMMANDS, "train", "evaluate"])
def test_a_disk_that_is_really_full(name, made, tmp_path) -> None:
    """Disks that hold a sixth, two sixths ... of what the command writes."""
    if not full_disk.can_mount(tmp_path):
        pytest.skip("this user may not mount disks")
    run: Run
    if name == "train":
        run, same = full_disk.training(), same_weights
    elif name == "evaluate":
        run, same = full_disk.evaluation(tmp_path / "lab"), same_numbers
    else:
        run, same = full_disk.command(COMMANDS[name], **made), None
    whole = tmp_path / "whole"
    run(whole)
    pages = [-(-file.stat().st_size // 4096) for file in whole.rglob("*") if file.is_file()]
    for moment in range(MOMENTS):
        disk = tmp_path / f"disk-{moment}"
        size = max(1, sum(pages) * (moment + 1) // (MOMENTS + 1)) * 4096
        with full_disk.small_disk(disk, size) as resize:
            out = disk / "out"
            failure = full_disk.failed(run, out)
            assert failure is not None
            full_disk.check_failure(failure, out)
            assert len(_sentence(failure).splitlines()) == 1
            check_whole(out)
            resize(1 << 28)
            run(out)
            if same is None:
                assert same_files(out) == same_files(whole)
            else:
                same(out, whole)
