"""A disk that is full from the n-th file on: every file of the package is put onto the disk by `os.fsync`."""

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anatomica.files import CannotWriteError


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


def each_full_moment(run: Callable[[Path], object], folder: Path) -> Iterator[Path]:
    """Run into a new folder with a disk that is full after 0, 1, 2, ... files; the folders of failed runs.

    Ends with the first run that needs no more files than that. Every failure must name a file of the folder.
    """
    for moment in itertools.count():
        out = folder / str(moment)
        with full_disk(moment):
            failure = _failure(run, out)
        if failure is None:
            return
        assert "No space left on device" in str(failure)
        assert str(failure.filename).startswith(str(out))
        assert not list(out.rglob(".*"))
        yield out


def _failure(run: Callable[[Path], object], out: Path) -> CannotWriteError | None:
    try:
        run(out)
    except CannotWriteError as failure:
        return failure
    return None
