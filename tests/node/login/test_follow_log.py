"""What a run's program printed, job after job, and while it still prints."""

import io
import os
import re
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from made_runs import begin_job, end_job, make_run, print_log

from rabaska.node import files
from rabaska.node.login.follow_log import MatchPrinter
from rabaska.node.record import chain_rule
from rabaska.node.record.log_times import LogTimes
from rabaska.node.record.run_folder import RunFolder

TAIL = [
    sys.executable,
    "-c",
    "import sys; from rabaska.node.login.follow_log import main; sys.exit(main(sys.argv[1:]))",
]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path)


@pytest.fixture
def following(run: RunFolder) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Starts `tail --follow`, and ends it after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def follow(*words: str) -> "subprocess.Popen[bytes]":
        started.append(
            subprocess.Popen([*TAIL, run.path, "--follow", *words], stdout=subprocess.PIPE)
        )
        return started[-1]

    yield follow
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def printed(run: RunFolder, *words: str) -> bytes:
    return subprocess.run([*TAIL, run.path, *words], check=True, stdout=subprocess.PIPE).stdout


def read_until(process: "subprocess.Popen[bytes]", wanted: bytes) -> bytes:
    """What it prints up to `wanted`; the test's own timeout ends a vain wait."""
    assert process.stdout is not None
    text = b""
    while wanted not in text:
        more = os.read(process.stdout.fileno(), 65536)
        assert more, text
        text += more
    return text


def headed(run: RunFolder, job: int) -> bytes:
    return f"── job {job} · id 12_{job} · {os.uname().nodename} ──\n".encode()


def two_jobs(run: RunFolder) -> bytes:
    """A run of two jobs, and what is to be printed of it."""
    for text in (b"one\nno newline", b"two\n"):
        job = begin_job(run)
        print_log(run, job, text)
        end_job(run, job)
    return headed(run, 1) + b"one\nno newline\n" + headed(run, 2) + b"two\n"


def test_all_jobs_are_printed_in_order_each_with_its_own_line(run: RunFolder) -> None:
    expected = two_jobs(run)

    assert printed(run) == expected


def test_one_job_is_printed_as_it_is(run: RunFolder) -> None:
    two_jobs(run)

    assert printed(run, "--job", "1") == b"one\nno newline"


def test_a_run_without_jobs_prints_nothing(run: RunFolder) -> None:
    assert printed(run) == b""


def test_a_reader_that_lost_its_connection_goes_on_at_any_byte(run: RunFolder) -> None:
    expected = two_jobs(run)

    for start in {0, 1, 40, len(expected) // 2, len(expected) - 1, len(expected)}:
        assert printed(run, "--from", str(start)) == expected[start:], start


def test_bytes_that_are_no_text_pass_unchanged(run: RunFolder) -> None:
    data = bytes(range(256)) * 10
    print_log(run, begin_job(run), data)

    assert printed(run, "--job", "1") == data


def test_sixty_megabytes_without_a_newline_pass_in_little_memory(run: RunFolder) -> None:
    print_log(run, begin_job(run), b"x" * 60_000_000)
    # Address space in KiB, of which the interpreter itself takes the most.
    limited = ["bash", "-c", 'ulimit -v 400000; exec "$@"', "-", *TAIL]

    process = subprocess.Popen([*limited, run.path, "--job", "1"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    size = sum(len(data) for data in iter(lambda: process.stdout.read(1 << 20), b""))
    process.stdout.close()

    assert (process.wait(), size) == (0, 60_000_000)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = subprocess.run([*TAIL, str(tmp_path / "gone")], check=False, stderr=subprocess.PIPE)

    assert done.returncode == 9
    assert b"there is no run folder" in done.stderr


def test_following_goes_on_over_jobs_until_the_run_is_done(
    run: RunFolder, following: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    process = following()
    first = begin_job(run)
    print_log(run, first, "one\n")
    seen = read_until(process, b"one\n")
    end_job(run, first)
    second = begin_job(run)
    print_log(run, second, "two\n")
    seen += read_until(process, b"two\n")
    print_log(run, second, "last words")
    end_job(run, second, chain_rule.FINISHED)
    files.write_whole(run.done, "")

    seen += process.communicate(timeout=60)[0]

    assert seen == headed(run, 1) + b"one\n" + headed(run, 2) + b"two\nlast words"
    assert process.returncode == 0


def test_following_ends_when_the_chain_gives_up(
    run: RunFolder, following: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    job = begin_job(run)
    print_log(run, job, "Traceback\n")
    process = following()
    read_until(process, b"Traceback\n")
    end_job(run, job, chain_rule.CRASHED, progressed=False)

    process.communicate(timeout=60)

    assert process.returncode == 0


def test_following_a_cancelled_run_ends_only_when_its_holder_is_gone(
    run: RunFolder, following: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    holder = subprocess.Popen(["sleep", "300"])
    job = begin_job(run, pid=holder.pid)
    files.write_whole(run.stop, "")
    process = following()
    print_log(run, job, "saving\n")
    seen = read_until(process, b"saving\n")
    holder.kill()
    holder.wait()

    seen += process.communicate(timeout=60)[0]

    assert seen.endswith(b"saving\n")
    assert process.returncode == 0


def test_following_survives_a_log_that_is_emptied(
    run: RunFolder, following: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    job = begin_job(run)
    print_log(run, job, "a long first line\n")
    process = following()
    read_until(process, b"first line\n")
    os.truncate(run.log(job), 0)
    print_log(run, job, "anew\n")

    assert read_until(process, b"anew\n") == b"anew\n"


def test_a_follower_ends_when_nobody_listens_even_while_nothing_is_printed(
    run: RunFolder, following: Callable[..., "subprocess.Popen[bytes]"]
) -> None:
    print_log(run, begin_job(run), "one\n")
    process = following()
    read_until(process, b"one\n")
    assert process.stdout is not None
    process.stdout.close()

    assert process.wait(timeout=60) == 0


def test_only_matching_lines_are_printed_and_jobs_that_have_some(tmp_path):
    run = make_run(tmp_path)
    for text in ("epoch 1\nloss 0.5\n", "nothing\n", "  5%|\r 10%| loss 0.4\nloss 0.3"):
        end_job(run, begin_job(run), how=chain_rule.KILLED)
        Path(run.log(run.holder())).write_text(text)

    out = printed(run, "--grep", r"loss \d").decode()

    heads = [line for line in out.splitlines() if line.startswith("──")]
    assert [line for line in out.splitlines() if line not in heads] == [
        "loss 0.5",
        " 10%| loss 0.4",
        "loss 0.3",
    ]
    assert [head.split(" ·")[0] for head in heads] == ["── job 1", "── job 3"]


def test_a_reader_that_lost_its_connection_goes_on_in_what_matches(tmp_path):
    run = make_run(tmp_path)
    end_job(run, begin_job(run), how=chain_rule.KILLED)
    Path(run.log(1)).write_text("".join(f"step {step}\nloss {step}\n" for step in range(50)))

    whole = printed(run, "--grep", "loss").decode()
    rest = printed(run, "--grep", "loss", "--from", "100").decode()

    assert rest == whole.encode()[100:].decode()


def test_what_was_printed_before_is_left_out(tmp_path):
    run, now = make_run(tmp_path), time.time()
    for _ in range(2):
        end_job(run, begin_job(run), how=chain_rule.KILLED)
    Path(run.log(1)).write_text("old\n")
    os.utime(run.log(1), (now - 5000, now - 5000))
    times = LogTimes(run, 2)
    for ago, text in ((2000, "early\nhalf a "), (700, "line\nlate\n"), (10, "new\n")):
        with open(run.log(2), "a") as log:
            log.write(text)
        times.note(now - ago)

    assert printed(run, "--since", "1000").decode().splitlines()[1:] == [
        "late",
        "new",
    ]
    assert printed(run, "--since", "60", "--job", "2").decode() == "new\n"
    assert "old" in printed(run, "--since", "9000").decode()


def test_a_bar_that_was_drawn_for_days_is_searched_in_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_bytes(b"\r" + b"\r".join(b"%06d it/s" % one for one in range(300_000)) + b"\n")
    found = io.BytesIO()
    printer = MatchPrinter(found, 0, re.compile("299999"))

    tracemalloc.start()
    end = printer.copy(str(log), 0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert end == log.stat().st_size
    assert b"299999 it/s\n" in found.getvalue()
    assert peak < log.stat().st_size / 4
