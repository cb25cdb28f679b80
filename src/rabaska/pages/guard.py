"""Who may use the pages: the browser that was given the token, by the address it was given.

Any page in any browser tab may send requests to this computer, and so may every other user of it.
So a request must name the address that we listen at (Host: else another name that leads here would
do), come from one of our own pages (Origin), and carry the cookie that the first address gave.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
_REFUSED = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>rabaska</title>
<h1>This page needs its token</h1>
<p>Open the address that <code>rabaska ui</code> printed; it is valid until that command ends.</p>
"""
_WELCOME = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>rabaska</title>
<meta http-equiv="refresh" content="0; url=/"><a href="/">open</a>
"""


class Guard:
    """An ASGI application around another one. `port` 0: a unix socket, whose file is the guard."""

    def __init__(self, inner: Any, *, port: int, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._session = secrets.token_urlsafe(24)
        self._inner = inner
        self._port = port
        self._cookie = f"rabaska-{port}"  # two `ui` at once have one each

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._inner(scope, receive, send)
            return  # a websocket is none of ours
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        gives_token = self._gives_token(scope)
        refused = self._why_refused(scope["method"], headers, gives_token=gives_token)
        if refused:
            await _answer(send, 403, f"refused: {refused}\n")
        elif gives_token:
            await self._let_in(send)
        elif not self._is_known(headers):
            await _answer(send, 403, _REFUSED, kind="text/html")
        else:
            await self._inner(scope, receive, _with_headers(send))

    def _why_refused(self, method: str, headers: Mapping[str, str], *, gives_token: bool) -> str:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return "this is not the address that rabaska listens at"
        if "origin" in headers and headers["origin"] != f"http://{host}":
            return "the request comes from another site"
        if gives_token and method == "GET":
            return ""  # from the file that a browser is opened with
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "the request comes from another site"
        if method not in ("GET", "HEAD") and "origin" not in headers:
            return "the request does not say which page it comes from"
        return ""

    def _is_ours(self, host: str) -> bool:
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdecimal():
            return False
        return name in ("127.0.0.1", "localhost", "[::1]") and self._port in (0, int(port))

    def _gives_token(self, scope: Any) -> bool:
        if scope["path"] != "/" or b"token=" not in scope["query_string"]:
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _let_in(self, send: Any) -> None:
        """The token leaves the address at once: it shall not be in a history or a screenshot.

        By a page that goes on by itself: a redirect would still count as the other site's.
        """
        cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(send, 200, _WELCOME, kind="text/html", extra={"set-cookie": cookie})

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        # Not by http.cookies: one strange cookie of another port, and it reads none at all.
        pairs = (one.strip().partition("=") for one in headers.get("cookie", "").split(";"))
        given = [value for name, _, value in pairs if name == self._cookie]
        return any(hmac.compare_digest(one.encode(), self._session.encode()) for one in given)


def _with_headers(send: Any) -> Any:
    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            there = {name.lower() for name, _ in message["headers"]}
            extra = [
                (name.encode(), text.encode())
                for name, text in HEADERS.items()
                if name.encode() not in there
            ]
            message = {**message, "headers": [*message["headers"], *extra]}
        await send(message)

    return sent


async def _answer(
    send: Any, status: int, text: str, *, kind: str = "text/plain", extra: Any = None
) -> None:
    headers = {**HEADERS, "content-type": f"{kind}; charset=utf-8", **(extra or {})}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": text.encode()})
