"""Who may talk to the studio: a page that this server gave out, opened by the person who started it.

The server listens on this machine only, but every page of every site can send requests to it. So the Host
must be this machine's (DNS rebinding), the Origin must be the server's own (other sites), and a cookie must
hold the key that only the address in the terminal gives out, once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from anatomica.studio import bounds
from anatomica.studio.bounds import MOST_BODY_BYTES, MOST_UPLOAD_BYTES

UPLOAD = "/api/upload"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Key:
    """The secret of one server. `token` opens it once; the cookie that this gives out stays."""

    def __init__(self, port: int) -> None:
        self.token: str | None = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        # Cookies do not know ports: two studios on one machine must not overwrite each other's.
        self.cookie = f"anatomica_studio_{port}"

    def spend(self, token: str) -> str | None:
        """The cookie's value in exchange for the token, which is worth nothing from then on."""
        if self.token is None or not secrets.compare_digest(token.encode(), self.token.encode()):
            return None
        self.token = None
        return self._secret

    def opens(self, headers: Headers) -> bool:
        given = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        return secrets.compare_digest(given.encode(), self._secret.encode())


class Guard:
    """ASGI middleware around everything, WebSockets included."""

    def __init__(self, app: ASGIApp, key: Key, port: int) -> None:
        self.app, self.key = app, key
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await self._refuse(refusal, scope, receive, send)
            return
        most = MOST_UPLOAD_BYTES if scope["path"] == UPLOAD else MOST_BODY_BYTES
        bounded = receive if scope["type"] == "websocket" else _bounded(receive, most)
        await self.app(scope, bounded, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why a request is refused, as the response that says so; None if it may pass."""
        socket = scope["type"] == "websocket"
        host = headers.getlist("host")
        if len(host) != 1 or host[0] not in self.hosts:
            return _sentence(421, "the studio answers only to 127.0.0.1 and localhost, at its own port")
        origin = headers.getlist("origin")
        if origin and origin != [f"http://{host[0]}"]:
            return _sentence(403, "this request comes from another site's page")
        if not origin and (socket or scope["method"] not in ("GET", "HEAD")):
            return _sentence(403, "a request that changes something must say its origin")
        if not socket and scope["path"] == "/" and b"token=" in scope["query_string"]:
            return self._exchange(scope, headers)
        if not self.key.opens(headers):
            return _sentence(
                401, "open the address that `anatomica studio` printed; it works once in one browser"
            )
        most = MOST_UPLOAD_BYTES if scope["path"] == UPLOAD else MOST_BODY_BYTES
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            return _too_large(most)
        return None

    def _exchange(self, scope: Scope, headers: Headers) -> Response:
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        value = self.key.spend(token)
        if value is None and not self.key.opens(headers):
            return _sentence(401, "this address was used before; start the studio again for a new one")
        response = RedirectResponse("/", 303)
        if value is not None:
            response.set_cookie(self.key.cookie, value, httponly=True, samesite="strict", path="/")
        return response

    async def _refuse(self, response: Response, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await WebSocketClose(1008, "refused")(scope, receive, send)
        else:
            await response(scope, receive, _with_headers(send))


def _bounded(receive: Receive, most: int) -> Receive:
    """The same body, counted and timed: a request need not say its length, may lie about it, or stop."""
    seen, whole = 0, False

    async def counted() -> Message:
        nonlocal seen, whole
        try:
            message = await asyncio.wait_for(receive(), None if whole else bounds.PATIENCE_S)
        except TimeoutError:
            raise HTTPException(408, "the rest of the request did not come") from None
        whole = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, _most(most))
        return message

    return counted


def _with_headers(send: Send) -> Callable[[Message], Any]:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sent


def _sentence(status: int, text: str) -> Response:
    return PlainTextResponse(text, status)


def _too_large(most: int) -> Response:
    return _sentence(413, _most(most))


def _most(most: int) -> str:
    return f"the studio takes at most {most / 2**20:.0f} MB here"
