"""Workers as Ray actors on one machine or many; every machine sees the cohort's folder under the same path.

An actor loads the model once. The driver keeps a bounded window of pending tasks and gets keys back, never
volumes. Ray restarts actors that end, also those of machines that fail, and their tasks are handed out again;
the store's claims see to it that no patient is drawn twice. New clusters ask for a token, and have neither
dashboard nor usage statistics.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from anatomica.cohort.worker import Done, Job, Worker
from anatomica.errors import AnatomicaError
from anatomica.machine import usable_cores

AHEAD = 2
"""Pending tasks per actor: the one it works on and the next."""
DEATHS = 3
"""A patient whose drawing ends its actor so often is the reason; the cohort stops and says so."""


class RayExecutor:
    """`workers` actors, each with one core and `gpus` of a GPU; `address` is an existing cluster's.

    Without a number of workers, there are as many as the cluster has room for.
    """

    def __init__(
        self, job: Job, workers: int | None = None, address: str | None = None, gpus: float = 0.0
    ) -> None:
        self.job, self.workers, self.address, self.gpus = job, workers, address, gpus
        self._actors: list[Any] = []
        self._began = False

    def __enter__(self) -> RayExecutor:
        ray = _ray(new=self.address is None)
        if not ray.is_initialized():
            own = {} if self.address else {"num_cpus": self.workers or usable_cores()}
            own |= {} if self.address else {"include_dashboard": False}
            try:
                ray.init(address=self.address or "local", log_to_driver=False, logging_level="ERROR", **own)
            except (ConnectionError, RuntimeError, OSError, ValueError) as error:
                where = self.address or "this machine"
                raise AnatomicaError(
                    f"Ray does not answer at {where}: {' '.join(str(error).split())}"
                ) from None
            self._began = True
        room = _room(ray.cluster_resources(), self.gpus)
        if not room:
            self.__exit__()
            gpus = f" and {self.gpus:g} GPUs" if self.gpus else ""
            raise AnatomicaError(f"no machine of the cluster has room for a worker: one core{gpus}")
        remote = ray.remote(_Actor).options(num_cpus=1, num_gpus=self.gpus, max_restarts=-1)
        self._actors = [remote.remote(self.job) for _ in range(self.workers or room)]
        return self

    def __exit__(self, *what: object) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        for actor in self._actors:
            ray.kill(actor)
        if self._began:
            ray.shutdown()

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        import ray  # pyright: ignore[reportMissingImports]
        from ray.exceptions import RayActorError, RayTaskError  # pyright: ignore[reportMissingImports]

        ahead, again, deaths = iter(indices), deque[int](), Counter[int]()
        # An actor is given patients when it answers: one that finds no room on the cluster keeps nobody.
        pending: dict[Any, tuple[Any, int | None]] = {_ping(actor): (actor, None) for actor in self._actors}
        free: deque[Any] = deque()
        while True:
            while free and (index := again.popleft() if again else next(ahead, None)) is not None:
                actor = free.popleft()
                pending[actor.one.remote(index)] = (actor, index)
            if free and all(index is None for _, index in pending.values()):
                return
            (reference,), _ = ray.wait(list(pending), num_returns=1)
            actor, index = pending.pop(reference)
            try:
                told = ray.get(reference)
            except RayTaskError as error:
                raise _for_people(error) from None
            except RayActorError as error:
                if index is None:
                    raise AnatomicaError(f"a worker of the cluster did not begin: {_short(error)}") from None
                deaths[index] += 1
                if deaths[index] >= DEATHS:
                    raise AnatomicaError(
                        f"patient {index} ended its worker {DEATHS} times: {_short(error)}"
                    ) from None
                # Ray starts it again, here or on another machine; others take what it was given.
                waiting = [x for x, (owner, i) in pending.items() if owner is actor and i is not None]
                again.extend([index, *(pending.pop(x)[1] or 0 for x in waiting)])
                free = deque(x for x in free if x is not actor)
                pending[_ping(actor)] = (actor, None)
                continue
            free.extend([actor] * (AHEAD if index is None else 1))
            if index is not None:
                yield told


class _Actor:
    """A worker on some machine of the cluster, opened by its first task."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def worker(self) -> Worker:
        return Worker(self.job)

    def ready(self) -> None:
        _ = self.worker

    def one(self, index: int) -> Done:
        return self.worker.one(index)


def _room(resources: Mapping[str, float], gpus: float) -> int:
    """How many workers a cluster has room for.

    >>> _room({"CPU": 8.0, "GPU": 1.0}, 0.25), _room({"CPU": 8.0}, 0.25), _room({"CPU": 8.0}, 0)
    (4, 0, 8)
    """
    room = int(resources.get("CPU", 0))
    return min(room, int(resources.get("GPU", 0) / gpus + 1e-9)) if gpus else room


def _ping(actor: Any) -> Any:
    """Asks an actor to begin; it answers when it has, however often it was started until then."""
    return actor.ready.options(max_task_retries=-1).remote()


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


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
