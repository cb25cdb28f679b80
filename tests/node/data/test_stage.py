"""Staging: the folder that was packed, or its shards, whole and checked, or nothing."""

import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.disks import small_disk
from tests.needs.pythons import interpreters

from rabaska.node import partial_folder
from rabaska.node.data.pack_format import BadPack, Index, load_manifest
from rabaska.node.data.pack_proof import PROVEN
from rabaska.node.data.stage import remove, stage
from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, pack

PYTHONS = interpreters()
MODES = pytest.mark.parametrize("mode", ["files", "shards"])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A source folder and its pack of several shards; tests copy the pack before harming it."""
    place = tmp_path_factory.mktemp("made")
    source = place / "source"
    for number in range(300):
        path = source / f"class {number % 5}" / f"{number:04d}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number % 251]) * (number * 7))
        os.utime(path, ns=(number, 10**18 + number))
    (source / "large").write_bytes(os.urandom(9 * 2**20))
    (source / "empty").mkdir()
    os.symlink("class 1/0001.bin", source / "job")
    for folder in (source / "empty", source / "class 1"):
        folder.chmod(0o555)
        os.utime(folder, ns=(5, 5))
    return source, pack(source, place / "packs", PackOptions("toy", shard_size=200_000)).folder


@pytest.fixture
def copy(made, tmp_path) -> Path:
    return Path(shutil.copytree(made[1], tmp_path / "packs" / made[1].name))


def contents(folder: Path) -> dict:
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        runs = path.is_file() and status.st_mode & 0o100
        found[path.relative_to(folder)] = (stat.S_IFMT(status.st_mode), runs, content)
    return found


def damage(shard: Path, offset: int) -> None:
    with shard.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)
        stream.seek(offset)
        stream.write(bytes([byte[0] ^ 1]))


def test_files_are_exactly_the_folder_that_was_packed(made, tmp_path):
    source, folder = made

    staged = stage(str(folder), str(tmp_path / "node"))

    assert contents(Path(staged)) == contents(source)


def test_shards_are_copied_with_what_describes_them(made, tmp_path):
    staged = stage(str(made[1]), str(tmp_path / "node"), "shards")

    assert verify(staged) == []
    for path in made[1].iterdir():
        assert (Path(staged) / path.name).read_bytes() == path.read_bytes()


def test_a_process_that_may_open_few_files_stages_many_below_where_it_stands(tmp_path):
    for number in range(900):
        path = tmp_path / "source" / ("flat" if number % 3 else f"flat/{number}") / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * number)
    made = pack(tmp_path / "source", tmp_path / "packs", PackOptions("toy", shard_size=50_000))
    script = (
        "import os, sys; from rabaska.node.data.stage import stage\n"
        "opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]\n"
        "for descriptor in opened[::2]:\n    os.close(descriptor)\n"  # numbers with gaps
        "print(stage(*sys.argv[1:]))\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", script, made.folder, "node"], cwd=tmp_path,
        check=True, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)),
    )  # fmt: skip

    staged = tmp_path / ended.stdout.strip()
    assert contents(staged) == contents(tmp_path / "source")


@MODES
def test_what_is_staged_already_is_used_again(made, tmp_path, mode):
    first = stage(str(made[1]), str(tmp_path / "node"), mode)
    before = os.stat(first).st_ino

    second = stage(str(made[1]), str(tmp_path / "node"), mode)

    assert second == first
    assert os.stat(second).st_ino == before


@MODES
def test_progress_reaches_every_file(made, tmp_path, mode):
    told = []

    stage(str(made[1]), str(tmp_path / "node"), mode, lambda *so_far: told.append(so_far))

    assert told[-1][0] == load_manifest(str(made[1])).files
    assert told[-1][1] >= load_manifest(str(made[1])).bytes


def test_an_unknown_mode_is_refused(made, tmp_path):
    with pytest.raises(ValueError, match="sharks"):
        stage(str(made[1]), str(tmp_path / "node"), "sharks")


def test_a_staged_folder_can_be_removed_though_parts_are_read_only(made, tmp_path):
    staged = stage(str(made[1]), str(tmp_path / "node"))

    remove(staged)

    assert os.listdir(tmp_path / "node") == []


@MODES
@pytest.mark.parametrize("name", [b"class 2/0102.bin", b"large"])
def test_a_damaged_shard_is_named_and_nothing_is_left(copy, tmp_path, mode, name):
    index = Index(str(copy / "index"))
    entry = next(entry for entry in index.files() if entry.name == name)
    index.close()
    shard = copy / f"shard-{entry.shard:05d}.tar"
    damage(shard, entry.offset + 3)

    with pytest.raises(BadPack, match=shard.name):
        stage(str(copy), str(tmp_path / "node"), mode)

    assert os.listdir(tmp_path / "node") == []


@MODES
def test_a_shard_cut_short_is_refused_before_anything_is_written(copy, tmp_path, mode):
    os.truncate(copy / "shard-00001.tar", 1000)

    with pytest.raises(BadPack, match=r"shard-00001\.tar has 1000 bytes"):
        stage(str(copy), str(tmp_path / "node"), mode)

    assert not (tmp_path / "node").exists()


@MODES
def test_no_space_passes_on_and_leaves_nothing(made, tmp_path, mode):
    script = (
        "import sys; from rabaska.node.data.stage import stage\n"
        "try:\n    stage(*sys.argv[1:])\nexcept OSError as problem:\n    print(problem.errno)\n"
    )

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    ended = subprocess.run(
        [sys.executable, "-c", script, made[1], tmp_path / "node", mode],
        check=True, capture_output=True, text=True, preexec_fn=small_disk,
    )  # fmt: skip

    assert ended.stdout == "27\n"  # EFBIG, what this way of running out of space is called
    assert os.listdir(tmp_path / "node") == []


@MODES
def test_a_full_disk_leaves_nothing(made, tmp_path, mode):
    with small_disk(tmp_path / "node", "1m") as node:
        with pytest.raises(OSError, match="No space left"):
            stage(str(made[1]), str(node), mode)
        left = os.listdir(node)

    assert left == []


@MODES
@pytest.mark.pythons
@pytest.mark.parametrize("python", PYTHONS.values(), ids=map("{0[0]}.{0[1]}".format, PYTHONS))
def test_every_python_stages_alike(made, tmp_path, zipapp, python, mode):
    program = "import sys; from rabaska.node.data.stage import stage; print(stage(*sys.argv[1:]))"

    ended = subprocess.run(
        [python, "-W", "error", "-c", program, made[1], tmp_path / "node", mode],
        check=True, capture_output=True, text=True, env={"PYTHONPATH": str(zipapp)},
    )  # fmt: skip

    staged = Path(ended.stdout.strip())
    assert contents(staged) == contents(made[0]) if mode == "files" else verify(str(staged)) == []


@pytest.mark.slow
@MODES
def test_staging_killed_at_any_moment_leaves_nothing_that_is_taken_for_whole(made, tmp_path, mode):
    source, folder = made
    node = tmp_path / "node"
    program = (
        "import sys; from rabaska.node.data.stage import stage\n"
        "print('ready', flush=True); stage(*sys.argv[1:])"
    )

    for attempt in range(20):
        command = [sys.executable, "-c", program, folder, node, mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as stager:
            assert stager.stdout is not None
            stager.stdout.readline()
            time.sleep(0.008 * attempt)
            stager.kill()
        for path in node.glob("*") if node.exists() else ():
            if path.suffix != ".partial":
                whole = contents(source) if mode == "files" else contents(folder).keys()
                found = contents(path) if mode == "files" else contents(path).keys()
                assert found == whole or found - whole == {Path(PROVEN)}
                assert mode == "files" or verify(str(path)) == []
                remove(str(path))

    staged = stage(str(folder), str(node), mode)
    for _ in range(100):  # a worker whose parent was killed ends at its next word
        partial_folder.sweep(str(node))
        if os.listdir(node) == [os.path.basename(staged)]:
            return
        time.sleep(0.1)
    raise AssertionError(os.listdir(node))
