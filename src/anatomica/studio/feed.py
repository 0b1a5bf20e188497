"""The WebSocket: events and patients to the page; the only thing that it asks for is a patient."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

from fastapi import WebSocket, WebSocketDisconnect

from anatomica.errors import AnatomicaError
from anatomica.studio.bounds import MOST_MESSAGE_BYTES
from anatomica.studio.hub import Event, Hub
from anatomica.studio.patients import Shelf


async def feed(socket: WebSocket, hub: Hub, shelf: Shelf) -> None:
    """Serve one page for as long as it is open."""
    with hub.listen() as queue:
        if queue is None:
            await socket.close(1013, "too many pages are open")
            return
        await socket.accept()
        await _both_ways(socket, queue, shelf)


async def _both_ways(socket: WebSocket, queue: asyncio.Queue[Event], shelf: Shelf) -> None:
    """Send the events, and the patients that the page asks for, until one side ends it."""
    sending = asyncio.create_task(_send(socket, queue))
    try:
        while True:
            wanted = _wanted(await socket.receive_text())
            if wanted is None:
                await socket.close(1003, "not a message of the page")
                return
            with suppress(AnatomicaError):
                queue.put_nowait(shelf.get(wanted).frame)
    except (WebSocketDisconnect, asyncio.QueueFull, KeyError):
        return
    finally:
        sending.cancel()
        with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await sending


async def _send(socket: WebSocket, queue: asyncio.Queue[Event]) -> None:
    while True:
        event = await queue.get()
        if isinstance(event, bytes):
            await socket.send_bytes(event)
        else:
            await socket.send_text(json.dumps(event))


def _wanted(text: str) -> str | None:
    """The patient that a message asks for: `{"show": "p1"}` is the only message there is."""
    if len(text) > MOST_MESSAGE_BYTES:
        return None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or set(message) != {"show"} or not isinstance(message["show"], str):
        return None
    return message["show"]
