"""A submission whose answer was lost: the queue is asked before anything is submitted again."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node import files, processes
from rabaska.node.login import submit_job
from rabaska.node.login.pending_submissions import SubmitAnswer, evidence, waiting
from rabaska.node.login.submit_errors import is_certain
from rabaska.node.login.submit_job import OTHERS
from rabaska.node.record import jobs
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.record.submissions import submissions
from rabaska.schedulers import SCHEDULERS, named

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


# What commands said, or did, after their server had taken the job.
PROVES_NOTHING = {
    "killed": "kill -9 $$",
    "killed in a shell": "exit 137",
    "silent": "exit 1",
    "zero bytes": "echo 'sbatch: error: Batch job submission failed: Zero Bytes were transmitted "
    "or received' >&2; exit 1",
    "not received": "echo 'sbatch: error: Batch job submission failed: Message receive failure' "
    ">&2; exit 1",
    "unexpected": "echo 'sbatch: error: Batch job submission failed: Unexpected message received' "
    ">&2; exit 1",
    "end of file": "echo 'qsub: End of File' >&2; exit 1",
    "premature": "echo 'qsub: Premature end of message' >&2; exit 1",
    "protocol": "echo 'qsub: Batch protocol error' >&2; exit 33",
    "read error": "echo 'error: commlib error: got read error' >&2; exit 1",
    "a site's own": "echo 'charge: the ledger is read-only' >&2; exit 3",
    "an id, then its log failed": "echo 41; echo 'ERROR: usage log cannot be written' >&2; exit 1",
    "its log failed": "echo 'ERROR: usage log cannot be written' >&2; exit 1",
    "an id, then a wrapper's usage": "echo 41; echo 'usage: charge [-h] JOB' >&2; exit 2",
    "an id, then no such command": "echo Submitted batch job 41; exit 127",
    "no id": "echo Thank you for your job.",
    "nothing": "exit 0",
}


@pytest.mark.parametrize("answer", PROVES_NOTHING.values(), ids=PROVES_NOTHING)
def test_an_answer_that_proves_nothing_is_looked_for_in_the_queue(cluster, answer):
    cluster.behaves(TAKEN, answer)

    done = cluster.submit()
    again = cluster.submit("--resume")

    assert (done.returncode, done.stdout) == (0, "41\n")
    assert (again.returncode, cluster.tries) == (0, 2)  # more jobs, for the first job is known
    assert len(submissions(cluster.run)) == 2


@pytest.mark.slow
def test_a_refusal_in_words_that_nobody_knows_is_one_when_the_queue_has_no_job(cluster):
    cluster.behaves(":", "echo 'charge: no hours are left' >&2; exit 3")

    done = cluster.submit()

    assert (done.returncode, done.stderr) == (submit_job.REFUSED, "charge: no hours are left\n")
    assert cluster.tries == 1


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["kill -9 $$", "echo Thank you."], ids=["killed", "no id"])
def test_who_says_nothing_may_still_be_at_it(cluster, answer):
    cluster.behaves(":", answer)

    done = cluster.submit()

    assert done.returncode == 75
    assert waiting(cluster.run)["state"] == "lost"


def test_words_that_nobody_knows_prove_nothing_where_no_queue_can_be_asked(cluster):
    cluster.behaves(":", "echo 'charge: no hours are left' >&2; exit 3")
    ours = ["submit", cluster.run.path, "--", str(cluster.folder / "submit"), "x"]

    done = subprocess.run(
        [sys.executable, "-m", "rabaska.node", *ours], capture_output=True, text=True, check=False
    )

    assert done.returncode == 75
    assert "no hours are left" in done.stderr


def test_a_record_of_a_job_without_an_id_is_no_answer(cluster):
    intend(cluster, "abc")
    files.append_line(
        cluster.run.submissions,
        {"submission": "abc", "exit_code": 0, "said": "Thank you.\n", "complained": ""},
    )

    told = waiting(cluster.run)

    assert told["state"] == "found"
    assert submissions(cluster.run)[-1]["said"] == "17\n"


RECORDED = Path(__file__).parents[2] / "recordings"
REFUSALS = [
    line
    for name in ("slurm/sbatch", "pbs/qsub", "torque/qsub", "sge/qsub")
    for line in (RECORDED / f"{name}-refused.txt").read_text().splitlines()
    if not line.startswith(("--", "#", "Exiting"))
]


@pytest.mark.parametrize("words", REFUSALS)
def test_recorded_refusals_are_known_at_once(words):
    assert is_certain(SubmitAnswer(1, "", words))


@given(words=st.sampled_from(REFUSALS))
def test_no_refusal_is_certain_where_an_id_was_printed(words):
    assert not is_certain(SubmitAnswer(1, "1000\n", words))


def test_words_that_only_a_scheduler_says_are_a_refusal_after_error():
    refused = "ERROR:  Batch job submission failed: Invalid account"

    assert is_certain(SubmitAnswer(1, "", refused))
    assert not is_certain(SubmitAnswer(1, "", "ERROR: usage log cannot be written"))


@given(words=st.sampled_from(REFUSALS), before=st.text(), after=st.text())
def test_a_refusal_next_to_a_lost_connection_proves_nothing(words, before, after):
    text = "\n".join([before, words, "Socket timed out on send/recv operation", after])

    assert not is_certain(SubmitAnswer(1, "", text))


@given(code=st.integers(-64, 255), said=st.text(), complained=st.text())
def test_no_text_whatever_makes_an_answer_fail(code, said, complained):
    answer = SubmitAnswer(code, said, complained)

    assert is_certain(answer) in (True, False)
    assert code >= 0 or not is_certain(answer)


def minutes_ago(cluster):
    """As if the last submission, and its answer, were from before a queue's longest delay."""
    last = submissions(cluster.run)[-1]
    past = {"submission": last["submission"], "time": time.time() - 90}
    files.append_line(cluster.run.submissions, {**past, "answered": past["time"]})


@pytest.mark.slow
def test_what_timed_out_is_not_submitted_again_before_a_queue_had_time_to_show_it(cluster):
    cluster.behaves(TAKEN.replace("{folder}/queue", "{folder}/hidden"), TIMED_OUT)

    first = cluster.submit()
    soon = cluster.submit("--resume")
    state = waiting(cluster.run)["state"]
    minutes_ago(cluster)
    (cluster.folder / "hidden").replace(cluster.folder / "queue")
    later = cluster.submit("--resume")

    assert (first.returncode, soon.returncode, state) == (75, 75, "lost")
    assert (later.returncode, later.stdout) == (0, "41\n")
    assert cluster.tries == 1


@pytest.mark.slow
def test_what_timed_out_and_was_not_taken_can_be_submitted_again_later(cluster):
    cluster.behaves("echo Checking the balance of def-ada", TIMED_OUT)
    first = cluster.submit()
    minutes_ago(cluster)
    state = waiting(cluster.run)["state"]
    cluster.behaves(TAKEN, ANSWERED)

    later = cluster.submit("--resume")

    assert (first.returncode, state) == (75, "not taken")
    assert (later.returncode, later.stdout) == (0, "42\n")


@pytest.mark.slow
def test_what_never_reached_the_controller_is_submitted_again_once(cluster):
    down = TIMED_OUT.replace(
        "Socket timed out on send/recv operation",
        "Unable to contact slurm controller (connect failure)",
    )
    flaky = "if [ $(wc -l < {folder}/tries) = 1 ]; then\n%s\nfi\n%s\n%s"
    cluster.behaves(":", flaky % (down, TAKEN, ANSWERED))

    done = cluster.submit()

    assert (done.returncode, done.stdout) == (0, "42\n")
    assert cluster.tries == 2


def test_a_greeting_of_a_killed_command_is_no_job(cluster):
    cluster.behaves("echo Checking 2 balances of def-ada", KILLED)
    cluster.submit("--mark", "m")

    wait_for(lambda: waiting(cluster.run)["state"] != "under way")

    assert waiting(cluster.run)["state"] == "lost"


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_id_that_a_killed_command_printed_is_read_as_its_scheduler_spells_it(tmp_path, name):
    said = {"moab": "\nMoab.41\n", "sqsub": "submitted as jobid 41\n", "sge": "41.1-3:1\n"}
    said |= {"slurm": "41;narval\n", "pbs": "41[].pbs01\n", "local": "here job 41\n"}
    said["flux"] = "209362878464\n"
    run = RunFolder(str(tmp_path))
    Path(run.answers).mkdir()
    for noise, more in (("", ""), ("Project 12 is charged.\n", "Have a nice day\n")):
        text = noise + said.get(name, "41.hades\n") + more
        Path(run.answers, "m.out").write_text(text)
        read = named(name, program=("x",), queue="/q").read_job_id
        assert read(text) is not None, f"add to `said` what {name} prints when it takes a job"
        assert read(evidence(run, "m") + "\n") == read(text)


def test_where_no_queue_can_be_asked_only_its_user_can_say_that_there_is_no_job(cluster):
    cluster.behaves(":", TIMED_OUT)
    ours = ["submit", cluster.run.path, "--resume", "--", str(cluster.folder / "submit"), "x"]
    words = [sys.executable, "-m", "rabaska.node", *ours]
    first = subprocess.run(words, check=False)
    past = {"time": time.time() - 9000, "answered": time.time() - 9000}
    mark = submissions(cluster.run)[-1]["submission"]
    files.append_line(cluster.run.submissions, {"submission": mark, **past})

    again = subprocess.run(words, check=False)
    before = waiting(cluster.run)
    Path(cluster.run.stop).touch()
    cancelled = waiting(cluster.run)["state"]
    cluster.behaves(TAKEN, ANSWERED)
    last = subprocess.run(words, check=False)

    assert (first.returncode, again.returncode, last.returncode) == (75, 75, 0)
    assert (before["state"], before["findable"], cancelled) == ("lost", False, "not taken")
    assert cluster.tries == 2
    assert not os.path.exists(cluster.run.stop)


def test_a_plain_refusal_is_not_tried_again(cluster):
    cluster.behaves(":", REFUSED)

    done = cluster.submit()

    assert done.returncode == submit_job.REFUSED
    assert "Invalid account" in done.stderr
    assert cluster.tries == 1
    assert not os.listdir(cluster.run.answers)  # an answer leaves nothing behind


def intend(cluster: Cluster, mark: str) -> None:
    """What is left of a submission that was killed before its answer could be written."""
    find = [str(cluster.folder / "find")]
    files.append_line(cluster.run.submissions, {"submission": mark, "time": 1.0, "find": find})
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
    assert all("not known yet whether the job was submitted" in done.stderr for done in uncertain)
    assert (later.returncode, later.stdout) == (0, "41\n")
    assert (cluster.tries, killed.tries) == (1, 0)


def test_a_submission_that_was_killed_is_taken_up_when_its_job_waits(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    intend(cluster, "abc")

    done = cluster.submit("--resume")

    assert (done.returncode, done.stdout) == (0, "17\n")
    assert cluster.tries == 0
    recorded = [json.loads(line) for line in Path(cluster.run.submissions).read_text().splitlines()]
    assert recorded[-1]["submission"] == "abc"
    assert recorded[-1]["said"] == "17\n"


def test_more_jobs_are_submitted_when_the_job_of_a_killed_submission_ran_already(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    intend(cluster, "abc")
    Path(cluster.run.job(1)).mkdir(parents=True)
    jobs.write_begun(cluster.run, jobs.Begun(1, "17_1", "h", "b", 1, None, 1.0))

    done = cluster.submit("--resume")

    assert (done.returncode, done.stdout) == (0, "41\n")
    assert cluster.tries == 1


# The process that submits, and the one that waits for it.
KILLED = "kill -9 $(cut -d' ' -f4 /proc/$PPID/stat) $PPID; sleep 1"


@pytest.mark.parametrize("taken", [TAKEN, ":"], ids=["taken", "not taken"])
def test_a_submission_that_is_killed_before_its_record_is_never_made_twice(cluster, taken):
    cluster.behaves(taken, KILLED)

    first = cluster.submit("--once", "--after", "40", "--mark", "m")
    minutes_ago(cluster)
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
    files.append_line(cluster.run.submissions, {"submission": "m", **us})

    words = cluster.words("--mark", "m")
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as second:
        time.sleep(1.5)  # time to begin; it may be sure of nothing as long as we are at it
        answer = {"submission": "m", "exit_code": 0, "said": "17\n", "complained": ""}
        files.append_line(cluster.run.submissions, answer)
        told = second.communicate()[0]
    later = cluster.submit("--mark", "m")

    assert (told, later.stdout) == ("17\n", "17\n")
    assert cluster.tries == 0


SLOW = "sleep 4"  # a scheduler that takes its time


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def kill_ours(process):
    """The process that waits and the one that submits, but not the scheduler's own command."""
    for pid in (process.pid, *descendants(process.pid)[:1]):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def test_a_command_whose_starters_were_killed_is_waited_for_and_its_answer_found(cluster):
    cluster.behaves(SLOW, TAKEN + "\n" + ANSWERED)
    cluster.script("find", "#!/bin/sh\n")  # the queue never shows it
    first = subprocess.Popen(cluster.words("--since", "", "--mark", "m"))
    wait_for(lambda: cluster.tries)
    kill_ours(first)

    told = waiting(cluster.run)
    second = cluster.submit("--resume", "--since", "m")

    assert told["state"] == "under way"
    assert (second.returncode, second.stdout) == (0, "41\n")
    assert cluster.tries == 1


def test_of_two_that_submit_at_once_one_does(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    words = [cluster.words("--resume", "--since", "", "--mark", mark) for mark in "abcdefgh"]

    begun = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in words]
    said = [process.communicate()[0] for process in begun]

    assert cluster.tries == 1
    assert {process.returncode for process in begun} <= {0, OTHERS}
    assert "41\n" in said


def stage(cluster, end: str) -> list[str]:
    for name in ("run.json", "job-more.sh"):
        Path(cluster.run.path, f"{name}.{end}.partial").write_text(f"of {end}")
    return ["--resume", "--since", "", "--mark", end, "--put", f".{end}.partial"]


def names(cluster) -> list[str]:
    return sorted(path.name for path in Path(cluster.run.path).glob("*.*"))


def test_of_two_that_resume_at_once_the_plan_is_that_of_who_submits(cluster):
    Path(cluster.run.plan).write_text("of old")
    cluster.behaves("cat {folder}/run/run.json > {folder}/seen; sleep 0.5\n" + TAKEN, ANSWERED)

    begun = [subprocess.Popen(cluster.words(*stage(cluster, end))) for end in "abcd"]
    for process in begun:
        process.wait()

    seen = (cluster.folder / "seen").read_text()
    assert seen != "of old"
    assert Path(cluster.run.plan).read_text() == seen
    assert Path(cluster.run.path, "job-more.sh").read_text() == seen
    assert names(cluster) == ["job-more.sh", "run.json", "submissions.jsonl"]


def test_the_plan_of_a_submission_that_is_refused_is_not_the_run_s(cluster):
    Path(cluster.run.plan).write_text("of old")
    cluster.behaves("", REFUSED)

    assert cluster.submit(*stage(cluster, "a")).returncode == submit_job.REFUSED

    assert Path(cluster.run.plan).read_text() == "of old"
    assert names(cluster) == ["run.json", "submissions.jsonl"]


def test_a_resume_that_is_refused_leaves_the_run_as_it_was(cluster):
    """What its last job could not keep is still missing, and who cancelled it has cancelled it."""
    left = {"how": "results missing", "reason": "no room", "missing": ["model.pt"]}
    Path(cluster.run.job(1)).mkdir(parents=True)
    files.write_json(cluster.run.ended(1), left)
    Path(cluster.run.carried(0)).rename(cluster.run.carried(1))
    files.write_json(cluster.run.stop, {"reason": "cancelled by its user"})
    cluster.behaves(":", REFUSED)

    refused = cluster.submit("--resume", "--since", "")

    assert refused.returncode == submit_job.REFUSED
    assert jobs.not_kept(cluster.run, cluster.run.output(1)) == ["model.pt"]
    assert files.read_json(cluster.run.stop) == {"reason": "cancelled by its user"}
    cluster.behaves(TAKEN, ANSWERED)
    assert cluster.submit("--resume").returncode == 0
    assert jobs.not_kept(cluster.run, cluster.run.output(1)) == []
    assert not Path(cluster.run.stop).exists()


def test_a_run_that_went_on_elsewhere_is_not_resumed(cluster):
    cluster.behaves(TAKEN, ANSWERED)
    Path(cluster.run.moved).write_text("{}")

    assert cluster.submit("--resume", "--since", "").returncode == OTHERS
    assert cluster.tries == 0


def test_the_same_words_said_again_before_the_first_wrote_anything_submit_once(cluster):
    """The connection broke while the first Python was still starting on a busy login node."""
    cluster.behaves(TAKEN, "sleep 1\n" + ANSWERED)
    words = cluster.words("--since", "", "--mark", "m")

    begun = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    said = [process.communicate()[0] for process in begun]
    later = cluster.submit("--since", "", "--mark", "m")

    assert cluster.tries == 1
    assert set(said) == {"41\n"} == {later.stdout}
    assert {process.returncode for process in begun} == {0}
    assert not os.listdir(cluster.run.answers)


def test_who_died_before_it_wrote_anything_keeps_nobody_waiting_for_ever(cluster, monkeypatch):
    cluster.behaves(TAKEN, ANSWERED)
    monkeypatch.setenv("RABASKA_SUBMIT_SECONDS", "0.5")
    Path(cluster.run.answers).mkdir()
    Path(cluster.run.answers, "m.begun-0").touch()  # and was killed then

    again = cluster.submit("--since", "", "--mark", "m")
    anew = cluster.submit("--since", "")

    assert (again.returncode, anew.returncode) == (submit_job.REFUSED, 0)
    assert anew.stdout == "41\n"
    assert "no job was submitted" in again.stderr
    assert cluster.tries == 1


def test_who_was_overtaken_before_it_began_submits_nothing(cluster):
    """The laptop was killed when it had just asked; `resume` came before the asked one began."""
    cluster.behaves(TAKEN, ANSWERED)
    resumed = cluster.submit("--resume", "--since", "")

    late = cluster.submit("--since", "")
    more = cluster.submit("--resume", "--since", submissions(cluster.run)[0]["submission"])

    assert (resumed.returncode, late.returncode, more.returncode) == (0, OTHERS, 0)
    assert cluster.tries == 2


def test_where_jobs_carry_no_mark_the_one_that_nobody_was_told_is_ours(cluster):
    cluster.behaves('echo "41.hades named" >> {folder}/queue', "echo 41.hades")
    cluster.submit()
    cluster.behaves('echo "42.hades named" >> {folder}/queue', KILLED)
    killed = cluster.submit("--resume")

    found = cluster.submit("--resume")

    assert killed.returncode == -signal.SIGKILL
    assert (found.returncode, found.stdout) == (0, "42.hades\n")
    assert cluster.tries == 2


def test_a_job_that_left_the_queue_is_known_by_the_record_of_its_beginning(cluster):
    cluster.behaves(":", KILLED)
    cluster.submit("--mark", "m")
    Path(cluster.run.job(1)).mkdir(parents=True)
    jobs.write_begun(cluster.run, jobs.Begun(1, "17_1", "h", "b", 1, None, 1.0))

    wait_for(lambda: waiting(cluster.run)["state"] == "found")
    assert submissions(cluster.run)[-1]["said"] == "17\n"
    assert waiting(cluster.run) is None


def test_what_another_login_node_began_is_not_taken_for_lost(cluster):
    elsewhere = {"submission": "m", "host": "login2", "boot": "another", "pid": 1, "started": "1"}
    files.append_line(cluster.run.submissions, {**elsewhere, "time": time.time()})
    young = waiting(cluster.run)["state"]
    files.append_line(cluster.run.submissions, {**elsewhere, "time": time.time() - 3600})

    assert (young, waiting(cluster.run)["state"]) == ("under way", "not taken")


@pytest.mark.parametrize("everything", [False, True], ids=["ours", "everything"])
def test_killed_at_any_moment_a_run_gets_one_job(tmp_path, everything):
    """Our own processes, or those of the scheduler's command too; then somebody resumes it."""

    def outcome(number):
        cluster = Cluster(tmp_path / str(number))
        cluster.behaves("sleep 0.1\n" + TAKEN + "\nsleep 0.1", ANSWERED)
        first = subprocess.Popen(cluster.words("--since", ""), stdout=subprocess.DEVNULL)
        if number:  # else before anything was written down
            wait_for(lambda: os.path.exists(cluster.run.submissions))
        time.sleep(number * 0.025)
        ended = [first.pid, *descendants(first.pid)]
        for pid in ended if everything else ended[:2]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        first.wait()
        last = (submissions(cluster.run) or [{"submission": ""}])[-1]
        if last.get("exit_code") is None:
            if last["submission"]:
                minutes_ago(cluster)
            resumed = cluster.submit("--resume", "--since", last["submission"])
            assert (resumed.returncode, resumed.stdout.strip()[:1]) == (0, "4"), resumed
        return len((cluster.folder / "queue").read_text().splitlines())

    with ThreadPoolExecutor(12) as at_once:
        assert list(at_once.map(outcome, range(12))) == [1] * 12


def descendants(pid):
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [each for child in map(int, children) for each in (child, *descendants(child))]


def test_a_job_whose_answer_found_no_room_is_no_refusal(cluster):
    """A quota that ends between the scheduler's answer and the record of it."""
    warns = "; head -c 5000 /dev/zero | tr '\\0' x >&2"
    cluster.behaves(TAKEN, ANSWERED + warns + "; exit 0")
    in_little_room = ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *cluster.words()]

    done = subprocess.run(in_little_room, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, cluster.tries) == (0, "41\n", 1)
    assert waiting(cluster.run)["state"] == "found"  # now there is room to write it down


def test_a_line_that_a_full_disk_cut_short_is_an_error(tmp_path):
    """Where a quota or a disk ends in the middle of a line, write() takes a part of it."""
    path, limit = (
        tmp_path / "lines",
        (
            "import resource, signal, sys; from rabaska.node import files\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))\n"
            "files.append_line(sys.argv[1], {'said': 'x' * 20})\n"
            "files.append_line(sys.argv[1], {'said': 'y' * 20})\n"
        ),
    )
    done = subprocess.run([sys.executable, "-c", limit, path], stderr=subprocess.PIPE, check=False)

    assert done.returncode == 1
    assert b"OSError" in done.stderr
    files.append_line(str(path), {"said": "z"})
    assert [line["said"] for line in files.read_lines(str(path))] == ["x" * 20, "z"]
