"""Events on their way to the pages: JSON as dicts, frames as bytes, from any thread to every WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anatomica.studio.bounds import MOST_EVENTS, MOST_SOCKETS

Event = dict[str, Any] | bytes
BEHIND: Event = {"type": "behind"}
"""The last event of a page that reads too slowly: it has missed some and must load anew."""


class Hub:
    """The queues of all open WebSockets. Only the event loop's thread touches them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queues: set[asyncio.Queue[Event]] = set()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @contextmanager
    def listen(self) -> Iterator[asyncio.Queue[Event] | None]:
        """The events from now on; None if too many listen already."""
        if len(self._queues) >= MOST_SOCKETS:
            yield None
            return
        queue: asyncio.Queue[Event] = asyncio.Queue(MOST_EVENTS + 1)
        self._queues.add(queue)
        try:
            yield queue
        finally:
            self._queues.discard(queue)

    def publish(self, event: Event) -> None:
        """Send an event to every page; callable from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._spread, event)

    def _spread(self, event: Event) -> None:
        for queue in list(self._queues):
            if queue.qsize() < MOST_EVENTS:
                queue.put_nowait(event)
            elif queue.qsize() == MOST_EVENTS:
                queue.put_nowait(BEHIND)
