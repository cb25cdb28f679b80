"""The compiled part writes what Python writes, and leaves to it whatever is not ordinary."""

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from forged import entry, forge
from tests.needs.pythons import interpreters

from rabaska.node.data.pack_format import FILE, FOLDER, LINK, Entry, Index

TESTS = Path(__file__).parents[2]
CONTENTS = b"meow", b"purr", b"hiss"
CRCS = [zlib.crc32(content) for content in CONTENTS]


def shard() -> bytes:
    """Three files, each after a header that nobody looks at."""
    return b"".join(bytes(512) + content.ljust(512, b"\0") for content in CONTENTS)


def three(**odd) -> list[Entry]:
    """Three files in a folder; what is odd about the second."""
    plain = [
        entry(b"cats/" + name, offset=512 + 1024 * place, crc=CRCS[place])
        for place, name in enumerate([b"a", b"b", b"c"])
    ]
    return [plain[0], plain[1]._replace(**odd), plain[2]]


def unpacked(compiled, pack: Path, target: Path, window: bytes = shard()) -> int:
    """How many files the compiled part wrote into `target`, where the folder is already."""
    (target / "cats").mkdir(parents=True, exist_ok=True)
    index, top = Index(str(pack / "index")), os.open(target, os.O_RDONLY)
    try:
        files = index.layout.files
        return compiled.unpack(
            index.map, files, index.layout.names_at, 0, files, 0, window[512:], 512, top
        )
    finally:
        os.close(top)
        index.close()


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_are_written_with_their_content_time_and_mode(compiled, tmp_path):
    entries = three(mtime_ns=-1, mode=0o600)
    pack = forge(tmp_path / "pack", [*entries, entry(b"cats", FOLDER)])

    count = unpacked(compiled, pack, tmp_path / "target")

    assert count == 3
    assert written(tmp_path / "target") == {"a": b"meow", "b": b"purr", "c": b"hiss"}
    status = (tmp_path / "target" / "cats" / "b").stat()
    assert (status.st_mtime_ns, status.st_mode & 0o7777) == (-1, 0o600)


@pytest.mark.parametrize(
    "odd",
    [
        {"kind": 3}, {"mode": 0o4755}, {"crc": 0}, {"shard": 1}, {"target": b"x"},
        {"offset": 512}, {"offset": 1537}, {"offset": 0}, {"offset": 2**64 - 512},
        {"size": 2**20}, {"size": 2**64 - 1}, {"size": 2000},
        {"name": b"cats/../b"}, {"name": b"cats//b"}, {"name": b"cats/"}, {"name": b"cats/b\0"},
        {"name": b"cats/."}, {"name": b"/b"}, {"name": b""}, {"name": b"cats/a"},
        {"name": b"cats/" + b"b" * 256}, {"name": b"dogs/b"}, {"name": b"cats/a/b"},
    ],
    ids=repr,
)  # fmt: skip
def test_the_first_that_is_odd_and_all_after_it_are_left(compiled, tmp_path, odd):
    pack = forge(tmp_path / "pack", [*three(**odd), entry(b"cats", FOLDER)])

    count = unpacked(compiled, pack, tmp_path / "target")

    assert count == 1
    assert written(tmp_path / "target") == {"a": b"meow"}
    assert sorted(os.listdir(tmp_path)) == ["pack", "target"]


def test_nothing_that_is_there_is_written_over_or_written_through(compiled, tmp_path):
    pack = forge(tmp_path / "pack", [*three(), entry(b"cats", FOLDER), entry(b"x", LINK, b"cats")])
    (tmp_path / "target" / "cats").mkdir(parents=True)
    (tmp_path / "target" / "cats" / "b").symlink_to(tmp_path / "outside")

    assert unpacked(compiled, pack, tmp_path / "target") == 1

    assert not (tmp_path / "outside").exists()
    assert sorted(os.listdir(tmp_path / "target" / "cats")) == ["a", "b"]


def test_a_window_that_ends_early_holds_only_the_files_before(compiled, tmp_path):
    pack = forge(tmp_path / "pack", [*three(), entry(b"cats", FOLDER)])

    assert unpacked(compiled, pack, tmp_path / "target", shard()[: 1536 + 3]) == 1


def test_files_at_the_top_and_in_many_folders_are_written(compiled, tmp_path):
    names = [b"cats/%03d" % number for number in range(300)] + [b"top"]
    window = b"".join(bytes(512) + b"meow".ljust(512, b"\0") for _ in names)
    entries = [
        entry(name, FILE, offset=512 + 1024 * place, crc=CRCS[0])
        for place, name in enumerate(names)
    ]
    pack = forge(tmp_path / "pack", [*entries, entry(b"cats", FOLDER)])

    assert unpacked(compiled, pack, tmp_path / "target", window) == 301

    assert len(written(tmp_path / "target")) == 301


def test_it_reads_no_record_that_the_index_does_not_hold(compiled, tmp_path):
    pack = forge(tmp_path / "pack", three())
    content = (pack / "index").read_bytes()

    for files, names_at, begin, end in [
        (3, 256, 0, 4), (3, 256, -1, 2), (3, 256, 2, 1), (4, 256, 0, 1), (3, 2**40, 0, 1),
        (3, 0, 0, 1),
    ]:  # fmt: skip
        assert compiled.unpack(content, files, names_at, begin, end, 0, b"", 0, 0) == 0


@pytest.mark.pythons
@pytest.mark.parametrize("python", interpreters().values(), ids=str)
def test_every_python_on_a_node_uses_it_too(python, tmp_path, zipapp):
    pack = forge(tmp_path / "pack", [*three(), entry(b"cats", FOLDER)], shard())
    program = (
        "import sys; from rabaska.node.data.stage import stage; stage(*sys.argv[1:])\n"
        "from rabaska.node.native import compiled\n"
        "assert compiled is not None"
    )

    subprocess.run(
        [python, "-W", "error", "-c", program, pack, tmp_path / "node"],
        check=True, env={"PYTHONPATH": str(zipapp)},
    )  # fmt: skip

    assert written(tmp_path / "node") == {"a": b"meow", "b": b"purr", "c": b"hiss"}


@pytest.mark.slow
def test_all_that_holds_of_staging_holds_without_it():
    tests = [
        "node/data/test_stage.py",
        "node/data/test_hostile_packs.py",
        "packing/test_any_tree.py",
    ]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]

    ended = subprocess.run(
        [*words, *(str(TESTS / name) for name in tests)],
        check=False, capture_output=True, text=True, cwd=TESTS.parent,
        env=dict(os.environ, RABASKA_NATIVE="0"),
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout
