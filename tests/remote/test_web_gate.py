"""The gate before a web server: who knows the token gets in, and nobody else."""

import http.client
import http.server
import os
import resource
import socket
import socketserver
import subprocess
import sys
import threading
import time

import pytest

from rabaska.errors import WrongUse
from rabaska.remote.loopback import loopback_socket
from rabaska.remote.web_gate import Gate, unix_connect


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(b"")

    def do_POST(self):
        self.answer(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, body):
        said = f"{self.path}\n{self.headers}".encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def address_string(self):
        return "gate"

    def log_message(self, *_):
        pass


@pytest.fixture
def gate(tmp_path):
    class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
        daemon_threads = True

    path = str(tmp_path / "s")
    with Server(path, Echo) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        opened = Gate(
            unix_connect(path), loopback_socket(None, 0), added=(("Authorization", "token t"),)
        )
        opened.start()
        yield opened
        opened.close()
        server.shutdown()


def ask(gate, path="/", method="GET", body=None, **headers):
    line = http.client.HTTPConnection("127.0.0.1", gate.port, timeout=10)
    headers.setdefault("Host", f"127.0.0.1:{gate.port}")
    line.request(method, path, body, headers)
    answer = line.getresponse()
    said = answer.read().decode()
    line.close()
    return answer, said


def cookie(gate):
    answer, _ = ask(gate, gate.address().partition(str(gate.port))[2])
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_the_token_of_the_address_becomes_a_cookie_that_lets_in(gate):
    answer, page = ask(gate, f"/lab?a=1&token={gate.token}")

    assert answer.status == 200
    assert "url=/lab?a=1" in page
    assert gate.token not in page
    kept = answer.headers["Set-Cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=Strict" in kept
    answer, said = ask(gate, "/data?x=1", Cookie=f"other=1; {cookie(gate)}")
    assert (answer.status, said.splitlines()[0]) == (200, "/data?x=1")
    assert "other=1" in said
    assert gate.token not in said, "the server behind need not know it"
    assert "Authorization: token t" in said


def test_a_body_reaches_the_server(gate):
    _, said = ask(gate, "/", "POST", body=b"x" * 100_000, Cookie=cookie(gate))

    assert said.endswith("x" * 100_000)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": "rabaska-{port}=wrong"},
        {"Cookie": "rabaska-1={token}"},
        {"Authorization": "token {token}"},
        {"Cookie": "{cookie}", "Host": "evil.example"},
        {"Cookie": "{cookie}", "Host": "evil.example:{port}"},
        {"Cookie": "{cookie}", "Host": "127.0.0.1:1"},
        {"Cookie": "{cookie}", "Origin": "http://evil.example"},
        {"Cookie": "{cookie}", "Origin": "null"},
        {"Cookie": "{cookie}", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_nobody_else_gets_in(gate, headers):
    values = {"port": gate.port, "token": gate.token, "cookie": cookie(gate)}

    answer, said = ask(gate, **{name: text.format(**values) for name, text in headers.items()})

    assert answer.status == 403
    assert gate.token not in said


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: a\nCookie: b\r\n\r\n",
        b"GET http://evil/ HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(gate, sent):
    with socket.create_connection(("127.0.0.1", gate.port), timeout=10) as line:
        line.sendall(sent)
        assert line.recv(4096).startswith(b"HTTP/1.1 400")


def test_each_connection_brings_one_request(gate):
    """A page of another site would be let in by a connection that a browser uses again."""
    with socket.create_connection(("127.0.0.1", gate.port), timeout=10) as line:
        head = f"GET /1 HTTP/1.1\r\nHost: 127.0.0.1:{gate.port}\r\n"
        line.sendall(f"{head}Cookie: {cookie(gate)}\r\nConnection: keep-alive\r\n\r\n".encode())
        said = b""
        while piece := line.recv(65536):  # it ends with the answer
            said += piece

    assert b"Connection: close" in said


def test_a_server_that_is_gone_is_told(tmp_path):
    gate = Gate(unix_connect(str(tmp_path / "none")), loopback_socket(None, 0))
    gate.start()

    answer, said = ask(gate, Cookie=cookie(gate))

    assert answer.status == 502
    assert "No such file" in said
    gate.close()


def test_it_listens_on_loopback_and_a_port_in_use_is_told():
    taken = loopback_socket(None, 0)
    port = taken.getsockname()[1]

    assert taken.getsockname()[0] == "127.0.0.1"
    with pytest.raises(WrongUse, match=str(port)):
        loopback_socket(port, 0)
    other = loopback_socket(None, port)
    assert other.getsockname()[1] not in (0, port)
    taken.close()
    other.close()


# Sends what it is given to a port as another user, and prints what comes back.
OTHER = """
import os, socket, sys
'a'.encode('idna')  # while it can be read
os.setgid(65534); os.setuid(65534)
lines = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[3]))]
try:
    lines[-1].sendall(sys.argv[2].encode())
    print(lines[-1].recv(9999))
except OSError as problem:
    print(type(problem).__name__)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
@pytest.mark.parametrize("connections", [1, 60])
def test_another_user_of_this_computer_gets_no_answer_not_even_with_the_cookie(gate, connections):
    host = f"Host: 127.0.0.1:{gate.port}"
    request = f"GET / HTTP/1.1\r\n{host}\r\nCookie: {cookie(gate)}\r\n\r\n"
    words = [sys.executable, "-c", OTHER, str(gate.port), request, str(connections)]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.stdout.strip() in ("b''", "ConnectionResetError", "BrokenPipeError"), done.stderr
    assert ask(gate, Cookie=cookie(gate))[0].status == 200


def test_a_computer_that_has_no_more_connections_for_a_while_closes_it_not_for_good(gate):
    idle = (
        "import socket, sys, time\n"
        "lines = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(60)]\n"
        "time.sleep(0.3)"
    )
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = set(map(int, os.listdir("/proc/self/fd")))
    few = next(most for most in range(4096) if most - sum(one < most for one in used) == 10)
    process = subprocess.Popen([sys.executable, "-c", idle, str(gate.port)])
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, limits[1]))
        process.wait(30)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert _answers_soon(gate)


def _answers_soon(gate):
    for _ in range(3):
        try:
            return ask(gate, Cookie=cookie(gate))[0].status == 200
        except (OSError, http.client.HTTPException):
            time.sleep(0.2)
    return False
