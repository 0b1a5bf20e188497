"""A client of the studio that says what it is told to, true or not."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)


class Client:
    """Speaks HTTP to the server with headers of one's choice."""

    def __init__(self, port: int, cookie: str) -> None:
        self.port, self.cookie = port, cookie
        self.origin = f"http://127.0.0.1:{port}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> Reply:
        """A request as the page makes it; `headers` change it, and None leaves one out."""
        given: dict[str, str | None] = {
            "Host": f"127.0.0.1:{self.port}",
            "Cookie": self.cookie,
            "Origin": self.origin if method == "POST" else None,
            "Content-Type": "application/json" if method == "POST" else None,
            "Content-Length": None if body is None else str(len(body)),
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders()
        if body:
            connection.send(body)
        response = connection.getresponse()
        reply = Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        connection.close()
        return reply

    def get(self, path: str) -> Reply:
        return self.send("GET", path)

    def post(self, path: str, content: Any) -> Reply:
        return self.send("POST", path, json.dumps(content).encode())

    def socket(self, **headers: str | None) -> ClientConnection:
        given = {"Cookie": self.cookie, "Origin": self.origin} | headers
        chosen = {k: v for k, v in given.items() if v is not None}
        return connect(f"ws://127.0.0.1:{self.port}/ws", additional_headers=chosen, max_size=None, proxy=None)


@dataclass(frozen=True)
class Running:
    port: int
    address: str


def wait_for(socket: ClientConnection, **wanted: Any) -> dict[str, Any]:
    """The first event with these values."""
    while True:
        message = socket.recv(timeout=90)
        if isinstance(message, str):
            event = json.loads(message)
            if all(event.get(k) == v for k, v in wanted.items()):
                return event
