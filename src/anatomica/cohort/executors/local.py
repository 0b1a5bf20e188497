"""Workers as processes of this machine, spawned, one thread each. One that dies is started again."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from anatomica.cohort.worker import Done, Job, Worker
from anatomica.errors import AnatomicaError
from anatomica.machine import end_with_parent

DEATHS = 3
"""A patient whose drawing ends its process so often is the reason; the cohort stops and says so."""
AHEAD = 2
"""Patients that a worker has been given: the one it draws and the next, so that it never waits."""


@dataclass(eq=False)
class _Hand:
    """A worker's process, its connection, and the patients it has been given."""

    process: SpawnProcess
    connection: Connection
    given: deque[int] = field(default_factory=deque)


class LocalExecutor:
    """`workers` processes of this machine."""

    def __init__(self, job: Job, workers: int) -> None:
        self.job, self.workers = job, workers
        self._context = multiprocessing.get_context("spawn")
        self._hands: list[_Hand] = []

    def __enter__(self) -> LocalExecutor:
        self._hands = [self._start() for _ in range(self.workers)]
        return self

    def __exit__(self, *what: object) -> None:
        for hand in self._hands:
            hand.process.terminate()
        for hand in self._hands:
            hand.process.join(5)
            if hand.process.is_alive():
                hand.process.kill()
                hand.process.join()
            hand.connection.close()

    @property
    def processes(self) -> list[int]:
        """Ids of the workers' processes."""
        return [hand.process.pid or 0 for hand in self._hands]

    def run(self, indices: Iterable[int]) -> Iterator[Done]:
        ahead, again, deaths = iter(indices), deque[int](), Counter[int]()
        while True:
            for hand in self._hands:
                while len(hand.given) < AHEAD:
                    index = again.popleft() if again else next(ahead, None)
                    if index is None:
                        break
                    hand.given.append(index)
                    with suppress(OSError):  # it died: seen below
                        hand.connection.send(index)
            if not any(hand.given for hand in self._hands):
                return
            by_handle: dict[Any, _Hand] = {
                x: hand for hand in self._hands for x in (hand.connection, hand.process.sentinel)
            }
            for hand in {id(by_handle[x]): by_handle[x] for x in wait(list(by_handle))}.values():
                told, dead = _told(hand)
                yield from told
                if dead:
                    if hand.given:
                        index = hand.given[0]
                        deaths[index] += 1
                        if deaths[index] >= DEATHS:
                            raise AnatomicaError(
                                f"patient {index} ended its process {DEATHS} times (exit code "
                                f"{hand.process.exitcode}); is there enough memory for so many workers?"
                            )
                    again.extend(hand.given)
                    hand.process.join()
                    hand.connection.close()
                    self._hands[self._hands.index(hand)] = self._start()

    def _start(self) -> _Hand:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self.job, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Hand(process, ours)


def _told(hand: _Hand) -> tuple[list[Done], bool]:
    """What a worker has said, and whether it has ended; its errors are raised here."""
    told: list[Done] = []
    try:
        while hand.connection.poll():
            said: Any = hand.connection.recv()
            if isinstance(said, BaseException):
                raise said
            hand.given.remove(said.index)
            told.append(said)
    except (EOFError, ConnectionResetError):
        return told, True
    return told, not hand.process.is_alive() and not hand.connection.poll()


def _serve(job: Job, connection: Connection) -> None:
    """A worker's process: patients' numbers in, what became of them out. Ctrl-C is the driver's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    try:
        worker = Worker(job)
        while True:
            connection.send(worker.one(connection.recv()))
    except (EOFError, BrokenPipeError):
        return
    except (AnatomicaError, OSError) as error:
        connection.send(error)
