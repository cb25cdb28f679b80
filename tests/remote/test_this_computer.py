"""This computer as a place where commands run and files are kept."""

import errno
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rabaska.errors import CommandFailed, NoSpace, NotWritable
from rabaska.remote import fetch_record
from rabaska.remote.fetch_record import NOTE
from rabaska.remote.local_disk import unwritable
from rabaska.remote.place import Parcel, quoted
from rabaska.remote.this_computer import Here


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

    assert (first.files, second.files) == (1, 0)
    assert first.kept == second.kept == ("old.txt",)
    assert (home / "old.txt").read_text() == "mine, edited later"


def test_a_file_that_was_changed_here_and_later_there_is_kept_beside_the_new_one(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    (there / "metrics.csv").write_text("1\n")
    here.bring(str(there), home)
    for number in (1, 2):
        (home / "metrics.csv").write_text(f"my note {number}\n")
        (there / "metrics.csv").write_text("1\n" + "2\n" * number)
        os.utime(there / "metrics.csv", (time.time() + 60 * number,) * 2)

        came = here.bring(str(there), home)

    again = here.bring(str(there), home)
    assert (home / "metrics.csv").read_text() == "1\n2\n2\n"
    assert (home / "metrics.csv.here").read_text() == "my note 1\n"
    assert (home / "metrics.csv.here-2").read_text() == "my note 2\n"
    assert came.aside == ("metrics.csv.here-2",)
    assert (again.files, again.aside) == (0, ())


def test_a_file_that_was_here_before_the_first_fetch_is_kept_beside_the_new_one(here, tmp_path):
    """`fetch --to .` in a project that was trained on the laptop before."""
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    home.mkdir()
    (there / "model.pt").write_text("theirs")
    (home / "model.pt").write_text("mine, of three days")
    os.utime(home / "model.pt", (time.time() - 60,) * 2)

    came = here.bring(str(there), home)
    again = here.bring(str(there), home)

    assert (home / "model.pt").read_text() == "theirs"
    assert (home / "model.pt.here").read_text() == "mine, of three days"
    assert (came.files, came.aside) == (1, ("model.pt.here",))
    assert (again.files, again.aside) == (0, ())


def test_what_came_before_a_fetch_was_killed_is_known_the_next_time(tmp_path, monkeypatch):
    """Else each file that changed there since would be kept twice here."""
    monkeypatch.setattr(fetch_record, "_NOTED_EVERY", 0.0)
    record = fetch_record.read_record(tmp_path)
    (tmp_path / "log").write_text("one\n")

    record.note("log", 4, 1)  # and then it is killed

    assert list(fetch_record.read_record(tmp_path).known) == ["log"]


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


def test_a_file_whose_time_went_back_is_fetched_unless_it_was_changed_here(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    for name in ("back.txt", "mine.txt"):
        (there / name).write_text("before")
    here.bring(str(there), home)
    (home / "mine.txt").write_text("edited here")
    for name in ("back.txt", "mine.txt"):
        (there / name).write_text("restored")
        os.utime(there / name, (1000, 1000))

    first, second = here.bring(str(there), home), here.bring(str(there), home)

    assert (home / "back.txt").read_text() == "restored"
    assert (home / "mine.txt").read_text() == "edited here"
    assert (first.files, second.files) == (1, 0)
    assert first.kept == second.kept == ("mine.txt",)


def test_links_that_lead_out_of_the_results_do_not_come(here, tmp_path):
    there = tmp_path / "there"
    (there / "deep").mkdir(parents=True)
    (there / "last.pt").touch()
    for name, target in (("latest", "last.pt"), ("key", "/etc/passwd"), ("deep/up", "../../x")):
        os.symlink(target, there / name)

    came = here.bring(str(there), tmp_path / "home")

    assert came.refused == ("deep/up -> ../../x", "key -> /etc/passwd")
    assert {*os.listdir(tmp_path / "home")} - {NOTE} == {"last.pt", "latest"}


def test_a_pack_is_never_removed_to_be_sent_to_itself(here, tmp_path):
    (tmp_path / "pack").write_text("x")

    here.deliver([Parcel(tmp_path / "pack", str(tmp_path / "pack"), doubted=True)])

    assert (tmp_path / "pack").read_text() == "x"


@pytest.mark.parametrize("in_the_way", ["home", "home/deep", "home/deep/made.txt"])
def test_what_stands_in_the_way_of_a_fetch_is_named(here, tmp_path, in_the_way):
    (tmp_path / "there/deep").mkdir(parents=True)
    (tmp_path / "there/deep/made.txt").write_text("x")
    path = tmp_path / in_the_way
    if in_the_way.endswith(".txt"):
        (path / "a folder").mkdir(parents=True)
    else:
        path.parent.mkdir(exist_ok=True)
        path.touch()

    with pytest.raises(NotWritable) as caught:
        here.bring(str(tmp_path / "there"), tmp_path / "home")

    assert str(path) in caught.value.why
    assert "out of the way" in caught.value.hint


def test_a_read_only_folder_is_named(here, tmp_path, small_disk):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "made.txt").write_text("x")
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    with pytest.raises(NotWritable, match="cannot be written to") as caught:
        here.bring(str(tmp_path / "there"), small_disk / "home")

    assert "Read-only file system" in caught.value.why
    assert "--to" in caught.value.hint


@pytest.mark.parametrize("number", [
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOENT, errno.EIO,
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOTDIR, errno.EISDIR, errno.ESTALE,
])  # fmt: skip
def test_each_way_in_which_writing_fails_is_said_with_a_way_out(tmp_path, number):
    problem = OSError(number, os.strerror(number), str(tmp_path / "it"))

    said = unwritable(problem, tmp_path)

    assert os.strerror(number) in said.why
    assert said.hint


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

    assert {*os.listdir(small_disk / "home")} - {NOTE} == {"a.bin"}


def test_sending_to_a_full_disk_leaves_nothing_behind(here, tmp_path, small_disk):
    (tmp_path / "big").write_bytes(b"x" * 2_000_000)

    with pytest.raises(NoSpace):
        here.send(tmp_path / "big", str(small_disk / "store" / "big"))

    assert os.listdir(small_disk / "store") == []


def test_what_cannot_be_read_is_named_and_the_rest_comes(here, ordinary_folder):
    there, home = ordinary_folder / "there", ordinary_folder / "home"
    (there / "closed").mkdir(parents=True)
    (there / "closed").chmod(0)
    (there / "secret.pt").touch(mode=0)
    (there / "made.txt").write_text("x")

    came = here.bring(str(there), home)

    (there / "closed").chmod(0o700)
    assert came.unread == ("closed/ (Permission denied)", "secret.pt (Permission denied)")
    assert (came.files, (home / "made.txt").read_text()) == (1, "x")


def test_a_file_that_vanishes_meanwhile_is_no_error(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    for name in ("a.pt", "b.pt", "c.pt"):
        (there / name).write_text("x")

    came = here.bring(str(there), home, moved=lambda *_: (there / "b.pt").unlink(missing_ok=True))

    assert (came.files, came.unread, came.unfinished) == (2, (), ())
    assert {*os.listdir(home)} - {NOTE} == {"a.pt", "c.pt"}


def test_a_file_that_is_being_written_is_left_for_the_next_fetch(here, tmp_path):
    there, home = tmp_path / "there", tmp_path / "home"
    there.mkdir()
    os.truncate(os.open(there / "model.pt", os.O_CREAT | os.O_WRONLY), 64 << 20)
    (there / "train.log").write_text("line\n")
    stop = threading.Event()

    def write():
        with (there / "model.pt").open("ab") as model, (there / "train.log").open("a") as log:
            while not stop.wait(0.001):
                model.write(b"x")
                model.flush()
                log.write("line\n")
                log.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        came = here.bring(str(there), home)
    finally:
        stop.set()
        writer.join()
    assert came.unfinished == ("model.pt",)
    assert {*os.listdir(home)} - {NOTE} == {"train.log"}

    assert here.bring(str(there), home).unfinished == ()
    assert (home / "model.pt").stat().st_size == (there / "model.pt").stat().st_size


def test_a_file_system_that_takes_no_files_is_not_said_to_have_lost_one(here, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there/made.txt").write_text("x")

    with pytest.raises(NotWritable) as caught:
        here.bring(str(tmp_path / "there"), Path("/proc/x"))

    assert "/proc allows no new files or folders" in caught.value.hint
    assert "--to" in caught.value.hint


def test_a_link_in_the_place_of_a_partial_file_is_not_followed(here, tmp_path):
    """As somebody could leave it who may write to the folder, and knows our next number."""
    precious, results = tmp_path / "precious", tmp_path / "home"
    precious.write_text("mine")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "model.pt").write_text("weights")
    results.mkdir()
    for name in (NOTE, "model.pt"):
        (results / f"{name}.{os.getpid()}.partial").symlink_to(precious)

    here.bring(str(tmp_path / "there"), results)

    assert precious.read_text() == "mine"
    assert (results / "model.pt").read_text() == "weights"
    assert not (results / "model.pt").is_symlink()
    assert not (results / NOTE).is_symlink()


def test_nothing_is_fetched_through_a_link_in_the_results(here, tmp_path):
    (tmp_path / "there" / "output").mkdir(parents=True)
    (tmp_path / "there" / "output" / "config").write_text("theirs")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "output").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CommandFailed, match="nothing was fetched"):
        here.bring(str(tmp_path / "there"), tmp_path / "home")

    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")
def test_results_lie_behind_a_link_only_if_the_user_made_it(here, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a").write_text("a")
    (tmp_path / "large disk").mkdir()
    link = tmp_path / "results"
    link.symlink_to(tmp_path / "large disk")

    here.bring(str(tmp_path / "there"), link / "run")
    os.chown(link, 4242, 4242, follow_symlinks=False)

    assert (tmp_path / "large disk" / "run" / "a").read_text() == "a"
    with pytest.raises(CommandFailed, match="nothing was fetched"):
        here.bring(str(tmp_path / "there"), link / "other")
    assert not (tmp_path / "large disk" / "other").exists()
