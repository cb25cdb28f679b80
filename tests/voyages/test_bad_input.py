"""What goes wrong is said clearly, with an exit code of its own, and nothing is lost."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

pytestmark = pytest.mark.slow


def test_an_unknown_key_is_named_with_its_line_and_the_nearest_word(user):
    user.settings(walltime='"60s"\ngpu = 1')

    said = user.types("run", code=3)

    assert "`gpu`" in said.errors
    assert "line 10" in said.errors
    assert "`gpus`" in said.errors


def test_a_missing_dataset_folder_is_named_before_anything_is_done(user):
    user.settings(path='"nowhere"')

    said = user.types("run", code=3)

    assert "nowhere" in said.errors
    assert not (user.home / "runs").exists()


def test_a_misspelt_script_is_refused_before_anything_is_sent(user):
    user.settings(command='"python trian.py --data {data}"')

    for words in (["run"], ["run", "--dry-run"]):
        said = user.types(*words, code=3)

        assert "`trian.py`" in said.errors
        assert "did you mean `train.py`?" in said.errors
    assert not (user.home / "runs").exists()
    assert "did you mean `train.py`?" in user.types("doctor", code=None).output


def test_an_empty_dataset_is_refused(user):
    for file in (user.project / "numbers").iterdir():
        file.unlink()

    assert "numbers" in user.types("run", code=19).errors


def test_an_unknown_placeholder_offers_the_nearest(user):
    user.settings(command='"python train.py --data {dat}"')

    assert "{data}" in user.types("run", code=3).errors


def test_an_unknown_placeholder_on_the_command_line_is_refused_too(user):
    assert "{oops}" in user.types("run", "--", "{oops}", code=3).errors


def test_no_settings_at_all_says_what_to_type(user):
    (user.project / "rabaska.toml").unlink()

    assert "rabaska init" in user.types("run", code=3).errors


def test_an_unknown_command_offers_the_nearest(user):
    assert "did you mean `status`" in user.types("statsu", code=2).errors


def test_an_unknown_cluster_is_refused(user):
    assert "hear" in user.types("run", "--on", "hear", code=3).errors


def test_an_unknown_run_is_refused(user):
    assert "no runs yet" in user.types("status", "cats", code=9).errors


def test_a_link_out_of_the_dataset_is_refused_with_the_way_out(user):
    (user.project / "numbers" / "3.txt").symlink_to("/etc/hostname")

    assert "follow_links" in user.types("run", code=4).errors


def test_a_program_that_crashes_at_once_ends_its_chain_after_one_job(user):
    user.write("train.py", "import no_such_module")

    said = user.types("run", "--wait", code=1)

    assert len(user.status()["jobs"]) == 1
    assert "No module named 'no_such_module'" in said.output
    assert "what to do:" in said.output


def test_a_program_that_never_saves_ends_its_chain_at_the_first_limit(user):
    user.write("train.py", "import time; time.sleep(60)")

    user.types("run", "--wait", "--walltime", "8s", code=14)

    told = user.status()
    assert told["state"] == "failed"
    assert len(told["jobs"]) == 1
    assert "sav" in told["reason"]


def test_a_program_that_ignores_the_request_to_stop_is_killed_at_the_limit(user):
    user.write(
        "train.py",
        """
        import signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open(sys.argv[sys.argv.index("--output") + 1] + "/checkpoint-1.json", "w").write("{}")
        time.sleep(60)
        """,
    )

    user.types("run", "--wait", "--walltime", "5s", "--jobs", "1", code=10)

    job = user.status()["jobs"][0]
    assert (job["how"], job["signal"]) == ("time limit", 9)


def test_ten_megabytes_without_a_line_break_are_kept_whole(user):
    user.write("train.py", "import sys; sys.stdout.write('x' * 10_000_000)")

    user.types("run", "--wait")

    assert user.types("logs").output.count("x") >= 10_000_000


def test_children_left_behind_are_ended_with_the_job(user):
    user.write(
        "train.py",
        """
        import os, subprocess, sys
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        print("child", child.pid, flush=True)
        """,
    )

    user.types("run", "--wait")

    pid = int(user.types("logs").output.split("child ")[1].split()[0])
    assert not os.path.exists(f"/proc/{pid}")


def test_a_truncated_checkpoint_is_set_aside_and_the_one_before_it_used(user):
    user.write(
        "train.py",
        """
        import sys, os, numpy
        output = sys.argv[sys.argv.index("--output") + 1]
        if "--resume" in sys.argv:
            print("resumed from", os.path.basename(sys.argv[sys.argv.index("--resume") + 1]))
            sys.exit(0)
        numpy.savez(output + "/step-1.npz", a=numpy.arange(1000))
        numpy.savez(output + "/step-2.npz", a=numpy.arange(1000))
        os.truncate(output + "/step-2.npz", 3000)
        os.utime(output + "/step-1.npz", (1, 1))
        sys.exit(3)
        """,
    )
    user.settings(patterns='["*.npz"]')

    user.types("run", "--wait")

    assert "resumed from step-1.npz" in user.types("logs").output
    carried = user.home / "store" / "runs" / user.status()["name"] / "output"
    assert (carried / "step-2.npz.damaged").exists()


def test_two_runs_at_once_in_one_project_both_finish(user):
    both = [user.start("run", "--", "--steps", "5") for _ in range(2)]

    names = {process.communicate(timeout=60)[0].strip() for process in both}

    assert [process.returncode for process in both] == [0, 0]
    assert len(names) == 2
    for name in names:
        user.types("wait", name)
        assert user.status(name)["state"] == "finished"


@pytest.mark.parametrize(("words", "voice"), [(["wait"], "stderr"), (["logs", "-f"], "stdout")])
def test_ctrl_c_while_watching_never_touches_the_run(user, words, voice):
    user.types("run", "--", "--gate", str(user.gate))
    user.until(lambda status: status["state"] == "running")
    watching = user.start(*words, start_new_session=True)
    getattr(watching, voice).readline()  # it watches

    os.killpg(watching.pid, signal.SIGINT)
    _, errors = watching.communicate(timeout=30)

    assert watching.returncode == 130
    assert "Traceback" not in errors
    user.gate.touch()
    user.types("wait")
    assert user.status()["state"] == "finished"


@pytest.mark.parametrize("delay", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("command", ["run", "pack", "init"])
def test_ctrl_c_at_any_moment_leaves_a_project_that_still_works(user, command, delay):
    words = {"init": ["init", "--yes", "--force"]}.get(command, [command])

    interrupted(user.start(*words, start_new_session=True), delay)

    user.settings()
    user.types("run", "--wait", "--", "--steps", "5")
    assert user.status()["state"] == "finished"


@pytest.mark.parametrize("delay", [0.1, 0.4])
@pytest.mark.parametrize("command", ["status", "fetch", "show", "cancel", "resume", "clusters"])
def test_ctrl_c_at_any_moment_leaves_a_run_that_can_be_finished(user, command, delay):
    user.types("run", "--jobs", "9", "--", "--pause", "0.05")
    user.until(lambda status: status["checkpoint"] is not None)

    interrupted(user.start(command, start_new_session=True), delay)

    user.types("cancel")
    user.until(lambda status: status["state"] in ("cancelled", "finished"))
    if user.status()["state"] == "cancelled":
        user.types("resume")
    user.types("wait")
    user.types("fetch")
    assert user.status()["state"] == "finished"


def interrupted(process, delay):
    """Ctrl-C after `delay` seconds, as a terminal sends it: to the whole foreground group."""
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    # Python itself may be interrupted before it reaches our first line.
    assert "Traceback" not in errors or "rabaska/cli" not in errors


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a small file system of one's own takes root")
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", mount], check=True)
    yield mount
    subprocess.run(["umount", "--lazy", mount], check=True)


def test_no_space_while_packing_is_said_and_leaves_nothing_half_made(user, small_disk):
    (user.project / "numbers" / "big.bin").write_bytes(os.urandom(6_000_000))
    crowded = type(user)(user.project, small_disk / "home")

    said = crowded.types("run", code=6)

    assert "space" in said.errors
    packs = small_disk / "home" / "store" / "packs"
    assert not packs.exists() or [name for name in os.listdir(packs) if "numbers-" in name] == []


def test_no_space_while_fetching_is_said_and_what_came_stays(user, small_disk):
    user.write(
        "train.py",
        """
        import os, sys
        output = sys.argv[sys.argv.index("--output") + 1]
        for name in ("a.bin", "b.bin", "c.bin"):
            open(output + "/" + name, "wb").write(os.urandom(1_800_000))
        """,
    )
    user.types("run", "--wait")

    said = user.types("fetch", "--to", str(small_disk / "results"), code=6)

    assert "space" in said.errors
    assert sorted(os.listdir(small_disk / "results" / "output")) == ["a.bin", "b.bin"]


def test_a_folder_that_fetch_cannot_write_to_is_named(user, tmp_path):
    user.types("run", "--wait")
    (tmp_path / "taken").write_text("a file")

    said = user.types("fetch", "--to", str(tmp_path / "taken" / "results"), code=15)

    assert "cannot be written to" in said.errors
    assert "Traceback" not in said.errors


def test_no_space_while_staging_ends_the_chain_with_the_reason(user, small_disk, monkeypatch):
    (user.project / "numbers" / "2.txt").write_bytes(os.urandom(6_000_000))
    monkeypatch.setenv("TMPDIR", str(small_disk))

    said = user.types("run", "--wait", code=10)

    assert "space" in said.output
    assert user.status()["jobs"][0]["how"] == "staging failed"


def test_a_time_limit_too_short_to_begin_is_told_with_what_to_change(user):
    said = user.types("run", "--wait", "--walltime", "0.05s", code=10)

    assert "time limit" in said.output
    assert "--walltime" in said.output


NAMES_OF_ANOTHER_AGE = """
import json, os, sys
folder = os.fsencode(os.environ["RABASKA_OUTPUT"])
name = os.path.join(folder, b"checkpoint-mod\\xe8le.json")
if "--resume" in sys.argv:
    with open(os.fsencode(sys.argv[sys.argv.index("--resume") + 1]), "rb") as stream:
        print("found", stream.read())
    with open(os.path.join(folder, b"r\\xe9sultat.txt"), "w") as stream:
        stream.write("done")
    sys.exit(0)
with open(name, "w") as stream:
    stream.write("42")
sys.stdout.buffer.write(b"saved mod\\xe8le\\n")
sys.stdout.flush()
sys.exit(85)
"""


def test_names_that_are_no_utf_8_are_carried_shown_and_fetched(user):
    user.write("train.py", NAMES_OF_ANOTHER_AGE)

    user.types("run", "--wait")

    told = user.status()
    assert told["state"] == "finished"
    assert "checkpoint-mod" in told["jobs"][1]["resumed_from"]
    for words in (("status",), ("logs",), ("show",), ("fetch",), ("status", "--all")):
        user.types(*words)
    fetched = [os.fsencode(path.name) for path in user.project.rglob("*") if path.is_file()]
    assert b"checkpoint-mod\xe8le.json" in fetched
    assert b"r\xe9sultat.txt" in fetched


def test_damaged_shards_end_the_job_and_the_named_command_repairs_them(user):
    user.settings(path='"numbers"\nas = "shards"')
    user.write("train.py", READS_SHARDS)
    first = user.types("run", "--", "--gate", str(user.gate)).output.strip()
    user.until(lambda status: status["state"] == "running", first)
    second = user.types("run", "--no-doctor").output.strip()  # it waits behind the first
    (shard,) = user.home.glob("store/packs/*/shard-00000.tar")
    pack = shard.parent.name
    shard.write_bytes(shard.read_bytes().replace(b"\x002\x00", b"\x003\x00"))
    user.gate.touch()

    user.types("wait", second, code=5)

    told = user.status(second)
    assert told["jobs"][0]["how"] == "damaged data"
    assert pack in told["jobs"][0]["reason"]
    command = f"rabaska data verify {pack} --repair"
    assert command in " ".join(user.types("status", second).output.split())
    explained = " ".join(user.types("explain", second).output.split())
    assert "`rabaska data verify --on here --repair`" in explained
    assert f"`rabaska resume {second}`" in explained
    user.types(*command.split()[1:])
    user.types("resume", second)
    user.types("wait", second)
    assert "sum 3" in user.types("logs", second).output


READS_SHARDS = """
    import os, sys, time
    from rabaska.training import PackedDataset
    if "--gate" in sys.argv:
        while not os.path.exists(sys.argv[sys.argv.index("--gate") + 1]):
            time.sleep(0.02)
    print("sum", sum(int(content) for content, _ in PackedDataset()))
"""
