"""`rabaska ui` as it is typed: its address, its port, its socket, its end."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from rabaska.cli import main; main()"
)


def started(home, *words, **variables):
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    }
    return subprocess.Popen(
        [sys.executable, "-c", START, "ui", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**environment, "RABASKA_HOME": str(home), "HOME": str(home), **variables},
    )  # fmt: skip


@contextmanager
def running(home, *words, **variables):
    """The process and the address that it printed."""
    process = started(home, *words, **variables)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@contextmanager
def taken_port():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def opened(address):
    jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with jar.open(address, timeout=20) as welcome:
        welcome.read()
    with jar.open(address.partition("?")[0], timeout=20) as answer:
        return answer.read().decode()


def test_it_prints_its_address_and_ends_with_ctrl_c_while_somebody_listens(tmp_path):
    with running(tmp_path, "--no-browser") as (process, address):
        port = int(re.search(r":(\d+)/", address)[1])
        assert "No runs yet" in opened(address)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            opened(address.partition("?")[0])
        jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        jar.open(address, timeout=20).read()
        news = jar.open(f"http://127.0.0.1:{port}/events", timeout=20)
        with news:
            assert news.readline().startswith(b"event: changed")
            process.send_signal(signal.SIGINT)

        began = time.monotonic()
        _, errors = process.communicate(timeout=20)
        assert time.monotonic() - began < 10
        assert process.returncode == 0
        assert errors.splitlines()[-1] == "closed; submitted jobs keep running"
        assert "Traceback" not in errors


def test_a_port_in_use_is_said_and_without_one_another_is_found(tmp_path):
    with taken_port() as port:
        refused = started(tmp_path, "--no-browser", "--port", str(port))
        _, errors = refused.communicate(timeout=30)

    assert refused.returncode == 2
    assert f"port {port} is in use" in errors
    assert "leave out --port" in errors


def test_two_at_once_each_have_their_port(tmp_path):
    with running(tmp_path) as (_, first), running(tmp_path) as (_, second):
        assert first != second
        assert "No runs yet" in opened(first)
        assert "No runs yet" in opened(second)


def test_no_command_line_holds_the_token(tmp_path):
    """Everybody on a computer sees the words of every process."""
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}.partial\nmv {seen}.partial {seen}\n')
    browser.chmod(0o755)
    with running(tmp_path, BROWSER=f"{browser} %s") as (_, address):
        opened_page = urlsplit(seen.read_text())
        content = Path(opened_page.path).read_text()
        mode = stat.S_IMODE(Path(opened_page.path).parent.stat().st_mode)

    assert opened_page.scheme == "file"
    assert (address in content, mode) == (True, 0o700)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
def test_another_user_gets_no_answer_not_even_with_the_token(tmp_path):
    script = (
        "import os, sys, urllib.request\n'a'.encode('idna')\nos.setgid(65534); os.setuid(65534)\n"
        "try: print(urllib.request.urlopen(sys.argv[1], timeout=20).status)\n"
        "except urllib.error.HTTPError as problem: print(problem.code)\n"
        "except OSError: print('no answer')"
    )
    with running(tmp_path, "--no-browser") as (_, address):
        done = subprocess.run(
            [sys.executable, "-c", script, address], capture_output=True, text=True, check=False
        )
        assert "No runs yet" in opened(address)

    assert done.stdout.strip() == "no answer", done.stderr


def test_it_listens_on_loopback_only(tmp_path):
    with running(tmp_path, "--no-browser") as (process, address):
        port = int(re.search(r":(\d+)/", address)[1])
        listening = [
            line.split()[1]
            for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
        ]

    assert address.startswith("http://127.0.0.1:")
    assert listening == [f"0100007F:{port:04X}"]
    assert process


def test_a_socket_is_private_and_goes_away(tmp_path):
    file = tmp_path / "ui.sock"
    with running(tmp_path, "--socket", str(file)) as (process, address):
        mode = stat.S_IMODE(file.stat().st_mode)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(file))
            path = address.partition("8642")[2]
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost:4711\r\n\r\n".encode())
            answer = sock.recv(1000)
        process.send_signal(signal.SIGINT)
        process.wait(20)

    assert mode == 0o600
    assert b"set-cookie: rabaska-0=" in answer
    assert not file.exists()


def test_a_socket_that_was_left_behind_is_replaced_and_a_file_is_not(tmp_path):
    left, other = tmp_path / "left.sock", tmp_path / "other"
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(left))
    other.write_text("mine")

    with running(tmp_path, "--socket", str(left)) as (_, address):
        assert address
    refused = started(tmp_path, "--socket", str(other))
    _, errors = refused.communicate(timeout=30)

    assert refused.returncode == 2
    assert "something is there already" in errors
    assert other.read_text() == "mine"
