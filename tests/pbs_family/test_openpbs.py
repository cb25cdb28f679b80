"""What OpenPBS alone does: with a link go those that wait for it, and more."""

import os

import pytest
from tests.pbs_family.test_journeys import OVER, to_its_end

if os.environ.get("BATCH_SYSTEM") != "pbs":
    pytest.skip("these are for OpenPBS", allow_module_level=True)


def test_the_chain_grows_again_after_a_waiting_link_was_deleted(cluster, passenger):
    words = ("--every", "1", "--hold", "2", "--steps", "8")
    run = passenger.run("--walltime", "20s", "--links", "4", "--", *words)
    passenger.until(lambda now: now["checkpoint"], run)

    second = passenger.status(run)["job"].split()[1]
    cluster.run_as_user(["qdel", second])
    assert len(cluster.jobs()) == 1
    _, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert [link["how"] for link in told["links"]] == ["time limit", "time limit", "finished"]
    assert told["extended"]["links"] == 2


def test_more_time_than_the_queue_allows_is_refused_before_anything_is_sent(cluster, passenger):
    cluster.tell("set queue workq resources_max.walltime = 01:00:00")
    try:
        foretold = passenger.types("run", "--on", "lab", "--walltime", "2h", code=7)
        refused = passenger.types("run", "--on", "lab", "--walltime", "2h", "--no-doctor", code=7)
    finally:
        cluster.tell("unset queue workq resources_max.walltime")

    assert "the queue allows 01:00:00 and the job asks for 02:00:00" in foretold.errors
    assert "Job violates queue and/or server resource limits" in refused.errors
    assert "pass a limit of the queue" in refused.errors


def test_a_killed_job_was_not_cancelled_and_is_resumed(cluster, passenger):
    run = passenger.run("--links", "1", "--", "--every", "1", "--hold", "1", "--steps", "8")
    told = passenger.until(lambda now: now["checkpoint"], run)

    link = told["links"][0]
    find = ["bash", "-c", "ps -o sid= -p $0", str(link["pid"])]
    cluster.kill(int(cluster.nodes.run(link["host"], find)), link["host"])
    told = passenger.until(lambda now: now["state"] in OVER, run)

    assert told["state"] == "interrupted"
    assert "cancelled" not in told["reason"]
    passenger.types("resume", run)
    passenger.types("wait", run)
    assert passenger.status(run)["state"] == "finished"


def test_growth_waits_for_a_server_that_is_down_when_the_link_ends(cluster, passenger):
    words = ("--every", "1", "--hold", "1", "--steps", "8")
    passenger.settings(links='1\ngrace = "25s"')
    limits = ("--walltime", "60s", "--at-most", "3")
    run = passenger.run(*limits, "--", *words)
    told = passenger.until(lambda now: now["checkpoint"], run)

    cluster.stop_server()
    try:
        log = cluster.path(f"{passenger.store}/runs/{run}/logs/job-{told['links'][0]['job']}.out")
        cluster.wait_until(lambda: "link 1 ended: time limit" in log.read_text(), patience=90)
    finally:
        cluster.start_server()
    _, told = to_its_end(passenger, run)

    assert told["state"] == "finished", told
    assert [link["how"] for link in told["links"]] == ["time limit", "finished"]
