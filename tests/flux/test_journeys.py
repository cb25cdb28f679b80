"""What users live through on a real Flux, from the first run to the last."""

import json
import subprocess

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def show(user, run):
    """All that is known of a run, for whoever reads why a test failed."""
    logs = user.types("logs", run, code=None)
    return f"{json.dumps(user.status(run), indent=1)}\n{logs.output}\n{user.flux('jobs', '-a')}"


OVER = ("finished", "failed", "cancelled", "interrupted")


def test_a_chain_of_two_with_one_job_killed_is_finished(user):
    run = user.run("--jobs", "2", "--", "--every", "1", "--pause", "1", "--steps", "12")
    told = user.until(lambda now: now["checkpoint"], run, 120)
    assert len(told["job_id"].split()) == 2

    user.flux("job", "kill", "--signal=KILL", told["job_id"].split()[0])
    told = user.until(lambda now: now["state"] in OVER, run, 240)

    assert told["state"] == "finished", show(user, run)
    assert [job["id"] for job in told["jobs"]] == told["job_id"].split()
    folder = user.types("fetch", run).output.strip()
    read = [*user.words, "cat", f"{folder}/output/result.json"]
    assert json.loads(subprocess.check_output(read)) == {"final": 12}
    user.until(lambda _: not user.unfinished(), run, 60)


def test_a_job_that_meets_its_limit_saves_and_the_chain_grows_by_itself(user):
    words = ("--every", "1", "--hold", "2", "--steps", "3")
    run = user.run("--walltime", "25s", "--jobs", "1", "--at-most", "3", "--", *words)

    told = user.until(lambda now: now["state"] in OVER, run, 400)

    assert told["state"] == "finished", show(user, run)
    assert told["jobs"][0]["how"] == "time limit"
    assert told["extended"]["jobs"] >= 1


def test_a_cancelled_run_leaves_the_queue(user):
    run = user.run("--jobs", "2", "--", "--every", "1", "--hold", "2", "--steps", "90")
    user.until(lambda now: now["checkpoint"], run, 120)
    assert user.status(run)["state"] == "running"

    user.types("cancel", run)

    told = user.until(lambda now: now["state"] in OVER, run, 120)
    assert told["state"] == "cancelled", told
    assert [job["how"] for job in told["jobs"]] == ["cancelled"]
    user.until(lambda _: not user.unfinished(), run, 60)


def test_a_queue_that_is_closed_refuses_in_the_schedulers_words(user):
    user.flux("queue", "disable", "--message=closed for today")
    try:
        said = user.types("run", "--on", "lab", "--no-doctor", code=7)
    finally:
        user.flux("queue", "enable")

    assert "closed for today" in said.errors
