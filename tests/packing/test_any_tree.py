"""Whatever the tree, it comes back as it was: by tar, by staging, and byte for byte again."""

import os
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import trees
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node.data.pack_format import Index
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, pack

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
packable = trees.trees.filter(trees.holds_a_file)
shard_sizes = st.sampled_from([1, 2000, 10**6])


@contextmanager
def workplace(parent: Path | None = None):
    folder = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@few
@given(packable, shard_sizes)
def test_any_tree_is_staged_as_it_was(tree, shard_size):
    with workplace() as place:
        trees.make(tree, bytes(place / "source"))

        made = pack(
            place / "source", place / "packs", PackOptions("any", shard_size=shard_size, workers=1)
        )
        staged = stage(str(made.folder), str(place / "node"))

        assert trees.described(staged) == trees.described(place / "source")
        assert verify(str(made.folder)) == []


@few
@given(packable, shard_sizes)
def test_any_tree_is_unpacked_by_tar_as_it_was(tree, shard_size):
    with workplace() as place:
        trees.make(tree, bytes(place / "source"))
        (place / "unpacked").mkdir()

        made = pack(
            place / "source", place / "packs", PackOptions("any", shard_size=shard_size, workers=1)
        )
        for shard in sorted(made.folder.glob("shard-*.tar")):
            listed = subprocess.run(["tar", "tf", shard], check=True, capture_output=True)
            assert listed.stdout
            subprocess.run(
                ["tar", "xpf", shard, "-C", place / "unpacked"], check=True, stderr=subprocess.PIPE
            )

        unpacked = trees.described(place / "unpacked")
        assert unpacked == trees.described(place / "source")


@few
@given(packable, shard_sizes)
def test_the_same_tree_gives_the_same_bytes_in_any_order_and_on_any_disk(tree, shard_size):
    memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None
    with workplace() as place, workplace(memory) as elsewhere:
        trees.make(tree, bytes(place / "one"))
        trees.make(tree, bytes(elsewhere / "two"), backwards=True)

        one = pack(
            place / "one", place / "packs", PackOptions("any", shard_size=shard_size, workers=1)
        )
        two = pack(
            elsewhere / "two",
            elsewhere / "packs",
            PackOptions("any", shard_size=shard_size, workers=2),
        )

        assert one.identity == two.identity
        for file in one.folder.iterdir():
            assert file.read_bytes() == (two.folder / file.name).read_bytes()


@few
@given(packable, shard_sizes)
def test_the_index_says_what_lies_where_in_the_shards(tree, shard_size):
    with workplace() as place:
        trees.make(tree, bytes(place / "source"))

        made = pack(
            place / "source", place / "packs", PackOptions("any", shard_size=shard_size, workers=1)
        )

        index = Index(str(made.folder / "index"))
        entries = list(index.files())
        assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
        position = 0
        for number in range(made.shards):
            with tarfile.open(made.folder / f"shard-{number:05d}.tar", encoding="utf-8") as shard:
                for member in filter(tarfile.TarInfo.isreg, shard):
                    entry = entries[position]
                    assert (number, member.offset_data) == (entry.shard, entry.offset)
                    assert (member.size, member.mode) == (entry.size, entry.mode)
                    assert member.name.encode("utf-8", "surrogateescape") == entry.name
                    position += 1
        assert position == len(entries) == made.files
        index.close()


def test_a_tree_of_a_hundred_folders_in_each_other_is_staged_as_it_was(tmp_path):
    tree = {b"file": (b"at the bottom", 0o644, 10**18)}
    for level in range(100):
        tree = {b"%d" % level: (tree, 0o755, level), b"f": (b"%d" % level, 0o400, level)}
    trees.make(tree, bytes(tmp_path / "source"))

    made = pack(tmp_path / "source", tmp_path / "packs", PackOptions("deep"))
    staged = stage(str(made.folder), str(tmp_path / "node"))

    assert made.files == 101
    assert trees.described(staged) == trees.described(tmp_path / "source")


@pytest.mark.slow
def test_a_large_sparse_file_is_staged_as_it_was(tmp_path):
    """With SPARSE_GB=9, which takes minutes, it needs more than a plain header."""
    size = int(os.environ.get("SPARSE_GB", "0")) * 2**30 or 100 * 2**20
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "sparse").open("wb") as stream:
        for place in (0, size // 2, size - 3):
            stream.seek(place)
            stream.write(b"end")

    made = pack(tmp_path / "source", tmp_path / "packs", PackOptions("sparse"))
    listed = subprocess.run(
        ["tar", "tvf", made.folder / "shard-00000.tar"], check=True, capture_output=True
    )
    staged = stage(str(made.folder), str(tmp_path / "node"))

    assert str(size).encode() in listed.stdout
    assert subprocess.run(
        ["cmp", tmp_path / "source" / "sparse", f"{staged}/sparse"], check=False
    ).returncode == 0  # fmt: skip
