"""Disks that are full where a run would write: told by name, and nothing is lost by it."""

import json

import pytest
from tests.lab.site import Storage

pytestmark = [pytest.mark.real, pytest.mark.slow]


def over(told):
    return told["state"] not in ("queued", "running", "stopping")


def test_a_full_disk_of_a_node_is_named_and_the_run_goes_on_when_it_is_free(make_lab, make_voyager):
    lab = make_lab()
    voyager = make_voyager(lab)
    lab.fill_local_disk("sdumont3170")

    run = voyager.run()
    told = voyager.until(over, run)
    lab.free_local_disk("sdumont3170")
    voyager.types("resume")
    voyager.types("wait")

    assert told["state"] == "failed"
    assert "No space left on device on sdumont3170: '/lscratch/" in told["reason"]
    assert "the node's own disk is full: /lscratch" in told["reason"]
    assert "on sdumont3170 has 537 MB in all" in told["reason"]
    assert told["hint"].startswith(f"`rabaska resume {run}` tries again")
    lab.wait_until(lambda: not lab.shell("squeue --me --noheader").strip())


def test_storage_that_fills_up_while_a_run_goes_on_costs_no_checkpoint(make_lab, make_voyager):
    lab = make_lab(shared=Storage(size="32m"))
    voyager = make_voyager(lab)
    run = voyager.run("--", "--gate", voyager.gate)
    voyager.until(lambda told: told["checkpoint"] is not None, run)

    lab.fill_shared()
    voyager.let_go()
    full = voyager.until(over, run)
    lab.free("/scratch")
    voyager.types("resume")
    voyager.types("wait")

    assert full["state"] == "interrupted"
    assert full["checkpoint"]["path"].startswith("output/checkpoint-")
    # Jobs that could not have written how they ended did not claim the run either.
    assert [job["how"] for job in full["jobs"]] == ["disk full"]
    assert any("Free some space" in fix for _, fix in full["explanations"])
    after = voyager.status(run)
    assert after["state"] == "finished"
    assert after["jobs"][-1]["resumed_from"] == full["checkpoint"]["path"]


def test_a_full_home_is_in_nobodys_way_when_the_store_is_elsewhere(make_lab, make_voyager):
    lab = make_lab(home=Storage(size="16m"))
    voyager = make_voyager(lab)
    lab.fill_home()

    run = voyager.run()
    voyager.types("wait", run)

    folder = voyager.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}
