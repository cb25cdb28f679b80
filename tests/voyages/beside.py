"""What a person does with a page that a command opens: read its address, get in, ask for things."""

import http.client
import json
import os
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.second_user import pried

PYTHON = Path(__file__).parents[2] / ".venv-beside" / "bin" / "python"
needs_programs = pytest.mark.skipif(not PYTHON.exists(), reason="run `make beside`")

# Writes points as any program does that uses TensorBoard, and goes on when it is let.
WRITES = """
import os, sys, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer, gate = EventFileWriter(os.path.join(sys.argv[1], "logs")), sys.argv[2]
for step in range(20):
    while step == 10 and not os.path.exists(gate):
        time.sleep(0.05)
    point = Summary(value=[Summary.Value(tag="loss", simple_value=step / 4)])
    writer.add_event(Event(wall_time=time.time(), step=step, summary=point))
    writer.flush()
print("all written", flush=True)
while not os.path.exists(gate + ".end"):
    time.sleep(0.05)
"""


class Browser:
    """Has no cookies until it opened an address with a token."""

    def __init__(self, address):
        parts = urlsplit(address)
        self.port, self.cookie = parts.port, ""
        status, headers, _ = self.asks(f"{parts.path}?{parts.query}")
        assert status == 200, headers
        self.cookie = headers["Set-Cookie"].partition(";")[0]

    def asks(self, path, method="GET", body=None, **headers):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        try:
            more = {"Cookie": self.cookie} if self.cookie else {}
            line.request(method, path, body, {**more, **headers})
            answer = line.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            line.close()

    def json(self, path, method="GET", body=None):
        status, _, said = self.asks(path, method, json.dumps(body) if body else None)
        assert status < 300, (status, said)
        return json.loads(said)


@contextmanager
def opened(user, *words):
    """The browser of somebody who typed a command that opens a page; they leave by Ctrl-C."""
    command = user.start(*words, "--no-browser", preexec_fn=hear_ctrl_c)
    try:
        address = command.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), command.communicate()[1]
        browser = Browser(address)
        browser.command = command.pid
        yield browser
    finally:
        if command.poll() is None:
            command.send_signal(signal.SIGINT)
        _, errors = command.communicate(timeout=60)
    assert command.returncode == 0, errors


def hear_ctrl_c():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def until(met, seconds=30):
    end = time.monotonic() + seconds
    while not (found := met()):
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def open_ports(pids):
    """The TCP ports on which these processes listen."""
    inodes = set()
    for pid in pids:
        try:
            links = [
                os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")
            ]
        except OSError:
            continue
        inodes.update(re.findall(r"socket:\[(\d+)\]", " ".join(links)))
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.append(fields[1])
    return found


# Runs where the packages are that speak with kernels: what code prints in a new one.
_EXECUTES = """
import json, sys, uuid, websocket
port, cookie, kernel, code = sys.argv[1:]
address = f"ws://127.0.0.1:{port}/api/kernels/{kernel}/channels"
line = websocket.create_connection(address, header=[f"Cookie: {cookie}"], timeout=60)
head = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "username": "", "version": "5.3",
        "session": uuid.uuid4().hex, "date": ""}
content = {"code": code, "silent": False, "store_history": False, "user_expressions": {},
           "allow_stdin": False}
line.send(json.dumps({"header": head, "parent_header": {}, "metadata": {}, "content": content,
                      "channel": "shell", "buffers": []}))
while True:
    told = json.loads(line.recv())
    if told["msg_type"] == "stream":
        print(told["content"]["text"], end="")
    idle = told["content"].get("execution_state") == "idle"
    if idle and told["parent_header"].get("msg_id") == head["msg_id"]:
        break  # its answer may come before what it printed
line.close()
"""


def executes(browser, code):
    """What code prints in a new kernel."""
    kernel = browser.json("/api/kernels", "POST")["id"]
    words = [PYTHON, "-c", _EXECUTES, str(browser.port), browser.cookie, kernel, code]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def shut_out(paths):
    """Another user of this computer finds no way into any of them."""
    if os.getuid() != 0:
        return
    connect = (
        "import socket, sys\n"
        "for path in sys.stdin.read().split():\n"
        "    line = socket.socket(socket.AF_UNIX)\n"
        "    try:\n        line.connect(path); print('connected to', path)\n"
        "    except OSError: pass\n"
    )

    def run(words, stdin):
        leave = "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        command = ["/usr/bin/python3", "-c", leave + words[-1]]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=True)
        return done.stdout

    assert pried(run, paths) == []
    assert run([connect], "\n".join(paths)) == ""
