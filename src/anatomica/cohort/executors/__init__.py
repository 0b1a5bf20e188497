"""Executors: who runs the workers. Each is a context manager with one method, `run`.

`run(indices)` yields what became of each patient, in any order. It takes from `indices` only as many as its
workers can begin soon, so that a cohort of any size costs the driver the same memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from anatomica.cohort.worker import Done


@runtime_checkable
class Executor(Protocol):
    """Runs workers; leaving the context ends them."""

    def __enter__(self) -> Executor: ...

    def __exit__(self, *what: object) -> None: ...

    def run(self, indices: Iterable[int]) -> Iterator[Done]: ...
