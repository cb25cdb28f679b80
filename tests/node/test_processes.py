"""Processes are told apart, found wherever they hide, and ended as a whole."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rabaska.node import processes

DOUBLE_FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".partial", "w") as stream:
            stream.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".partial", sys.argv[1])
        time.sleep(60)
    os._exit(0)
"""


def python(code: str, *words: object, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, words)],
        text=True,
        **options,  # type: ignore[call-overload]
    )


def pid_in(path: Path) -> int:
    """The pid that a process writes to `path` once it is ready."""
    while not path.exists():
        time.sleep(0.02)
    return int(path.read_text())


def is_gone(pid: int) -> bool:
    return processes.start_id(pid) is None


def test_a_living_process_is_known_by_its_pid_and_start():
    child = subprocess.Popen(["sleep", "60"])
    started = processes.start_id(child.pid)

    alive_before = processes.is_alive(child.pid, started or "")
    child.kill()
    child.wait()

    assert alive_before
    assert not processes.is_alive(child.pid, started or "")


def test_another_process_with_the_same_pid_is_not_taken_for_the_first():
    assert not processes.is_alive(os.getpid(), "started at some other time")


def test_a_process_that_ended_but_was_not_buried_is_not_alive():
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert processes.start_id(child.pid) is None
    assert child.wait() == 0


def test_a_name_full_of_parentheses_does_not_confuse_the_reader(tmp_path):
    program = tmp_path / ") 7 (x) Z 1"
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([program, "60"])
    try:
        assert child.pid in processes.descendants(os.getpid())
    finally:
        child.kill()
        child.wait()


def test_the_boot_has_one_name_for_all_processes():
    asked = subprocess.run(
        [sys.executable, "-c", "from rabaska.node.processes import *; print(boot_id())"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert asked.stdout.strip() == processes.boot_id() != ""


def test_descendants_are_found_at_any_depth(tmp_path):
    ready = tmp_path / "ready"
    child = subprocess.Popen(
        ["bash", "-c", f"bash -c 'echo $$ > {ready}.x; mv {ready}.x {ready}; sleep 60; true'; true"]
    )
    grandchild = pid_in(ready)

    found = processes.descendants(child.pid)

    assert grandchild in found
    assert child.pid not in found
    assert processes.end_tree(child.pid, 5)
    assert child.wait() == -signal.SIGTERM
    assert is_gone(grandchild)


def test_a_process_that_ignores_term_is_killed_after_the_grace(tmp_path):
    ready = tmp_path / "ready"
    child = python(
        """
        import os, signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[1] + ".x", "w").write(str(os.getpid()))
        os.rename(sys.argv[1] + ".x", sys.argv[1])
        time.sleep(60)
        """,
        ready,
        start_new_session=True,
    )
    pid_in(ready)

    ended = processes.end_tree(child.pid, 0.3)

    assert ended
    assert child.wait() == -signal.SIGKILL


def test_a_stopped_process_is_ended_too():
    child = subprocess.Popen(["sleep", "60"])
    child.send_signal(signal.SIGSTOP)

    processes.end_tree(child.pid, 10)

    assert child.wait() == -signal.SIGTERM


def test_a_reaper_ends_a_double_forked_child_whose_parents_are_gone(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux has reapers")
    ready = tmp_path / "ready"
    reaper = python(
        """
        import subprocess, sys, time
        from rabaska.node import processes
        assert processes.become_reaper() and processes.is_reaper()
        child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
        child.wait()
        while not __import__("os").path.exists(sys.argv[2]):
            time.sleep(0.02)
        assert processes.end_tree(child.pid, 5)
        assert processes.descendants(__import__("os").getpid()) == []
        """,
        DOUBLE_FORK,
        ready,
    )

    assert reaper.wait() == 0
    assert is_gone(int(ready.read_text()))


def test_an_adopted_orphan_is_buried_and_the_own_child_is_left_to_its_parent():
    reaper = python(
        """
        import os, subprocess, time
        from rabaska.node import processes
        processes.become_reaper()
        own = subprocess.Popen(["bash", "-c", "(sleep 0.2 &) ; exit 7"])
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            processes.reap_adopted(own.pid)
            code = own.poll()
            if code is not None:
                break
        assert code == 7, code
        while True:
            processes.reap_adopted(0)
            try:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                break
            time.sleep(0.02)
        """
    )

    assert reaper.wait() == 0


def test_a_tag_in_the_environment_finds_a_process_that_left_every_group(tmp_path):
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux shows the environment of a process")
    ready = tmp_path / "ready"
    tag = f"tag-{os.getpid()}-{time.monotonic_ns()}"
    python(DOUBLE_FORK, ready, env={**os.environ, "SOME_TAG": tag}).wait()
    orphan = pid_in(ready)

    found = processes.carrying("SOME_TAG", tag)
    processes.end_all(lambda: processes.carrying("SOME_TAG", tag), 5)

    assert found == [orphan]
    assert is_gone(orphan)
    assert processes.carrying("SOME_TAG", tag[:-1]) == []


def test_ending_what_is_already_gone_succeeds_at_once():
    child = subprocess.Popen(["true"])
    child.wait()

    assert processes.end_tree(child.pid, 60)


def test_signals_to_processes_that_vanished_are_passed_over():
    child = subprocess.Popen(["sleep", "60"])
    gone = subprocess.Popen(["true"])
    gone.wait()

    processes.signal_all([gone.pid, child.pid], signal.SIGINT)

    assert child.wait() == -signal.SIGINT
