"""One server for all tests of the studio, as `anatomica studio` runs it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from anatomica.studio.serve import prepare
from studio_client import Client, Running


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    server, listening, address = prepare(0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    port = listening.getsockname()[1]
    yield Running(port, address)
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def client(running: Running) -> Client:
    opened = Client(running.port, "").send("GET", running.address.split(str(running.port), 1)[1])
    assert opened.status == 303
    return Client(running.port, opened.headers["set-cookie"].split(";")[0])
