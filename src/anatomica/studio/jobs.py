"""The queue of jobs: one runs in the worker process, a few wait, and each can be cancelled at any moment."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.process import BaseProcess

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.errors import AnatomicaError
from anatomica.studio.bounds import MOST_WAITING
from anatomica.studio.frames import renamed
from anatomica.studio.hub import Hub
from anatomica.studio.patients import Patient, Run, Shelf
from anatomica.studio.worker import Ended, Failed, Finished, Message, Order, work

GRACE = 1.0
"""Seconds that a cancelled job has to end by itself (its next step) before its process is ended."""


class QueueFullError(AnatomicaError):
    """No more jobs are taken until one has ended."""


class Jobs:
    """A thread that hands orders to the worker process and its messages to the pages."""

    def __init__(self, hub: Hub, shelf: Shelf, log: Callable[[str], None] = lambda _: None) -> None:
        self._hub, self._shelf, self._log = hub, shelf, log
        self._context = multiprocessing.get_context("spawn")
        self._waiting: deque[Order] = deque()
        self._running: Order | None = None
        self._cancelled = False
        self._closed = False
        self._count = 0
        self._changed = threading.Condition()
        self._start_process()
        self._thread = threading.Thread(target=self._serve, name="jobs", daemon=True)
        self._thread.start()

    def submit(self, order: Order) -> str:
        """Queue an order and return its job's name; an error if too many wait."""
        with self._changed:
            if sum(not o.warm for o in self._waiting) >= MOST_WAITING:
                raise QueueFullError(
                    f"{MOST_WAITING} jobs are waiting already; wait for one of them or cancel it"
                )
            self._count += 1
            order = replace(order, job=f"j{self._count}")
            self._waiting.append(order)
            self._changed.notify_all()
        return order.job

    def warm(self, anatomy: str) -> None:
        """Load an anatomy's model into the worker before it is needed."""
        with self._changed:
            if not self._waiting and self._running is None:
                self._waiting.append(Order("warm", anatomy, warm=True))
                self._changed.notify_all()

    def cancel(self, job: str) -> bool:
        """Whether there was such a job to cancel; a running one ends within its step."""
        with self._changed:
            for order in self._waiting:
                if order.job == job:
                    self._waiting.remove(order)
                    self._hub.publish({"type": "ended", "job": job, "state": "cancelled"})
                    return True
            if self._running is None or self._running.job != job:
                return False
            self._cancelled = True
            self._stop.set()
            process = self._process
        timer = threading.Timer(GRACE, self._end_process, (job, process))
        timer.daemon = True
        timer.start()
        return True

    def state(self) -> list[dict]:
        """The jobs that run and wait."""
        with self._changed:
            running = [] if self._running is None or self._running.warm else [(self._running, "running")]
            waiting = [(o, "waiting") for o in self._waiting if not o.warm]
        return [
            {"job": o.job, "state": state, "anatomy": o.anatomy, "samples": o.arguments.samples}
            for o, state in running + waiting
        ]

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._process.kill()
        self._thread.join(5)

    def _start_process(self) -> None:
        self._stop = self._context.Event()
        self._pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(
            target=work, args=(theirs, self._stop), daemon=True, name="anatomica-studio-worker"
        )
        self._process.start()
        theirs.close()

    def _end_process(self, job: str, process: BaseProcess) -> None:
        with self._changed:
            if self._running is not None and self._running.job == job and self._process is process:
                process.kill()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._running = None
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                order = self._running = self._waiting.popleft()
                self._cancelled = False
                self._stop.clear()
            if not order.warm:
                self._hub.publish({"type": "started", "job": order.job})
            try:
                self._pipe.send_bytes(pickle.dumps(order))
                ended = self._listen(order)
            except (EOFError, OSError):
                ended = self._died()
            if not order.warm:
                self._hub.publish(_told(order, ended))
            elif isinstance(ended, Failed):
                self._log(ended.sentence)

    def _listen(self, order: Order) -> Ended | Failed:
        """Hand on the worker's messages until the job ends."""
        run: Run | None = None
        while True:
            message: Message = pickle.loads(self._pipe.recv_bytes())
            if isinstance(message, Ended | Failed):
                if isinstance(message, Failed) and message.details:
                    self._log(message.details)
                return message
            if isinstance(message, Run):
                run = message
            elif isinstance(message, Finished):
                self._keep(message, order, run)
            else:
                self._hub.publish(message)

    def _keep(self, made: Finished, order: Order, run: Run | None) -> None:
        id, sample = self._shelf.new_id(), made.sample
        about = ANATOMIES[order.anatomy]
        patient = Patient(
            id, f"seed {sample.seed}", about, sample.label_map, renamed(made.frame, id), sample, run
        )
        for gone in self._shelf.add(patient):
            self._hub.publish({"type": "forgotten", "patient": gone})
        self._hub.publish({"type": "patient", "patient": patient.summary()})

    def _died(self) -> Ended | Failed:
        """The process is gone: a cancelled job has ended so, any other has crashed. Another one starts."""
        if self._closed:
            return Ended(cancelled=True)
        self._process.join(5)
        code = self._process.exitcode
        self._start_process()
        if self._cancelled:
            return Ended(cancelled=True)
        return Failed(
            f"the process that computes ended by itself (exit code {code}), perhaps for lack of memory; "
            "it was started again"
        )


def _told(order: Order, ended: Ended | Failed) -> dict:
    if isinstance(ended, Failed):
        return {"type": "ended", "job": order.job, "state": "failed", "sentence": ended.sentence}
    return {"type": "ended", "job": order.job, "state": "cancelled" if ended.cancelled else "done"}
