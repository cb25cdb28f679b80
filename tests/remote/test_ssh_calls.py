"""Calls that are begun ahead: what is said, heard and adopted, with real processes for ssh."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.remote import ssh_calls
from rabaska.remote.ssh_calls import Call

ECHO = ["sh", "-c", "cat; echo complaint >&2; exit 3"]
LINES = st.lists(st.text("abc", min_size=1), unique=True)


@pytest.fixture
def sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A folder with a socket where somebody listens; notes are kept beside it."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = tmp_path / "s"
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/x")
        listening.listen()
        yield str(folder)


def test_much_is_said_and_heard_at_once() -> None:
    call, much = Call(ECHO), os.urandom(5 << 20)

    heard = call.answer(much)

    assert heard == much
    assert call.wait() == 3
    call.errors.seek(0)
    assert call.errors.read() == b"complaint\n"
    call.end()


def test_a_call_that_does_not_listen_is_no_mistake_of_ours() -> None:
    call = Call(["true"])
    time.sleep(0.1)

    heard = call.answer(bytes(5 << 20))

    assert (heard, call.wait()) == (b"", 0)
    call.end()


def test_a_call_is_stopped_when_nobody_wants_it_any_more() -> None:
    call = Call(["sleep", "60"])

    call.end()

    assert call.exit_code == -15


def test_what_was_noted_is_asked_ahead_and_adopted_once(sockets: str) -> None:
    ssh_calls.note("often", ECHO, "script\n", sockets, b"one\n\xc3\xa9\n")

    ssh_calls.begin("often")
    other = ssh_calls.adopted(ECHO, "another script\n", sockets)
    call = ssh_calls.adopted(ECHO, "script\n", sockets)
    again = ssh_calls.adopted(ECHO, "script\n", sockets)

    assert (other, again) == (None, None)
    assert call is not None
    assert call.sent == b"one\n\xc3\xa9\n"
    assert call.answer(b"two\n") == b"script\n\0one\n\xc3\xa9\ntwo\n"
    call.end()


def test_nothing_is_begun_where_nobody_listens(sockets: str) -> None:
    ssh_calls.note("often", ECHO, "script\n", sockets, b"one\n")
    Path(f"{sockets}/x").unlink()

    ssh_calls.begin("often")

    assert ssh_calls.adopted(ECHO, "script\n", sockets) is None


def test_a_damaged_note_is_passed_over(sockets: str) -> None:
    ssh_calls.note("often", ECHO, "script\n", sockets, b"one\n")
    (note,) = Path(sockets).parent.glob("rabaska-*/often")
    note.write_bytes(b"\xff\0no note")

    ssh_calls.begin("often")

    assert ssh_calls.adopted(ECHO, "script\n", sockets) is None


def test_a_question_that_would_fill_the_pipe_waits_for_its_asker(sockets: str) -> None:
    ssh_calls.note("often", ECHO, "script\n", sockets, b"a line\n" * 100_000)

    ssh_calls.begin("often")
    call = ssh_calls.adopted(ECHO, "script\n", sockets)

    assert call is not None
    assert call.sent == b""
    call.end()


@given(st.binary())
def test_what_was_not_asked_ahead_is_left_as_it_is(feed: bytes) -> None:
    assert ssh_calls.unsent(feed, b"") == feed


@given(LINES, LINES)
def test_each_line_of_a_question_is_asked_once(question: list[str], asked: list[str]) -> None:
    left = ssh_calls.unsent(as_bytes(question), as_bytes(asked))

    assert left == as_bytes([line for line in question if line not in asked])


def as_bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
