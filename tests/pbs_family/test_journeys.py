"""What users live through on a real Torque or OpenPBS over ssh, from the first run to the last."""

import json

import pytest
from tests.real.test_shell import Terminal
from tests.voyages.slow_to_save import SLOW_TO_SAVE

OVER = ("finished", "failed", "cancelled", "interrupted")


@pytest.fixture(params=["history", "no history"])
def history(request, cluster):
    cluster.keep_history(request.param == "history")
    yield
    cluster.keep_history(True)


def kill(cluster, passenger, run):
    """Kill the agent of the job that runs, on its node."""
    job = passenger.status(run)["jobs"][-1]
    cluster.kill(job["pid"], job["host"])


def to_its_end(passenger, run, seconds=180):
    """All states that `status` told until the run was over, and the last status."""
    states = []
    told = passenger.until(
        lambda now: states.append(now["state"]) or now["state"] in OVER, run, seconds
    )
    return set(states), told


def test_a_chain_of_four_with_one_job_killed_is_finished_and_fetched(cluster, passenger, history):
    words = ("--every", "1", "--hold", "2", "--steps", "12")
    run = passenger.run("--walltime", "24s", "--jobs", "4", "--", *words)
    passenger.until(lambda now: now["checkpoint"], run)

    kill(cluster, passenger, run)
    states, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert states <= {"queued", "running", "finished"}
    assert len(told["jobs"]) >= 3
    assert told["jobs"][0]["how"] == "lost"
    assert told["jobs"][1]["how"] == "time limit"
    folder = passenger.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 12}
    passenger.until(lambda _: not cluster.jobs(), run)


def test_jobs_that_are_not_needed_leave_the_queue(cluster, passenger, history):
    run = passenger.run("--jobs", "5")

    passenger.types("wait", run)

    assert passenger.status(run)["state"] == "finished"
    passenger.until(lambda _: not cluster.jobs(), run)
    assert "could not be cancelled" not in passenger.types("logs", run).output


def test_a_waiting_job_that_is_deleted_does_not_end_the_run(cluster, passenger, history):
    words = ("--every", "1", "--hold", "2", "--steps", "8")
    run = passenger.run("--walltime", "20s", "--jobs", "4", "--at-most", "8", "--", *words)
    told = passenger.until(lambda now: now["checkpoint"], run)

    cluster.run_as_user(["qdel", told["job_id"].split()[1]])
    states, told = to_its_end(passenger, run, 240)

    assert told["state"] == "finished", told
    assert states <= {"queued", "running", "finished"}


def test_a_cancelled_run_saves_and_leaves_the_queue(cluster, passenger, history):
    passenger.write("train.py", SLOW_TO_SAVE)
    passenger.settings(command='"python3 train.py {output}"')
    run = passenger.run()
    passenger.until(lambda now: "ready" in now["tail"], run)

    said = passenger.types("cancel", run)

    told = passenger.until(lambda now: now["state"] == "cancelled", run)
    assert told["checkpoint"]["path"].endswith("checkpoint-0001.json")
    assert [job["how"] for job in told["jobs"]] == ["cancelled"]
    assert "note:" not in said.errors
    passenger.until(lambda _: not cluster.jobs(), run)


def test_a_run_out_of_jobs_is_resumed(passenger):
    words = ["--pause", "0.1", "--steps", "120", "--every", "1"]
    limits = ("--walltime", "14s", "--jobs", "1", "--at-most", "1")
    run = passenger.run(*limits, "--", *words)
    passenger.until(lambda now: now["state"] == "interrupted", run)

    passenger.types("resume", run, "--jobs", "4")
    passenger.types("wait", run)

    assert passenger.status(run)["state"] == "finished"


def test_a_chain_that_is_too_short_grows(passenger):
    words = ("--every", "1", "--hold", "2", "--steps", "6")
    run = passenger.run("--walltime", "20s", "--jobs", "1", "--at-most", "5", "--", *words)

    _, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert len(told["jobs"]) == 3
    assert told["extended"]["jobs"] >= 2


def test_a_server_that_is_down_ends_no_run(cluster, passenger):
    words = ("--every", "1", "--gate", passenger.gate)
    run = passenger.run("--jobs", "2", "--", *words)
    passenger.until(lambda now: now["checkpoint"], run)

    cluster.stop_server()
    try:
        told = passenger.status(run)
    finally:
        cluster.start_server()
    passenger.let_go()
    states, after = to_its_end(passenger, run)

    assert told["state"] in ("running", "unknown"), told
    assert after["state"] == "finished", after
    assert "interrupted" not in states


def test_a_lost_node_costs_a_job_and_not_the_run(cluster, passenger):
    words = ("--every", "1", "--hold", "1", "--steps", "8")
    run = passenger.run("--walltime", "2m", "--jobs", "3", "--", *words)
    told = passenger.until(lambda now: now["checkpoint"], run)
    node = told["jobs"][0]["host"]

    cluster.crash_node(node)
    try:
        cluster.declare_lost(told["job_id"].split()[0])
        _, told = to_its_end(passenger, run, 240)
    finally:
        cluster.reboot_node(node)

    assert told["state"] == "finished", told
    assert told["jobs"][-1]["host"] != node


def test_a_suspended_run_says_so_and_goes_on_when_it_is_resumed(cluster, passenger):
    run = passenger.run("--jobs", "1", "--", "--pause", "0.2", "--steps", "60")
    told = passenger.until(lambda now: now["checkpoint"], run)

    cluster.admin("qsig", "-s", "suspend", told["job_id"])
    passenger.until(lambda now: now["state"] == "suspended", run)
    cluster.admin("qsig", "-s", "resume", told["job_id"])
    states, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert states <= {"suspended", "running", "finished"}
    assert len(told["jobs"]) == 1


def test_a_held_job_says_who_holds_it(cluster, passenger):
    run = passenger.run("--jobs", "2", "--", "--every", "1", "--hold", "1", "--steps", "8")
    told = passenger.until(lambda now: now["checkpoint"], run)
    _, second = told["job_id"].split()

    cluster.run_as_user(["qhold", second])
    assert passenger.status(run)["state"] == "running"
    kill(cluster, passenger, run)
    told = passenger.until(lambda now: now["state"] == "queued", run)

    assert "held by its user" in told["reason"]
    cluster.run_as_user(["qrls", second])
    passenger.types("wait", run)


def test_a_stopped_queue_is_known_before_and_while_a_run_waits_in_it(cluster, passenger):
    cluster.admin("qstop", cluster.queue)
    try:
        foretold = passenger.start("doctor", "--on", "lab").communicate(timeout=120)
        run = passenger.run()
        told = passenger.until(lambda now: "not started" in now["reason"], run)
    finally:
        cluster.admin("qstart", cluster.queue)

    assert "starts no jobs" in foretold[0], foretold
    assert told["state"] == "queued"
    passenger.types("wait", run)


def test_more_time_than_the_queue_allows_is_refused_before_anything_is_sent(passenger):
    foretold = passenger.types("run", "--on", "lab", "--walltime", "2h", code=7)
    refused = passenger.types("run", "--on", "lab", "--walltime", "2h", "--no-doctor", code=7)

    assert "the queue allows 01:00:00 and the job asks for 02:00:00" in foretold.errors
    assert "sent to lab" not in foretold.errors
    assert "qsub said: qsub: " in refused.errors
    assert "walltime" in refused.errors


def test_a_command_runs_beside_the_program(passenger):
    run = passenger.run("--jobs", "1", "--", "--every", "1", "--hold", "1")
    told = passenger.until(lambda now: now["checkpoint"], run)

    ran = passenger.types("exec", run, "--", "sh", "-c", "hostname; exit 3", code=3)

    assert ran.output.split()[-1] == told["jobs"][0]["host"]


def test_a_shell_opens_on_a_node_with_everything_in_place(cluster, passenger):
    there = Terminal(passenger, "shell", "--on", "lab")
    if cluster.scheduler == "pbs":
        there.types(there.sees(r"type: (bash \S+)")[1])

    there.sees(r"to train, type: (.*)\r\n")
    there.types("echo on=$(hostname); ls")
    there.sees(r"on=(node\d)")
    there.sees(r"train\.py")
    there.types("exit")
    if cluster.scheduler == "pbs":
        there.types("exit")

    there.leaves()
    cluster.wait_until(lambda: not cluster.jobs())


def test_a_new_cluster_is_described_with_its_queues_and_planned_with(cluster, passenger):
    config = str(cluster.ssh_config)
    add = ("clusters", "add", "site", "--host", "lab", "--probe")
    said = passenger.types(*add, "--ssh-option=-F", f"--ssh-option={config}")
    profile = (passenger.home / "clusters" / "site.toml").read_text()

    planned = passenger.types("plan", "--on", "site", "--total", "30m", "--gpus", "2").output

    assert f'scheduler = "{cluster.scheduler}"' in profile, said
    assert f'[partitions."{cluster.queue}"]' in profile
    assert "nodes = 2" in profile
    assert "gpus = 2" in profile
    assert "internet = false" in profile  # a job tried it
    assert cluster.queue in planned


def test_a_killed_job_was_not_cancelled_and_is_resumed(cluster, passenger):
    run = passenger.run("--jobs", "1", "--", "--every", "1", "--hold", "1", "--steps", "8")
    told = passenger.until(lambda now: now["checkpoint"], run)

    job = told["jobs"][0]
    find = ["bash", "-c", "ps -o sid= -p $0", str(job["pid"])]
    cluster.kill(int(cluster.nodes.run(job["host"], find)), job["host"])
    told = passenger.until(lambda now: now["state"] in OVER, run)

    assert told["state"] == "interrupted"
    assert "cancelled" not in told["reason"]
    passenger.types("resume", run)
    passenger.types("wait", run)
    assert passenger.status(run)["state"] == "finished"


def test_growth_waits_for_a_server_that_is_down_when_the_job_ends(cluster, passenger):
    words = ("--every", "1", "--hold", "1", "--steps", "8")
    passenger.settings(jobs='1\ngrace = "25s"')
    limits = ("--walltime", "60s", "--at-most", "3")
    run = passenger.run(*limits, "--", *words)
    told = passenger.until(lambda now: now["checkpoint"], run)

    cluster.stop_server()
    try:
        log = cluster.path(
            f"{passenger.store}/runs/{run}/logs/scheduler-{told['jobs'][0]['id']}.out"
        )
        cluster.wait_until(lambda: "job 1 ended: time limit" in log.read_text(), patience=90)
    finally:
        cluster.start_server()
    _, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert [job["how"] for job in told["jobs"]] == ["time limit", "finished"]
