"""The compiled part gives what Python gives, byte for byte."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from array import array
from pathlib import Path

import pytest
import trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node.data.tree_digest import LEAF, CompiledTree, PythonTree, tree_digest
from rabaska.packing import tar_batches
from rabaska.packing.name_columns import Names, leaf_of, names_of
from rabaska.packing.tar_batches import SMALL, Portion

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW

sizes = st.sampled_from([0, 1, 15, 16, 63, 64, 65, 511, 512, 513, 5000, SMALL - 1, SMALL])
files = st.dictionaries(
    trees.names, st.tuples(sizes, trees.file_modes, trees.times), min_size=1, max_size=8
)


@pytest.fixture
def short_path():
    """A folder whose files have names short enough for a plain tar header."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def taken(compiled, names: list[bytes]) -> Portion:
    tar, used, facts, crcs = compiled.take(names, FLAGS, SMALL, 64 * SMALL)
    return Portion(names[: len(crcs)], tar[:used], facts, crcs)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=files)
def test_the_same_files_are_taken_in_the_same_form(compiled, tree):
    folder = tempfile.mkdtemp()
    made = {
        name: (os.urandom(1) * size, mode, time) for name, (size, mode, time) in tree.items()
    }  # fmt: skip
    trees.make(made, os.fsencode(folder))
    names = [os.path.join(os.fsencode(folder), name) for name in sorted(tree)]
    before = os.getcwd()
    os.chdir(folder)
    try:
        for first in range(len(names)):
            some = [os.path.basename(name) for name in names[first:]]
            expected = tar_batches.take(some, FLAGS)
            assert taken(compiled, some) == expected
            labels = array("i", range(-1, len(expected.names) - 1))
            lengths = array("I", map(len, expected.names))
            assert compiled.records(
                lengths, expected.facts, expected.crcs, labels, 512, 2**40 + 512, 7
            ) == tar_batches.records(expected, labels, 2**40 + 512, 7)
    finally:
        os.chdir(before)
        shutil.rmtree(folder)


@given(names=st.sets(trees.names, max_size=30), prefix=st.sampled_from([b"", b"a/", b"a/b c/"]))
def test_the_files_of_a_folder_are_listed_in_the_same_order(compiled, names, prefix):
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            Path(os.fsdecode(os.path.join(os.fsencode(folder), name))).touch()

        text, lengths, crcs = compiled.leaf(os.fsencode(folder), prefix)
        in_python = leaf_of(os.fsencode(folder), prefix)

    expected = names_of([prefix + name for name in sorted(names)])
    assert Names(text, lengths, crcs) == in_python == expected


@given(st.binary(max_size=2000), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_crc32_is_that_of_zlib(compiled, piece, times, begin):
    data = piece * times  # from some length on there is another way

    assert compiled.crc32(data, begin) == zlib.crc32(data, begin)
    assert compiled.crc32(memoryview(data * 9), begin) == zlib.crc32(data * 9, begin)
    assert compiled.library.crc32(begin, data, len(data)) == zlib.crc32(data, begin)
    assert compiled.joined_crc32(begin, zlib.crc32(data), len(data)) == zlib.crc32(data, begin)


@given(
    pieces=st.lists(st.sampled_from([0, 1, 511, LEAF - 1, LEAF, 8 * LEAF, 8 * LEAF + 1, 300_000]))
)
def test_the_digest_of_a_shard_is_that_of_hashlib(compiled, pieces):
    in_c, in_python = CompiledTree(), PythonTree()

    for size in pieces:
        piece = os.urandom(size)
        in_c.update(memoryview(piece))
        in_python.update(piece)

    assert in_c.hexdigest() == in_python.hexdigest()


def test_the_digest_of_a_shard_is_blake2b_over_leaves():
    """As anybody can reckon it, written out once more."""
    data = os.urandom(3 * LEAF)
    tree = {"digest_size": 32, "fanout": 0, "depth": 2, "leaf_size": LEAF, "inner_size": 32}
    leaves = b"".join(
        hashlib.blake2b(
            data[place * LEAF : (place + 1) * LEAF], node_offset=place, last_node=place == 2, **tree
        ).digest()
        for place in range(3)
    )
    digest = tree_digest()

    digest.update(data)

    root = hashlib.blake2b(leaves, node_depth=1, last_node=True, **tree)
    assert digest.hexdigest() == f"blake2b-tree:{root.hexdigest()}"


@pytest.mark.parametrize("make", ["link", "folder", "pipe", "nothing"])
def test_what_is_no_ordinary_file_is_left_to_python(compiled, make, short_path):
    odd = short_path / "odd"
    (short_path / "first").write_text("first")
    {
        "link": lambda: odd.symlink_to("first"), "folder": odd.mkdir,
        "pipe": lambda: os.mkfifo(odd), "nothing": lambda: None,
    }[make]()  # fmt: skip
    names = [bytes(short_path / "first"), bytes(odd), bytes(short_path / "first")]

    assert (compiled.leaf(bytes(short_path), b"") is None) == (make != "nothing")
    assert (leaf_of(bytes(short_path), b"") is None) == (make != "nothing")
    assert compiled.leaf(bytes(short_path / "nowhere"), b"") is leaf_of(b"nowhere", b"") is None
    assert len(taken(compiled, names).names) == len(tar_batches.take(names, FLAGS).names) == 1
    assert taken(compiled, names[1:]).names == tar_batches.take(names[1:], FLAGS).names == []


def test_a_portion_ends_where_its_room_does(compiled, short_path):
    for number in range(4):
        (short_path / str(number)).write_bytes(bytes(1000))
    names = [bytes(short_path / str(number)) for number in range(4)]

    _, used, _, crcs = compiled.take(names, FLAGS, SMALL, 2 * 1536 + 1)

    assert (used, len(crcs)) == (2 * 1536, 2)


def test_a_pack_is_the_same_with_and_without_it(tmp_path):
    for number in range(3000):
        path = tmp_path / "data" / f"class {number % 7}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(1) * (number % 700))
    for number in range(7):
        (tmp_path / "data" / f"class {number}" / "large").write_bytes(
            os.urandom(SMALL + number * 99_999)
        )  # fmt: skip
    for name in ("é", "x" * 101, "日" * 70, "y" * 190, "z" * 99 + "ü", "a" * 95 + "b" * 5):
        (tmp_path / "data" / name).write_bytes(b"pax" * 99)
    (tmp_path / "data" / os.fsdecode(b"no utf-8 \xff \xed\xa0\x80")).write_bytes(b"pax")
    (tmp_path / "data" / "stage").write_bytes(os.urandom(4 * 8 * LEAF - 512))
    (tmp_path / "data" / "stage2").write_bytes(os.urandom(4 * 8 * LEAF))
    program = (
        "import sys; from pathlib import Path; from rabaska.packing import compiled, make_pack\n"
        "options = make_pack.PackOptions('x', shard_size=int(sys.argv[3]))\n"
        "print(make_pack.pack(Path(sys.argv[1]), Path(sys.argv[2]), options).identity)\n"
        "print(bool(compiled.compiled))"
    )

    def packed(store: str, switch: str, size: int) -> list[str]:
        words = [sys.executable, "-c", program, tmp_path / "data", tmp_path / store, str(size)]
        environment = dict(os.environ, RABASKA_NATIVE=switch)
        ended = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
        return ended.stdout.split()

    for size in (300_000, 10**7):
        python, c = packed("one", "0", size), packed("two", "1", size)

        assert python[0] == c[0]
        assert (python[1], c[1]) == ("False", "True")
