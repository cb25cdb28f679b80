"""Many connections through one stream: each gets its own bytes, and none holds up another."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from rabaska.node.job.relay import DATA, HEADER, NO_SERVER, OPEN, WINDOW, Mux

KEPT = []


def kept(thing):
    """Closed after the test, writing ends first: threads read the others until then."""
    KEPT.append(thing)
    return thing


@pytest.fixture(autouse=True)
def nothing_is_left_open():
    before = set(threading.enumerate())
    yield
    for thing in sorted(KEPT, key=lambda thing: getattr(thing, "mode", "") == "rb"):
        with suppress(OSError):
            thing.close()
    KEPT.clear()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread


def echo(line):
    with line, suppress(OSError):
        while data := line.recv(1 << 16):
            line.sendall(data)
        line.shutdown(socket.SHUT_WR)


def echoing():
    """A connection to a server that says everything again."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=echo, args=(theirs,), daemon=True).start()
    return ours


def pair(accept):
    """The two ends of a stream, and what ends it."""
    down_read, down_write = os.pipe()
    up_read, up_write = os.pipe()
    back = kept(open(up_write, "wb"))
    far = Mux(kept(open(down_read, "rb")), back, accept)
    feed = kept(open(down_write, "wb"))
    near = Mux(kept(open(up_read, "rb")), feed)
    # The far end is a process of its own, whose output ends with it.
    threading.Thread(target=lambda: (far.run(), back.close()), daemon=True).start()
    threading.Thread(target=near.run, daemon=True).start()
    return near, far, feed


@pytest.fixture
def near():
    near, _, feed = pair(echoing)
    yield near
    feed.close()


def read_all(line):
    data = b""
    while piece := line.recv(1 << 16):
        data += piece
    return data


def test_each_of_many_connections_gets_its_own_bytes_and_their_end(near):
    sent = [os.urandom(3 * WINDOW + number) for number in range(8)]
    lines = [kept(near.connect()) for _ in sent]
    got = {}

    def talk(number):
        line = lines[number]
        sender = threading.Thread(
            target=lambda: (line.sendall(sent[number]), line.shutdown(socket.SHUT_WR))
        )
        sender.start()
        got[number] = read_all(line)
        sender.join()

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert [got[number] == sent[number] for number in range(8)] == [True] * 8


def test_who_does_not_read_holds_up_nobody_else(near):
    deaf, other = kept(near.connect()), kept(near.connect())
    deaf.setblocking(False)
    try:
        while True:
            deaf.send(bytes(1 << 16))
    except BlockingIOError:
        pass

    other.sendall(b"hello")
    other.settimeout(10)

    assert other.recv(5) == b"hello"


def test_a_server_that_refuses_ends_the_connection():
    def refuse():
        raise ConnectionRefusedError

    near, _, feed = pair(refuse)
    line = kept(near.connect())
    line.settimeout(10)

    assert line.recv(1) == b""
    feed.close()


def test_a_stream_that_breaks_ends_every_connection_and_no_new_one_is_made():
    near, far, feed = pair(echoing)
    line = kept(near.connect())
    line.sendall(b"a")
    assert line.recv(1) == b"a"
    feed.close()

    line.settimeout(10)
    assert line.recv(1) == b""
    with pytest.raises(OSError, match="over"):
        near.connect()
    end = time.monotonic() + 10
    while not far.over:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    "sent",
    [
        HEADER.pack(1, DATA, WINDOW + 1),
        HEADER.pack(1, DATA, WINDOW) + bytes(WINDOW) + b"\n" + HEADER.pack(1, DATA, 1) + b"x\n",
        HEADER.pack(1, OPEN, 0) + b"\n" + HEADER.pack(1, 4, 1) + b"x\n",
        HEADER.pack(1, DATA, 1) + b"xy",
        b"\xff" * 64,
    ],
)
def test_an_end_that_does_not_keep_to_the_rules_is_left(sent):
    """The cluster may be anybody's: it fills no memory of ours, and connects to nothing here."""
    reading, writing = os.pipe()
    _, theirs = map(kept, socket.socketpair())
    mux = Mux(kept(open(reading, "rb")), kept(theirs.makefile("wb")))
    kept(mux.connect())
    running = threading.Thread(target=mux.run)
    running.start()
    threading.Thread(target=write, args=(writing, sent)).start()

    running.join(10)

    assert mux.over


def write(descriptor, data):
    with suppress(OSError), open(descriptor, "wb", buffering=0) as stream:
        stream.write(data)


def test_every_frame_ends_with_a_newline():
    """srun passes output on line by line, and keeps what has none until its end."""
    reading, writing = os.pipe()
    mux = Mux(kept(open(os.devnull, "rb")), kept(open(writing, "wb")))

    mux.send(7, DATA, b"abc")

    assert os.read(reading, 100) == struct.pack(">IBI", 7, DATA, 3) + b"abc\n"
    os.close(reading)


LISTENS = """
import os, socket, sys
os.setgid(65534); os.setuid(65534); os.umask(0)
os.mkdir(os.path.dirname(sys.argv[1]))
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("listening", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to be another user")
def test_who_took_the_place_of_a_killed_server_is_not_connected_to(tmp_path):
    run, place = tmp_path / "runs" / "cats-1", f"/tmp/rabaska-{os.urandom(8).hex()}"
    for folder in ("servers", "carried/001", "jobs/001"):
        (run / folder).mkdir(parents=True)
    told = {"socket": f"{place}/s", "token": "secret", "deadline": 0}
    (run / "servers" / "jupyter.json").write_text(json.dumps(told))  # left by the killed job
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", LISTENS, f"{place}/s"], **pipes) as other:
        assert other.stdout.readline() == b"listening\n"

        words = [sys.executable, "-m", "rabaska.node", "relay", str(run), "jupyter"]
        few = {**os.environ, "RABASKA_RELAY_SECONDS": "0.1"}
        done = subprocess.run(words, input=b"", capture_output=True, env=few, check=False)

        other.stdin.close()
    shutil.rmtree(place)
    assert (done.returncode, done.stdout) == (NO_SERVER, b"")
