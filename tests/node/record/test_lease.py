"""One holder at a time, on this machine and across machines."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from agents import make_run

from rabaska.node import processes
from rabaska.node.login import create_run
from rabaska.node.record import chain_rule, jobs, lease
from rabaska.node.record.run_folder import RunFolder

TTL = 0.6  # seconds


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return make_run(tmp_path, {})


def never() -> bool:
    return False


def hold_elsewhere(run: RunFolder, **changes: Any) -> int:
    """Make the run look held by an agent of another machine."""
    holding = lease.claim(run, run.holder(), "7", TTL)
    assert holding is not None
    holding.end()
    begun = jobs.read_begun(run, holding.job)
    assert begun is not None
    jobs.write_begun(run, begun._replace(host="node17", boot="another boot", **changes))
    return holding.job


def end_job(run: RunFolder, job: int) -> None:
    jobs.write_ended(run, jobs.Ended(job, "7", chain_rule.LOST, "", None, None, 0.0, None, False))


def test_a_new_run_is_free(run: RunFolder) -> None:
    assert lease.wait_for_turn(run, TTL, never) == lease.LeaseTurn(0, free=True)


def test_a_claim_moves_what_is_carried_and_shows_its_output(run: RunFolder) -> None:
    Path(run.output(0), "result").write_text("so far")

    holding = lease.claim(run, 0, "12_1", TTL)

    assert holding is not None
    holding.end()
    assert run.holder() == 1
    assert not os.path.exists(run.carried(0))
    assert Path(run.output_link, "result").read_text() == "so far"
    assert os.readlink(run.output_link) == "carried/001/output"


def led_to(run: RunFolder) -> RunFolder:
    """The run as `create` makes it."""
    create_run.lead_to_carried(run)
    return run


def test_what_is_carried_keeps_its_path_while_each_job_says_that_it_is_over(
    run: RunFolder,
) -> None:
    led_to(run)
    places = []
    for job in (1, 2, 3):
        holding = lease.claim(run, job - 1, "12", TTL)
        assert holding is not None
        holding.end()
        places.append(run.output(job))
        Path(run.output(job), f"best-{job}.pt").write_text("weights")
        end_job(run, job)

    assert len(set(places)) == 1
    assert sorted(os.listdir(places[0])) == ["best-1.pt", "best-2.pt", "best-3.pt"]
    assert os.listdir(os.path.dirname(run.carried(3))) == ["003"]
    assert lease.claim(run, 1, "13", TTL) is None


def test_the_paths_of_a_holder_that_left_no_word_stop_resolving(run: RunFolder) -> None:
    led_to(run)
    hold_elsewhere(run)
    known = run.output(1)
    Path(known, "best.pt").write_text("weights")

    holding = lease.claim(run, 1, "13", TTL)

    assert holding is not None
    holding.end()
    assert not os.path.exists(known)
    assert Path(run.output(2), "best.pt").read_text() == "weights"
    assert Path(run.output_link, "best.pt").read_text() == "weights"


def test_links_into_a_folder_that_was_renamed_lead_to_its_new_place(run: RunFolder) -> None:
    led_to(run)
    hold_elsewhere(run)
    Path(run.output(1), "step-9.pt").write_text("weights")
    Path(run.output(1), "latest.pt").symlink_to(Path(run.output(1), "step-9.pt"))
    Path(run.output(1), "elsewhere").symlink_to("/etc/hostname")

    hold_elsewhere(run)

    assert Path(run.output(2), "latest.pt").read_text() == "weights"
    assert os.readlink(Path(run.output(2), "elsewhere")) == "/etc/hostname"


def test_a_job_killed_while_it_leads_links_on_hides_no_results_and_breaks_no_link(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a hundred thousand files on NFS that takes minutes."""
    create_run.lead_to_carried(run)
    hold_elsewhere(run)
    Path(run.output(1), "step-9.pt").write_text("state")
    Path(run.output(1), "latest.pt").symlink_to(Path(run.output(1), "step-9.pt"))

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "readlink", killed)
        with pytest.raises(KeyboardInterrupt):
            lease.claim(run, 1, "8", TTL)

    assert Path(run.carried(2), "output", "step-9.pt").read_text() == "state"  # as `fetch` looks
    holding = lease.claim(run, 2, "9", TTL)
    assert holding is not None
    holding.end()
    assert Path(run.output(3), "latest.pt").read_text() == "state"


def test_nothing_is_renamed_after_a_holder_of_which_nothing_is_left(run: RunFolder) -> None:
    led_to(run)
    hold_elsewhere(run)
    known = run.output(1)

    holding = lease.claim(run, 1, "13", TTL, dead=True)

    assert holding is not None
    holding.end()
    assert run.output(2) == known


def test_a_stale_program_that_makes_its_folder_anew_is_not_listened_to(run: RunFolder) -> None:
    led_to(run)
    hold_elsewhere(run)
    known = run.output(1)
    hold_elsewhere(run)
    Path(known).mkdir(parents=True)
    Path(known, "stale.pt").write_text("of the past")

    holding = lease.claim(run, 2, "13", TTL)

    assert holding is not None
    holding.end()
    assert os.listdir(run.output(3)) == []


def test_a_claim_that_was_killed_after_it_moved_the_folder_is_followed_by_another(
    run: RunFolder,
) -> None:
    led_to(run)
    hold_elsewhere(run)
    Path(run.output(1), "best.pt").write_text("weights")
    os.rename(run.carried(1), run.carried(2))
    os.makedirs(run.job(2))
    Path(run.claimed(2)).touch()
    os.rename(run.kept(0), run.kept(2))

    holding = lease.claim(run, 2, "14", TTL)

    assert holding is not None
    holding.end()
    assert Path(run.output(3), "best.pt").read_text() == "weights"


def test_of_many_contenders_exactly_one_claims(run: RunFolder) -> None:
    barrier = threading.Barrier(12)
    won: list[lease.Lease] = []

    def contend() -> None:
        barrier.wait()
        holding = lease.claim(run, 0, "", TTL)
        if holding is not None:
            won.append(holding)

    contenders = [threading.Thread(target=contend) for _ in range(12)]
    for contender in contenders:
        contender.start()
    for contender in contenders:
        contender.join()

    for holding in won:
        holding.end()
    assert [holding.job for holding in won] == [1]


def test_a_living_holder_on_this_machine_is_respected(run: RunFolder) -> None:
    holding = lease.claim(run, 0, "", TTL)
    assert holding is not None

    turn = lease.wait_for_turn(run, TTL, never)

    holding.end()
    assert turn == lease.LeaseTurn(1, free=False)


def test_a_holder_of_this_machine_that_is_gone_is_over_without_waiting(run: RunFolder) -> None:
    claimed = (
        "import os, sys; from rabaska.node.record import lease;"
        "from rabaska.node.record.run_folder import *;"
        "lease.claim(RunFolder(sys.argv[1]), 0, '', 1e6); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", claimed, run.path], check=False)

    turn = lease.wait_for_turn(run, 1e6, never)

    assert turn == lease.LeaseTurn(1, free=True)


def test_a_pid_that_was_given_to_another_process_is_not_the_holder(run: RunFolder) -> None:
    holding = lease.claim(run, 0, "", TTL)
    assert holding is not None
    holding.end()
    begun = jobs.read_begun(run, 1)
    assert begun is not None

    jobs.write_begun(run, begun._replace(started="long before"))

    assert lease.holder_alive(run, 1) is False


def test_a_silent_holder_of_another_machine_is_over_after_one_lease(run: RunFolder) -> None:
    hold_elsewhere(run)
    began = time.monotonic()

    turn = lease.wait_for_turn(run, TTL, never)

    assert turn == lease.LeaseTurn(1, free=True)
    assert time.monotonic() - began >= TTL


def test_a_holder_of_another_machine_that_gives_signs_is_respected(run: RunFolder) -> None:
    hold_elsewhere(run)
    beating = lease.Lease(run, 1, TTL)

    turn = lease.wait_for_turn(run, TTL, never)

    beating.end()
    assert turn == lease.LeaseTurn(1, free=False)


def test_a_holder_that_recorded_its_end_is_over_wherever_it_was(run: RunFolder) -> None:
    hold_elsewhere(run)
    end_job(run, 1)

    assert lease.wait_for_turn(run, 1e6, never) == lease.LeaseTurn(1, free=True)


def test_a_claim_cut_short_before_its_record_is_over_after_one_lease(run: RunFolder) -> None:
    os.rename(run.carried(0), run.carried(1))

    assert lease.wait_for_turn(run, TTL, never) == lease.LeaseTurn(1, free=True)


def test_waiting_ends_when_the_job_is_told_to_end(run: RunFolder) -> None:
    hold_elsewhere(run)

    assert lease.wait_for_turn(run, 1e6, lambda: True) == lease.LeaseTurn(1, free=False)


def test_a_stale_holder_learns_that_it_was_superseded(run: RunFolder) -> None:
    stale = lease.claim(run, 0, "", TTL)
    assert stale is not None

    successor = lease.claim(run, 1, "", TTL)
    stale.renew()

    assert successor is not None
    successor.end()
    stale.end()
    assert stale.superseded
    assert stale.lost() == "another job holds the run now"
    assert successor.lost() == ""


def test_a_stale_program_that_makes_its_folder_anew_is_superseded_all_the_same(
    run: RunFolder,
) -> None:
    stale = lease.claim(run, 0, "", TTL)
    successor = lease.claim(run, 1, "", TTL)
    assert stale is not None
    assert successor is not None

    os.makedirs(run.output(1))
    stale.renew()

    stale.end()
    successor.end()
    assert stale.superseded
    assert run.holder() == 2


def test_a_holder_that_cannot_reach_the_run_gives_it_up(run: RunFolder) -> None:
    holding = lease.claim(run, 0, "", TTL)
    assert holding is not None
    os.rename(run.path, run.path + " unplugged")

    while not holding.lost():
        time.sleep(0.05)

    holding.end()
    assert "could not be reached" in holding.lost()


def test_somebody_asking_to_stop_is_noticed(run: RunFolder) -> None:
    holding = lease.claim(run, 0, "", TTL)
    assert holding is not None

    Path(run.stop).touch()
    holding.renew()

    holding.end()
    assert holding.stop_asked


def test_the_record_names_this_process(run: RunFolder) -> None:
    holding = lease.claim(run, 0, "12_1", TTL)
    assert holding is not None
    holding.end()

    begun = jobs.read_begun(run, 1)

    assert begun is not None
    assert (begun.id, begun.pid) == ("12_1", os.getpid())
    assert begun.started == processes.start_id(os.getpid())
