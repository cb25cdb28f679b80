"""The bytes of a file on their way into a pipe."""

import os
import threading
from pathlib import Path

import pytest

from rabaska.remote.missing_pieces import MissingPiece


@pytest.mark.parametrize("arrived", [0, 1, 1_000_000, 1_999_999, 2_000_000])
def test_a_pipe_gets_what_is_missing_and_nothing_else(tmp_path: Path, arrived: int) -> None:
    content = os.urandom(2_000_000)
    (tmp_path / "shard").write_bytes(content)
    reading, writing = os.pipe()
    heard: list[bytes] = []
    with open(reading, "rb") as end, open(writing, "wb") as feed:
        listening = threading.Thread(target=lambda: heard.append(end.read()))
        listening.start()

        feed.write(b"order")
        went = list(MissingPiece("shard", tmp_path / "shard", len(content), arrived).poured(feed))
        feed.close()
        listening.join()

    assert heard == [b"order" + content[arrived:]]
    assert sum(went) == len(content) - arrived


def test_what_the_system_cannot_move_by_itself_is_copied(tmp_path: Path) -> None:
    content = os.urandom(2_000_000)
    (tmp_path / "shard").write_bytes(content)

    with (tmp_path / "no pipe").open("wb") as feed:  # splice(2) refuses it
        went = list(MissingPiece("shard", tmp_path / "shard", len(content), 1000).poured(feed))

    assert (tmp_path / "no pipe").read_bytes() == content[1000:]
    assert sum(went) == len(content) - 1000


def test_a_file_that_became_shorter_ends_where_it_ends(tmp_path: Path) -> None:
    (tmp_path / "shard").write_bytes(b"short")

    with (tmp_path / "copy").open("wb") as feed:
        list(MissingPiece("shard", tmp_path / "shard", 1000, 2).poured(feed))

    assert (tmp_path / "copy").read_bytes() == b"ort"
