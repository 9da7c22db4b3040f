"""Who may use the page: only a browser on this machine that has the token, and only the page itself.

Other pages in the same browser, and names that an attacker points to this machine, reach the port, too. Therefore every
request needs the Host of this server, no foreign Origin, and the token, which the browser keeps as a cookie that no
script can read. The policy of the page allows no script, connection or frame but its own.
"""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: The longest body of a request: a workbook of a megabyte.
MOST_BYTES = 1 << 20

_POLICY = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; "
    # CodeMirror and Vega set styles of elements that they make.
    "style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Passes on the requests that are allowed, and answers the others.

    Parameters
    ----------
    port : the port of the server
    token : the secret that the address on the terminal has
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._token = token
        # Browsers send the cookies of all ports of a host: each server has its own.
        self._cookie = f"anabranch-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request; the page uses no other protocol than HTTP."""
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope, Headers(scope=scope))
        app: ASGIApp = self._app if refusal is None else refusal
        await app(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to a request that is not passed on."""
        host = headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("this server answers only requests to 127.0.0.1 and localhost", 403)
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return PlainTextResponse("requests of other pages are refused", 403)
        if scope["method"] not in ("GET", "POST"):
            return PlainTextResponse("only GET and POST are allowed", 405)
        if scope["path"] == "/" and self._is_token(_stated_token(scope)):
            # The token does not stay in the address, which ends up in histories and screenshots.
            response = RedirectResponse("/", 303)
            response.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return response
        if not self._is_token(_cookie(headers, self._cookie)):
            return PlainTextResponse("open the address that `anabranch serve` has printed; it has the token", 403)
        return _body_refusal(headers) if scope["method"] == "POST" else None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self._token.encode())


def _body_refusal(headers: Headers) -> Response | None:
    """A form of another page can send no JSON, and a body of unknown length could fill the memory."""
    if headers.get("content-type") != "application/json":
        return PlainTextResponse("the body must be application/json", 415)
    length = headers.get("content-length", "")
    if not length.isdecimal():
        return PlainTextResponse("the length of the body is missing", 411)
    return PlainTextResponse("the text is too long", 413) if int(length) > MOST_BYTES else None


def _stated_token(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("token", [""])[0]


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _with_headers(send: Send) -> Send:
    """Add the headers that restrict what the browser does with an answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            known: MutableMapping[str, Any] = message
            MutableHeaders(scope=known).update(_HEADERS)
        await send(message)

    return send_with_headers
