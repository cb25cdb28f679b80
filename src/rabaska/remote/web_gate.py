"""A gate before a web server: loopback only, and nobody gets in without a token.

Everybody on this computer can open a port of loopback, and every page in a browser can send
requests to it. So the address that is printed once holds a token, which becomes a cookie that
other sites cannot use. Each connection brings one request: what was let in for one page is not
there for another. Where the system tells who connects, others do not even get an answer.
"""

import errno
import hmac
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit

from rabaska.errors import RabaskaError
from rabaska.remote.loopback import is_from_us

Connect = Callable[[], socket.socket]

_LONGEST = 1 << 16  # bytes of the head of a request
_PATIENCE = 30  # seconds for it
_MOST_WAITING = 256  # connections that have not sent it yet
_PAUSE = 0.1  # seconds, where this computer has no more connections to give for a while
_FOR_A_WHILE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
_CHUNK = 1 << 16
_LOOPBACK = "127.0.0.1"
_FIRST = re.compile(rb"[A-Z]+ /[!-~]* HTTP/1\.[01]")


@dataclass(frozen=True)
class Request:
    """The first line and the headers of a request, and what came after them."""

    first: bytes
    headers: tuple[tuple[str, bytes], ...]
    rest: bytes = b""

    @property
    def target(self) -> str:
        return self.first.split(b" ")[1].decode("latin-1")

    def all(self, name: str) -> list[str]:
        return [text.decode("latin-1") for found, text in self.headers if found == name]

    def one(self, name: str) -> str | None:
        """The header; None where it is missing, or there are several of that name."""
        found = self.all(name)
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Gate:
    """Listens on loopback, and passes on what knows the token to a server behind it."""

    connect: Connect  # to the server
    listening: socket.socket
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    added: tuple[tuple[str, str], ...] = ()  # headers that the server behind asks for
    waiting: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(_MOST_WAITING))

    @property
    def port(self) -> int:
        return int(self.listening.getsockname()[1])

    def address(self, path: str = "/") -> str:
        """What a browser opens first."""
        mark = "&" if "?" in path else "?"
        return f"http://{_LOOPBACK}:{self.port}{path}{mark}token={self.token}"

    def start(self) -> None:
        threading.Thread(target=self._serve, name="gate", daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _serve(self) -> None:
        while self.listening.fileno() >= 0:
            try:
                client, _ = self.listening.accept()
            except OSError as problem:
                if problem.errno not in _FOR_A_WHILE:
                    return  # closed
                time.sleep(_PAUSE)
                continue
            if not self._taken(client):
                client.close()

    def _taken(self, client: socket.socket) -> bool:
        """Whether a thread answers it; only so many may keep us waiting for their request."""
        try:
            if not is_from_us(client) or not self.waiting.acquire(blocking=False):
                return False
        except OSError:
            return False  # it left at once
        try:
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()
        except RuntimeError:  # no more threads
            self.waiting.release()
            return False
        return True

    def _answer(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(_PATIENCE)
            try:
                request = read_request(client)
            finally:
                self.waiting.release()
            if request is None:
                return client.sendall(page("400 Bad Request", "This is no request of a browser."))
            refused = self._refused(request)
            if refused:
                return client.sendall(refused)
            try:
                server = self.connect()
            except (OSError, RabaskaError) as problem:
                return client.sendall(page("502 Bad Gateway", str(problem)))
            client.settimeout(None)
            with server:
                server.sendall(self._passed_on(request))
                join(client, server)
        return None

    def _refused(self, request: Request) -> bytes | None:
        """What to answer instead of the server; None to who knows the token."""
        hosts = [f"{name}:{self.port}" for name in (_LOOPBACK, "localhost")]
        if request.one("host") not in hosts:
            return page("403 Forbidden", "This address belongs to another site.")
        origins = request.all("origin")
        if any(origin not in [f"http://{host}" for host in hosts] for origin in origins):
            return page("403 Forbidden", "Another site sent this request.")
        parts = urlsplit(request.target)
        given = dict(parse_qsl(parts.query)).get("token", "")
        if _same(given, self.token):
            kept = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] != "token"])
            path = "/" + parts.path.lstrip("/")
            return self._welcome(f"{path}?{kept}" if kept else path)
        # Pages of other ports of this computer send our cookie along, too.
        if request.one("sec-fetch-site") in ("cross-site", "same-site"):
            return page("403 Forbidden", "Another site sent this request.")
        if any(_same(cookie, self.token) for cookie in self._cookies(request)):
            return None
        said = "Open the address that rabaska printed; it holds the token that is missing here."
        return page("403 Forbidden", said)

    def _cookies(self, request: Request) -> list[str]:
        pairs = (
            pair.strip().partition("=") for pair in "; ".join(request.all("cookie")).split(";")
        )
        return [value for name, _, value in pairs if name == self._cookie]

    @property
    def _cookie(self) -> str:
        return f"rabaska-{self.port}"  # cookies do not tell ports apart

    def _welcome(self, path: str) -> bytes:
        """A page that goes on by itself: a redirect would still count as the other site's."""
        cookie = f"{self._cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        safe = path.replace("&", "&amp;").replace('"', "%22").replace("<", "%3C")
        go = f'<meta http-equiv="refresh" content="0; url={safe}"><a href="{safe}">open</a>'
        return page("200 OK", "", go, (("Set-Cookie", cookie),))

    def _passed_on(self, request: Request) -> bytes:
        """The request for the server: alone on its connection, and without our cookie."""
        upgrades = request.one("upgrade") is not None
        left_out = {name.lower() for name, _ in self.added}
        left_out |= set() if upgrades else {"connection", "keep-alive"}
        lines = [request.first]
        for name, text in request.headers:
            if name == "cookie":
                text = _without(text, self._cookie.encode())
            if name not in left_out and (name != "cookie" or text):
                lines.append(name.encode("latin-1") + b": " + text)
        lines += [f"{name}: {text}".encode("latin-1") for name, text in self.added]
        lines += [] if upgrades else [b"Connection: close"]
        return b"\r\n".join(lines) + b"\r\n\r\n" + request.rest


def _without(cookies: bytes, name: bytes) -> bytes:
    kept = [one for one in cookies.split(b";") if one.strip().partition(b"=")[0] != name]
    return b";".join(kept).strip()


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def read_request(client: socket.socket) -> Request | None:
    """None where it is no request that a browser sends."""
    data = b""
    while b"\r\n\r\n" not in data:
        if len(data) > _LONGEST:
            return None
        piece = client.recv(_CHUNK)
        if not piece:
            return None
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    if len(head) > _LONGEST:
        return None
    first, *lines = head.split(b"\r\n")
    if not _FIRST.fullmatch(first) or any(b"\n" in line or b"\r" in line for line in lines):
        return None
    headers = []
    for line in lines:
        name, colon, text = line.partition(b":")
        if not colon or not name or name != name.strip():
            return None
        headers.append((name.decode("latin-1").lower(), text.strip()))
    return Request(first, tuple(headers), rest)


def page(
    status: str, said: str, body: str = "", headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    from html import escape

    content = f"<!doctype html><title>rabaska</title><p>{escape(said)}{body}".encode()
    lines = [
        f"HTTP/1.1 {status}",
        "Content-Type: text/html; charset=utf-8",
        f"Content-Length: {len(content)}",
        "Content-Security-Policy: default-src 'none'",
        "Referrer-Policy: no-referrer",
        "Cache-Control: no-store",
        "Connection: close",
        *(f"{name}: {text}" for name, text in headers),
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def join(one: socket.socket, other: socket.socket) -> None:
    """Pass on what each says to the other, until both have said all."""
    back = threading.Thread(target=_pass_on, args=(other, one), daemon=True)
    back.start()
    _pass_on(one, other)
    back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for line, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            line.shutdown(how)


def unix_connect(path: str) -> Connect:
    """Connects to a socket of this computer."""

    def connect() -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(path)
        except OSError:
            line.close()
            raise
        return line

    return connect
