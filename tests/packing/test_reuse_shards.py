"""What changed is packed again, and what did not is taken over, even from a killed packer."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from zlib import crc32

import pytest

from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, pack

SHARD = 100_000


@pytest.fixture
def source(tmp_path) -> Path:
    """Two thousand files, old enough for their times to vouch for them."""
    folder = tmp_path / "source"
    for number in range(2000):
        path = folder / f"class {number % 4}" / f"{number:05d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 200)
    time.sleep(2.1)
    return folder


def inodes(folder: Path) -> set[int]:
    return {path.stat().st_ino for path in folder.glob("shard-*.tar")}


@pytest.mark.slow
def test_a_changed_file_costs_its_own_shard_only(source, tmp_path):
    before = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))
    victim = source / "class 2" / "01002.bin"
    victim.write_bytes(b"another thing")
    time.sleep(0.1)

    after = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))

    shared = inodes(before.folder) & inodes(after.folder)
    assert before.shards > 15
    assert len(shared) >= before.shards - 3
    assert not after.reused
    assert verify(str(after.folder)) == []
    fresh = pack(source, tmp_path / "elsewhere", PackOptions("toy", shard_size=SHARD))
    assert fresh.identity == after.identity


@pytest.mark.parametrize("count", [10, 3000])
@pytest.mark.parametrize("new", ["folder/a", "folder/z", "zz/new folder", "big"])
def test_a_small_file_beside_a_large_one_does_not_have_the_large_one_written(tmp_path, new, count):
    """Whether the sizes of all files are asked for, or those of some."""
    source = tmp_path / "source"
    (source / "folder").mkdir(parents=True)
    for number in range(count):
        (source / "folder" / f"s{number:05d}").write_bytes(b"%d" % number)
    # Of many files, those whose names have small hashes are asked for their sizes: not these.
    large = [
        name for name in (f"l{n}" for n in range(99)) if crc32(f"folder/{name}".encode()) >> 31
    ]
    for name in large[:3]:
        (source / "folder" / name).write_bytes(bytes(20 * 2**20))
    time.sleep(2.1)
    before = pack(source, tmp_path / "packs", PackOptions("toy"))
    (source / new).parent.mkdir(exist_ok=True)
    (source / new).write_bytes(b"small")
    time.sleep(0.1)

    after = pack(source, tmp_path / "packs", PackOptions("toy"))

    shared = inodes(before.folder) & inodes(after.folder)
    new_bytes = sum(
        path.stat().st_size
        for path in after.folder.glob("shard-*.tar")
        if path.stat().st_ino not in shared
    )
    assert new_bytes < 20 * 2**20
    assert verify(str(after.folder)) == []
    fresh = pack(source, tmp_path / "elsewhere", PackOptions("toy"))
    assert fresh.identity == after.identity


@pytest.mark.slow
def test_a_new_class_leaves_most_shards_as_they_were(source, tmp_path):
    before = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))
    (source / "a new class").mkdir()
    (source / "a new class" / "1.bin").write_bytes(b"1")
    time.sleep(0.1)

    after = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))

    assert len(inodes(before.folder) & inodes(after.folder)) >= before.shards * 2 // 3
    fresh = pack(source, tmp_path / "elsewhere", PackOptions("toy", shard_size=SHARD))
    assert fresh.identity == after.identity
    assert verify(str(after.folder)) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_what_a_stopped_packer_had_finished_is_taken_over(source, tmp_path, how):
    store = tmp_path / "packs"
    program = (
        "import sys, time; from pathlib import Path\n"
        "from rabaska.packing.make_pack import PackOptions, pack\n"
        "def slowly(progress): time.sleep(0.05)\n"
        "options = PackOptions('toy', shard_size=100_000, progress=slowly)\n"
        "pack(Path(sys.argv[1]), Path(sys.argv[2]), options)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, source, store], stderr=subprocess.DEVNULL
    ) as packer:
        while len(list(store.glob("*.partial/done-*.json"))) < 3:
            time.sleep(0.01)
        packer.send_signal(how)
    time.sleep(1)  # a worker whose parent was killed ends at its next word
    done = {
        path.stat().st_ino
        for note in store.glob("*.partial/done-?????.json")
        for path in note.parent.glob(f"part-{note.name[5:10]}-*")
    }

    made = pack(source, store, PackOptions("toy", shard_size=SHARD))

    assert len(done) >= 3
    assert done <= inodes(made.folder)
    assert verify(str(made.folder)) == []
    assert (
        made.identity
        == pack(source, tmp_path / "new", PackOptions("toy", shard_size=SHARD)).identity
    )
    assert [path.name for path in store.iterdir() if path.name.endswith(".partial")] == []


@pytest.mark.slow
def test_a_file_that_kept_its_time_but_not_its_inode_is_read_again(source, tmp_path):
    before = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))
    victim = source / "class 0" / "00000.bin"
    status = victim.stat()
    (source / "new").write_bytes(b"1" * status.st_size)
    os.utime(source / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(source / "new", victim)
    time.sleep(0.1)

    after = pack(source, tmp_path / "packs", PackOptions("toy", shard_size=SHARD))

    assert after.identity != before.identity


def test_a_clock_that_is_behind_the_files_does_not_make_them_changed(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cat.jpg").write_bytes(b"x" * 100)
    (tmp_path / "data" / "large").write_bytes(b"x" * 10**6)
    behind = time.time_ns() - 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: behind)

    packed = pack(tmp_path / "data", tmp_path / "packs", PackOptions("data"))

    assert packed.files == 2
