"""Workers as Ray actors on one machine or many; every machine sees the cohort's folder under the same path.

An actor loads the model once. The driver keeps a bounded window of pending tasks and gets keys back, never
volumes. Ray restarts actors of machines that fail and retries their tasks; the store's claims see to it that
no patient is drawn twice. New clusters ask for a token, and have neither dashboard nor usage statistics.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from anatomica.cohort.worker import Done, Job, Worker
from anatomica.errors import AnatomicaError

AHEAD = 2
"""Pending tasks per actor: the one it works on and the next."""
RETRIES = 5


class RayExecutor:
    """`workers` actors, each with one core and `gpus` of a GPU; `address` is an existing cluster's."""

    def __init__(self, job: Job, workers: int, address: str | None = None, gpus: float = 0.0) -> None:
        self.job, self.workers, self.address, self.gpus = job, workers, address, gpus
        self._actors: list[Any] = []
        self._began = False

    def __enter__(self) -> RayExecutor:
        ray = _ray(new=self.address is None)
        if not ray.is_initialized():
            own = {"num_cpus": self.workers, "include_dashboard": False} if self.address is None else {}
            try:
                ray.init(address=self.address or "local", log_to_driver=False, logging_level="ERROR", **own)
            except (ConnectionError, RuntimeError, OSError) as error:
                where = self.address or "this machine"
                raise AnatomicaError(
                    f"Ray does not answer at {where}: {' '.join(str(error).split())}"
                ) from None
            self._began = True
        remote = ray.remote(_Actor).options(
            num_cpus=1, num_gpus=self.gpus, max_restarts=-1, max_task_retries=RETRIES
        )
        self._actors = [remote.remote(self.job) for _ in range(self.workers)]
        return self

    def __exit__(self, *what: object) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        for actor in self._actors:
            ray.kill(actor)
        if self._began:
            ray.shutdown()

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        import ray  # pyright: ignore[reportMissingImports]
        from ray.exceptions import RayError, RayTaskError  # pyright: ignore[reportMissingImports]

        ahead = iter(indices)
        pending: dict[Any, Any] = {}

        def give(actor: Any) -> None:
            index = next(ahead, None)
            if index is not None:
                pending[actor.one.remote(index)] = actor

        for _ in range(AHEAD):
            for actor in self._actors:
                give(actor)
        while pending:
            finished, _ = ray.wait(list(pending), num_returns=1)
            for reference in finished:
                actor = pending.pop(reference)
                try:
                    told = ray.get(reference)
                except RayTaskError as error:
                    raise _for_people(error) from None
                except RayError as error:
                    raise AnatomicaError(
                        f"a worker of the cluster failed: {' '.join(str(error).split())}"
                    ) from None
                give(actor)
                yield told


class _Actor:
    """A worker on some machine of the cluster."""

    def __init__(self, job: Job) -> None:
        self.worker = Worker(job)

    def one(self, index: int) -> Done:
        return self.worker.one(index)


def _ray(new: bool) -> Any:
    """Ray with safe settings; what the user has set stays."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if new:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise AnatomicaError("the executor 'ray' needs Ray: pip install 'anatomica[cluster]'") from None
    return ray


def _for_people(error: Any) -> Exception:
    """What a task raised, as the driver would have raised it: a mistake or a full disk is one sentence."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, AnatomicaError | OSError):
        return cause
    return AnatomicaError(f"a worker of the cluster failed: {' '.join(str(error).split())[-600:]}")
