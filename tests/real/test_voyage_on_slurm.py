"""The main journey on a real Slurm over a real ssh: run, kill, resume, fetch."""

import json

import pytest

pytestmark = [pytest.mark.real, pytest.mark.slow]


def saved(status):
    return status["checkpoint"] is not None


def test_a_project_is_carried_to_slurm_and_back(voyager):
    run = voyager.run()

    ended = voyager.types("wait", run)

    assert "finished" in ended.output
    assert "last reported: accuracy 0.95, loss 0.0333333" in ended.output
    assert "step 30" in voyager.types("logs", run).output
    folder = voyager.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}
    advised = voyager.types("data", "advise", ".", "--on", "lab", "--json").output
    assert {tier["tier"] for tier in json.loads(advised)["tiers"] if tier["free"]} >= {"store"}


def test_a_banner_and_the_lack_of_rsync_spoil_no_part_of_the_journey(make_lab, make_voyager):
    voyager = make_voyager(make_lab(banner="Welcome!\n{ be nice }", without=("rsync",)))

    run = voyager.run()
    voyager.types("wait", run)

    assert "Welcome" not in voyager.types("logs", run).output
    folder = voyager.types("fetch", run).output.strip()
    with open(f"{folder}/output/result.json") as result:
        assert json.load(result) == {"final": 30}


def test_the_verdict_of_the_program_is_the_exit_code_of_waiting_for_it(voyager):
    voyager.write("train.py", "import sys; print('no luck'); sys.exit(7)")

    said = voyager.types("run", "--on", "lab", "--wait", code=7)

    assert "failed" in said.output
    assert "no luck" in said.output


def test_a_job_cancelled_at_the_scheduler_is_followed_by_the_next(lab, voyager):
    voyager.run("--", "--gate", voyager.gate)
    told = voyager.until(saved)

    lab.run_as_user(["scancel", told["jobs"][0]["id"]])
    voyager.let_go()
    voyager.types("wait")

    after = voyager.status()
    assert after["state"] == "finished"
    assert after["jobs"][0]["how"] == "killed"
    assert after["jobs"][1]["resumed_from"].startswith("output/checkpoint-")


def test_results_are_fetched_while_the_run_goes_on_and_again_after_it(voyager):
    voyager.run("--", "--gate", voyager.gate)
    voyager.until(saved)

    early = json.loads(voyager.types("fetch", "--json").output)
    voyager.let_go()
    voyager.types("wait")
    late = json.loads(voyager.types("fetch", "--json").output)
    nothing = json.loads(voyager.types("fetch", "--json").output)

    assert early["files"] > 0
    assert late["files"] > 0
    assert nothing["files"] == 0


def test_logs_are_followed_to_the_end_of_the_run(voyager):
    voyager.run("--", "--pause", "0.05")

    said = voyager.types("logs", "-f")

    assert "step 1 " in said.output
    assert "accuracy 0.95" in said.output


def test_a_cancelled_run_leaves_the_queue_and_can_go_on(lab, voyager):
    voyager.run("--", "--gate", voyager.gate)
    voyager.until(saved)

    voyager.types("cancel")
    voyager.until(lambda status: status["state"] == "cancelled")
    lab.wait_until(lambda: not lab.shell("squeue --me --noheader").strip())
    voyager.let_go()
    voyager.types("resume", "--jobs", "2")
    voyager.types("wait")

    told = voyager.status()
    assert told["state"] == "finished"
    assert told["jobs"][-1]["resumed_from"].startswith("output/checkpoint-")


def test_a_damaged_copy_is_repaired_and_what_the_site_deleted_is_sent_by_resume(lab, voyager):
    voyager.run("--", "--gate", voyager.gate)
    voyager.until(saved)
    voyager.types("cancel")
    voyager.until(lambda status: status["state"] == "cancelled")
    store = lab.path(voyager.store)
    (shard,) = store.glob("packs/*/shard-00000.tar")

    shard.write_bytes(bytes(shard.stat().st_size))
    damage = voyager.types("data", "verify", "--on", "lab", code=5)
    repaired = voyager.types("data", "verify", "--on", "lab", "--repair")
    whole = voyager.types("data", "verify", "--on", "lab")
    shard.unlink()
    for code in store.glob("code/*.tar"):
        code.unlink()
    voyager.let_go()
    voyager.types("resume")
    voyager.types("wait")

    assert "--on lab --repair" in damage.errors
    assert "repaired on lab" in repaired.errors
    assert "is complete" in whole.errors
    assert voyager.status()["state"] == "finished"


def test_damaged_shards_end_the_job_with_the_repair(lab, voyager):
    voyager.settings(path='"numbers"\nas = "shards"')
    voyager.write("train.py", "from rabaska.training import PackedDataset\nlist(PackedDataset())")
    voyager.types("wait", voyager.run())
    (shard,) = lab.path(voyager.store).glob("packs/*/shard-00000.tar")
    pack = shard.parent.name
    content = bytearray(shard.read_bytes())
    content[512] ^= 1  # in the first file
    shard.write_bytes(content)

    run = voyager.run()
    voyager.types("wait", run, code=None)

    told = voyager.status(run)
    assert told["jobs"][0]["how"] == "damaged data"
    command = f"rabaska data verify {pack} --on lab --repair"
    assert command in " ".join(voyager.types("status", run).output.split())
    voyager.types(*command.split()[1:])
    voyager.types("resume", run)
    assert "finished" in voyager.types("wait", run).output


def test_a_run_that_waits_is_cancelled_before_it_begins(lab, voyager):
    voyager.add_settings('[cluster.lab]\nnative = ["--hold"]\n')
    voyager.run()
    lab.stop_controller()
    try:
        silent = voyager.types("cancel", code=12)
    finally:
        lab.start_controller()

    voyager.types("cancel")

    assert "could not be cancelled" in silent.errors
    assert voyager.status()["state"] == "cancelled"
    assert not lab.shell("squeue --me --noheader").strip()


def test_a_dry_run_prints_plan_and_script_and_leaves_both_computers_as_they_were(lab, voyager):
    before = sorted(voyager.home.rglob("*"))

    said = voyager.types("run", "--on", "lab", "--dry-run")

    assert "#SBATCH --time=0-00:02:00" in said.output
    assert "#SBATCH --array=1-3%1" in said.output
    assert [
        path for path in sorted(voyager.home.rglob("*")) if "checked" not in str(path)
    ] == before
    assert not lab.path(f"{voyager.store}/runs").exists()


def test_a_run_shows_the_script_it_was_submitted_with(voyager):
    run = voyager.run("--walltime", "3m")

    told = json.loads(voyager.types("show", run, "--json").output)

    assert "#SBATCH --time=0-00:03:00" in told["script"]
    assert told["plan"]["command"][:2] == ["python3", "train.py"]
