"""Event files that grow there come here, only what is new of them, and nothing else."""

import io
import json
import sys

import pytest

from rabaska.errors import CommandFailed
from rabaska.node.login import grown_files
from rabaska.remote.event_files import bring_grown, sizes

NAME = "output/tb/events.out.tfevents.1.node.2.0"


class Local:
    """A place that runs the far end in this process, and remembers how much it sent."""

    node = ("node",)
    sent = 0

    def __init__(self, monkeypatch):
        self._patch = monkeypatch

    def stream(self, _script, *, feed=b"", by_transfer=False):
        printed = io.TextIOWrapper(io.BytesIO())
        with self._patch.context() as patch:
            patch.setattr(sys, "stdin", io.StringIO(feed.decode()))
            patch.setattr(sys, "stdout", printed)
            grown_files.main([])
        data = printed.buffer.getvalue()
        self.sent += len(data)
        return iter([data[at : at + 700] for at in range(0, len(data), 700)])


class Lying(Local):
    def __init__(self, *lines):
        self._data = b"".join(lines)

    def stream(self, _script, *, feed=b"", by_transfer=False):
        return iter([self._data])


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    (folder / "kept" / "001" / "output" / "tb").mkdir(parents=True)
    (folder / "carried").mkdir()
    (folder / "carried" / "001").symlink_to("../kept/001")
    return folder


@pytest.fixture
def copy(tmp_path):
    return tmp_path / "copy"


def test_only_the_bytes_that_are_not_here_travel(run, copy, monkeypatch):
    there, place = run / "kept" / "001" / NAME, Local(monkeypatch)
    there.write_bytes(b"a" * 100_000)
    (there.parent / "model.pt").write_bytes(b"large")

    assert bring_grown(place, place, {str(run): copy}) == 100_000
    place.sent = 0
    with there.open("ab") as stream:
        stream.write(b"new")
    assert bring_grown(place, place, {str(run): copy}) == 3

    assert place.sent < 300
    assert (copy / NAME).read_bytes() == there.read_bytes()
    assert list(sizes(copy)) == [NAME]
    assert bring_grown(place, place, {str(run): copy}) == 0


def test_a_file_that_became_shorter_comes_again_and_a_later_job_goes_on(run, copy, monkeypatch):
    there, place = run / "kept" / "001" / NAME, Local(monkeypatch)
    there.write_bytes(b"first words")
    bring_grown(place, place, {str(run): copy})
    there.write_bytes(b"second")
    bring_grown(place, place, {str(run): copy})
    assert (copy / NAME).read_bytes() == b"second"
    (run / "carried" / "001").rename(run / "carried" / "002")
    (there.parent / "events.out.tfevents.2.node.9.0").write_bytes(b"of job 2")

    bring_grown(place, place, {str(run): copy})

    assert (copy / NAME).with_name("events.out.tfevents.2.node.9.0").read_bytes() == b"of job 2"


def test_more_than_one_answer_holds_comes_in_several(run, copy, monkeypatch):
    monkeypatch.setattr(grown_files, "MOST", 1000)
    (run / "kept" / "001" / NAME).write_bytes(bytes(range(256)) * 20)
    place = Local(monkeypatch)

    assert bring_grown(place, place, {str(run): copy}) == 5120
    assert (copy / NAME).read_bytes() == bytes(range(256)) * 20


@pytest.mark.parametrize(
    "told",
    [
        {"run": 0, "name": "../../tfevents", "at": 0, "bytes": 1},
        {"run": 0, "name": "/etc/tfevents", "at": 0, "bytes": 1},
        {"run": 0, "name": "output/.bashrc", "at": 0, "bytes": 1},
        {"run": 1, "name": NAME, "at": 0, "bytes": 1},
        {"run": -1, "name": NAME, "at": 0, "bytes": 1},
        {"run": 0, "name": NAME, "at": 5, "bytes": 1},
        {"run": 0, "name": NAME, "at": 0, "bytes": -1},
        {"run": 0, "name": NAME, "at": 0, "bytes": 10},
        {"run": 0, "name": NAME},
    ],
)
def test_a_cluster_that_lies_writes_nothing_elsewhere(tmp_path, copy, told):
    place = Lying(json.dumps(told).encode() + b"\nx", b'{"end": true}\n')

    with pytest.raises(CommandFailed):
        bring_grown(place, place, {"/run": copy})

    written = [path for path in tmp_path.rglob("*") if path.is_file() and path.stat().st_size]
    assert set(written) <= {copy / NAME}


def test_a_link_in_the_copy_is_not_followed(tmp_path, copy):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (copy / "output").mkdir(parents=True)
    (copy / "output" / "tfevents").symlink_to(precious)
    told = {"run": 0, "name": "output/tfevents", "at": 0, "bytes": 1}
    place = Lying(json.dumps(told).encode() + b"\nx", b'{"end": true}\n')

    with pytest.raises(Exception, match="tfevents"):
        bring_grown(place, place, {"/run": copy})

    assert precious.read_text() == "mine"
