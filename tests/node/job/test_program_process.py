"""The program as a process: how it is started, asked, ended and explained."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node import processes
from rabaska.node.job import program_process, stop_signals
from rabaska.node.job.stop_signals import Interrupts, Stop, StoppedEarly
from rabaska.node.record import chain_rule

LIMIT = Stop(chain_rule.TIME_LIMIT, "the time limit of the job was near")
ENVIRONMENT = dict(os.environ)


def python(
    tmp_path: Path, text: str, **variables: str
) -> "program_process.subprocess.Popen[bytes]":
    log = str(tmp_path / "log")
    return program_process.start(
        [sys.executable, "-c", text], str(tmp_path), {**ENVIRONMENT, **variables}, log
    )


def test_a_variable_with_which_it_cannot_start_is_named(tmp_path: Path) -> None:
    with pytest.raises(program_process.NotStarted, match="the variable MUCH has 200,005 bytes"):
        python(tmp_path, "", MUCH="x" * 200_000)

    assert "the variable MUCH" in (tmp_path / "log").read_text()


def test_what_it_prints_is_appended_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")

    process = python(
        tmp_path, "import sys; print('out', flush=True); print('err', file=sys.stderr)"
    )
    end = program_process.watch(process, signal.SIGTERM, lambda: None, lambda: 1.0)

    assert end.how == chain_rule.FINISHED
    assert (tmp_path / "log").read_text() == "before\nout\nerr\n"


def test_it_starts_in_its_folder_with_nothing_to_read(tmp_path: Path) -> None:
    process = python(tmp_path, "import os, sys; print(os.getcwd(), repr(sys.stdin.read()))")
    program_process.watch(process, signal.SIGTERM, lambda: None, lambda: 1.0)

    assert (tmp_path / "log").read_text() == f"{tmp_path} ''\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [(["no-such-command"], 127), (["/etc/passwd"], 126), (["./plain"], 126)],
)
def test_what_cannot_be_started_says_so_as_a_shell_would(
    tmp_path: Path, words: list[str], code: int
) -> None:
    (tmp_path / "plain").write_bytes(b"\x7fnothing")
    (tmp_path / "plain").chmod(0o755)

    with pytest.raises(program_process.NotStarted) as refused:
        program_process.start(words, str(tmp_path), ENVIRONMENT, str(tmp_path / "log"))

    assert refused.value.code == code
    assert words[0] in refused.value.reason


def test_it_is_killed_when_it_does_not_stop_in_time(tmp_path: Path) -> None:
    process = python(tmp_path, "import signal, time; signal.signal(15, 1); time.sleep(60)")
    time.sleep(0.5)

    end = program_process.watch(process, signal.SIGTERM, lambda: LIMIT, lambda: 0.3)

    assert end == program_process.ProgramEnd(
        chain_rule.TIME_LIMIT, LIMIT.reason, None, signal.SIGKILL, LIMIT
    )


_SLOW_TO_SAVE = """
import signal, sys, time
def save(*_):
    print("saving", flush=True)
    time.sleep(3)  # longer than what outlives a program has
    open("saved", "w").close()
    sys.exit(0)
signal.signal(signal.{signal}, save)
open("ready", "w").close()
while True:
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    "script",
    [
        "{python} train.py; echo over",
        "bash -c '{python} train.py; echo over'; echo over",
        "{python} train.py 2>&1 | tee printed; echo over",
    ],
    ids=["a script", "a script in a script", "a pipeline"],
)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGUSR1"])
def test_a_program_that_a_shell_started_has_its_time_to_save(
    tmp_path: Path, script: str, name: str
) -> None:
    (tmp_path / "train.py").write_text(_SLOW_TO_SAVE.format(signal=name))
    words = ["bash", "-c", script.format(python=sys.executable)]
    process = program_process.start(words, str(tmp_path), ENVIRONMENT, str(tmp_path / "log"))
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)

    end = program_process.watch(process, getattr(signal, name), lambda: LIMIT, lambda: 20.0)

    assert end.how == chain_rule.TIME_LIMIT
    assert (tmp_path / "saved").exists()


def test_what_a_shell_left_is_waited_for_no_longer_than_the_program_would_be(
    tmp_path: Path,
) -> None:
    deaf = "import signal, time; signal.signal(15, 1); open('ready', 'w').close(); time.sleep(60)"
    words = ["bash", "-c", f'{sys.executable} -c "{deaf}"; echo over']
    process = program_process.start(words, str(tmp_path), ENVIRONMENT, str(tmp_path / "log"))
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    left = processes.descendants(process.pid)
    began = time.monotonic()

    program_process.watch(process, signal.SIGTERM, lambda: LIMIT, lambda: 1.0)

    assert time.monotonic() - began < 5
    processes.signal_all(left, signal.SIGKILL)


def test_it_is_killed_at_once_when_the_run_was_lost(tmp_path: Path) -> None:
    lost = Stop(chain_rule.SUPERSEDED, "another job holds the run now", at_once=True)
    process = python(tmp_path, "import signal, time; signal.signal(15, 1); time.sleep(60)")

    end = program_process.watch(process, signal.SIGTERM, lambda: lost, lambda: 1e6)

    assert end.how == chain_rule.SUPERSEDED


def test_a_program_dies_with_its_agent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    agent = f"""
import os, sys
from rabaska.node.job import program_process
words = [sys.executable, "-c", "import time; time.sleep(600)"]
process = program_process.start(words, ".", dict(os.environ), {str(tmp_path / "log")!r})
open({str(pid_file)!r}, "w").write(str(process.pid))
os.kill(os.getpid(), 9)
"""
    os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", agent])

    pid = int(pid_file.read_text())
    while processes.start_id(pid) is not None:
        time.sleep(0.02)


def test_what_a_dead_agent_left_is_found_by_its_tag(tmp_path: Path) -> None:
    process = python(tmp_path, "import time; time.sleep(600)", **{program_process.TAG: "/a/run#3"})
    other = python(tmp_path, "import time; time.sleep(600)", **{program_process.TAG: "/a/run#4"})

    while not processes.carrying(program_process.TAG, "/a/run#3"):
        time.sleep(0.02)
    program_process.end_left_by("/a/run#3")

    process.wait(10)
    spared = other.poll() is None
    other.kill()
    other.wait()
    assert processes.start_id(process.pid) is None
    assert spared


@given(st.integers(-64, 255))
def test_once_asked_to_stop_a_program_never_counts_as_finished_or_crashed(code: int) -> None:
    assert program_process.explain_exit(code, LIMIT).how == chain_rule.TIME_LIMIT


@given(st.integers(-64, 255))
def test_only_exit_code_zero_is_finished(code: int) -> None:
    assert (program_process.explain_exit(code, None).how == chain_rule.FINISHED) == (code == 0)


@pytest.mark.parametrize(
    ("code", "how"),
    [
        (85, chain_rule.ASKED_TO_GO_ON),
        (1, chain_rule.CRASHED),
        (-signal.SIGSEGV, chain_rule.CRASHED),
        (-signal.SIGKILL, chain_rule.KILLED),
        (-signal.SIGTERM, chain_rule.KILLED),
        (128 + signal.SIGKILL, chain_rule.KILLED),
    ],
)
def test_an_exit_is_explained(code: int, how: str) -> None:
    assert program_process.explain_exit(code, None).how == how


@pytest.fixture
def signals() -> Iterator[Interrupts]:
    before = {name: signal.getsignal(getattr(signal, name)) for name in stop_signals.ASKED}
    flags = Interrupts()
    flags.install()
    yield flags
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


@pytest.mark.parametrize("name", stop_signals.ASKED)
def test_a_signal_is_remembered(signals: Interrupts, name: str) -> None:
    os.kill(os.getpid(), getattr(signal, name))

    assert signals.received() == name


def test_the_first_signal_is_the_one_that_counts(signals: Interrupts) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGTERM)

    assert signals.received() == "SIGUSR1"


def test_work_is_broken_off_in_the_middle_of_a_wait() -> None:
    began = time.monotonic()

    with (
        pytest.raises(StoppedEarly) as broken,
        stop_signals.stopped_early_when(lambda: LIMIT if time.monotonic() > began + 0.2 else None),
    ):
        time.sleep(600)

    assert broken.value.stop == LIMIT


def test_work_that_ends_in_time_is_left_in_peace() -> None:
    with stop_signals.stopped_early_when(lambda: None):
        time.sleep(0.05)

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
