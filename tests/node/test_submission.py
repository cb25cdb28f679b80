"""A submission whose answer was lost: the queue is asked before anything is submitted again."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rabaska.node import files, processes
from rabaska.node.record import links
from rabaska.node.record.runfolder import RunFolder

# A scheduler in two commands: what is submitted is a line of `queue`, the answer is as told.
SUBMIT = """#!/bin/sh
echo once >> {folder}/tries
{taken}
{answer}
"""
FIND = """#!/bin/sh
cat {folder}/queue
"""
TAKEN = 'n=$(wc -l < {folder}/tries); echo "4$n $1" >> {folder}/queue'
TIMED_OUT = """\
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1"""
REFUSED = 'echo "sbatch: error: Invalid account" >&2; exit 1'
ANSWERED = "tail -n 1 {folder}/queue | cut -d' ' -f1"


class Cluster:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.run = RunFolder(str(folder / "run"))
        Path(self.run.carried(0)).mkdir(parents=True)
        (folder / "queue").touch()
        self.script("find", FIND)

    def script(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.replace("{folder}", str(self.folder)))
        (self.folder / name).chmod(0o755)

    def behaves(self, taken: str, answer: str) -> None:
        self.script("submit", SUBMIT.replace("{taken}", taken).replace("{answer}", answer))

    def words(self, *words: str) -> list[str]:
        ours = ["submit", self.run.path, "--find", str(self.folder / "find"), *words]
        command = [str(self.folder / "submit"), "mark-{submission}"]
        return [sys.executable, "-m", "rabaska.node", *ours, "--", *command]

    def submit(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self.words(*words), capture_output=True, text=True, check=False)

    @property
    def tries(self) -> int:
        path = self.folder / "tries"
        return len(path.read_text().split()) if path.exists() else 0


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def test_a_job_that_was_taken_without_an_answer_is_found_and_not_submitted_again(cluster):
    cluster.behaves(TAKEN, TIMED_OUT)

    done = cluster.submit()

    assert (done.returncode, done.stdout) == (0, "41\n")
    assert cluster.tries == 1


@pytest.mark.slow
def test_a_job_that_was_not_taken_is_submitted_again_once(cluster):
    flaky = "if [ $(wc -l < {folder}/tries) = 1 ]; then\n%s\nfi\n%s\n%s"
    cluster.behaves(":", flaky % (TIMED_OUT, TAKEN, ANSWERED))

    done = cluster.submit()

    assert (done.returncode, done.stdout) == (0, "42\n")
    assert cluster.tries == 2


def test_a_plain_refusal_is_not_tried_again(cluster):
    cluster.behaves(":", REFUSED)

    done = cluster.submit()

    assert done.returncode == 1
    assert "Invalid account" in done.stderr
    assert cluster.tries == 1


def intend(cluster: Cluster, mark: str) -> None:
    """What is left of a submission that was killed before its answer could be written."""
    find = [str(cluster.folder / "find")]
    files.append_line(cluster.run.jobs, {"submission": mark, "time": 1.0, "find": find})
    (cluster.folder / "queue").write_text(f"17 mark-{mark}\n")


@pytest.mark.thorough  # it waits as long as a queue may lag behind; tests/real has its like
def test_nothing_is_submitted_again_while_the_queue_does_not_answer(cluster, tmp_path):
    killed = Cluster(tmp_path / "other")
    intend(killed, "abc")
    for each in (cluster, killed):
        each.behaves(TAKEN, TIMED_OUT)
        each.script("find", "#!/bin/sh\nexit 1\n")

    with ThreadPoolExecutor() as at_once:
        uncertain = list(at_once.map(lambda each: each.submit("--resume"), (cluster, killed)))
    cluster.script("find", FIND)
    later = cluster.submit("--resume")

    assert [done.returncode for done in uncertain] == [75, 75]
    assert all("nobody knows yet whether the job was taken" in done.stderr for done in uncertain)
    assert (later.returncode, later.stdout) == (0, "41\n")
    assert (cluster.tries, killed.tries) == (1, 0)


def test_a_submission_that_was_killed_is_taken_up_when_its_job_waits(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    intend(cluster, "abc")

    done = cluster.submit("--resume")

    assert (done.returncode, done.stdout) == (0, "17\n")
    assert cluster.tries == 0
    recorded = [json.loads(line) for line in Path(cluster.run.jobs).read_text().splitlines()]
    assert recorded[-1]["submission"] == "abc"
    assert recorded[-1]["said"] == "17\n"


def test_more_links_are_submitted_when_the_job_of_a_killed_submission_ran_already(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    intend(cluster, "abc")
    Path(cluster.run.link(1)).mkdir(parents=True)
    links.write_begun(cluster.run, links.Begun(1, "17_1", "h", "b", 1, None, 1.0))

    done = cluster.submit("--resume")

    assert (done.returncode, done.stdout) == (0, "41\n")
    assert cluster.tries == 1


KILLED = "kill -9 $PPID; sleep 1"


@pytest.mark.parametrize("taken", [TAKEN, ":"], ids=["taken", "not taken"])
def test_a_submission_that_is_killed_before_its_record_is_never_made_twice(cluster, taken):
    cluster.behaves(taken, KILLED)

    first = cluster.submit("--once", "--after", "40", "--mark", "m")
    cluster.behaves(TAKEN, ANSWERED)
    again = [cluster.submit("--once", "--after", "40", "--mark", "m") for _ in range(2)]

    assert first.returncode == -signal.SIGKILL
    job = "41" if taken == TAKEN else "42"
    assert [done.stdout for done in again] == [f"{job}\n"] * 2
    assert len((cluster.folder / "queue").read_text().splitlines()) == 1


def test_where_no_queue_can_be_asked_a_lost_answer_ends_it(cluster):
    cluster.behaves(TAKEN, KILLED)
    plain = [str(cluster.folder / "submit"), "no mark"]
    ours = ["submit", cluster.run.path, "--once", "--after", "40", "--mark", "m", "--", *plain]

    tries = [
        subprocess.run([sys.executable, "-m", "rabaska.node", *ours], check=False) for _ in range(2)
    ]

    assert [done.returncode for done in tries] == [-signal.SIGKILL, 75]
    assert cluster.tries == 1


def test_who_lost_the_connection_asks_again_and_gets_the_answer_of_the_first(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    cluster.script("find", "#!/bin/sh\n")  # the queue does not show it yet
    us = {
        "boot": processes.boot_id(),
        "pid": os.getpid(),
        "started": processes.start_id(os.getpid()),
    }
    files.append_line(cluster.run.jobs, {"submission": "m", **us})

    words = cluster.words("--mark", "m")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as second:
        time.sleep(1.5)  # time to begin; it may be sure of nothing as long as we are at it
        answer = {"submission": "m", "exit_code": 0, "said": "17\n", "complained": ""}
        files.append_line(cluster.run.jobs, answer)
        told = second.communicate()[0]
    later = cluster.submit("--mark", "m")

    assert (told, later.stdout) == ("17\n", "17\n")
    assert cluster.tries == 0
