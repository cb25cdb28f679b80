"""Many tests trust the lab, so it is tested itself: what it offers, how it breaks and ends."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.lab import Lab, Storage
from tests.lab.fixtures import skip_or_fail

pytestmark = pytest.mark.real

MakeLab = Callable[..., Lab]
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _leave_the_lab_idle(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "lab" in request.fixturenames:
        lab: Lab = request.getfixturevalue("lab")
        lab.world.run(["scancel", "--user", lab.user])
        lab.wait_for_nodes()


def ssh(
    lab: Lab, command: str, *options: str, timeout: float = 20
) -> subprocess.CompletedProcess[str]:
    words = ["ssh", "-F", str(lab.ssh_config), *options, "lab", command]
    return subprocess.run(words, check=False, capture_output=True, text=True, timeout=timeout)


def text(lab: Lab, name: str) -> str:
    """What a file in the user's home holds; nothing, as long as nobody wrote it."""
    file = lab.path(f"{lab.home}/{name}")
    return file.read_text() if file.exists() else ""


def sleeping(lab: Lab, *options: str, script: str = "") -> str:
    """A job that runs until it is ended; returned once it runs."""
    job = lab.sbatch(f"#!/bin/bash\n{script}\nsleep 1000\n", *options)
    lab.wait_for_state(job, "RUNNING")
    return job


# What it offers


def test_every_node_is_idle_after_boot(lab: Lab) -> None:
    assert set(lab.sinfo().values()) == {"idle"}
    assert len(lab.sinfo()) == 4


def test_srun_runs_on_two_nodes_with_their_own_names_processes_and_disks(lab: Lab) -> None:
    alone = "touch /lscratch/$(hostname); ls /lscratch | grep -c ^sdumont; rm /lscratch/sdumont*"

    told = lab.shell(f"srun -N2 bash -c 'echo $(hostname) $({alone}) $(pgrep -cx slurmd)'")

    assert sorted(told.splitlines()) == ["sdumont3170 1 1", "sdumont3171 1 1"]


def test_two_jobs_on_one_node_see_different_cards(lab: Lab) -> None:
    script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES; ls /dev/nvidia* | wc -l; sleep 1000"
    for number in "12":
        options = ["-w", "sdumont3170", "--gpus-per-node=k40:1", "-o", f"gpu{number}"]
        lab.wait_for_state(lab.sbatch(script, *options), "RUNNING")

    lab.wait_until(lambda: all(len(text(lab, f"gpu{number}").split()) == 2 for number in "12"))
    assert [text(lab, f"gpu{number}").split() for number in "12"] == [["0", "2"], ["1", "2"]]


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        ("--gpus-per-node=3", "Requested node configuration is not available"),
        ("--gres=gpu:v100:1", "Requested node configuration is not available"),
        ("--time=21", "Requested time limit is invalid"),
    ],
)
def test_what_the_site_does_not_have_is_refused(lab: Lab, option: str, complaint: str) -> None:
    refused = lab.run_as_user(["sbatch", option, "--wrap", "true"], check=False)

    assert refused.returncode == 1
    assert complaint in refused.stderr


def test_a_job_has_a_local_folder_that_is_gone_after_it(lab: Lab) -> None:
    told = lab.shell("srun -w sdumont3170 bash -c 'touch $SLURM_TMPDIR/mine && echo $SLURM_TMPDIR'")

    folder = told.strip()
    assert folder.startswith("/lscratch/alice.")
    lab.wait_until(lambda: lab.nodes.run("sdumont3170", ["ls", "/lscratch"]) == "")


def test_modules_load_in_login_shells_and_in_jobs(lab: Lab) -> None:
    line = "module load python/3.11 cuda/12.4 && echo $CUDA_HOME $(command -v python3)"
    expected = "/opt/site/software/cuda/12.4 /opt/site/software/python/3.11/bin/python3"

    on_login = lab.shell(line)
    job = lab.sbatch(f"#!/bin/bash -l\n{line}", "-o", "modules", "--export=NONE")
    lab.wait_for_state(job, "COMPLETED")

    assert on_login.strip() == expected
    assert text(lab, "modules").strip() == expected


def test_ssh_logs_in_shares_one_connection_and_submits(lab: Lab) -> None:
    # Not in tmp_path: the path of a socket may not be longer than 108 bytes.
    control = ["-o", f"ControlPath={lab.world.base}/%C", "-o", "ControlPersist=60"]

    first = ssh(lab, "hostname; whoami", *control, "-o", "ControlMaster=auto")
    check = ssh(lab, "", *control, "-O", "check")
    submitted = ssh(lab, "sbatch --parsable --wrap hostname -o over-ssh", *control)
    ssh(lab, "", *control, "-O", "exit")

    assert first.stdout.split() == ["login1", "alice"]
    assert "Master running" in check.stderr
    lab.wait_for_state(submitted.stdout.strip(), "COMPLETED")
    assert text(lab, "over-ssh").startswith("sdumont")


def test_shared_storage_is_the_same_on_login_and_nodes(lab: Lab) -> None:
    lab.shell("echo carried > $SCRATCH/here")

    assert lab.shell("srun cat $SCRATCH/here").strip() == "carried"
    assert lab.path(f"{lab.shared}/here").read_text() == "carried\n"


def test_no_road_leads_from_a_node_out_of_the_lab(lab: Lab) -> None:
    assert lab.nodes.run("sdumont3170", ["ip", "route", "show", "default"]) == ""
    assert "10.77.0.2" in lab.nodes.run("sdumont3170", ["getent", "hosts", "login1"])


def test_slurm_sends_its_letters(lab: Lab) -> None:
    job = lab.sbatch("#!/bin/bash\nexit 3", "--mail-type=FAIL")

    lab.wait_until(lambda: any(line.startswith(f"{job}|Failed") for line in lab.mails()))


def test_a_job_that_takes_too_much_memory_is_killed(lab: Lab) -> None:
    job = lab.sbatch("#!/bin/bash\npython3 -c 'bytearray(300_000_000)'", "--mem=100")

    # Slurm 22.05 holds nobody to it where the machine has no cgroups of version 1.
    lab.wait_for_state(job, "OUT_OF_MEMORY" if lab.world.cgroups else "COMPLETED")


# Sites that differ


@pytest.mark.slow
def test_a_twenty_minute_limit_is_over_in_seconds_on_a_warped_clock(make_lab: MakeLab) -> None:
    lab = make_lab(warp=300)
    script = "#!/bin/bash\ntrap 'echo asked' USR1\nsleep 1000 & wait; wait"

    job = lab.sbatch(script, "-t", "20", "--signal=B:USR1@300", "-o", "warped")
    ended = lab.wait_for_state(job, "TIMEOUT")
    lab.restart_controller()
    later = lab.job(lab.sbatch("#!/bin/bash\ntrue"))

    assert ended["RunTime"].startswith("00:2")
    assert "asked" in text(lab, "warped")
    # The clock of the second controller goes on where the first one's stopped.
    assert later["SubmitTime"] > ended["EndTime"]


def test_a_chatty_site_without_rsync(make_lab: MakeLab) -> None:
    lab = make_lab(without=("rsync",), banner="** Welcome to SDumont **")

    over_ssh = ssh(lab, "command -v rsync || echo none")
    in_login_shell = ssh(lab, "bash -lc 'echo inner'")

    assert over_ssh.stdout.splitlines() == ["** Welcome to SDumont **", "none"]
    assert "** Welcome to SDumont **" in in_login_shell.stdout.splitlines()


def test_storage_can_be_full_or_have_too_many_files(make_lab: MakeLab) -> None:
    lab = make_lab(
        local=Storage(size="16m"), shared=Storage(size="16m", files=50), home=Storage(size="8m")
    )
    write = "head -c 1M /dev/zero > {}/more"

    lab.fill_local_disk("sdumont3170")
    on_node = lab.run_as_user(
        ["srun", "-w", "sdumont3170", "bash", "-c", write.format("$SLURM_TMPDIR")], check=False
    )
    lab.free_local_disk("sdumont3170")
    many = lab.run_as_user(["bash", "-c", f"touch {lab.shared}/{{1..60}}"], check=False)
    lab.world.run(["bash", "-c", f"rm {lab.shared}/*"])
    lab.fill_shared(leave=4096)
    on_shared = lab.run_as_user(["bash", "-c", write.format(lab.shared)], check=False)
    lab.fill_home()
    at_home = lab.run_as_user(["bash", "-c", write.format("~")], check=False)

    for outcome in (on_node, many, on_shared, at_home):
        assert outcome.returncode != 0
        assert "No space left on device" in outcome.stderr


def test_two_labs_run_side_by_side(lab: Lab, make_lab: MakeLab) -> None:
    other = make_lab()

    mine = sleeping(lab, "-w", "sdumont3170")
    theirs = other.sbatch("#!/bin/bash\nexit 0", "-w", "sdumont3170")
    other.wait_for_state(theirs, "COMPLETED")

    assert lab.job(mine)["JobState"] == "RUNNING"
    assert ssh(other, "squeue -h").stdout == ""
    assert mine in ssh(lab, "squeue -h -o %i").stdout.split()


@pytest.mark.slow
def test_sacct_remembers_and_unknown_accounts_are_refused(make_lab: MakeLab) -> None:
    lab = make_lab(accounting=True)

    job = lab.sbatch("#!/bin/bash\nexit 5", "--account=proj")
    refused = lab.run_as_user(["sbatch", "-A", "nobody", "--wrap", "true"], check=False)
    question = f"sacct -nPX -j {job} -o state,exitcode,account"
    lab.wait_until(lambda: "FAILED" in lab.shell(question))

    assert lab.shell(question).strip() == "FAILED|5:0|proj"
    assert "Invalid account" in refused.stderr


# How it breaks


@pytest.mark.slow
def test_a_crashed_node_is_gone_and_a_node_cut_off_works_on_unseen(lab: Lab) -> None:
    counting = "(while sleep 0.1; do echo >> $SLURM_TMPDIR/count; done) &"
    count = ["bash", "-c", "cat /lscratch/*/count | wc -l"]
    again = sleeping(lab, "-w", "sdumont3170", "--requeue")
    never = sleeping(lab, "-w", "sdumont3170", "--no-requeue")
    unseen = sleeping(lab, "-w", "sdumont3171", "--no-requeue", script=counting)

    lab.crash_node("sdumont3170")
    lab.cut_network("sdumont3171")

    lab.wait_for_state(never, "NODE_FAIL")
    lab.wait_for_state(unseen, "NODE_FAIL")
    lab.wait_until(lambda: lab.job(again)["Restarts"] == "1")
    then = int(lab.nodes.run("sdumont3171", count))
    lab.wait_until(lambda: int(lab.nodes.run("sdumont3171", count)) > then)

    lab.reboot_node("sdumont3170")
    lab.restore_network("sdumont3171")

    lab.wait_for_nodes("sdumont3170", "sdumont3171")
    # Slurm ends what it no longer knows of, and the epilog cleans up after it.
    lab.wait_until(lambda: lab.nodes.run("sdumont3171", ["ls", "/lscratch"]) == "")


def test_a_node_declared_down_fails_its_job_at_once(lab: Lab) -> None:
    job = sleeping(lab, "-w", "sdumont4000", "-p", "gdl", "--no-requeue")

    lab.declare_down("sdumont4000")

    lab.wait_for_state(job, "NODE_FAIL", patience=5)


@pytest.mark.slow
def test_a_job_outlives_the_controller_and_slurmd(lab: Lab) -> None:
    job = sleeping(lab, "-w", "sdumont3170", "-o", "outlived")

    lab.stop_controller()
    answering = lab.world.listens(6817)
    lab.start_controller()
    lab.nodes.kill_slurmd("sdumont3170")
    lab.nodes.start_slurmd("sdumont3170")

    assert not answering
    lab.wait_for_state(job, "RUNNING")
    lab.run_as_user(["scancel", job])
    lab.wait_for_state(job, "CANCELLED")


@pytest.mark.slow
def test_an_urgent_job_sends_a_spare_one_back_to_the_queue(lab: Lab) -> None:
    warned = "trap 'echo warned' USR1; echo ready; sleep 1000 & wait; wait"
    options = ["-p", "spare", "--exclusive", "--requeue", "--signal=B:USR1@60", "-o", "spare"]
    spare = sleeping(lab, *options, "--open-mode=append", script=warned)
    lab.wait_until(lambda: "ready" in text(lab, "spare"))  # before its script runs, none is warned

    urgent = lab.sbatch("#!/bin/bash\nexit 0", "-p", "urgent", "--exclusive")
    lab.wait_for_state(urgent, "COMPLETED")

    lab.wait_until(lambda: lab.job(spare)["Restarts"] == "1")
    assert "warned" in text(lab, "spare")


def test_ssh_connections_are_cut_and_new_ones_are_served(lab: Lab) -> None:
    words = ["ssh", "-F", str(lab.ssh_config), "lab", "echo in; sleep 1000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"in\n"

        assert lab.kill_ssh_connections() > 0

        assert session.wait(20) == 255
    assert ssh(lab, "echo back").stdout == "back\n"


def test_a_login_node_can_fall_silent_or_refuse(lab: Lab) -> None:
    lab.freeze_login()
    silent = ssh(lab, "true", "-o", "ConnectTimeout=1")
    lab.thaw_login()
    lab.login.close()
    refused = ssh(lab, "true")
    lab.login.open()

    assert "timed out" in silent.stderr
    assert "Connection refused" in refused.stderr
    assert ssh(lab, "echo back").stdout == "back\n"


# How it ends


def traces(name: str) -> list[str]:
    """All that this machine still has of a lab: mounts, cgroups, folders and processes."""
    found = [line for line in Path("/proc/self/mounts").read_text().splitlines() if name in line]
    found += [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{name}")]
    found += [str(path) for path in Path(tempfile.gettempdir()).glob(name)]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "mountinfo").read_bytes()
        except OSError:
            continue
        if name.encode() in words:
            found.append(f"process {process.name}")
    return found


def printed(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def outside() -> tuple[str, str, list[str]]:
    """The links, named networks and device nodes of the machine itself."""
    links = printed("ip", "-br", "link")
    named = printed("ip", "netns")
    return links, named, sorted(path.name for path in Path("/dev").glob("nvidia*"))


def test_a_lab_that_ended_leaves_nothing(make_lab: MakeLab) -> None:
    before = outside()
    lab = make_lab()
    sleeping(lab)
    assert traces(lab.world.name)

    lab.end()

    assert traces(lab.world.name) == []
    assert outside() == before


def test_a_lab_whose_tests_were_killed_leaves_nothing(lab: Lab) -> None:
    script = "from tests.lab import Lab; print(Lab().world.name, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        assert traces(name)

        os.kill(owner.pid, signal.SIGKILL)

    lab.wait_until(lambda: traces(name) == [])


def test_a_missing_lab_skips_tests_but_fails_them_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no root"):
        skip_or_fail("no root")

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no root"):
        skip_or_fail("no root")


def test_without_root_it_says_why_there_is_no_lab(lab: Lab) -> None:
    script = "from tests.lab import unavailable; print(unavailable())"
    words = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "/usr/bin/python3",
        "-B",
        "-c",
        script,
    ]

    told = subprocess.run(words, check=True, cwd=REPOSITORY, capture_output=True, text=True)

    assert told.stdout.startswith("the lab needs root")
