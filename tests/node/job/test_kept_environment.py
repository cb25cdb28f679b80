"""Environments that a node keeps for later jobs of the same user."""

import fcntl
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rabaska.node.job import kept_environment

# A build that leaves a Python, and a mark for each time it ran.
LINES = """sh -c true &&
mkdir -p "$RABASKA_ENV/bin" &&
ln -s "$(command -v python3)" "$RABASKA_ENV/bin/python" &&
echo built >> "$BUILDS"
"""


@pytest.fixture
def builds(tmp_path, monkeypatch):
    monkeypatch.setenv("BUILDS", str(tmp_path / "builds"))
    monkeypatch.setenv("RABASKA_SPACE", str(tmp_path / "space"))
    (tmp_path / "pins.txt").write_text("numpy==2.0\n")
    (tmp_path / "node").mkdir()

    class Builds:
        home = tmp_path / "node" / f"rabaska-{os.getuid()}"

        @property
        def folder(self):
            (found,) = (path for path in self.home.glob("env-d1-*") if path.is_dir())
            return found

        def job(self, digest="d1", local=None):
            words = [digest, str(tmp_path / "pins.txt"), str(local or tmp_path / "node")]
            done = subprocess.run(
                ["python3", "-m", "rabaska.node", "kept-env", *words], input=LINES, text=True,
                capture_output=True, check=False,
                env={**os.environ, "PYTHONPATH": str(_source())},
            )  # fmt: skip
            return done.stdout.strip()

        @property
        def count(self):
            return len((tmp_path / "builds").read_text().splitlines())

    return Builds()


def _source():
    return os.path.abspath(os.path.join(os.path.dirname(kept_environment.__file__), "../../.."))


def test_it_is_built_once_for_each_content(builds, tmp_path):
    first = builds.job()
    assert first == builds.job() == str(builds.folder)
    assert builds.count == 1

    (tmp_path / "pins.txt").write_text("numpy==2.1\n")

    assert builds.job() != first
    assert builds.count == 2


def test_what_a_killed_build_left_is_built_again(builds):
    builds.job()
    (builds.folder / "complete").unlink()
    (builds.folder / "half").touch()

    builds.job()

    assert sorted(os.listdir(builds.folder)) == ["bin", "complete"]
    assert builds.count == 2


def test_one_whose_python_is_gone_is_built_again(builds):
    builds.job()
    (builds.folder / "bin" / "python").unlink()

    builds.job()

    assert builds.count == 2


def test_where_others_could_write_nothing_is_shared(builds, tmp_path):
    builds.home.mkdir()
    builds.home.chmod(0o777)

    assert builds.job() == str(tmp_path / "space" / "env")


def test_those_of_long_ago_are_removed_unless_a_job_uses_them(builds):
    used = ""
    for name in ("old", "used"):
        used = builds.job(name)
        long_ago = time.time() - 4 * 24 * 3600
        os.utime(f"{used}.in-use", (long_ago, long_ago))
    with open(f"{used}.in-use") as mark:
        fcntl.flock(mark, fcntl.LOCK_SH)

        new = builds.job("new")

    assert {str(path) for path in builds.home.iterdir() if path.is_dir()} == {used, new}


def test_of_two_that_begin_together_one_builds(builds):
    with ThreadPoolExecutor(4) as jobs:
        folders = set(jobs.map(lambda _: builds.job(), range(4)))

    assert folders == {str(builds.folder)}
    assert builds.count == 1


def test_who_waited_for_a_mark_that_was_removed_locks_the_new_one(tmp_path):
    mark = str(tmp_path / "env.in-use")
    with open(mark, "w") as removed, ThreadPoolExecutor(1) as other:
        fcntl.flock(removed, fcntl.LOCK_EX)
        waiting = other.submit(kept_environment._locked, mark, fcntl.LOCK_EX)
        time.sleep(0.2)
        os.unlink(mark)
        fcntl.flock(removed, fcntl.LOCK_UN)

        lock = waiting.result(10)

    assert os.path.samestat(os.fstat(lock), os.stat(mark))
    os.close(lock)


def test_a_second_job_uses_it_while_the_first_one_runs(builds):
    builds.job()
    lock = kept_environment.use({"RABASKA_ENV": str(builds.folder)})

    assert builds.job() == str(builds.folder)
    assert builds.count == 1
    os.close(lock)


def test_a_job_holds_its_environment_while_it_lives(builds):
    builds.job()

    lock = kept_environment.use({"RABASKA_ENV": str(builds.folder)})

    assert lock is not None
    with open(f"{builds.folder}.in-use") as mark, pytest.raises(BlockingIOError):
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)
    assert kept_environment.use({"RABASKA_ENV": "/job/env"}) is None
    assert kept_environment.use({}) is None
