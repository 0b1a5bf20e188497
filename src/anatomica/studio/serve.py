"""Start the server, on this machine only, and open the page."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import NamedTuple

import uvicorn

from anatomica.errors import AnatomicaError
from anatomica.machine import wait_without_spinning
from anatomica.studio.app import make_app
from anatomica.studio.bounds import MOST_MESSAGE_BYTES
from anatomica.studio.punctual import PunctualProtocol
from anatomica.studio.security import Key

HOST = "127.0.0.1"


class Prepared(NamedTuple):
    """A server that has its port but does not run yet."""

    server: uvicorn.Server
    listening: socket.socket
    address: str


def prepare(port: int, log: Callable[[str], None] = lambda _: None) -> Prepared:
    """Bind the port (0 takes a free one) and make the address that opens the page once."""
    wait_without_spinning()  # of the process that draws: the browser and this server work beside it
    listening = _listen(port)
    port = listening.getsockname()[1]
    key = Key(port)
    config = uvicorn.Config(
        make_app(key, port, log),
        interface="asgi3",
        http=PunctualProtocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=MOST_MESSAGE_BYTES,
        timeout_graceful_shutdown=2,
    )
    return Prepared(uvicorn.Server(config), listening, f"http://{HOST}:{port}/?token={key.token}")


def serve(port: int, browser: bool, said: Callable[[str], None], log: Callable[[str], None]) -> None:
    """Serve until Ctrl-C; `said` is told the address."""
    server, listening, address = prepare(port, log)
    said(address)
    if browser:
        threading.Timer(0.5, webbrowser.open, (address,)).start()
    server.run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # a browser that is quicker than the server waits
    except OSError:
        listening.close()
        raise AnatomicaError(
            f"port {port} is in use, perhaps by another studio; give another one with --port"
        ) from None
    return listening
