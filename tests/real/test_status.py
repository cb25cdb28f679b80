"""Status over ssh: one question, whatever happens to the queue, the laptop or its clock."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]

SETTINGS = """
name = "tiny"
command = "sleep 0"

[resources]
walltime = "2m"
"""
HELD = '\n[cluster.lab]\nnative = ["--hold"]\n'


@pytest.fixture
def quick(voyager):
    """A voyager whose program does nothing, for tests about everything around it."""
    voyager.write("rabaska.toml", SETTINGS)
    return voyager


def counted(voyager, tmp_path):
    """The voyager's environment with an `ssh` that notes each call, and the notes."""
    real, notes = shutil.which("ssh"), tmp_path / "calls"
    folder = tmp_path / "bin"
    folder.mkdir()
    wrapper = folder / "ssh"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {notes}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    path = f"{folder}{os.pathsep}{voyager.environment['PATH']}"
    return {**voyager.environment, "PATH": path}, notes


def copies(voyager, run, count):
    """Copies of a run under other names, on the lab and in this computer's index."""
    record = json.loads((voyager.home / "runs" / f"{run}.json").read_text())
    runs = f"{voyager.store}/runs"
    voyager.lab.shell(f"cd {runs} && for n in $(seq {count}); do cp -r {run} copy-$n; done")
    for number in range(1, count + 1):
        name = f"copy-{number}"
        copy = {**record, "name": name, "path": f"{runs}/{name}"}
        (voyager.home / "runs" / f"{name}.json").write_text(json.dumps(copy))


def types(voyager, *words, environment=None, before=()):
    done = subprocess.run(
        [*before, sys.executable, "-m", "rabaska", *words], cwd=voyager.project, text=True,
        env=environment or voyager.environment, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_hundred_runs_are_told_in_one_ssh_call(quick, tmp_path):
    run = quick.run()
    quick.types("wait", run)
    copies(quick, run, 200)
    environment, notes = counted(quick, tmp_path)

    first = json.loads(types(quick, "status", "--all", "--json", environment=environment))
    again = json.loads(types(quick, "status", "--all", "--json", environment=environment))

    assert len(notes.read_text().splitlines()) == 2
    assert len(first) == 201
    assert {each["state"] for each in first} == {"finished"}
    forgetful = [{**each, "now": 0} for each in first]
    assert [{**each, "now": 0} for each in again] == forgetful


def test_the_question_begins_before_the_answer_is_wanted(quick, tmp_path):
    run = quick.run()
    quick.types("wait", run)
    environment, notes = counted(quick, tmp_path)
    types(quick, "status", "--all", environment=environment)

    told = types(quick, "status", "--all", environment=environment)
    quick.connection.close()  # the call that was noted cannot be made any more
    later = types(quick, "status", "--all", environment=environment)

    assert "finished" in told
    assert later.split()[:-2] == told.split()[:-2]  # but for its age, `2 s`
    asked = [call for call in notes.read_text().splitlines() if "begins" in call]
    assert len(asked) == 3


def test_a_note_of_another_run_is_no_answer(quick, tmp_path):
    first = quick.run()
    quick.types("wait", first)
    types(quick, "status")
    second = quick.run()
    quick.types("wait", second)

    told = types(quick, "status")

    assert told.startswith(second)


def test_a_run_told_once_to_be_over_is_told_anew_when_it_goes_on(quick):
    quick.write("rabaska.toml", SETTINGS.replace("sleep 0", "sh -c 'sleep 1; exit 3'"))
    quick.types("run", "--on", "lab", "--wait", code=3)
    failed = quick.status()

    quick.types("resume")
    quick.types("wait", code=3)

    after = quick.status()
    assert (failed["state"], len(failed["jobs"])) == ("failed", 1)
    assert (after["state"], len(after["jobs"])) == ("failed", 2)


def test_a_controller_that_does_not_answer_is_never_taken_for_the_end(make_lab, make_voyager):
    lab = make_lab()
    voyager = make_voyager(lab)
    finished = voyager.run()
    voyager.types("wait", finished)
    running = voyager.run("--", "--pause", "0.3", "--steps", "300")
    voyager.until(lambda status: status["checkpoint"] is not None, running)
    voyager.add_settings('[cluster.lab]\nnative = ["--hold"]\n')
    waiting = voyager.run()

    lab.stop_controller()
    told = {run: voyager.status(run) for run in (finished, running, waiting)}
    lab.start_controller()

    assert told[finished]["state"] == "finished"
    assert told[running]["state"] == "running"
    assert "the queue did not answer" in told[running]["reason"]
    assert told[waiting]["state"] == "unknown"
    assert told[waiting]["reason"] == "the queue did not answer"
    assert any("slurm controller" in problem for problem in told[waiting]["problems"])
    assert voyager.status(waiting)["state"] == "queued"


def test_waiting_outlasts_a_controller_that_is_restarted(make_lab, make_voyager):
    lab = make_lab()
    voyager = make_voyager(lab)
    run = voyager.run("--", "--gate", voyager.gate)
    voyager.until(lambda status: status["checkpoint"] is not None, run)

    waiting = voyager.start("wait", run)
    lab.stop_controller()
    time.sleep(6)
    lab.start_controller()
    voyager.let_go()
    output, errors = waiting.communicate(timeout=120)

    assert waiting.returncode == 0, errors
    assert "finished" in output


def test_waiting_outlasts_a_connection_that_is_cut(lab, voyager):
    run = voyager.run("--", "--gate", voyager.gate)
    voyager.until(lambda status: status["checkpoint"] is not None, run)

    lab.controller.freeze()  # so that its first question is not answered at once
    try:
        waiting = voyager.start("wait", run)
        lab.wait_until(lambda: bool(lab.shell("pgrep -f '[p]yz[^ ]* status' || true")))
        lab.kill_ssh_connections()
    finally:
        lab.controller.thaw()
    voyager.let_go()
    output, errors = waiting.communicate(timeout=120)

    assert waiting.returncode == 0, errors
    assert "finished" in output


def test_a_run_is_found_among_a_thousand_jobs(make_lab, make_voyager):
    lab = make_lab()
    voyager = make_voyager(lab)
    lab.sbatch("#!/bin/bash\nsleep 600", "--array=1-1000", "--hold", "--time=2")
    voyager.add_settings('[cluster.lab]\nnative = ["--hold"]\n')
    run = voyager.run()

    held = voyager.status(run)
    lab.run_as_user(["scontrol", "release", held["job_id"]])
    voyager.types("wait", run)
    other = voyager.run()
    lab.run_as_user(["scancel", voyager.status(other)["job_id"]])

    assert held["state"] == "queued"
    assert voyager.status(run)["state"] == "finished"
    # A thousand others of the same user wait, and none of them is its own.
    assert voyager.status(other)["state"] == "interrupted"


@pytest.mark.parametrize("error", ["+1h", "-1h"])
def test_a_laptop_whose_clock_is_an_hour_off_tells_the_same(voyager, error):
    faketime = shutil.which("faketime")
    assert faketime, "the lab installs faketime for its own clock"
    wrong = (faketime, "-f", error)

    run = types(voyager, "run", "--on", "lab", "--", "--pause", "0.1", before=wrong).strip()
    at_once = json.loads(types(voyager, "status", "--json", before=wrong))
    voyager.until(lambda status: status["checkpoint"] is not None, run)
    shown = types(voyager, "status", before=wrong)
    voyager.types("wait", run)
    ended = json.loads(types(voyager, "status", "--json", before=wrong))

    assert at_once["state"] in ("queued", "running")
    assert abs(at_once["now"] - time.time()) < 300
    assert " min" not in shown
    assert " h" not in shown.replace(" hint", "")
    assert ended["state"] == "finished"


def lose_a_job(lab, voyager):
    """A run whose node crashed, and whose job the controller has forgotten since."""
    voyager.settings(jobs="1")
    voyager.add_settings('[cluster.lab]\nnative = ["--no-requeue"]\n')
    run = voyager.run("--", "--pause", "0.5", "--steps", "300")
    told = voyager.until(lambda status: status["checkpoint"] is not None, run)
    lab.crash_node(told["jobs"][0]["host"])
    lab.declare_down(told["jobs"][0]["host"])
    lab.wait_for_state(told["job_id"], "NODE_FAIL")
    lab.stop_controller()
    for memory in lab.path("/var/spool/slurmctld").glob("job_state*"):
        memory.unlink()
    lab.start_controller()
    assert not lab.job(told["job_id"])
    return run


def test_how_a_lost_job_ended_is_asked_of_the_history(make_lab, make_voyager):
    lab = make_lab(accounting=True)
    voyager = make_voyager(lab)

    run = lose_a_job(lab, voyager)

    told = voyager.until(lambda status: status["state"] == "interrupted", run)
    assert told["reason"] == "the node of its last job failed"
    assert told["jobs"][0]["how"] == "node failed"


def test_a_lost_job_is_never_done_where_there_is_no_history(make_lab, make_voyager):
    lab = make_lab()
    voyager = make_voyager(lab)

    run = lose_a_job(lab, voyager)

    told = voyager.until(lambda status: status["state"] == "interrupted", run)
    assert "left no record" in told["reason"]
    assert told["jobs"][0]["how"] == "lost"


# `rabaska`, dead of kill -9 at the nth command or record it begins, or a moment after that.
KILLED_AT = """
import runpy, signal, sys, threading

left, later = int(sys.argv[1]), float(sys.argv[2])
sys.argv[:3] = ["rabaska"]

def die_in_time(event, _):
    global left
    left -= event in ("subprocess.Popen", "os.posix_spawn", "os.rename")
    if left < 0 and later:
        threading.Timer(later, signal.raise_signal, [signal.SIGKILL]).start()
    elif left < 0:
        signal.raise_signal(signal.SIGKILL)

sys.addaudithook(die_in_time)
runpy.run_module("rabaska", run_name="__main__")
"""


def killed(voyager, moment, later):
    """Whether `run` had such a moment, and died of it."""
    words = [sys.executable, "-c", KILLED_AT, str(moment), str(later), "run", "--on", "lab"]
    done = subprocess.run(
        words, cwd=voyager.project, env=voyager.environment, capture_output=True, check=False
    )
    return done.returncode == -signal.SIGKILL


def test_a_laptop_killed_at_any_moment_of_a_run_leaves_the_truth_behind(lab, quick):
    quick.run()  # everything is there: what is left is what a killed run could spoil

    moments = 0
    while killed(quick, moments, later=0):
        killed(quick, moments, later=0.05)
        moments += 1

    assert moments > 5
    told = settled(quick)
    submitted = [run for run in told if run["job_id"]]
    assert {run["state"] for run in submitted} <= {"finished"}
    assert all("never submitted" in run["reason"] for run in told if not run["job_id"])
    assert folders(lab, quick) <= {run["name"] for run in told}


def settled(voyager, seconds=90):
    """Every run's status, once none of them is queued or running."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        told = json.loads(voyager.types("status", "--all", "--json").output)
        if not {run["state"] for run in told} & {"queued", "running", "stopping", "submitting"}:
            return told
        time.sleep(0.5)
    raise AssertionError(told)


def folders(lab, voyager):
    return {path.name for path in lab.path(f"{voyager.store}/runs").iterdir()}
