"""This computer as a place where commands run and files are kept."""

import os
import subprocess
import time

import pytest

from rabaska.errors import NoSpace
from rabaska.remote.here import Here
from rabaska.remote.place import Parcel, quoted


@pytest.fixture
def here():
    return Here()


def test_a_command_gives_its_exit_code_and_both_its_voices(here):
    outcome = here.run("cat; echo oops >&2; exit 3", feed=b"hello")

    assert (outcome.exit_code, outcome.output, outcome.errors) == (3, "hello", "oops\n")
    assert outcome.complaint == "oops"


def test_words_with_spaces_and_quotes_survive_the_shell(here):
    word = "a b'c\"d$e\n;f"

    assert here.run(f"printf %s {quoted([word])}").output == word


def test_a_stream_is_read_as_it_is_written_and_ends_with_its_reader(here, tmp_path):
    stream = here.stream(f"echo $$ > {tmp_path}/pid; echo one; sleep 60; echo two")

    assert next(stream) == b"one\n"
    stream.close()
    pid = int((tmp_path / "pid").read_text())
    assert not os.path.exists(f"/proc/{pid}")


def test_a_folder_is_sent_whole_and_only_once(here, tmp_path):
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "shard").write_bytes(b"x" * 1000)
    target = tmp_path / "store" / "pack"

    here.send(tmp_path / "pack", str(target))
    (tmp_path / "pack" / "shard").write_bytes(b"changed, but the name says it cannot be")
    here.send(tmp_path / "pack", str(target))

    assert (target / "shard").read_bytes() == b"x" * 1000
    assert os.listdir(target.parent) == ["pack"]


@pytest.mark.parametrize("doubted", [False, True])
def test_a_copy_that_lost_a_file_or_is_in_doubt_is_made_again(here, tmp_path, doubted):
    pack, copy = tmp_path / "pack", tmp_path / "store" / "pack"
    pack.mkdir()
    for name in ("first", "second"):
        (pack / name).write_bytes(b"x" * 1000)
    parcel = Parcel(pack, str(copy), doubted=doubted)

    here.deliver([parcel])
    (copy / "first").write_bytes(b"y" * 1000) if doubted else (copy / "first").unlink()
    again = here.deliver([parcel])

    assert again.missing == 2000
    assert [path.read_bytes() for path in sorted(copy.iterdir())] == [b"x" * 1000] * 2


def test_fetching_never_overwrites_something_newer_and_skips_what_is_here(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    (there / "old.txt").write_text("theirs")
    (there / "new.txt").write_text("theirs")
    home.mkdir()
    (home / "old.txt").write_text("mine, edited later")
    os.utime(home / "old.txt", (time.time() + 60,) * 2)

    first = here.bring(str(there), home)
    second = here.bring(str(there), home)

    assert (first, second) == (1, 0)
    assert (home / "old.txt").read_text() == "mine, edited later"


def test_a_file_that_grew_is_fetched_again(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    (there / "log").write_text("one\n")
    here.bring(str(there), home)
    stamp = (there / "log").stat()
    (there / "log").write_text("one\ntwo\n")
    os.utime(there / "log", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    here.bring(str(there), home)

    assert (home / "log").read_text() == "one\ntwo\n"


def test_files_left_out_stay_there(here, tmp_path):
    (tmp_path / "there" / "deep").mkdir(parents=True)
    (tmp_path / "there" / "deep" / "big.pt").write_text("x")
    (tmp_path / "there" / "small.json").write_text("x")

    here.bring(str(tmp_path / "there"), tmp_path / "home", leave_out=["*.pt"])

    assert not (tmp_path / "home" / "deep" / "big.pt").exists()
    assert (tmp_path / "home" / "small.json").exists()


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system of one's own takes root")
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", mount], check=True)
    yield mount
    subprocess.run(["umount", mount], check=True)


def test_a_full_disk_is_named_and_leaves_nothing_half_there(here, tmp_path, small_disk):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.bin").write_bytes(b"a" * 600_000)
    (tmp_path / "there" / "b.bin").write_bytes(b"b" * 600_000)

    with pytest.raises(NoSpace, match="no space left"):
        here.bring(str(tmp_path / "there"), small_disk / "home")

    assert os.listdir(small_disk / "home") == ["a.bin"]


def test_sending_to_a_full_disk_leaves_nothing_behind(here, tmp_path, small_disk):
    (tmp_path / "big").write_bytes(b"x" * 2_000_000)

    with pytest.raises(NoSpace):
        here.send(tmp_path / "big", str(small_disk / "store" / "big"))

    assert os.listdir(small_disk / "store") == []
