"""The main journey, by the front door: pack, run, chain, kill, resume, fetch."""

import json
import os
import re
import signal
import time
from dataclasses import replace

import pytest

import rabaska

pytestmark = pytest.mark.slow


def test_a_project_is_carried_from_start_to_results(user):
    run = user.types("run").output.strip()

    ended = user.types("wait", run)

    assert "finished" in ended.output
    assert "last reported: accuracy 0.95, loss 0.0333333" in ended.output
    folder = user.types("fetch", run).output.strip()
    with open(os.path.join(folder, "output", "result.json")) as result:
        assert json.load(result) == {"final": 30}
    assert "step 30" in user.types("logs", run).output


def test_waiting_gives_the_programs_verdict_as_exit_code(user):
    user.write("train.py", "import sys; print('no luck'); sys.exit(7)")

    said = user.types("run", "--wait", code=7)

    assert "failed" in said.output
    assert "no luck" in said.output


def test_a_run_longer_than_one_job_is_finished_by_a_chain(user):
    words = ["--pause", "0.1", "--steps", "60", "--every", "1"]
    user.types("run", "--wait", "--walltime", "4s", "--jobs", "30", "--", *words)

    told = user.status()

    assert told["state"] == "finished"
    assert len(told["jobs"]) >= 3
    assert {job["how"] for job in told["jobs"][:-1]} == {"time limit"}
    assert all(job["resumed_from"] for job in told["jobs"][1:])


def test_an_absolute_path_that_a_program_saved_is_there_in_the_next_job(user):
    user.settings(command='"python train.py {output}"')
    user.write(
        "train.py",
        """
        import json, os, sys
        state = os.path.join(sys.argv[1], "state.json")
        if not os.path.exists(state):
            best = os.path.join(os.path.realpath(sys.argv[1]), "best.txt")
            with open(best, "w") as stream:
                stream.write("the best weights")
            with open(state, "w") as stream:
                json.dump({"step": 1, "best": best}, stream)
            sys.exit(85)
        with open(state) as stream:
            print(open(json.load(stream)["best"]).read())
        """,
    )

    user.types("run", "--wait")

    assert user.status()["state"] == "finished"
    assert "the best weights" in user.types("logs").output


def test_a_job_killed_outright_costs_only_the_steps_since_the_last_save(user):
    user.types("run", "--jobs", "3", "--", "--gate", str(user.gate))
    told = user.until(lambda status: (status["jobs"] or [{}])[0].get("last_step") == 10)

    os.kill(told["jobs"][0]["pid"], signal.SIGKILL)
    user.gate.touch()
    user.types("wait")

    after = user.status()
    assert after["state"] == "finished"
    assert after["jobs"][0]["how"] in ("lost", "killed")
    assert after["jobs"][1]["steps_redone"] <= 5


def test_a_dry_run_prints_plan_and_script_and_touches_nothing(user):
    before = sorted(user.project.rglob("*"))

    said = user.types("run", "--dry-run", "--walltime", "2h")
    growing = user.types("run", "--dry-run", "--walltime", "2h", "--at-most", "9")

    assert re.search(r"up to 3 of 2 h\s*\n", said.output.replace("120 min", "2 h"))
    assert "and more as needed, 9 at most" in growing.output
    assert "#!/bin/bash" in said.output
    assert sorted(user.project.rglob("*")) == before
    assert not user.home.exists()


def test_words_after_two_dashes_reach_the_program(user):
    user.types("run", "--wait", "--", "--steps", "7")

    assert "step 7 " in user.types("logs").output
    assert "step 8 " not in user.types("logs").output


def test_nothing_is_packed_again_when_nothing_changed(user):
    time.sleep(2.5)  # a file written this very moment may change within one tick of its clock
    first, again = user.types("pack", "--json"), user.types("pack", "--json")

    one, two = json.loads(first.output)[0], json.loads(again.output)[0]
    assert one["identity"] == two["identity"]
    assert (one["reused"], two["reused"]) == (False, True)


def test_shards_are_given_to_the_program_as_they_are(user):
    user.settings(path='"numbers"\nas = "shards"')
    user.write(
        "train.py",
        """
        import os
        from rabaska.training import PackedDataset
        data = PackedDataset(os.environ["RABASKA_DATA"])
        print("samples", len(data), sorted(bytes(data[i][0]) for i in range(len(data))))
        """,
    )
    user.settings(path='"numbers"\nas = "shards"', command='"python train.py"')

    user.types("run", "--wait")

    assert "samples 3 [b'0', b'1', b'2']" in user.types("logs").output
    assert "read in place" in user.types("status").output  # a copy would lie on the same disk


def test_a_cancelled_run_stops_keeps_what_it_saved_and_can_go_on(user):
    user.types("run", "--", "--gate", str(user.gate))
    user.until(lambda status: status["checkpoint"] is not None)

    user.types("cancel")
    user.until(lambda status: status["state"] == "cancelled")
    user.gate.touch()
    user.types("resume", "--jobs", "2")
    user.types("wait")

    told = user.status()
    assert told["state"] == "finished"
    assert told["jobs"][-1]["resumed_from"].startswith("output/checkpoint-")


def test_after_the_runner_is_killed_status_is_true_and_resume_goes_on(user):
    user.types("run", "--", "--gate", str(user.gate))
    told = user.until(lambda status: status["checkpoint"] is not None)
    keeper = _keeper_of(told["jobs"][0]["pid"])

    os.kill(keeper, signal.SIGKILL)

    lost = user.until(lambda status: status["state"] == "interrupted")
    user.gate.touch()
    assert "killed or the computer was restarted" in lost["reason"]
    user.types("resume")
    user.types("wait")
    assert user.status()["state"] == "finished"


def _keeper_of(agent):
    with open(f"/proc/{agent}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


def test_results_are_fetched_while_the_run_goes_on_and_again_after_it(user):
    user.types("run", "--", "--gate", str(user.gate))
    user.until(lambda status: status["checkpoint"] is not None)

    early = json.loads(user.types("fetch", "--json").output)
    user.gate.touch()
    user.types("wait")
    user.until(lambda status: status["jobs"][-1]["ended"])  # DONE is written a moment before
    late = json.loads(user.types("fetch", "--json").output)
    nothing = json.loads(user.types("fetch", "--json").output)

    assert early["files"] > 0
    assert late["files"] > 0
    assert nothing["files"] == 0


def test_jobs_that_wait_do_not_begin_when_the_run_is_finished(user):
    user.types("run", "--jobs", "3", "--wait")
    user.until(lambda status: status["jobs"][-1]["ended"])  # DONE is written a moment before

    folder = json.loads(user.types("fetch", "--json").output)["folder"]

    assert sorted(os.listdir(os.path.join(folder, "run", "logs"))) == [
        "job-001.log", "job-001.times", "scheduler-1_1.out",
    ]  # fmt: skip


def test_logs_can_be_followed_to_the_end_of_the_run(user):
    user.types("run", "--", "--pause", "0.05")

    said = user.types("logs", "-f")

    assert "step 1 " in said.output
    assert "accuracy 0.95" in said.output


def test_a_run_shows_the_plan_and_script_it_was_submitted_with(user):
    user.types("run", "--wait")
    told = json.loads(user.types("show", "--json").output)

    user.settings(command='"python other.py"')

    assert told["plan"]["command"][:2] == ["python", "train.py"]
    assert "train.py" in user.types("show").output
    assert told["script"].startswith("#!/bin/bash")


def test_the_commands_work_from_python_too(user, monkeypatch):
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)

    submitted = rabaska.run(user.project, overrides={"chain.jobs": 2})
    ended = rabaska.wait(submitted.run)
    fetched = rabaska.fetch(submitted.run)

    assert ended.state.value == "finished"
    assert (fetched.folder / "output" / "result.json").is_file()
    assert [run.name for run in rabaska.statuses()] == [submitted.run]
    assert "here" in [cluster.name for cluster in rabaska.clusters()]


def test_what_is_remembered_inside_of_a_project_does_not_travel_with_it(user):
    at_home = replace(user, home=user.project / "remembered")
    at_home.types("pack")

    first, again = at_home.types("run"), at_home.types("run")

    taken, taken_again = (re.search("code: 2 files, .*", said.errors) for said in (first, again))
    assert taken
    assert taken_again
    assert taken_again[0] == taken[0]
