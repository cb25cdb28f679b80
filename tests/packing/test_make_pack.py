"""Packing a folder: what is kept, what is refused, and what is not read twice."""

import errno
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trees

from rabaska.errors import DatasetError, NoSpace
from rabaska.node import partial_folder
from rabaska.node.data import pack_format
from rabaska.node.data.pack_format import Index
from rabaska.node.data.stage import stage
from rabaska.node.data.verify import verify
from rabaska.packing.make_pack import PackOptions, Progress, pack
from rabaska.packing.refusals import space_needed
from rabaska.packing.shard_borders import target_size


@pytest.fixture
def source(tmp_path) -> Path:
    folder = tmp_path / "source"
    for name in ("cats/1.jpg", "cats/2.jpg", "dogs/1.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name * 100)
    (folder / "empty").mkdir()
    return folder


@pytest.fixture
def store(tmp_path) -> Path:
    return tmp_path / "packs"


def age(folder: Path) -> None:
    """Wait until no file of `folder` is so new that its time cannot vouch for it."""
    newest = max(os.lstat(path).st_ctime for path in folder.rglob("*"))
    while time.time() < newest + 2.1:
        time.sleep(0.1)


def leftovers(store: Path) -> list[str]:
    return [path.name for path in store.glob("*") if path.name.endswith(".partial")]


def test_a_pack_is_named_by_what_it_holds(source, store):
    made = pack(source, store, PackOptions("animals"))

    assert made.folder == store / made.identity
    assert made.identity.startswith("animals-")
    assert (made.files, made.bytes, made.shards, made.reused) == (3, 3000, 1, False)
    assert sorted(path.name for path in made.folder.iterdir()) == [
        "index", "manifest.json", "shard-00000.tar",
    ]  # fmt: skip


def test_a_change_of_one_byte_gives_another_pack(source, store):
    before = pack(source, store, PackOptions("animals"))
    (source / "cats/1.jpg").write_text("CATS/1.jpg" * 100)

    after = pack(source, store, PackOptions("animals"))

    assert after.identity != before.identity


def test_shards_are_balanced_and_follow_one_another(tmp_path, store):
    for number in range(100):
        path = tmp_path / "source" / f"{number:03d}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(1000))

    made = pack(tmp_path / "source", store, PackOptions("many", shard_size=20_000))

    sizes = [path.stat().st_size for path in sorted(made.folder.glob("shard-*.tar"))]
    assert 6 <= len(sizes) == made.shards <= 11
    assert max(sizes) <= 20_000 * 1.25 + 2 * 1536
    assert min(sizes[:-1]) >= 20_000 * 0.75 - 1536


def test_a_file_larger_than_a_shard_is_not_cut(source, store):
    made = pack(source, store, PackOptions("animals", shard_size=600))

    assert made.shards == 4  # the last one holds the folders
    assert verify(str(made.folder)) == []


def test_shards_grow_with_the_dataset_up_to_a_gigabyte():
    assert target_size(10**6) == 4 * 2**20
    assert target_size(48 * 10**6) == 8 * 2**20  # a few shards, for several processors
    assert target_size(10**8) == 16 * 2**20
    assert target_size(64 * 10**8) == 64 * 2**20  # a power of two, so that growth moves little
    assert target_size(10**13) == 2**30


def test_each_file_has_the_class_of_its_first_folder(source, store):
    (source / "readme").write_text("top")

    made = pack(source, store, PackOptions("animals"))

    index = Index(str(made.folder / "index"))
    labels = {entry.name: entry.label for entry in index.files()}
    assert labels == {b"cats/1.jpg": 0, b"cats/2.jpg": 0, b"dogs/1.jpg": 1, b"readme": -1}
    index.close()


def test_progress_reaches_the_totals(source, store):
    told = []

    pack(source, store, PackOptions("animals", progress=told.append))

    assert told[-1] == Progress(3, 3000, 3, 3000)


def test_hard_links_become_files_of_their_own(source, store, tmp_path):
    os.link(source / "cats/1.jpg", source / "dogs/twin.jpg")

    staged = stage(str(pack(source, store, PackOptions("animals")).folder), str(tmp_path / "node"))

    assert (Path(staged) / "dogs/twin.jpg").read_text() == "cats/1.jpg" * 100
    assert (Path(staged) / "dogs/twin.jpg").stat().st_nlink == 1


def test_a_sparse_file_is_packed_as_plain_data(source, store, tmp_path):
    with (source / "sparse").open("wb") as stream:
        stream.seek(5 * 2**20)
        stream.write(b"end")

    staged = stage(str(pack(source, store, PackOptions("animals")).folder), str(tmp_path / "node"))

    assert (Path(staged) / "sparse").read_bytes() == bytes(5 * 2**20) + b"end"


def test_a_copy_of_a_dataset_is_the_same_pack_whatever_its_times_and_modes(source, store, tmp_path):
    age(source)
    (source / "cats/1.jpg").chmod(0o755)
    made = pack(source, store, PackOptions("animals"))
    shutil.copytree(source, tmp_path / "copy", copy_function=shutil.copy)  # as `cp -r`
    for path in source.rglob("*"):
        os.utime(path, (10**9, 10**9))
        path.chmod(0o700 if path.is_dir() or path == source / "cats/1.jpg" else 0o600)
    os.utime(source / "cats", (10**10, 10**10))

    touched = pack(source, store, PackOptions("animals"))
    copied = pack(tmp_path / "copy", store, PackOptions("animals"))

    assert made.identity == touched.identity == copied.identity
    assert (made.new, touched.new, copied.new) == (True, False, False)
    assert len(list(store.glob("animals-*"))) == 1


def test_a_program_in_a_dataset_stays_one(source, store, tmp_path):
    (source / "cats/1.jpg").chmod(0o711)
    before = pack(source, store, PackOptions("animals"))
    staged = Path(stage(str(before.folder), str(tmp_path / "node")))
    (source / "cats/1.jpg").chmod(0o644)

    after = pack(source, store, PackOptions("animals"))

    assert (staged / "cats/1.jpg").stat().st_mode & 0o777 == 0o755
    assert (staged / "dogs/1.jpg").stat().st_mode & 0o777 == 0o644
    assert {path.lstat().st_mtime for path in staged.rglob("*")} == {pack_format.TIME}
    assert after.identity != before.identity


@pytest.mark.parametrize("seconds", [-(10**9), 10**10, 2**33])
def test_a_time_that_no_tar_can_say_does_no_harm(source, store, seconds):
    """Times after 2262 are more nanoseconds than 64 bits hold."""
    before = pack(source, store, PackOptions("animals"))
    os.utime(source / "cats/1.jpg", (seconds, seconds))

    after = pack(source, store, PackOptions("animals"))

    assert after.identity == before.identity
    assert verify(str(after.folder)) == []


@pytest.mark.parametrize("when", ["its times show it", "they do not"])
def test_a_damaged_pack_is_made_good_by_packing_again(source, store, when):
    age(source)
    made = pack(source, store, PackOptions("animals", shard_size=1000))
    shard = made.folder / "shard-00001.tar"
    status = shard.stat()
    content = bytearray(shard.read_bytes())
    content[600] ^= 1
    shard.write_bytes(content)
    if when == "they do not":
        os.utime(shard, ns=(status.st_atime_ns, status.st_mtime_ns))

    again = pack(source, store, PackOptions("animals", shard_size=1000))

    assert again.identity == made.identity
    assert verify(str(again.folder)) == []


def test_a_damaged_shard_is_not_taken_over_into_the_next_pack(source, store):
    age(source)
    made = pack(source, store, PackOptions("animals", shard_size=1000))
    for shard in made.folder.glob("shard-*.tar"):
        content = bytearray(shard.read_bytes())
        content[600] ^= 1
        shard.write_bytes(content)
    (source / "new").write_text("another file")

    after = pack(source, store, PackOptions("animals", shard_size=1000))

    assert after.identity != made.identity
    assert verify(str(after.folder)) == []


def test_a_name_of_255_bytes_in_deep_folders_survives(source, store, tmp_path):
    deep = source.joinpath(*["d" * 50] * 20)
    deep.mkdir(parents=True)
    (deep / ("é" * 127)).write_text("deep")

    staged = stage(str(pack(source, store, PackOptions("animals")).folder), str(tmp_path / "node"))

    assert trees.described(staged) == trees.described(source)


def test_links_inside_the_dataset_stay_links(source, store, tmp_path):
    os.symlink("1.jpg", source / "cats/same")
    os.symlink("../dogs", source / "cats/friends")
    os.symlink("nowhere", source / "cats/dangling")

    staged = stage(str(pack(source, store, PackOptions("animals")).folder), str(tmp_path / "node"))

    assert trees.described(staged) == trees.described(source)


def test_on_lustre_large_shards_are_spread_and_it_is_said(source, store, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in (("stat", "echo lustre"), ("lfs", f'echo "$@" >> {tools}/asked')):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    made = pack(source, store, PackOptions("animals", shard_size=2**29))

    assert made.stripes == 2
    assert (tools / "asked").read_text().startswith(f"setstripe -c 2 {store}/animals.")
    assert pack(source, tmp_path / "small", PackOptions("animals")).stripes is None


def test_what_nobody_touched_is_not_read_again(source, store):
    age(source)
    before = pack(source, store, PackOptions("animals"))
    secretly = (source / "cats/1.jpg").stat()

    after = pack(source, store, PackOptions("animals"))

    assert after.reused
    assert after.identity == before.identity
    assert (source / "cats/1.jpg").stat().st_atime_ns == secretly.st_atime_ns


def test_a_file_replaced_with_the_same_size_and_time_is_packed_again(source, store):
    age(source)
    before = pack(source, store, PackOptions("animals"))
    path = source / "cats/1.jpg"
    status = path.stat()
    path.write_text("CATS/1.jpg" * 100)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    after = pack(source, store, PackOptions("animals"))

    assert not after.reused
    assert after.identity != before.identity


def test_a_listing_too_fresh_to_vouch_for_is_not_remembered(source, store):
    pack(source, store, PackOptions("animals"))

    assert not pack(source, store, PackOptions("animals")).reused


def test_a_remembered_pack_that_was_cut_short_is_made_again(source, store):
    age(source)
    made = pack(source, store, PackOptions("animals"))
    os.truncate(made.folder / "shard-00000.tar", 512)

    again = pack(source, store, PackOptions("animals"))

    assert not again.reused
    assert again.identity == made.identity
    assert verify(str(again.folder)) == []


def test_a_memory_that_cannot_be_read_is_no_memory(source, store):
    age(source)
    pack(source, store, PackOptions("animals"))
    for memory in (store / ".listings").iterdir():
        memory.write_bytes(b"\xff{")

    assert not pack(source, store, PackOptions("animals")).reused


def test_two_packers_at_once_make_one_pack(source, store):
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(pack(source, store, PackOptions("animals"))))
        for _ in range(4)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({packed.identity for packed in made}) == 1
    assert len(made) == 4
    assert verify(str(made[0].folder)) == []
    assert leftovers(store) == []


def test_what_a_dead_packer_left_is_swept(source, store):
    (store / "animals.0123456789ab.partial").mkdir(parents=True)
    (store / "animals.0123456789ab.partial" / "shard-00000.tar").write_bytes(b"half")

    pack(source, store, PackOptions("animals"))

    assert leftovers(store) == []


def refused(source, store, **options) -> DatasetError:
    with pytest.raises(DatasetError) as caught:
        pack(source, store, PackOptions(options.pop("name", "animals"), **options))
    assert not store.exists() or [path.name for path in store.iterdir()] in ([], [".listings"])
    assert caught.value.hint
    return caught.value


def test_a_missing_folder_is_refused(tmp_path, store):
    assert "there is no folder" in refused(tmp_path / "nowhere", store).what


def test_a_file_is_not_a_dataset(source, store):
    assert "is not a folder" in refused(source / "cats/1.jpg", store).what


def test_a_folder_without_files_is_refused(source, store):
    assert "is empty" in refused(source / "empty", store).what


def test_a_name_that_cannot_be_a_folder_is_refused(source, store):
    assert "../animals" in refused(source, store, name="../animals").what


def test_packing_into_the_dataset_itself_is_refused(source):
    assert "into itself" in refused(source, source / "packs").what


@pytest.mark.parametrize("target", ["/etc", "../..", "../../elsewhere", "friends/../.."])
def test_a_link_that_leads_out_is_refused_with_a_way_out(source, store, target):
    os.symlink("../dogs", source / "cats/friends")
    os.symlink(target, source / "cats/out")

    error = refused(source, store)

    assert "cats/out" in error.what
    assert "follow_links" in error.hint


def test_a_dataset_may_itself_be_a_link(source, store, tmp_path):
    """As `data -> /big/disk/data` often is."""
    os.symlink(source, tmp_path / "data")

    through = pack(tmp_path / "data", store, PackOptions("animals"))

    assert through.identity == pack(source, store, PackOptions("animals")).identity


def test_followed_links_are_packed_as_what_they_point_to(source, store, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/3.jpg").write_text("three")
    os.symlink(tmp_path / "elsewhere", source / "birds")
    os.symlink(tmp_path / "elsewhere/3.jpg", source / "cats/3.jpg")

    made = pack(source, store, PackOptions("animals", follow_links=True))
    staged = Path(stage(str(made.folder), str(tmp_path / "node")))

    assert (staged / "birds/3.jpg").read_text() == "three"
    assert not (staged / "birds").is_symlink()
    assert not (staged / "cats/3.jpg").is_symlink()


def test_following_a_link_to_a_folder_above_is_refused(source, store):
    os.symlink("..", source / "cats/up")

    assert "cats/up" in refused(source, store, follow_links=True).what


@pytest.mark.parametrize("follow_links", [True, False])
def test_a_link_to_itself_is_refused(source, store, follow_links):
    os.symlink("round", source / "cats/round")

    assert "leads back to itself" in refused(source, store, follow_links=follow_links).what


def test_a_followed_link_to_nothing_is_refused(source, store):
    os.symlink("nothing", source / "cats/ghost")

    assert "cats/ghost" in refused(source, store, follow_links=True).what


def test_a_named_pipe_is_refused(source, store):
    os.mkfifo(source / "cats/pipe")

    assert "a named pipe" in refused(source, store).why


def test_a_socket_is_refused(source, store, monkeypatch):
    monkeypatch.chdir(source)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("cats/socket")

        assert "a socket" in refused(source, store).why


def packed_by(program: str, source: Path, store: Path, **how) -> str:
    """What a process of its own says of packing `source`; it may lack rights or space."""
    script = (
        "import shutil, sys\nfrom pathlib import Path\nfrom rabaska.errors import RabaskaError\n"
        "from rabaska.packing.make_pack import PackOptions, pack\n"
        "source, store = map(Path, sys.argv[1:])\n"
        + program
        + "\ntry:\n    print('packed', pack(source, store, PackOptions('animals')).identity)\n"
        "except RabaskaError as error:\n    print(type(error).__name__, error)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, source, store],
        check=False,
        capture_output=True,
        text=True,
        **how,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", ["cats/1.jpg", "cats"])
def test_what_cannot_be_read_is_named(source, name):
    # Not below pytest's own folder, which the next pytest that starts closes to others again.
    with tempfile.TemporaryDirectory() as place:
        folder = shutil.copytree(source, Path(place) / "source")
        store = Path(place) / "packs"
        store.mkdir()
        (folder / name).chmod(0)
        nobody = ""
        if os.geteuid() == 0:
            # What is imported later could lie where nobody may look.
            nobody = "import os, queue, threading\nos.seteuid(65534)"
            for path in (Path(place), store, folder, *folder.rglob("*")):
                os.chown(path, 65534, 65534)

        said = packed_by(nobody, folder, store)

        assert said.startswith("DatasetError")
        assert str(folder / name) in said
        assert leftovers(store) == []


def test_no_space_in_the_middle_leaves_nothing(source, store):
    (source / "large").write_bytes(os.urandom(300_000))

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    said = packed_by("", source, store, preexec_fn=small_disk)

    assert said.startswith("NoSpace")
    assert "hint" in said
    assert list(store.iterdir()) == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_and_a_full_quota_say_so_in_the_words_of_the_system(store, number):
    with pytest.raises(NoSpace) as caught, space_needed(store, "pack the animals"):
        raise OSError(number, os.strerror(number))

    assert caught.value.what == "no space left to pack the animals"
    assert os.strerror(number) in caught.value.why
    assert str(store) in caught.value.why


@contextmanager
def limited(store: Path, limit: str) -> Iterator[None]:
    """The store as a disk of its own, which holds no more than `limit`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    store.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", limit, "tmpfs", store], check=False)
    if mounted.returncode:
        pytest.skip("this machine does not let us mount")
    try:
        yield
    finally:
        subprocess.run(["umount", store], check=True)


def test_a_full_disk_leaves_nothing(source, store):
    (source / "large").write_bytes(os.urandom(3 * 2**20))

    with limited(store, "size=1m"):
        with pytest.raises(NoSpace):
            pack(source, store, PackOptions("animals"))
        left = list(store.iterdir())

    assert left == []


def test_where_no_more_files_may_be_made_the_same_command_works_once_they_may(
    source, store, tmp_path
):
    with limited(store, "nr_inodes=30"):
        before = pack(source, store, PackOptions("animals"))
        for number in range(40):
            (source / f"{number}.bin").write_bytes(os.urandom(2000))
        many = PackOptions("animals", shard_size=5000)
        with pytest.raises(NoSpace) as caught:
            pack(source, store, many)
        left = leftovers(store)
        damage = verify(str(before.folder))
        subprocess.run(["mount", "-o", "remount,nr_inodes=1000", store], check=True)
        after = pack(source, store, many)
        damage += verify(str(after.folder))

    assert os.strerror(errno.ENOSPC) in caught.value.why
    assert caught.value.hint
    assert left == []
    assert damage == []
    assert after.identity == pack(source, tmp_path / "roomy", many).identity


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "vanish"])
def test_a_file_that_changes_while_it_is_packed_is_named(tmp_path, store, change):
    """The change comes with the first word of progress, when the last file is still unread."""
    source = tmp_path / "source"
    source.mkdir()
    for number in range(64):
        (source / f"{number:02d}").write_bytes(bytes(2**20))
    victim = source / "63"

    def meddle(_progress) -> None:
        if not victim.exists():
            return
        if change == "vanish":
            victim.unlink()
        elif change == "touch":
            os.utime(victim, ns=(1, 1))
        else:
            os.truncate(victim, {"grow": 2**20 + 1, "shrink": 5}[change])
            os.utime(victim, ns=(before, before))

    before = victim.stat().st_mtime_ns
    with pytest.raises(DatasetError) as caught:
        pack(source, store, PackOptions("animals", workers=1, progress=meddle))

    assert str(victim) in caught.value.what
    assert ("vanished" if change == "vanish" else "changed") in caught.value.what
    assert leftovers(store) == []


def test_ctrl_c_leaves_nothing(source, store):
    def interrupt(_progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(source, store, PackOptions("animals", progress=interrupt))

    assert leftovers(store) == []


@pytest.mark.slow
def test_a_packer_killed_at_any_moment_leaves_nothing_that_is_taken_for_whole(tmp_path, store):
    source = tmp_path / "source"
    for number in range(1500):
        path = source / f"c{number % 7}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(3000))
    command = [
        sys.executable, "-c",
        "import sys; from pathlib import Path\n"
        "from rabaska.packing.make_pack import PackOptions, pack\n"
        "print('ready', flush=True)\n"
        "pack(Path(sys.argv[1]), Path(sys.argv[2]), PackOptions('animals', shard_size=500_000))",
        source, store,
    ]  # fmt: skip
    whole = pack(source, tmp_path / "other", PackOptions("animals", shard_size=500_000)).identity

    for attempt in range(20):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as packer:
            assert packer.stdout is not None
            packer.stdout.readline()
            time.sleep(0.01 * attempt)
            packer.kill()
        for path in store.glob("*") if store.exists() else ():
            if path.suffix != ".partial" and not path.name.startswith("."):
                assert verify(str(path)) == []
                assert path.name == whole
                shutil.rmtree(path)

    assert pack(source, store, PackOptions("animals", shard_size=500_000)).identity == whole
    wait_until(lambda: not leftovers(store), store)


def wait_until(true, store: Path) -> None:
    """A worker whose parent was killed ends at its next word; then sweeping can go on."""
    for _ in range(100):
        partial_folder.sweep(str(store))
        if true():
            return
        time.sleep(0.1)
    raise AssertionError(leftovers(store))
