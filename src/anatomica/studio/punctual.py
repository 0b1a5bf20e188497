"""HTTP connections that do not wait for ever: one that never sends a whole request is closed.

Uvicorn itself waits without end for the rest of a request's head, so that open sockets pile up.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from anatomica.studio import bounds


class PunctualProtocol(H11Protocol):
    """Uvicorn's protocol, with a time limit for the head of every request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unwatch()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:  # the head has come
            self._unwatch()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(bounds.PATIENCE_S, self.transport.close)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
