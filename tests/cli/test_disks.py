"""Disks that do not let us work end no command in a traceback."""

import errno
import os
import subprocess

import pytest

from rabaska.cli import main
from rabaska.remote.local_disk import disk_error


@pytest.fixture
def read_only(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a file system of one's own takes root")
    (tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path / "disk"]
    subprocess.run(mount, check=True)
    yield tmp_path / "disk"
    subprocess.run(["umount", tmp_path / "disk"], check=True)


def rabaska(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def test_a_home_on_a_read_only_disk_is_named(read_only, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("RABASKA_HOME", str(read_only / "home"))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.txt").touch()

    assert rabaska("pack", str(tmp_path / "data"), "--name", "x") == 15

    told = capfd.readouterr().err
    assert str(read_only / "home") in told
    assert "Read-only file system" in told


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EIO, errno.ENOSPC])
def test_what_the_computer_refuses_is_said_with_the_place(number):
    told = disk_error(OSError(number, os.strerror(number), "/data/it"))

    assert told is not None
    assert "/data/it" in told.what
    assert told.hint


@pytest.mark.parametrize("problem", [
    FileNotFoundError(errno.ENOENT, "gone", "/data/it"), BrokenPipeError(errno.EPIPE, "pipe"),
    OSError(errno.EACCES, "no name"),
])  # fmt: skip
def test_what_may_be_a_bug_keeps_its_traceback(problem):
    assert disk_error(problem) is None
