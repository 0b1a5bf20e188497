"""Only a page that the person who started the studio has opened is answered, and within bounds."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from anatomica.studio import bounds
from anatomica.studio.bounds import MOST_BODY_BYTES, MOST_SOCKETS, MOST_UPLOAD_BYTES, MOST_WAITING
from studio_client import Client, Running


def test_the_token_works_once_and_becomes_a_cookie(client: Client, running: Running) -> None:
    name, value = client.cookie.split("=", 1)
    assert str(running.port) in name
    assert len(value) > 40
    path = running.address.split(str(running.port), 1)[1]
    again = Client(running.port, "").send("GET", path)
    assert again.status == 401
    assert b"used before" in again.data
    # The browser that has the cookie may follow its old address.
    assert client.send("GET", path).status == 303


def test_the_cookie_is_for_this_server_s_own_page_only(running: Running) -> None:
    from anatomica.studio.security import Key

    key = Key(running.port)
    assert key.token is not None
    assert key.spend("x") is None
    assert key.spend(key.token) is not None
    assert key.token is None


@pytest.mark.parametrize("path", ["/", "/api/state", "/api/catalogue", "/api/patient/p1/nifti"])
def test_without_the_cookie_nothing_is_given(client: Client, path: str) -> None:
    for cookie in (None, "", "x=y", client.cookie[:-1], client.cookie + "0"):
        reply = client.send("GET", path, Cookie=cookie)
        assert reply.status == 401
        assert b"anatomica studio" in reply.data


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "", "127.0.0.1:{port}.evil.example"],
)
def test_another_host_is_refused(client: Client, host: str) -> None:
    """DNS rebinding: a page of evil.example whose address has become 127.0.0.1."""
    assert client.send("GET", "/api/state", Host=host.format(port=client.port)).status in (400, 421)


def test_localhost_is_this_machine(client: Client) -> None:
    assert client.send("GET", "/api/state", Host=f"localhost:{client.port}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1"]
)
def test_another_origin_is_refused(client: Client, origin: str) -> None:
    origin = origin.format(port=client.port)
    assert client.send("GET", "/api/state", Origin=origin).status == 403
    assert client.send("POST", "/api/warm", b'{"name": "cardiac"}', Origin=origin).status == 403
    with pytest.raises(InvalidStatus):
        client.socket(Origin=origin)


def test_a_change_without_origin_is_refused(client: Client) -> None:
    assert client.send("POST", "/api/warm", b'{"name": "cardiac"}', Origin=None).status == 403
    with pytest.raises(InvalidStatus):
        client.socket(Origin=None)


def test_a_socket_without_the_cookie_is_refused(client: Client) -> None:
    with pytest.raises(InvalidStatus):
        client.socket(Cookie=None)


def test_every_reply_has_the_policy_and_no_cors(client: Client) -> None:
    for reply in (
        client.get("/"),
        client.get("/api/state"),
        client.get("/no"),
        client.send("GET", "/", Cookie=""),
    ):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in reply.headers if name.startswith("access-control")]
        assert "server" not in reply.headers


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fpyproject.toml",
        "/assets/../../app.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/api/patient/../../etc/passwd/nifti",
        "/api/patient/p1/..%2f..%2fpasswd",
    ],
)
def test_no_path_reaches_the_file_system(client: Client, path: str) -> None:
    reply = client.get(path)
    assert reply.status in (404, 422)
    assert "sentence" in reply.json


def test_a_huge_upload_is_refused_before_it_is_read(client: Client) -> None:
    begun = time.monotonic()
    reply = client.send("POST", "/api/upload?anatomy=cardiac", b"", Content_Length=str(3 << 30))
    assert reply.status == 413
    assert time.monotonic() - begun < 5
    assert client.send("POST", "/api/plan", b"", Content_Length=str(MOST_BODY_BYTES + 1)).status == 413
    assert MOST_UPLOAD_BYTES < 1 << 30


def test_a_body_without_a_length_is_counted(client: Client) -> None:
    chunk = b"%x\r\n" % (1 << 16) + b" " * (1 << 16) + b"\r\n"
    body = chunk * (MOST_BODY_BYTES // (1 << 16) + 2) + b"0\r\n\r\n"
    try:
        reply = client.send("POST", "/api/plan", body, Content_Length=None, Transfer_Encoding="chunked")
    except (BrokenPipeError, ConnectionResetError):
        return  # the server hung up, which is as good
    assert reply.status == 413


def half_open(client: Client, text: str) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", client.port), timeout=20)
    opened.sendall(text.replace("\n", "\r\n").encode())
    return opened


def test_requests_that_never_end_are_hung_up_on(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slowloris: heads that stop in the middle, also after a whole request on the same connection."""
    monkeypatch.setattr(bounds, "PATIENCE_S", 0.5)
    whole = f"GET / HTTP/1.1\nHost: 127.0.0.1:{client.port}\n\n"
    with ExitStack() as stack:
        slow = [stack.enter_context(half_open(client, "GET / HTTP/1.1\nHost: x")) for _ in range(50)]
        again = stack.enter_context(half_open(client, whole))
        reply = b""
        while not reply.endswith(b"in one browser"):
            reply += again.recv(1 << 16)
        again.sendall(b"GET / HTTP/1.1\r\nHo")
        assert client.get("/api/state").status == 200
        for opened in (*slow, again):
            assert opened.recv(1) == b""


def test_an_upload_that_stops_is_ended_and_another_waits_its_turn(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "PATIENCE_S", 2.0)
    head = (
        f"POST /api/upload?anatomy=cardiac HTTP/1.1\nHost: 127.0.0.1:{client.port}\n"
        f"Origin: {client.origin}\nCookie: {client.cookie}\nContent-Length: 1000\n\n"
    )
    with half_open(client, head + "x") as stalled:
        time.sleep(0.5)
        second = client.send("POST", "/api/upload?anatomy=cardiac", b"x")
        assert (second.status, "another file" in second.json["sentence"]) == (429, True)
        assert stalled.recv(1 << 16).startswith(b"HTTP/1.1 408")
    assert client.send("POST", "/api/upload?anatomy=cardiac", b"x").status == 422


def test_cookies_that_come_twice_open_nothing_by_themselves(client: Client) -> None:
    name, value = client.cookie.split("=", 1)
    for wrong in (f"{name}=; {name}=x", f"{name}={value[:-1]}; {name}={value}0", f"x{name}={value}"):
        assert client.send("GET", "/api/state", Cookie=wrong).status == 401


LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmnop"))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 900_000,
        b'{"anatomy": "cardiac", "spec": {"constraints": ' + b"[" * 900 + b"]" * 900 + b"}}",
        b'{"anatomy": "cardiac", "seed": ' + b"9" * 900_000 + b"}",
        b'{"anatomy": "\xff"}',
        b'{"anatomy": "cardiac", "asks": {"lv.volume_ml": {"value": NaN}}}',
        json.dumps({"anatomy": "cardiac", "yaml": LAUGHS}).encode(),
        json.dumps({"anatomy": "cardiac", "yaml": "[" * 200_000}).encode(),
        json.dumps({"anatomy": "cardiac", "lines": ["(" * 500_000]}).encode(),
    ],
    ids=["deep", "deep spec", "digits", "bytes", "nan", "laughs", "deep yaml", "long line"],
)
def test_a_bomb_is_a_sentence(client: Client, body: bytes) -> None:
    begun = time.monotonic()
    reply = client.send("POST", "/api/plan", body)
    assert reply.status in (400, 422)
    assert len(reply.json["sentence"]) > 10
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("packed", [False, True])
def test_a_header_that_announces_more_than_there_is_costs_nothing(client: Client, packed: bool) -> None:
    """27,000 GB of voxels, bare or followed by 1 GB of zeros that fit into 1 MB."""
    header = bytearray(352)
    header[:4], header[344:348] = struct.pack("<i", 348), b"n+1\0"
    header[40:56] = struct.pack("<8h", 3, 30_000, 30_000, 30_000, 1, 1, 1, 1)
    header[70:74], header[108:112] = struct.pack("<2h", 2, 8), struct.pack("<f", 352)
    zeros = gzip.compress(bytes(1 << 26), 1)
    data = gzip.compress(bytes(header)) + 16 * zeros if packed else bytes(header)
    reply = client.send("POST", "/api/upload?anatomy=cardiac", data)
    assert reply.status == 422
    assert "voxels" in reply.json["sentence"]


@pytest.mark.parametrize(
    "garbage",
    ["", "{", "[]", '{"show": 1}', '{"show": "p1", "x": 1}', "[" * 30_000, "x" * 70_000, b"\x00\xff" * 100],
    ids=["empty", "open", "list", "number", "more", "deep", "long", "binary"],
)
def test_garbage_closes_the_socket_and_the_server_lives(client: Client, garbage: str | bytes) -> None:
    with client.socket() as opened:
        opened.send(garbage)
        with pytest.raises(ConnectionClosed):
            list(opened)
    assert client.get("/api/state").status == 200


def test_a_patient_that_is_not_there_is_passed_over(client: Client) -> None:
    with client.socket() as opened:
        opened.send(json.dumps({"show": "../../etc/passwd"}))
        with pytest.raises(TimeoutError):
            opened.recv(timeout=0.3)


def test_sockets_are_bounded(client: Client) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_SOCKETS):
            stack.enter_context(client.socket())
        with pytest.raises((InvalidStatus, ConnectionClosed)), client.socket() as one_more:
            one_more.recv(timeout=5)


def test_a_hundred_jobs_at_once_are_bounded(client: Client) -> None:
    asked = {"anatomy": "coronary", "samples": 1, "steps": 1000}
    with ThreadPoolExecutor(100) as many:
        replies = list(many.map(lambda _: client.post("/api/generate", asked), range(100)))
    taken = [r.json["job"] for r in replies if r.status == 200]
    try:
        assert MOST_WAITING <= len(taken) <= MOST_WAITING + 2
        refused = [r for r in replies if r.status == 429]
        assert len(refused) == 100 - len(taken)
        assert "waiting already" in refused[0].json["sentence"]
    finally:
        for job in reversed(taken):
            client.post("/api/cancel", {"name": job})


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/api/generate", {"anatomy": "cardiac", "samples": 10**9}),
        ("/api/generate", {"anatomy": "../weights", "samples": 1}),
        ("/api/generate", {"anatomy": "cardiac", "seed": -1}),
        ("/api/phantom", {"anatomy": "/etc", "seed": 0}),
        ("/api/phantom", {"anatomy": "cardiac", "seed": "x"}),
        ("/api/plan", {"anatomy": "cardiac", "yaml": "&a [*a, *a]"}),
        ("/api/plan", {"anatomy": "cardiac", "unknown": 1}),
        ("/api/task", {"name": "../x"}),
        ("/api/markups/read", {"markups": 3}),
        ("/api/upload?anatomy=cardiac&mapping=" + "[" * 5000, {}),
        ("/api/upload?anatomy=cardiac&mapping=/etc/passwd", {}),
    ],
)
def test_what_makes_no_sense_is_a_sentence(client: Client, path: str, content: dict) -> None:
    reply = client.post(path, content)
    assert reply.status == 422
    assert len(reply.json["sentence"]) > 10
