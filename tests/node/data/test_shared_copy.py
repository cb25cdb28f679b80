"""Shards shared by the runs of a user on a node: kept while they are read, never half of one."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rabaska.node.data import background_copy, shared_copy
from rabaska.packing.make_pack import PackOptions, pack
from rabaska.training import PackedDataset

READER = """
import sys, time
from rabaska.node.data import shared_copy as shared
use = shared.begin(sys.argv[1], sys.argv[2], 0)
print(use.folder, flush=True)
time.sleep(60)
"""

EVICTOR = """
import sys
from rabaska.node.data import shared_copy as shared
print("!", end="", flush=True)
shared.evict(sys.argv[1], 2**62)
"""


@pytest.fixture
def made(tmp_path) -> Path:
    for number in range(40):
        path = tmp_path / "source" / f"class {number % 4}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) * 2000)
    return pack(
        tmp_path / "source", tmp_path / "packs", PackOptions("toy", shard_size=20_000)
    ).folder


@pytest.fixture
def root(tmp_path):
    (tmp_path / "node").mkdir()
    yield tmp_path / "node"
    background_copy.end()


@pytest.fixture
def reader(made, root):
    """Another run of the same user that reads the pack; and the folder in which it does."""
    command = [sys.executable, "-c", READER, made, root]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process, Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    process.stdout.close()


def begin(made: Path, root: Path) -> shared_copy.Use:
    use = shared_copy.begin(str(made), str(root), 0)
    assert use is not None
    return use


def wait_for(what) -> None:
    for _ in range(2000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def is_whole(folder: Path, made: Path) -> bool:
    return {path.name for path in made.glob("shard-*")} <= set(os.listdir(folder))


def wait_until_whole(folder: Path, made: Path) -> None:
    wait_for(lambda: is_whole(folder, made))


def test_two_runs_read_one_copy_that_stays_until_the_last_of_them_leaves(made, root, reader):
    process, folder = reader
    use = begin(made, root)

    assert Path(use.folder) == folder
    assert list(PackedDataset(folder)) == list(PackedDataset(made))
    background_copy.end()
    shared_copy.leave(use, keep=False)
    assert folder.is_dir()

    process.kill()
    process.wait()
    wait_for(lambda: shared_copy.evict(str(folder.parent), 2**62) or not os.listdir(folder.parent))


def test_what_one_killed_run_left_is_filled_up_by_the_next(made, root):
    first = begin(made, root)
    wait_until_whole(Path(first.folder), made)
    shared_copy.leave(first, keep=True)
    (Path(first.folder) / "shard-00001.tar").unlink()
    (Path(first.folder) / "coming").mkdir()
    (Path(first.folder) / "coming" / "shard-00001.tar").write_bytes(b"half")

    second = begin(made, root)
    wait_until_whole(Path(second.folder), made)

    assert second.folder == first.folder
    found = Path(second.folder) / "shard-00001.tar"
    assert found.read_bytes() == (made / "shard-00001.tar").read_bytes()
    shared_copy.leave(second, keep=True)


def test_room_is_made_of_what_nobody_reads_the_oldest_first(made, root, reader):
    _, read = reader
    unread = read.with_name("old-0123456789ab.arriving")
    unread.mkdir()
    (unread / "shard-00000.tar").write_bytes(b"x")
    read.with_name("old-0123456789ab.lock").touch()

    shared_copy.evict(str(read.parent), needed=2**62)

    assert not unread.exists()
    assert read.is_dir()


def test_a_copy_is_kept_for_days_and_not_for_ever(made, root):
    use = begin(made, root)
    background_copy.end()
    shared_copy.leave(use, keep=True)

    shared_copy.evict(os.path.dirname(use.folder))
    kept = os.path.isdir(use.folder)
    os.utime(use.path, (0, 0))
    shared_copy.evict(os.path.dirname(use.folder))

    assert kept
    assert os.listdir(os.path.dirname(use.folder)) == []


@pytest.mark.parametrize("delay", [0, 0.001, 0.004])
def test_an_evictor_killed_at_any_moment_leaves_a_whole_copy_or_none(made, root, delay):
    use = begin(made, root)
    wait_until_whole(Path(use.folder), made)
    shared_copy.leave(use, keep=True)
    evictor = subprocess.Popen(
        [sys.executable, "-c", EVICTOR, os.path.dirname(use.folder)], stdout=subprocess.PIPE
    )

    evictor.stdout.read(1)
    time.sleep(delay)
    evictor.kill()
    evictor.communicate()

    assert not os.path.isdir(use.folder) or is_whole(Path(use.folder), made)
    again = begin(made, root)
    assert list(PackedDataset(again.folder)) == list(PackedDataset(made))
    shared_copy.leave(again, keep=True)


@pytest.mark.parametrize("trap", ["link", "open to all"])
def test_a_folder_that_somebody_else_prepared_is_not_used(made, root, tmp_path, trap):
    home = root / f"rabaska-{os.getuid()}"
    if trap == "link":
        home.symlink_to(shutil.copytree(made, tmp_path / "theirs"))
    else:
        home.mkdir()
        home.chmod(0o777)

    assert shared_copy.begin(str(made), str(root), 0) is None
