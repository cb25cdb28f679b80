"""What OpenPBS alone does: with a job go those that wait for it, and more."""

import os

import pytest
from tests.pbs_family.test_journeys import to_its_end

if os.environ.get("BATCH_SYSTEM") != "pbs":
    pytest.skip("these are for OpenPBS", allow_module_level=True)


def test_the_chain_grows_again_after_a_waiting_job_was_deleted(cluster, passenger):
    words = ("--every", "1", "--hold", "2", "--steps", "8")
    # Long enough that the first job still runs when the second is deleted, on a busy machine too.
    run = passenger.run("--walltime", "45s", "--jobs", "4", "--", *words)
    told = passenger.until(lambda now: now["checkpoint"], run)

    cluster.run_as_user(["qdel", told["job_id"].split()[1]])
    cluster.wait_until(lambda: len(cluster.jobs()) == 1)
    _, told = to_its_end(passenger, run, 300)

    assert told["state"] == "finished", told
    assert [job["how"] for job in told["jobs"]] == ["time limit", "time limit", "finished"]
    assert told["extended"]["jobs"] == 2


def test_a_refusal_for_a_limit_is_explained(passenger):
    refused = passenger.types("run", "--on", "lab", "--walltime", "2h", "--no-doctor", code=7)

    assert "Job violates queue and/or server resource limits" in refused.errors
    assert "exceed a limit of the queue" in refused.errors
