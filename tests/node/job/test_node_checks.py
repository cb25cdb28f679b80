"""Whether nodes reach the internet, tried by a job; what it would reach stands on this machine."""

import json
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

PATIENT = """
    import os, sys, time
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.02)
"""


class Outside(BaseHTTPRequestHandler):
    """Somebody who answers, and to nobody's liking."""

    def do_HEAD(self) -> None:
        self.server.asked += 1  # type: ignore[attr-defined]
        self.send_error(403)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def outside() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Outside) as server:
        server.asked = 0  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def address(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def tried(agents_for: Any, tmp_path: Any, tries: str) -> Any:
    """What a run finds out, whose program ends when it has."""
    found = tmp_path / "store" / "nodes.json"
    waiting = agents_for(PATIENT, command=[sys.executable, "train.py", str(found)], tries=tries)
    waiting.start().wait(timeout=30)
    return json.loads(found.read_bytes())


def test_an_answer_is_an_answer_and_nobody_asks_again(agents_for, tmp_path, outside):
    found = tried(agents_for, tmp_path, address(outside.server_port))
    tried(agents_for, tmp_path, address(outside.server_port))

    assert found["internet"] is True
    assert found["host"] == socket.gethostname()
    assert outside.asked == 1


def test_a_node_that_reaches_nobody_says_so(agents_for, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        closed = address(unused.getsockname()[1])

        found = tried(agents_for, tmp_path, closed)

    assert found["internet"] is False


def test_where_it_is_known_nothing_is_tried(agents_for, tmp_path, outside):
    agents_for("pass").start().wait(timeout=30)

    assert not (tmp_path / "store" / "nodes.json").exists()
    assert outside.asked == 0


def test_a_job_writes_down_how_large_its_nodes_disk_is(agents_for, tmp_path, monkeypatch):
    (tmp_path / "local").mkdir()
    monkeypatch.setenv("RABASKA_LOCAL", str(tmp_path / "local"))
    seen = tmp_path / "store" / "disks.json"

    agents_for("print('done')").start().wait(timeout=30)

    (disk,) = json.loads(seen.read_bytes()).values()
    assert disk["size"] == shutil.disk_usage(tmp_path).total
    assert disk["host"] == socket.gethostname()


def test_what_others_wrote_there_fails_no_job(agents_for, tmp_path, monkeypatch):
    (tmp_path / "local").mkdir()
    monkeypatch.setenv("RABASKA_LOCAL", str(tmp_path / "local"))
    (tmp_path / "store").mkdir(exist_ok=True)
    (tmp_path / "store" / "disks.json").write_text('{"": 3}')

    code = agents_for("print('done')").start().wait(timeout=30)

    assert code == 0
