"""What the processes of a program do, and how it is written down: cheaply, whatever happens."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rabaska.node.series.series_format import read_head
from rabaska.node.vitals import cgroups, sampling
from rabaska.node.vitals.program_processes import ProgramProcesses
from rabaska.node.vitals.recent import recent

TAG = "RABASKA_HOLDS=/store/runs/cats-1#1"
HZ = os.sysconf("SC_CLK_TCK")


class Proc:
    """A /proc of a few processes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def process(self, pid, parent, words="python train.py", tag=TAG, name="python", **more):
        folder = self.root / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        fields = ["S", str(parent), *["0"] * 48]
        fields[0] = more.get("state", "S")
        fields[11] = str(int(more.get("seconds", 0) * HZ))
        fields[19] = str(more.get("started", pid))
        fields[21] = str(more.get("pages", 100))
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")
        (folder / "environ").write_text(f"HOME=/\0{tag}\0")
        (folder / "cmdline").write_text("\0".join(words.split()))
        read, written = more.get("read", 0), more.get("written", 0)
        (folder / "io").write_text(f"rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n")


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    made = Proc(tmp_path / "proc")
    made.process(9, 1, "sshd: ada", tag="LANG=C", seconds=1000)
    made.process(10, 9, seconds=5, read=1000)
    made.process(11, 10, seconds=2)
    made.process(12, 10, name="pt_data_worker", words="python -c spawn", seconds=1, state="D")
    made.process(13, 10, "/usr/bin/git status", seconds=0)
    return made


def test_only_the_processes_of_the_program_count_and_its_workers_apart(proc):
    found = ProgramProcesses(TAG, str(proc.root)).look()

    assert (found.processes, found.workers, found.waiting) == (4, 2, 1)
    assert (found.processor, found.of_workers) == (8.0, 3.0)
    assert found.read == 1000
    assert found.resident == 400 * os.sysconf("SC_PAGE_SIZE")


def test_a_later_look_counts_what_came_since(proc):
    processes = ProgramProcesses(TAG, str(proc.root))
    processes.look()
    proc.process(10, 9, seconds=7, read=5000)
    proc.process(14, 11, "sh -c ls", tag="none", seconds=1)  # below one of ours

    found = processes.look()

    assert (found.processor, found.read, found.processes) == (3.0, 4000, 5)


def test_a_number_that_another_process_has_now_is_looked_at_anew(proc):
    processes = ProgramProcesses(TAG, str(proc.root))
    processes.look()
    proc.process(11, 10, seconds=1, started=500)

    assert processes.look().processor == 1.0


def test_a_process_that_runs_a_command_of_its_own_is_no_worker(proc):
    processes = ProgramProcesses(TAG, str(proc.root))
    assert processes.look().workers == 2
    proc.process(11, 10, "gzip file", seconds=3)  # it had just been forked

    assert processes.look().workers == 1


def test_no_proc_is_no_error(tmp_path):
    assert ProgramProcesses(TAG, str(tmp_path / "none")).look().processes == 0


@pytest.mark.parametrize("version", [1, 2])
def test_swap_is_read_from_the_cgroup(tmp_path, version):
    group = cgroups.Cgroup(str(tmp_path), version, 10**9)
    (tmp_path / "memory.swap.current").write_text("4096\n")
    (tmp_path / "memory.stat").write_text("total_swap 4096\npswpin 7\nanon 1\n")

    assert cgroups.swapped(group) == 4096
    assert cgroups.pages_swapped_in(group) == 7


def test_where_the_cgroup_does_not_count_swap_the_node_does(tmp_path):
    (tmp_path / "vmstat").write_text("pswpin 12\npswpout 3\n")

    assert cgroups.pages_swapped_in(None, str(tmp_path / "vmstat")) == 12
    assert cgroups.pages_swapped_in(None, str(tmp_path / "none")) is None


@pytest.fixture
def program():
    words = [sys.executable, "-c", "import time\nwhile True: time.sleep(0.001)"]
    name, _, value = TAG.partition("=")
    process = subprocess.Popen(words, env=dict(os.environ, **{name: value}))
    yield process
    process.kill()
    process.wait()


def test_a_thread_writes_what_a_node_does_and_a_reader_finds_the_means(tmp_path, program):
    vitals = sampling.started(str(tmp_path), 1, TAG, str(tmp_path), shared=True)
    time.sleep(1.2)
    vitals.end()

    (node,) = recent(str(tmp_path), 1)
    means = recent(str(tmp_path), 1)[node]
    path = Path(sampling.path_of(str(tmp_path), 1, node))
    lines = path.read_text().splitlines()
    assert read_head(lines[0])[0] == 1
    assert "=\t0\tcores used\tcores" in lines
    assert means["processes"] == 1
    assert means["memory used"] > 10**6
    assert means["local disk free"] > 0
    assert 0 <= means["cores used"] < 2
    assert means["looks"] >= 1


def test_the_next_look_waits_until_the_last_ones_are_paid_for(tmp_path):
    vitals = sampling.NodeVitals(str(tmp_path / "v.tsv"), 1, TAG, "", gpus=False)
    vitals._counts["looked"] = 1.0

    vitals._spent = sampling.CREDIT
    assert vitals.pause(1.0) == sampling.SOONEST
    vitals._spent = sampling.CREDIT + 0.05
    assert vitals.pause(1.0) == pytest.approx(0.05 / sampling.SHARE - 1.0)
    assert sampling.SHARE <= 0.001


def test_a_job_that_may_not_write_any_more_writes_nothing(tmp_path):
    vitals = sampling.NodeVitals(str(tmp_path / "v.tsv"), 1, TAG, "", gpus=False)
    vitals.start(may_write=lambda: False)
    vitals.end()

    assert not (tmp_path / "v.tsv").exists()


def write(folder: Path, *lines: str, job: int = 1, node: str = "n1") -> None:
    path = Path(sampling.path_of(str(folder), job, node))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))


def test_means_are_of_the_time_that_is_asked_for(tmp_path):
    points = [f"0\t\t{second}\t{value}" for second, value in ((1, 9), (20, 5), (30, 1), (40, 3))]
    write(
        tmp_path, "# rabaska series 1\tjob 1\tbegan 1000.0", "=\t0\tgpu0 use\tfraction", *points, ""
    )

    assert recent(str(tmp_path), 1, 1010.0) == {"n1": {"gpu0 use": 2.0, "looks": 2.0}}
    assert recent(str(tmp_path), 2) == {}


def test_a_reason_of_throttling_is_a_share_of_all_looks(tmp_path):
    write(
        tmp_path, "# rabaska series 1\tjob 1\tbegan 0.0", "=\t0\tgpu0 throttled\tfraction",
        "=\t1\tgpu0 throttled by heat\tfraction", "0\t\t1\t0.0", "0\t\t2\t1.0", "1\t\t2\t1.0", "",
    )  # fmt: skip

    assert recent(str(tmp_path), 1)["n1"]["gpu0 throttled by heat"] == 0.5


@pytest.mark.parametrize(
    "text", ["", "nonsense", "# rabaska series 1\tjob x\tbegan y\n", "# rabaska series 1\n\0\0\n"]
)
def test_a_damaged_file_tells_nothing(tmp_path, text):
    write(tmp_path, text)

    assert recent(str(tmp_path), 1) == {}


def test_what_came_after_the_training_is_left_out(tmp_path):
    points = [f"0\t\t{second}\t{value}" for second, value in ((1, 3), (2, 3), (3, 3), (9, 0))]
    write(
        tmp_path, "# rabaska series 1\tjob 1\tbegan 1000.0", "=\t0\tworkers\tprocesses", *points, ""
    )

    assert recent(str(tmp_path), 1, 1000.5, 1004.0)["n1"]["workers"] == 3.0
