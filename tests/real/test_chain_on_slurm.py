"""Chains of jobs on a real Slurm: whatever ends a job, the run goes on, once and in one place."""

import json
import os
import re
import signal
import time

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

LEASE = '\n[environment.variables]\nRABASKA_LEASE_SECONDS = "4"\n'


def slow_steps(steps, pause=0.2):
    words = f"--steps {steps} --pause {pause}"
    return f'"python3 train.py --data {{data}} --output {{output}} --resume {{checkpoint}} {words}"'


def held(voyager):
    """The usual program, which goes on after ten steps when it is let go."""
    words = f"--data {{data}} --output {{output}} --resume {{checkpoint}} --gate {voyager.gate}"
    return f'"python3 train.py {words}"'


def over(told):
    return told["state"] not in ("submitting", "queued", "running", "stopping")


def running_step(voyager, run, at_least, seconds=60):
    """Wait until the program printed that step, and return the job that did."""

    def reached(told):
        return bool(told["jobs"]) and (told["jobs"][-1]["last_step"] or 0) >= at_least

    return voyager.until(reached, run, seconds)["jobs"][-1]


def jobs_file(voyager, run):
    return voyager.lab.path(f"{voyager.store}/runs/{run}/submissions.jsonl").read_text()


def newest_job(voyager, run):
    lines = map(json.loads, jobs_file(voyager, run).splitlines())
    return [line["said"].strip() for line in lines if "said" in line][-1]


def waiting_or_running(voyager):
    words = ["squeue", "--noheader", "--array", "--me", "--format=%i %T"]
    return voyager.lab.run_as_user(words).stdout.split("\n")[:-1]


def events(voyager, run, kind):
    text = voyager.lab.path(f"{voyager.store}/runs/{run}/events.jsonl").read_text()
    return [event for event in map(json.loads, text.splitlines()) if event["event"] == kind]


def steps_in_log(voyager, run):
    return [
        int(step) for step in re.findall(r"^step (\d+)", voyager.types("logs", run).output, re.M)
    ]


def test_five_jobs_of_twenty_minutes_finish_one_run(make_lab, make_voyager):
    voyager = make_voyager(make_lab(warp=120))
    # Jobs of 10 true seconds, of which 2 are for saving.
    jobs = '14\ngrace = "2s"'
    voyager.settings(command=slow_steps(200), walltime='"20m"', jobs=jobs)

    run = voyager.run()
    told = voyager.until(over, run, seconds=240)

    assert told["state"] == "finished"
    assert len(told["jobs"]) >= 5
    assert {job["how"] for job in told["jobs"][:-1]} == {"time limit"}
    assert all((job["steps_redone"] or 0) <= 10 for job in told["jobs"])
    steps = steps_in_log(voyager, run)
    assert set(steps) == set(range(1, 201))
    assert len(events(voyager, run, "claimed")) == len(told["jobs"])
    voyager.lab.wait_until(lambda: not waiting_or_running(voyager))


GOES_ON = """
import os
path = os.path.join(os.environ["RABASKA_OUTPUT"], "checkpoint-1.json")
jobs = [*open(path), "one more\\n"] if os.path.exists(path) else ["the first\\n"]
with open(path, "w") as stream:
    stream.writelines(jobs)
raise SystemExit(0 if len(jobs) == 4 else 85)
"""


def test_a_chain_that_is_too_short_grows_from_inside_its_jobs(voyager):
    voyager.write("train.py", GOES_ON)
    voyager.settings(command='"python3 train.py"', jobs="2\nat_most = 9")

    run = voyager.run()
    told = voyager.until(over, run)

    assert told["state"] == "finished", voyager.types("logs", run).output
    assert [job["how"] for job in told["jobs"]] == ["asked to go on"] * 3 + ["finished"]
    assert told["extended"]["jobs"] == len(events(voyager, run, "extended")) == 2
    # An array of two, and then one job after another.
    assert len(jobs_of(voyager, run)) == 3
    assert len({job["id"] for job in told["jobs"]}) == 4


def test_the_rest_of_the_chain_is_cancelled_when_the_program_finishes_early(voyager):
    voyager.settings(jobs=5)

    run = voyager.run()
    told = voyager.until(over, run)

    assert told["state"] == "finished"
    assert [job["how"] for job in told["jobs"]] == ["finished"]
    voyager.lab.wait_until(lambda: not waiting_or_running(voyager))


def test_a_real_failure_stops_the_chain_at_its_first_job(voyager):
    voyager.settings(command='"python3 train.py --no-such-option"', jobs=5)

    run = voyager.run()
    told = voyager.until(over, run)

    assert told["state"] == "failed"
    assert len(told["jobs"]) == 1
    assert told["jobs"][0]["exit_code"] == 2
    voyager.lab.wait_until(lambda: not waiting_or_running(voyager))


def test_the_next_job_goes_on_when_one_is_cancelled(voyager):
    voyager.settings(command=held(voyager), jobs=3)
    run = voyager.run()
    running_step(voyager, run, at_least=10)

    voyager.lab.run_as_user(["scancel", f"{newest_job(voyager, run)}_1"])
    voyager.let_go()
    told = voyager.until(over, run)

    assert told["state"] == "finished"
    assert [job["how"] for job in told["jobs"]] == ["killed", "finished"]
    assert told["jobs"][1]["first_step"] == 11


def test_a_preempted_job_is_queued_again_and_goes_on(make_lab, make_voyager):
    voyager = make_voyager(make_lab())
    voyager.settings(command=held(voyager), jobs=1)
    voyager.add_settings('\n[cluster.lab]\nqueue = "spare"\n')
    run = voyager.run()
    running_step(voyager, run, at_least=10)

    urgent = voyager.lab.sbatch("#!/bin/bash\nsleep 1\n", "-p", "urgent", "--exclusive")
    voyager.lab.wait_for_state(urgent, "COMPLETED", patience=90)
    voyager.let_go()
    told = voyager.until(over, run, seconds=120)

    assert told["state"] == "finished"
    assert [job["how"] for job in told["jobs"]] == ["killed", "finished"]
    assert {job["id"] for job in told["jobs"]} == {newest_job(voyager, run)}
    assert told["jobs"][1]["first_step"] > 5


def test_a_run_survives_the_crash_of_its_node(make_lab, make_voyager):
    voyager = make_voyager(make_lab())
    voyager.settings(command=held(voyager), jobs=3)
    voyager.add_settings(LEASE)
    run = voyager.run()
    host = running_step(voyager, run, at_least=10)["host"]

    voyager.lab.crash_node(host)
    voyager.let_go()
    told = voyager.until(over, run, seconds=120)

    assert told["state"] == "finished"
    assert len(told["jobs"]) == 2
    assert not voyager.lab.path(f"{voyager.store}/runs/{run}/jobs/001/ended.json").exists()
    assert told["jobs"][1]["host"] != host
    assert told["jobs"][1]["first_step"] > 5


def test_a_node_that_is_cut_off_and_comes_back_writes_nothing_more(make_lab, make_voyager):
    voyager = make_voyager(make_lab())
    voyager.settings(command=held(voyager), jobs=3)
    voyager.add_settings(LEASE)
    run = voyager.run()
    host = running_step(voyager, run, at_least=10)["host"]
    folder = voyager.lab.path(f"{voyager.store}/runs/{run}")

    # The agent hangs, as it does when its storage hangs; its program goes on all the same.
    voyager.lab.cut_network(host)
    voyager.lab.nodes.run(host, ["pkill", "-STOP", "-f", "pyz run"])
    voyager.lab.declare_down(host)
    voyager.until(lambda told: len(told["jobs"]) == 2, run)
    voyager.let_go()
    voyager.lab.restore_network(host)
    voyager.lab.nodes.run(host, ["bash", "-c", "pkill -CONT -f 'pyz run'; true"])
    told = voyager.until(over, run, seconds=120)

    assert told["state"] == "finished"
    # The first said that it was superseded, or was ended before it could say even that.
    assert told["jobs"][0]["how"] in ("superseded", "lost")
    assert told["jobs"][-1]["how"] == "finished"
    assert [path.name for path in (folder / "carried").iterdir()] == ["002"]
    assert json.loads((folder / "output" / "result.json").read_text()) == {"final": 30}
    first = (folder / "logs" / "job-001.log").read_text()
    assert "accuracy" not in first


def test_a_job_that_slurm_gave_up_hands_its_run_over(make_lab, make_voyager):
    voyager = make_voyager(make_lab())
    voyager.settings(command=held(voyager), jobs=3)
    voyager.add_settings(LEASE)
    run = voyager.run()
    host = running_step(voyager, run, at_least=10)["host"]

    # Cut off from the controller, but not from the storage: there it is as alive as ever.
    voyager.lab.cut_network(host)
    voyager.lab.declare_down(host)
    voyager.until(lambda told: len(told["jobs"]) == 2, run)
    voyager.let_go()
    voyager.lab.restore_network(host)
    told = voyager.until(over, run, seconds=120)

    assert told["state"] == "finished"
    assert [job["how"] for job in told["jobs"]] == ["killed", "finished"]
    assert told["jobs"][0]["host"] == host != told["jobs"][1]["host"]


@pytest.mark.parametrize("kill", [False, True], ids=["restarted", "killed"])
def test_the_controller_may_restart_while_a_run_goes_on(make_lab, make_voyager, kill):
    voyager = make_voyager(make_lab())
    voyager.settings(command=slow_steps(60), jobs=2)
    run = voyager.run()
    running_step(voyager, run, at_least=3)
    time.sleep(7)  # a controller saves its state every few seconds

    voyager.lab.restart_controller(kill=kill)
    told = voyager.until(over, run, seconds=90)

    assert told["state"] == "finished"
    assert told["jobs"][-1]["how"] == "finished"


def jobs_of(voyager, run):
    """Every job of that name that Slurm ever took, as it remembers it."""
    words = ["squeue", "--noheader", "--states=all", f"--name={run}", "--format=%F"]
    return set(voyager.lab.run_as_user(words).stdout.split())


def submitted_while(voyager, mishap):
    """Start a run, let `mishap` happen while sbatch waits, and return the run's name."""
    voyager.run()  # so that everything is there already, and submitting comes soon
    process = voyager.start("run", "--on", "lab", "--no-doctor")
    mishap()
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    return output.strip()


def test_a_controller_that_answers_too_late_gets_one_job(make_lab, make_voyager):
    voyager = make_voyager(make_lab())
    controller = voyager.lab.controller

    def freeze():
        controller.freeze()
        time.sleep(12)  # sbatch gives up after 5 s: "Socket timed out on send/recv operation"
        controller.thaw()

    run = submitted_while(voyager, freeze)
    told = voyager.until(over, run, seconds=90)

    assert "Socket timed out" in jobs_file(voyager, run)
    assert told["state"] == "finished"
    assert len(jobs_of(voyager, run)) == 1


def test_a_controller_that_restarts_during_submission_gets_one_job(make_lab, make_voyager):
    voyager = make_voyager(make_lab())

    def restart():
        voyager.lab.stop_controller()
        time.sleep(8)
        voyager.lab.start_controller()

    run = submitted_while(voyager, restart)
    told = voyager.until(over, run, seconds=90)

    assert told["state"] == "finished"
    assert len(jobs_of(voyager, run)) == 1


def test_a_connection_that_is_cut_during_submission_costs_nothing(voyager):
    lab = voyager.lab
    voyager.run()  # so that everything is there already, and submitting comes soon
    lab.controller.freeze()
    try:
        going = voyager.start("run", "--on", "lab")
        lab.wait_until(lambda: submissions_under_way(voyager))
        lab.kill_ssh_connections()
        time.sleep(1)
    finally:
        lab.controller.thaw()
    output, errors = going.communicate(timeout=120)
    run = output.strip()

    assert going.returncode == 0, errors
    assert len(jobs_of(voyager, run)) == 1
    assert voyager.until(over, run)["state"] == "finished"


def killed_while_it_submits(voyager):
    """A run whose command was killed, with all it had started, when sbatch had no answer yet."""
    going = voyager.start("run", "--on", "lab", "--no-doctor", process_group=0)
    voyager.lab.wait_until(lambda: submissions_under_way(voyager))
    os.killpg(going.pid, signal.SIGKILL)
    going.communicate()
    return submissions_under_way(voyager)[0].parent.name


def test_a_run_that_is_killed_while_the_controller_is_silent_is_submitted_once(voyager):
    controller = voyager.lab.controller
    voyager.run()  # so that everything is there already, and submitting comes soon
    controller.freeze()
    try:
        run = killed_while_it_submits(voyager)
        told = voyager.status(run)
        refused = voyager.types("resume", run, code=2)
    finally:
        controller.thaw()
    voyager.until(over, run, seconds=90)

    assert told["state"] == "submitting"
    assert "sbatch has not answered for" in told["reason"]
    assert "is being submitted" in refused.errors
    assert len(jobs_of(voyager, run)) == 1


@pytest.mark.thorough  # it waits as long as a queue may lag behind
def test_a_run_that_is_killed_while_the_controller_is_down_is_submitted_once(
    make_lab, make_voyager
):
    voyager = make_voyager(make_lab())
    voyager.run()
    voyager.lab.stop_controller()
    run = killed_while_it_submits(voyager)
    voyager.until(lambda told: told["state"] == "submitting", run)
    kill_all_that_submits(voyager, run)
    told = voyager.status(run)

    refused = voyager.types("resume", run, code=2)
    voyager.lab.start_controller()
    told_later = voyager.until(lambda told: told["state"] != "submitting", run, seconds=120)
    if told_later["state"] == "interrupted":  # no answer was on its way
        voyager.types("resume", run)
    voyager.until(over, run, seconds=90)

    assert told["state"] == "submitting"
    assert "nothing is submitted twice" in refused.errors
    assert len(jobs_of(voyager, run)) == 1


def kill_all_that_submits(voyager, run):
    """Our process on the login node, and the sbatch that it started."""
    folder = voyager.lab.path(f"{voyager.store}/runs/{run}")
    notes = [jobs_file(voyager, run), *(each.read_text() for each in folder.glob("*/*.json"))]
    pids = {pid for note in notes for pid in re.findall(r'"pid": (\d+)', note)}
    voyager.lab.run_as_user(["kill", "-9", *pids], check=False)


def submissions_under_way(voyager):
    """Runs whose folder says that they are being submitted, and not yet how that ended."""
    records = voyager.lab.path(f"{voyager.store}/runs").glob("*/submissions.jsonl")
    return [path for path in records if len(path.read_text().splitlines()) == 1]


# The first job goes well; its node is bad from then on, and only that one.
BAD_NODE = """
import os
node, output = os.environ["SLURMD_NODENAME"], os.environ["RABASKA_OUTPUT"]
path, bad = os.path.join(output, "checkpoint-1.json"), os.path.join(output, "bad")
print("on", node)
if not os.path.exists(bad):
    with open(path, "w") as stream:
        stream.write("1")
    with open(bad, "w") as stream:
        stream.write(node)
    raise SystemExit(85)
raise SystemExit(3 if open(bad).read() == node else 0)
"""


def test_a_chain_goes_on_elsewhere_when_a_node_turns_bad(voyager):
    voyager.write("train.py", BAD_NODE)
    voyager.settings(command='"python3 train.py"', jobs="4")

    run = voyager.run()
    told = voyager.until(over, run)

    assert told["state"] == "finished", voyager.types("logs", run).output
    hows = [job["how"] for job in told["jobs"]]
    assert hows in (["asked to go on", "crashed", "finished"], ["asked to go on", "finished"])
    if "crashed" in hows:
        logs = voyager.lab.path(f"{voyager.store}/runs/{run}/logs")
        said = "".join(path.read_text() for path in sorted(logs.glob("job-*")))
        assert events(voyager, run, "excluded"), said
        assert told["jobs"][-1]["host"] != told["jobs"][0]["host"]
