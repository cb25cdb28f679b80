"""One job of a run, and chains of them, with real agents and real programs."""

import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agents, code_of, make_run

from rabaska.node import files, processes
from rabaska.node.login.run_report import report
from rabaska.node.record import chain_rule, jobs, plan
from rabaska.packing.make_pack import PackOptions, pack

# Counts to TOTAL, saving after each step as a student would, and continues where it stopped.
COUNTER = """
import os, sys, time
folder, total, pause = os.environ["RABASKA_CHECKPOINTS"], int(os.environ["TOTAL"]), 0.05
step = 0
if "RABASKA_CHECKPOINT" in os.environ:
    step = int(open(os.environ["RABASKA_CHECKPOINT"]).read())
while step < total:
    step += 1
    with open(os.path.join(folder, "step-%04d.txt" % step), "w") as stream:
        stream.write(str(step))
    print("step", step, flush=True)
    time.sleep(pause)
with open(os.path.join(os.environ["RABASKA_OUTPUT"], "result"), "w") as stream:
    stream.write(str(step))
"""

# Notes when it starts and, with a lock that the kernel frees, whether another program runs.
JEALOUS = (
    """
import fcntl, os, sys, time
lock = open(os.environ["LOCK"], "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(os.environ["LOCK"] + ".violated", "w").close()
"""
    + COUNTER
)


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    limit = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def test_a_program_that_ends_well_finishes_the_run(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "3"})

    code, said = agents.job()

    assert code == 0
    assert "job 1 of digits-0 on " in said
    assert agents.ended(1).how == chain_rule.FINISHED
    assert agents.ended(1).progressed
    assert Path(agents.run.done).exists()
    assert Path(agents.run.output_link, "result").read_text() == "3"


def test_who_failed_in_an_earlier_attempt_at_a_job_is_not_blamed_again(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "3"})
    Path(agents.run.job(1)).mkdir(parents=True)
    files.append_line(agents.run.failures(1), {"host": "n1", "code": 9, "rank": 3})

    agents.job()

    assert agents.ended(1).how == chain_rule.FINISHED


def test_after_the_run_is_done_later_jobs_do_nothing(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "1"})
    agents.job()

    code, said = agents.job()

    assert code == 0
    assert "nothing left to do" in said
    assert agents.run.jobs() == [1]


def test_a_chain_goes_on_past_the_time_limit_from_the_newest_checkpoint(agents_for: Any) -> None:
    agents = agents_for(
        COUNTER, variables={"TOTAL": "50"}, walltime=2.5, grace=1.0, resumes=plan.VARIABLE
    )

    agents.job()
    code, said = agents.job()
    while not Path(agents.run.done).exists():
        agents.job()

    assert agents.ended(1).how == chain_rule.TIME_LIMIT
    assert code == 0
    assert "continuing from checkpoints/step-" in said
    steps = [line for job in agents.run.jobs() for line in agents.log(job).splitlines()]
    assert steps == [f"step {number}" for number in range(1, 51)]


def test_a_program_that_crashes_at_once_costs_one_job(agents_for: Any) -> None:
    agents = agents_for("raise SystemExit(7)")

    code, said = agents.job()
    second = agents.job()

    assert code == 7
    assert agents.ended(1).how == chain_rule.CRASHED
    assert "exit code 7" in said
    assert second[0] == 0
    assert "nothing left to do" in second[1]
    assert agents.run.jobs() == [1]
    assert len(agents.events("gave up")) == 1
    assert "exit code 7" in agents.events("gave up")[0]["reason"]


def test_a_program_that_never_saves_is_not_started_again_after_the_limit(agents_for: Any) -> None:
    agents = agents_for("import time; time.sleep(60)", walltime=1.5, grace=0.8)

    code, _ = agents.job()
    _, second = agents.job()

    assert code == 0
    assert agents.ended(1).how == chain_rule.TIME_LIMIT
    assert "nothing was saved" in second
    assert "more often" in agents.events("gave up")[0]["hint"]


def test_a_program_that_ignores_the_signal_is_killed_before_the_limit(agents_for: Any) -> None:
    agents = agents_for(
        """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: print("no", flush=True))
        while True: time.sleep(1)
        """,
        walltime=2.5,
        grace=1.5,
    )

    agents.job()

    assert agents.log(1) == "no\n"
    assert agents.ended(1).how == chain_rule.TIME_LIMIT
    assert agents.ended(1).signal == signal.SIGKILL


def test_the_program_is_asked_by_the_signal_of_the_plan(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, signal, sys, time
        def save(*_):
            open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "a.txt"), "w").write("1")
            print("saved", flush=True)
            sys.exit(0)
        signal.signal(signal.SIGUSR2, save)
        while True: time.sleep(0.1)
        """,
        walltime=3.0,
        grace=1.5,
        signal="USR2",
    )

    agents.job()

    assert agents.log(1) == "saved\n"
    assert agents.ended(1).how == chain_rule.TIME_LIMIT
    assert agents.ended(1).progressed


def test_ten_megabytes_without_a_newline_reach_the_log_unchanged(agents_for: Any) -> None:
    agents = agents_for("import sys; sys.stdout.write('x' * 10_000_000)")

    code, said = agents.job()

    assert code == 0
    assert os.path.getsize(agents.run.log(1)) == 10_000_000
    assert len(said) < 1000


def test_processes_left_behind_are_ended_even_after_a_double_fork(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, time
        path = os.path.join(os.environ["RABASKA_OUTPUT"], "pid")
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open(path, "w").write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        while not os.path.exists(path) or not open(path).read(): time.sleep(0.01)
        """
    )

    agents.job()

    pid = int(Path(agents.run.output_link, "pid").read_text())
    assert agents.ended(1).how == chain_rule.FINISHED
    assert processes.start_id(pid) is None
    assert agents.events("ended stragglers")[0]["count"] == 1


NOTHING_DONE = {
    "it says why": ("echo 'no two GPUs. Exiting.'", "its last line was: no two GPUs. Exiting."),
    "it says nothing": ("true", "it printed nothing"),
    "it counts": ("echo 'epoch 1 loss 2'; echo 'epoch 2 loss 1'", ""),
    "it writes": ("echo done; echo 1 > $RABASKA_OUTPUT/result.txt", ""),
    "it fails": ("echo no; exit 3", ""),
}


@pytest.mark.parametrize("name", NOTHING_DONE)
def test_a_program_that_finished_and_did_nothing_is_told(agents_for: Any, name: str) -> None:
    script, told = NOTHING_DONE[name]
    agents = agents_for("", command=["sh", "-c", script])

    agents.job()

    said = f"finished without a step, a checkpoint or a file; {told}"
    assert report(agents.run.path)["problems"] == ([said] if told else [])


@pytest.mark.parametrize(("code", "told"), [(0, 1), (3, 0)])
def test_a_training_that_was_left_in_the_background_is_told_where_the_program_finished(
    agents_for: Any, code: int, told: int
) -> None:
    script = f"sleep 600 & exit {code}"
    agents = agents_for("", command=["sh", "-c", script])

    agents.job()

    assert ("end the script with `wait`" in agents.log(1)) is bool(told)
    assert report(agents.run.path)["left_running"] == told


@pytest.mark.parametrize("name", ["failures.jsonl", "reserve"])
def test_a_record_that_cannot_be_read_costs_neither_the_results_nor_the_true_end(
    agents_for: Any, name: str
) -> None:
    agents = agents_for(
        """
        import os
        open("result.txt", "w").write("precious")
        record = os.environ["RECORD"]
        if os.path.exists(record): os.unlink(record)
        os.mkdir(record)
        """
    )

    code, said = agents.job(RECORD=os.path.join(agents.run.job(1), name))

    assert (code, agents.ended(1).how) == (0, chain_rule.FINISHED)
    assert Path(agents.run.output_link, "result.txt").read_text() == "precious"
    assert "a bug" not in said


def test_a_truncated_checkpoint_is_set_aside_and_the_one_before_it_used(agents_for: Any) -> None:
    agents = agents_for(
        "import os; print(os.environ['RABASKA_CHECKPOINT'])", patterns=["*.npz"], walltime=60
    )
    numpy = pytest.importorskip("numpy")
    folder = Path(agents.run.checkpoints(0))
    numpy.savez(folder / "step-1.npz", weights=numpy.arange(1000))
    numpy.savez(folder / "step-2.npz", weights=numpy.arange(1000))
    os.utime(folder / "step-1.npz", (1, 1))
    os.truncate(folder / "step-2.npz", 3000)

    _, said = agents.job()

    assert agents.log(1).strip().endswith("step-1.npz")
    assert "step-2.npz is damaged" in said
    assert agents.events("checkpoint damaged")[0]["path"] == "checkpoints/step-2.npz"
    assert Path(agents.run.checkpoints(1), "step-2.npz.damaged").exists()


@pytest.fixture
def program_of_ours(zipapp: Path) -> bytes:
    """Read before the test becomes an ordinary user."""
    return zipapp.read_bytes()


@pytest.fixture
def ordinary_agents(program_of_ours: bytes, ordinary_folder: Path) -> Agents:
    """Agents of an ordinary user, whom a folder can refuse; with two checkpoints."""
    zipapp = ordinary_folder / "rabaska.pyz"
    zipapp.write_bytes(program_of_ours)
    told = "import os; print('began with', os.environ.get('RABASKA_CHECKPOINT'))"
    python = "/usr/bin/python3" if os.getuid() == 0 else sys.executable  # root's may be closed
    run = make_run(
        ordinary_folder / "store",
        {"train.py": told},
        command=[python, "train.py"],
        patterns=["*.txt"],
    )
    for number, name in enumerate(["old/epoch-1.txt", "new/epoch-2.txt"]):
        path = Path(run.output(0), name)
        path.parent.mkdir()
        path.write_text("state")
        os.utime(path, (100 * number, 100 * number))
    return Agents(zipapp, run, ordinary_folder / "local", python)


@pytest.mark.parametrize("locked", ["new", "new/epoch-2.txt"])
def test_a_checkpoint_that_cannot_be_read_ends_the_job_before_it_starts_from_an_older_one(
    ordinary_agents: Agents, locked: str
) -> None:
    agents = ordinary_agents
    Path(agents.run.output(0), locked).chmod(0)

    code, said = agents.job(RABASKA_READABLE_SECONDS="0.1")
    ended = agents.ended(1)
    Path(agents.run.output(1), locked).chmod(0o700)

    assert (code, ended.how) == (1, chain_rule.STAGING_FAILED)
    assert f"output/{locked}" in ended.reason
    assert "Permission denied (EACCES)" in ended.reason
    assert not ended.progressed
    assert "damaged" not in said
    assert not Path(agents.run.log(1)).exists()


def test_a_checkpoint_that_cannot_be_read_for_a_moment_is_waited_for(
    ordinary_agents: Agents,
) -> None:
    agents = ordinary_agents
    Path(agents.run.output(0), "new").chmod(0)

    agent = agents.start(RABASKA_READABLE_SECONDS="50")
    assert agent.stdout is not None
    assert "output/new" in agent.stdout.readline()
    Path(agents.run.output(1), "new").chmod(0o700)
    said, _ = agent.communicate(timeout=60)

    begun = jobs.read_begun(agents.run, 1)
    assert begun is not None
    assert begun.checkpoint_seen is not None, said
    assert begun.checkpoint_seen["path"] == "output/new/epoch-2.txt"


def purged(agents: Agents) -> None:
    """What a site does to files of a scratch disk while a run waits."""
    for path in Path(agents.run.checkpoints(1)).iterdir():
        path.unlink()


def emptied(agents: Agents) -> None:
    """What a file server may leave of files after a crash."""
    for path in Path(agents.run.checkpoints(1)).iterdir():
        path.write_bytes(b"")


@pytest.mark.parametrize("accident", [purged, emptied])
def test_a_run_whose_checkpoints_are_all_lost_does_not_start_over_by_itself(
    agents_for: Any, accident: Callable[[Agents], None]
) -> None:
    agents = agents_for(
        COUNTER, variables={"TOTAL": "40"}, walltime=2.5, grace=1.0, resumes=plan.VARIABLE
    )
    agents.job()
    left = (agents.ended(1).checkpoint or {})["path"]
    accident(agents)

    code, _ = agents.job()
    agents.job()
    agents.job()
    again, said = agents.job()

    assert code == 1
    assert agents.ended(2).how == chain_rule.STAGING_FAILED
    assert left in agents.ended(2).reason
    assert "rabaska resume" in agents.ended(2).remedy
    assert agents.run.jobs() == [1, 2, 3, 4]
    told = [path.read_text() for path in sorted(Path(agents.run.logs).iterdir())[1:]]
    assert not any("step 1" in text for text in told)
    assert "nothing left to do" in said
    assert again == 0

    intention = {"submission": "m", "resume": True, "after_job": 4}
    files.append_line(agents.run.submissions, intention)
    agents.job()
    assert agents.log(5).startswith("step 1\n")


def test_a_program_that_removes_its_own_checkpoints_begins_its_next_part(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, sys
        folder = os.environ["RABASKA_CHECKPOINTS"]
        if "RABASKA_CHECKPOINT" in os.environ:
            os.unlink(os.environ["RABASKA_CHECKPOINT"])
        elif not os.path.exists(os.path.join(folder, "second")):
            open(os.path.join(folder, "step-1.txt"), "w").write("1")
            open(os.path.join(folder, "second"), "w").close()
        else:
            sys.exit(0)
        sys.exit(85)
        """,
        patterns=["step-*.txt"],
    )

    for _ in range(3):
        agents.job()

    assert Path(agents.run.done).exists()


def test_a_job_that_only_wrote_another_slot_again_has_progressed(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, sys
        job = int(os.environ["RABASKA_JOB"])
        print("given", os.path.basename(os.environ.get("RABASKA_CHECKPOINT", "nothing")))
        for number in ([0, 1], [0], [])[job - 1]:
            path = os.path.join(os.environ["RABASKA_OUTPUT"], "ckpt_{}.txt".format(number))
            open(path, "w").write("job {}".format(job))
        sys.exit(85 if job < 3 else 0)
        """
    )

    for _ in range(3):
        agents.job()

    assert [agents.ended(job).progressed for job in (1, 2, 3)] == [True, True, False]
    assert [agents.log(job).split()[1] for job in (2, 3)] == ["ckpt_1.txt", "ckpt_0.txt"]


def test_a_program_is_given_a_checkpoint_of_tensorflow_without_its_ending(agents_for: Any) -> None:
    agents = agents_for("import os; print(os.environ['RABASKA_CHECKPOINT'])", patterns=["*.index"])
    folder = Path(agents.run.output(0))
    (folder / "ckpt-5.data-00000-of-00001").write_bytes(b"weights")
    (folder / "ckpt-5.index").write_bytes(bytes.fromhex("57fb808b247547db"))

    agents.job()

    assert agents.log(1).strip().endswith("/output/ckpt-5")


def test_without_time_left_the_program_is_not_started(agents_for: Any) -> None:
    agents = agents_for("print('started')", walltime=1.0, grace=1.0)

    code, said = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.NO_TIME_LEFT
    assert not Path(agents.run.log(1)).exists()
    assert "no time left" in said


def test_staging_that_takes_longer_than_the_time_limit_is_broken_off(agents_for: Any) -> None:
    agents = agents_for("print('started')", walltime=2.0, grace=0.5)
    snapshot = code_of(agents.run)
    os.unlink(snapshot)
    os.mkfifo(snapshot)  # whoever opens it waits for ever

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.NO_TIME_LEFT
    assert "staging" in agents.ended(1).reason


def test_a_full_disk_loses_neither_earlier_results_nor_the_record(
    agents_for: Any, small_disk: Path
) -> None:
    agents = agents_for(
        """
        import os, sys
        if "notes" in os.listdir("."):
            os.unlink("notes")
            open("notes", "w").write("x" * 3_000_000)
        else:
            open("notes", "w").write("first")
        open("ckpt.txt", "w").write("1")
        sys.exit(85)
        """,
        store=small_disk,
    )
    agents.job()

    code, said = agents.job()

    assert code == 0
    assert agents.ended(2).how == chain_rule.ASKED_TO_GO_ON
    assert "could not keep notes: No space left on device" in said
    assert Path(agents.run.output_link, "notes").read_text() == "first"
    assert Path(agents.run.output_link, "ckpt.txt").exists()


def test_a_program_that_fills_the_disk_still_leaves_a_record(
    agents_for: Any, small_disk: Path
) -> None:
    agents = agents_for(
        """
        import os
        with open(os.path.join(os.environ["RABASKA_OUTPUT"], "big"), "wb") as stream:
            while True: stream.write(b"x" * 512); stream.flush()
        """,
        store=small_disk,
    )

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.CRASHED
    assert agents.ended(1).exit_code == 1


def test_a_command_that_is_not_there_is_named(agents_for: Any) -> None:
    agents = agents_for("", command=["no-such-program", "train.py"])

    code, said = agents.job()

    assert code == 127
    assert agents.ended(1).reason == "command not found: no-such-program"
    assert "command not found: no-such-program" in said


@pytest.fixture
def dataset(tmp_path: Path) -> plan.StagedData:
    """A packed dataset of two files, in the store of the runs."""
    (tmp_path / "cats/tabby").mkdir(parents=True)
    for number in range(2):
        (tmp_path / f"cats/tabby/{number}.pgm").write_text(f"picture {number}")
    packed = pack(tmp_path / "cats", tmp_path / "store/packs", PackOptions("cats"))
    return plan.StagedData("cats", packed.identity, "files")


def test_data_is_staged_for_the_program_and_gone_afterwards(
    agents_for: Any, dataset: plan.StagedData
) -> None:
    agents = agents_for(
        "import os, sys; print(sys.argv[1]); print(sorted(os.listdir(sys.argv[1] + '/tabby')))",
        command=[sys.executable, "train.py", "{data}"],
        datasets=[dataset],
    )

    code, _ = agents.job()

    path, names = agents.log(1).splitlines()
    assert code == 0
    assert names == "['0.pgm', '1.pgm']"
    assert path.startswith(str(agents.local))
    assert not os.path.exists(path)


def test_a_damaged_pack_is_named(agents_for: Any, dataset: plan.StagedData, tmp_path: Path) -> None:
    agents = agents_for("", datasets=[dataset])
    shard = next((tmp_path / "store/packs").glob("*/*.tar"))
    os.chmod(shard, 0o644)
    os.truncate(shard, 700)

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.STAGING_FAILED
    assert shard.name in agents.ended(1).reason


READERS = {
    "by PackedDataset": """
        from rabaska.training import PackedDataset
        for sample in PackedDataset():
            pass
        print("all read")
    """,
    "and hides what was raised": """
        import time
        from rabaska.training import PackedDataset
        data = PackedDataset()
        while True:
            try:
                data[0], data[1]
            except Exception:
                time.sleep(0.01)
    """,
    "by itself": """
        import os
        with open(os.path.join(os.environ["RABASKA_DATA"], "shard-00000.tar"), "rb") as shard:
            shard.read()
    """,
}


@pytest.mark.parametrize("reader", READERS)
def test_damaged_shards_end_the_job_with_their_name_and_the_repair(
    agents_for: Any, dataset: plan.StagedData, tmp_path: Path, reader: str
) -> None:
    shards = dataset._replace(mode="shards")
    agents = agents_for(textwrap.dedent(READERS[reader]), datasets=[shards], walltime=20.0)
    shard = next((tmp_path / "store/packs").glob("*/*.tar"))
    with shard.open("r+b") as stream:
        stream.seek(513)
        stream.write(b"!")

    code, said = agents.job()

    ended = agents.ended(1)
    assert code == 1
    assert ended.how == chain_rule.DAMAGED_DATA
    assert dataset.pack in ended.reason
    assert "shard-00000.tar" in ended.reason
    assert f"rabaska data verify {dataset.pack} --repair" in (ended.remedy or "")
    assert "giving up" in said


def test_data_that_is_as_it_was_packed_is_proven_and_nothing_is_said(
    agents_for: Any, dataset: plan.StagedData
) -> None:
    shards = dataset._replace(mode="shards")
    agents = agents_for(textwrap.dedent(READERS["by PackedDataset"]), datasets=[shards])

    code, _ = agents.job()

    assert code == 0
    assert agents.ended(1).how == chain_rule.FINISHED
    assert "all read" in Path(agents.run.log(1)).read_text()


def test_an_unknown_placeholder_is_named(agents_for: Any) -> None:
    agents = agents_for("", command=["echo", "{dat}"])

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.STAGING_FAILED
    assert "{dat}" in agents.ended(1).reason


def test_a_missing_snapshot_is_named(agents_for: Any) -> None:
    agents = agents_for("")
    archive = code_of(agents.run)
    os.unlink(archive)

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.STAGING_FAILED
    assert archive in agents.ended(1).reason


def test_a_damaged_snapshot_is_named_and_set_aside_to_be_sent_again(agents_for: Any) -> None:
    agents = agents_for("print('sum: 1')")
    archive = Path(code_of(agents.run))
    archive.write_bytes(archive.read_bytes().replace(b"sum: 1", b"sum: 2"))

    code, _ = agents.job()

    assert code == 1
    assert agents.ended(1).how == chain_rule.STAGING_FAILED
    assert f"{archive} is damaged" in agents.ended(1).reason
    assert "rabaska resume" in (agents.ended(1).remedy or "")
    assert not os.path.exists(agents.run.log(1))
    assert not archive.exists()


def test_a_damaged_program_of_ours_is_named(agents_for: Any, tmp_path: Path) -> None:
    agents = agents_for("print('started')")
    program = tmp_path / agents.zipapp.name
    program.write_bytes(_with_another_date(agents.zipapp.read_bytes()))
    agents.zipapp = program

    code, said = agents.job()

    assert code == 1
    assert f"{program} is damaged" in said
    assert "rabaska resume" in said
    assert not os.path.exists(agents.run.log(1))


def _with_another_date(zipped: bytes) -> bytes:
    """Damage that Python does not see."""
    place = zipped.rindex(b"PK\x01\x02") + 12
    return zipped[:place] + b"\x01" + zipped[place + 1 :]


def test_a_folder_that_is_no_run_is_refused(agents_for: Any) -> None:
    agents = agents_for("")
    os.unlink(agents.run.plan)

    code, said = agents.job()

    assert code == 1
    assert "run.json does not exist" in said


def test_a_job_told_to_end_lets_the_program_save_and_the_next_job_goes_on(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 3" in agents.log(1))

    agent.send_signal(signal.SIGTERM)
    agent.wait(20)

    assert agent.returncode == 0
    assert agents.ended(1).how == chain_rule.KILLED
    assert "SIGTERM" in agents.ended(1).reason
    assert agents.ended(1).progressed


# Saves and exits 0 as soon as it is asked, as a good program does.
SAVES_WHEN_ASKED = """
import os, signal, sys, time
def save(*_):
    with open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "last.txt"), "w") as stream:
        stream.write("1")
    os._exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(600)
"""


def test_a_program_that_was_terminated_with_its_agent_is_not_finished(agents_for: Any) -> None:
    agents = agents_for(SAVES_WHEN_ASKED)
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "ready" in agents.log(1))
    (program,) = processes.children(agent.pid)

    # The scheduler signals both at once; the program is over before the agent looks again.
    agent.send_signal(signal.SIGSTOP)
    os.kill(program, signal.SIGTERM)
    wait_until(lambda: processes.start_id(program) is None)
    agent.send_signal(signal.SIGTERM)
    agent.send_signal(signal.SIGCONT)
    agent.wait(20)

    assert agents.ended(1).how == chain_rule.KILLED
    assert agents.ended(1).exit_code == 0
    assert agents.ended(1).progressed
    assert not os.path.exists(agents.run.done)


def test_a_program_that_is_over_before_the_signal_reaches_its_agent_is_not_finished(
    agents_for: Any,
) -> None:
    agents = agents_for(SAVES_WHEN_ASKED)
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "ready" in agents.log(1))
    (program,) = processes.children(agent.pid)

    os.kill(program, signal.SIGTERM)
    wait_until(lambda: processes.start_id(program) is None)
    agent.send_signal(signal.SIGTERM)
    agent.wait(20)

    assert agents.ended(1).how == chain_rule.KILLED
    assert not os.path.exists(agents.run.done)


def test_a_program_goes_on_saving_when_a_signal_to_the_whole_job_ended_its_shell(
    agents_for: Any,
) -> None:
    slow = SAVES_WHEN_ASKED.replace("def save(*_):", "def save(*_):\n    time.sleep(4)")
    shell = ["bash", "-c", f"{sys.executable} train.py; echo over"]
    agents = agents_for(slow, command=shell, grace=60.0, walltime=600.0)
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "ready" in agents.log(1))

    everybody = processes.descendants(agent.pid)
    agent.send_signal(signal.SIGSTOP)  # so that it cannot ask before the shell is dead
    processes.signal_all(everybody, signal.SIGTERM)
    wait_until(lambda: processes.start_id(everybody[0]) is None)
    agent.send_signal(signal.SIGTERM)
    agent.send_signal(signal.SIGCONT)
    agent.wait(40)

    assert agents.ended(1).how == chain_rule.KILLED
    assert agents.ended(1).progressed


def test_a_suspended_job_goes_on_when_it_wakes(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "60"})
    agent = agents.start(RABASKA_LEASE_SECONDS="1.2")
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 3" in agents.log(1))
    stopped = [agent.pid, *processes.children(agent.pid)]

    processes.signal_all(stopped, signal.SIGSTOP)
    time.sleep(2.5)
    processes.signal_all(stopped, signal.SIGCONT)
    agent.wait(30)

    assert agents.ended(1).how == chain_rule.FINISHED


def test_a_suspended_job_whose_run_was_taken_over_ends_when_it_wakes(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})
    agent = agents.start(RABASKA_LEASE_SECONDS="1.2")
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 3" in agents.log(1))
    stopped = [agent.pid, *processes.children(agent.pid)]

    processes.signal_all(stopped, signal.SIGSTOP)
    os.rename(agents.run.carried(1), agents.run.carried(2))
    time.sleep(2.5)
    processes.signal_all(stopped, signal.SIGCONT)
    agent.wait(30)

    assert agents.ended(1).how == chain_rule.SUPERSEDED


def test_a_job_suspended_while_it_saves_has_its_time_to_save(agents_for: Any) -> None:
    program = """
import os, signal, time
asked = []
signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
print("ready", flush=True)
while not asked:
    time.sleep(0.05)
print("saving", flush=True)
time.sleep(1.5)
with open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "last.txt"), "w") as stream:
    stream.write("1")
"""
    agents = agents_for(program, grace=4.0)
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "ready" in agents.log(1))
    agent.send_signal(signal.SIGTERM)
    wait_until(lambda: "saving" in agents.log(1))
    stopped = [agent.pid, *processes.children(agent.pid)]

    processes.signal_all(stopped, signal.SIGSTOP)
    time.sleep(4.0)
    processes.signal_all(stopped, signal.SIGCONT)
    agent.wait(30)

    assert agents.ended(1).exit_code == 0
    assert agents.ended(1).progressed


@pytest.mark.parametrize("with_program", [True, False])
def test_a_job_that_is_ended_because_its_run_is_cancelled_is_cancelled(
    agents_for: Any, with_program: bool
) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 1" in agents.log(1))
    told = processes.children(agent.pid) if with_program else []

    # The agent wakes to the signal, and not to a renewal of its lease that finds STOP.
    Path(agents.run.stop).touch()
    for process in [*told, agent.pid]:
        os.kill(process, signal.SIGTERM)
    agent.wait(20)

    assert agents.ended(1).how == chain_rule.CANCELLED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_was_written_in_a_shell_is_kept_when_its_allocation_ends(
    agents_for: Any, number: signal.Signals
) -> None:
    agents = agents_for("")
    shell = agents.start_shell("sh", "-c", "echo 1 >notes.txt; echo ready; exec sleep 600")
    assert shell.stdout.readline() == "ready\n"

    shell.send_signal(number)
    shell.send_signal(number)
    said, _ = shell.communicate(timeout=20)

    assert shell.returncode == 128 + number
    assert Path(agents.run.output(0), "notes.txt").read_text() == "1\n"
    assert "could not keep" not in said


def test_what_cannot_be_kept_of_a_shell_is_said(agents_for: Any) -> None:
    agents = agents_for("")
    Path(agents.run.output(0), "plots").write_text("a file")
    shell = agents.start_shell("sh", "-c", "mkdir plots; echo 1 >plots/loss.txt")

    said, _ = shell.communicate(timeout=20)

    assert "could not keep plots/loss.txt" in said


def test_a_run_that_is_asked_to_stop_stops(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 1" in agents.log(1))

    Path(agents.run.stop).touch()
    agent.wait(20)
    code, said = agents.job()

    assert agents.ended(1).how == chain_rule.CANCELLED
    assert code == 0
    assert "cancelled" in said
    assert agents.run.jobs() == [1]


def test_an_agent_whose_keeper_is_gone_ends_its_program(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})

    code, _ = agents.job(RABASKA_KEEPER="1")

    assert code == 0
    assert agents.ended(1).how == chain_rule.KILLED
    assert "queue stopped" in agents.ended(1).reason


def test_of_two_agents_at_the_same_moment_one_wins_and_the_other_names_it(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"}, walltime=6.0, grace=1.0)

    both = [agents.start(), agents.start()]
    said = [agent.communicate(timeout=60)[0] for agent in both]

    assert sorted(agent.returncode for agent in both) == [0, 75]
    loser = next(text for agent, text in zip(both, said, strict=True) if agent.returncode == 75)
    assert "is held by job 1 (id 12_" in loser
    assert agents.run.jobs() == [1]


def test_a_stale_agent_kills_its_program_once_another_job_holds_the_run(agents_for: Any) -> None:
    agents = agents_for(COUNTER, variables={"TOTAL": "100000"})
    agent = agents.start()
    wait_until(lambda: os.path.exists(agents.run.log(1)) and "step 2" in agents.log(1))

    os.rename(agents.run.carried(1), agents.run.carried(2))
    agent.wait(20)

    assert agents.ended(1).how == chain_rule.SUPERSEDED
    assert not Path(agents.run.done).exists()


def test_new_files_beside_the_code_are_kept_and_shown_to_the_next_job(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, sys
        print(sorted(os.listdir(".")))
        with open("history.csv", "a") as stream: stream.write("line\\n")
        open("ckpt.txt", "w").write("1")
        sys.exit(85)
        """
    )

    agents.job()
    agents.job()

    assert agents.ended(1).how == chain_rule.ASKED_TO_GO_ON
    assert agents.ended(1).progressed
    assert agents.log(1) == "['train.py']\n"
    assert agents.log(2) == "['ckpt.txt', 'history.csv', 'train.py']\n"
    assert Path(agents.run.output_link, "history.csv").read_text() == "line\nline\n"


def test_a_kill_in_the_middle_of_a_save_in_place_costs_one_save_in_every_job(
    agents_for: Any,
) -> None:
    agents = agents_for(
        """
        import os, pickle, time

        def save(number, whole):
            content = pickle.dumps({"number": number, "weights": bytes(100_000)})
            with open("model.pkl", "wb") as stream:
                stream.write(content if whole else content[:50_000])
                stream.flush()
                if not whole:
                    os.kill(os.getpid(), 9)

        number = 0
        if os.path.exists("model.pkl"):
            with open("model.pkl", "rb") as stream:
                number = pickle.load(stream)["number"]
        print("found", number, flush=True)
        save(number + 1, True)
        copy = os.path.join(os.environ["RABASKA_OUTPUT"], "model.pkl")
        while True:
            time.sleep(0.05)
            try:
                with open(copy, "rb") as stream:
                    if pickle.load(stream)["number"] == number + 1:
                        break
            except OSError:
                pass
        save(number + 2, False)
        """,
        patterns=["*.pkl"],
    )

    for _ in range(3):
        agents.job(RABASKA_RESCUE_SECONDS="0.1")

    assert [agents.log(job).split()[1] for job in (1, 2, 3)] == ["0", "1", "2"]
    assert "model.pkl in the code folder is damaged" in agents.log(3)


def test_a_checkpoint_beside_the_code_survives_a_kill(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, time
        if os.path.exists("ckpt.txt"):
            print("found", open("ckpt.txt").read())
        else:
            open("ckpt.txt", "w").write("42")
            time.sleep(600)
        """
    )
    agent = agents.start(RABASKA_RESCUE_SECONDS="0.1")
    wait_until(lambda: os.path.exists(os.path.join(agents.run.carried(1), "beside.json")))

    agent.kill()
    agent.wait()
    agents.job()

    assert agents.log(2) == "found 42\n"
    assert Path(agents.run.done).exists()


def test_results_are_kept_when_the_program_fails(agents_for: Any) -> None:
    agents = agents_for("open('notes', 'w').write('so far'); raise SystemExit(3)")

    agents.job()

    assert Path(agents.run.output_link, "notes").read_text() == "so far"


def test_kept_folders_are_written_to_directly(agents_for: Any) -> None:
    agents = agents_for(
        "import os; os.makedirs('runs/a'); open('runs/a/b', 'w').write('c'); os._exit(9)",
        keep=["runs"],
    )

    agents.job()

    assert Path(agents.run.output_link, "runs/a/b").read_text() == "c"
    assert agents.events("kept") == []


def test_the_program_is_told_where_everything_is(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, rabaska.training
        for name in sorted(os.environ):
            if name.startswith("RABASKA"): print(name + "=" + os.environ[name])
        """
    )

    code, _ = agents.job()

    told = dict(line.split("=", 1) for line in agents.log(1).splitlines())
    assert code == 0
    assert told["RABASKA_RUN"] == "digits-0"
    assert told["RABASKA_JOB"] == "1"
    assert told["RABASKA_RESUME"] == "0"
    assert told["RABASKA_OUTPUT"] == agents.run.output(1)
    assert float(told["RABASKA_DEADLINE"]) > time.time()


def start_and_claim(agents: Agents) -> "subprocess.Popen[str]":
    last = agents.run.holder()
    agent = agents.start(RABASKA_LEASE_SECONDS="1")
    wait_until(lambda: agents.run.holder() > last or agent.poll() is not None)
    return agent


def kill_at_some_moment(agent: "subprocess.Popen[str]", moment: float) -> None:
    try:
        agent.wait(moment)
    except subprocess.TimeoutExpired:
        agent.kill()
        agent.wait()


@pytest.mark.slow
def test_agents_killed_at_any_moment_lose_nothing_and_never_run_two_programs(
    agents_for: Any, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    agents = agents_for(JEALOUS, variables={"TOTAL": "120", "LOCK": str(lock)})
    moments = random.Random(1759)

    for turn in range(30):
        # Half of the kills come after the claim, however slow this machine is.
        agent = start_and_claim(agents) if turn % 2 else agents.start(RABASKA_LEASE_SECONDS="1")
        kill_at_some_moment(agent, moments.uniform(0.0, 0.6))
        if Path(agents.run.done).exists():
            break
        forgive = {"resume": True, "after_job": agents.run.holder()}
        files.append_line(agents.run.submissions, forgive)
    while not Path(agents.run.done).exists():
        agents.job(RABASKA_LEASE_SECONDS="1")

    assert not Path(f"{lock}.violated").exists()
    assert Path(agents.run.output_link, "result").read_text() == "120"
    killed = [job for job in agents.run.jobs() if jobs.read_ended(agents.run, job) is None]
    assert len(killed) >= 5


def test_a_bad_node_does_not_end_a_chain_and_is_avoided(agents_for: Any, tmp_path: Path) -> None:
    agents = agents_for(
        """
        import os, sys
        with open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "last.txt"), "a") as stream:
            stream.write("x")
        sys.exit(85 if os.environ["RABASKA_JOB"] == "1" else 0)
        """
    )
    host = socket.gethostname().partition(".")[0]
    bad = {
        "RABASKA_SETUP_FAILED": "`module load python` failed",
        "RABASKA_EXCLUDE": f"sh -c 'echo NODES >> {tmp_path}/excluded'",
        "RABASKA_NODES": f"printf '%s,8,gpu\\n' {host} other",
    }

    agents.job(RABASKA_EXCLUDE=bad["RABASKA_EXCLUDE"])
    alone = agents.job(**{**bad, "RABASKA_NODES": f"printf '%s,8,gpu\\nother,8,\\n' {host}"})[1]
    _, said = agents.job(**bad)
    agents.job()

    assert [agents.ended(job).how for job in (1, 2, 3, 4)] == [
        chain_rule.ASKED_TO_GO_ON,
        chain_rule.STAGING_FAILED,
        chain_rule.STAGING_FAILED,
        chain_rule.FINISHED,
    ]
    assert (tmp_path / "excluded").read_text() == f"{host}\n"
    assert f"will not run on {host}" in said
    assert "there is no other node like it" in alone


def test_three_bad_nodes_in_a_row_end_a_chain(agents_for: Any) -> None:
    agents = agents_for(
        """
        import os, sys
        if os.environ["RABASKA_JOB"] == "1":
            with open(os.path.join(os.environ["RABASKA_CHECKPOINTS"], "last.txt"), "w") as stream:
                stream.write("x")
        sys.exit(3)
        """
    )

    for _ in range(5):
        _, said = agents.job()

    assert agents.run.jobs() == [1, 2, 3, 4]
    assert "3 jobs in a row" in said
