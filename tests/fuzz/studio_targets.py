"""Requests to the studio with odd bodies: answered with a sentence, never with a failure of the server."""

from __future__ import annotations

import asyncio
import json
import random
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import quote

import fuzz.mutators as mutators
from anatomica.spec.tasks import TASKS
from anatomica.spec.yaml import spec_to_dict
from anatomica.studio.app import make_app
from anatomica.studio.security import Key
from fuzz.made import Inputs, Wrong, check_sentence

BOX = {"name": "b", "centre_mm": [1, 2, 3], "size_mm": [9, 9, 9], "rotation_deg": [0, 10, 0]}
CUBE = {"family": "box", "grid": [6, 6, 6], "centre_mm": [0, 0, 0], "size_mm": [5, 5, 5]}
LUMEN = {"name": "x", "structure": ["Lu"], "domain": CUBE, "target": {"volume_ml": 0.01}}
SPEC: dict[str, Any] = {"name": "s", "anatomy": "coronary", "constraints": [LUMEN]}
ASK = {"calcium.max_angle_deg": {"how": "equal", "value": 90, "tolerance": 8}}
ASKED = {"anatomy": "coronary", "spec": SPEC, "asks": ASK, "lines": ["pieces[Ca] = 1"], "samples": 2}
MARKUPS = {
    "markups": [
        {
            "type": "ROI",
            "coordinateSystem": "LPS",
            "center": [1, 2, 3],
            "size": [9, 9, 9],
            "orientation": [-1, 0, 0, 0, -1, 0, 0, 0, 1],
        }
    ]
}
SNAP = {"patient": "PATIENT", "snap": {"to": "interface", "tissues": ["Lu", "Ve"], "key": ""}}
BODIES: dict[str, Any] = {
    "/api/plan": ASKED | {"patient": "PATIENT"},
    "/api/snap": SNAP,
    "/api/markups/write": {"boxes": [BOX, BOX]},
    "/api/markups/read": MARKUPS,
    "/api/task": {"name": "calcium-count"},
    "/api/phantom": {"anatomy": "coronary", "seed": 1},
    "/api/upload": {"1": "Lu", "2": "Ca", "3": "Ve"},
}
WORDS = ("nifti", "spec", "latent", "mesh", "..%2f..", "quantities", "%00", "stl", "report", "x" * 3000)


class Reply(NamedTuple):
    status: int
    body: bytes


async def _call(method: str, path: str, query: str, body: bytes) -> Reply:
    """One request to the app behind the guard; what it did not foresee is raised here."""
    sent: list[dict[str, Any]] = []
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1:1")],
        "scheme": "http",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    await server().app(scope, receive, send)  # type: ignore[arg-type]
    data = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
    return Reply(sent[0]["status"], data)


@cache
def server() -> Any:
    return make_app(Key(1), 1)


def call(method: str, path: str, query: str = "", body: bytes = b"") -> Reply:
    return asyncio.run(_call(method, path, query, body))


@cache
def patient() -> str:
    return json.loads(call("POST", "/api/phantom", body=b'{"anatomy": "coronary", "seed": 3}').body)["id"]


def studio_request(made: Inputs, rng: random.Random) -> bool:
    """A request with one odd value, or bytes of it damaged."""
    path = rng.choice(sorted(BODIES))
    content, query, damaged = BODIES[path], "", b""
    if path == "/api/plan" and rng.random() < 0.3:
        own = TASKS[rng.choice(("calcium-count", "multiscale-vessel-small"))]
        content = content | {"spec": spec_to_dict(own)}
    content = json.loads(json.dumps(content).replace("PATIENT", patient()))
    text = json.dumps(mutators.damage_json(content, rng)) if rng.random() < 0.8 else json.dumps(content)
    body = text.encode() if rng.random() < 0.9 else mutators.damage(text.encode(), rng)
    if path == "/api/upload":
        words = (body.decode(errors="replace"), "verse", "[" * 3000, '{"' + "9" * 5000 + '": "Lu"}')
        query = f"anatomy=coronary&name=x&mapping={quote(rng.choice(words))}"
        body = made.nifti
    if rng.random() < 0.1:
        reply = call("GET", f"/api/patient/{patient()}/{rng.choice(WORDS)}")
    else:
        reply = call("POST", path, query, body or damaged)
    if reply.status >= 500:
        raise Wrong(f"{path}: {reply.status} {reply.body[:300]!r}")
    if reply.status >= 400:
        check_sentence(json.loads(reply.body)["sentence"])
    return reply.status >= 400
