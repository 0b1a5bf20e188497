"""Disks that are full, and what is run on them: every file of the package ends with an `os.fsync`."""

from __future__ import annotations

import errno
import itertools
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

import trees
from anatomica.cli import app
from anatomica.cohort.executors.local import LocalExecutor
from anatomica.cohort.worker import Done, Worker
from anatomica.evaluate.experiments.lab import Lab
from anatomica.evaluate.experiments.plan import UNCONDITIONAL, Cell, profile
from anatomica.evaluate.experiments.runner import Runner
from anatomica.files import CannotWriteError
from anatomica.prior.training.budget import Budget
from anatomica.prior.training.train import RunOptions, train_autoencoder
from anatomica.spec.tasks import task
from tiny_prior import CORONARY, TINY, ellipsoids, save_tiny_model

Run = Callable[[Path], object]
"""Does its work into a folder; what the machine prevents is an exception."""
COMMANDS = {
    "generate": "generate --samples 2 --steps 1 --until-valid 1 --model MODEL -o",
    "prepare": "prepare phantoms -a coronary --count 2 -n 32 -o",
    "phantom": "phantom -a coronary -c 2 -n 32 -o",
    "measure": "measure PATIENT --anatomy coronary --resolution 32 --out",
    "export": "export PATIENT --to stl,ply --centreline Lu --out",
    "cohort": "cohort draw COHORT --workers 1 --out",
}
TIMES = re.compile(rb'"(made|seconds|cpu_seconds|elapsed_s|date|checksum)": [^,\n}]*|"run": {[^}]*}')
"""What differs between two runs that are the same."""


def same_files(folder: Path) -> dict[str, bytes]:
    """Every file's bytes; of JSON and HTML without times. run.json and paces.json have only seconds."""
    kept = {}
    for name, data in trees.tree_bytes(folder).items():
        if str(name).rpartition("/")[2] in ("run.json", "paces.json"):
            continue
        if str(name).endswith((".json", ".jsonl", ".html")):
            data = TIMES.sub(b"", data)
        kept[str(name)] = data
    return kept


def command(words: str, **given: Path) -> Run:
    """Run a command into a folder; the machine's errors pass through as exceptions."""
    named = {key.upper(): str(path) for key, path in given.items()}

    def run(out: Path) -> None:
        result = CliRunner().invoke(app, [*(named.get(w, w) for w in words.split()), str(out)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == 0, result.output

    return run


class InProcess(LocalExecutor):
    """Draws a cohort's patients in this process, whose disk is full."""

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *what: object) -> None:
        pass

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        worker = Worker(self.job)
        for index in indices:
            yield worker.one(index)


def write_cohort(path: Path, model: Path) -> Path:
    """The spec of one patient that a tiny model draws."""
    content = {"name": "tiny", "anatomy": "coronary", "size": 1, "model": str(model)}
    path.write_text(yaml.safe_dump(content | {"include": [], "tries": 1, "exports": ["nifti"]}))
    return path


def training() -> Run:
    """Two steps of a tiny autoencoder with a checkpoint after each; taken up where it was stopped."""
    maps, budget = ellipsoids(6), Budget(steps=2)

    def run(out: Path) -> None:
        there = (out / "checkpoint.safetensors").is_file()
        options = RunOptions(resume=there, checkpoint_minutes=0.0, quiet=True)
        train_autoencoder(maps, out, CORONARY, TINY, budget, options)

    return run


def evaluation(folder: Path) -> Run:
    """One cell of an experiment with two samples."""
    save_tiny_model(folder / "models" / "coronary")
    lab = Lab(folder / "cache", folder / "none", 40, models=folder / "models", quiet=True)
    lab.held_out("coronary")
    spec = task("calcium-count")
    cell = Cell("calcium-count", UNCONDITIONAL, spec, spec, 2)

    def run(out: Path) -> None:
        fresh = replace(lab, cache=out, data=folder / "cache" / "phantoms-40")
        done = Runner(fresh, profile("quick", 2, 1), lambda _: None).run([cell])
        assert len(done[0].numbers) == 2

    return run


@contextmanager
def full_disk(after: int) -> Iterator[None]:
    """No file can be written after the first `after`."""
    real, tried = os.fsync, itertools.count(1)

    def fsync(descriptor: int) -> None:
        if next(tried) > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", fsync)
        yield


def each_full_moment(run: Run, folder: Path) -> Iterator[Path]:
    """Run into a new folder with a disk that is full after 0, 1, 2, ... files; the folders of failed runs.

    Ends with the first run that needs no more files than that. Every failure must name a file of the folder.
    """
    for moment in itertools.count():
        out = folder / str(moment)
        with full_disk(moment):
            failure = failed(run, out)
        if failure is None:
            return
        check_failure(failure, out)
        yield out


def failed(run: Run, out: Path) -> CannotWriteError | None:
    """Why the folder could not be written to; None if it could."""
    try:
        run(out)
    except CannotWriteError as failure:
        return failure
    return None


def check_failure(failure: CannotWriteError, out: Path) -> None:
    """The error names a file of the folder, and nothing unfinished is left there."""
    assert "No space left on device" in str(failure)
    assert str(failure.filename).startswith(str(out))
    assert not list(out.rglob(".*"))


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Callable[[int], None]]:
    """A file system of so many bytes at a folder; what is given can make it larger."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)

    def resize(size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)

    try:
        yield resize
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def can_mount(folder: Path) -> bool:
    """Whether this user may mount file systems."""
    try:
        with small_disk(folder / "mounted", 1 << 16):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
