"""Programs that fail for want of memory, disk or GPU: recognised, told, and not tried again."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rabaska.node.job import launch
from rabaska.node.job.failure_cause import cause
from rabaska.node.job.full_disk import Disks
from rabaska.node.job.program_process import ProgramEnd
from rabaska.node.job.used_resources import MemoryUse, UsedResources, memory_in
from rabaska.node.record import chain_rule, out_of_memory, plan
from rabaska.node.vitals.cgroups import Cgroup, highest, in_use, kills, limited_cgroup

GB = 10**9
CRASH = ProgramEnd(chain_rule.CRASHED, "the program ended with exit code 1", 1)
KILL = ProgramEnd(chain_rule.KILLED, "the program was killed", None, int(signal.SIGKILL))
DISKS = Disks(
    "/store/runs/digits-0", "/local/job", lambda folder: 10**12, lambda folder: 512 * 10**6
)


def plan_of(command: list[str] | None = None, **resources: Any) -> plan.Plan:
    return plan.Plan(
        run="digits-0", command=command or ["python", "train.py"], resume=[], code="", datasets=[],
        patterns=[], keep=[], variables={}, walltime=60.0, grace=4.0, signal="TERM", jobs=3,
        progress="", origin=plan.Origin(cluster="tamia", scheduler="slurm"),
        request=plan.JobRequest(resources=plan.RequestedResources(**resources)),
    )  # fmt: skip


def found(
    log: str = "", end: ProgramEnd = CRASH, memory: MemoryUse | None = None, **asked: Any
) -> Any:
    return cause(end, log, plan_of(**asked), memory or MemoryUse(), DISKS)


def test_a_process_that_the_kernel_ended_names_the_peak_the_limit_and_the_line() -> None:
    told = found(end=KILL, memory=MemoryUse(4 * GB, 4 * GB, kills=1, full=True))

    assert told.how == chain_rule.OUT_OF_MEMORY
    assert "4.0 GB of 4.0 GB" in told.reason
    assert '`memory = "6 GB"` in [resources]' in told.remedy
    assert "rabaska resume digits-0 --memory 6GB" in told.remedy


def test_exit_137_counts_as_memory_only_where_the_limit_was_reached() -> None:
    shell = ProgramEnd(chain_rule.KILLED, "", 137)

    assert found(end=shell, memory=MemoryUse(GB, 2 * GB, full=True)).how == chain_rule.OUT_OF_MEMORY
    assert found(end=shell, memory=MemoryUse(GB, 8 * GB)) is None


@pytest.mark.parametrize(
    ("line", "how", "said", "remedy"),
    [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
            "total capacity of 15.77 GiB of which 1.2 GiB is free.",
            chain_rule.OUT_OF_MEMORY, "15.77 GiB", "--batch-size 128",
        ),
        (
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total "
            "capacity; 10.62 GiB already allocated)",
            chain_rule.OUT_OF_MEMORY, "11.17 GiB", "--batch-size 128",
        ),
        (
            "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed.",
            chain_rule.OUT_OF_MEMORY, "DataLoader", "memory =",
        ),
        ("MemoryError", chain_rule.OUT_OF_MEMORY, "MemoryError", "memory ="),
        (
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array",
            chain_rule.OUT_OF_MEMORY, "74.5 GiB", "memory =",
        ),
        (
            "RuntimeError: DataLoader worker (pid 8) is killed by signal: Bus error. It is "
            "possible that dataloader's workers are out of shared memory.",
            chain_rule.OUT_OF_MEMORY, "/dev/shm", "fewer DataLoader workers",
        ),
        (
            "OSError: [Errno 122] Disk quota exceeded: '/store/x'",
            chain_rule.OVER_QUOTA, "quota", "rabaska storage --on tamia",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/local/job/code/big'",
            chain_rule.DISK_FULL, "node's own disk", "--tmp=100G",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/store/runs/digits-0/output/x'",
            chain_rule.DISK_FULL, "storage of tamia", "rabaska clean --on tamia",
        ),
        (
            "RuntimeError: No CUDA GPUs are available",
            chain_rule.NO_GPU, "asked for none", "gpus = 1",
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            chain_rule.NO_GPU, "asked for none", "gpus = 1",
        ),
    ],
)  # fmt: skip
def test_what_a_program_prints_names_the_cause(line: str, how: str, said: str, remedy: str) -> None:
    told = cause(
        CRASH,
        f"epoch 1\nTraceback (most recent call last):\n{line}\n",
        plan_of(["python", "train.py", "--batch-size", "256"]),
        MemoryUse(),
        DISKS,
    )

    assert told is not None
    assert told.how == how
    assert said in told.reason
    assert remedy in told.remedy


def test_an_ordinary_error_has_no_such_cause() -> None:
    log = "note: this model needs much memory\nKeyError: 'label'\n"

    assert found(log) is None


def test_memory_that_the_program_got_over_long_ago_is_not_the_cause() -> None:
    log = "CUDA out of memory, trying a smaller batch\n" + "step\n" * 200 + "KeyError: 3\n"

    assert found(log) is None


@pytest.mark.parametrize(
    "line",
    [
        "E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:282] failed call to cuInit: "
        "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected",
        "/venv/torch/cuda/__init__.py:118: UserWarning: CUDA initialization: Found no NVIDIA "
        "driver on your system. (Triggered internally at ../c10/cuda/CUDAFunctions.cpp:108.)",
        "WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 2 GiB",
        "CUDA out of memory, trying a smaller batch",
    ],
)
def test_what_a_program_only_warned_of_is_not_the_cause(line: str) -> None:
    assert found(f"{line}\nTraceback (most recent call last):\nKeyError: 'label'\n") is None


def test_the_last_of_several_causes_is_the_cause() -> None:
    log = "CUDA out of memory: batch 64 does not fit\nOSError: [Errno 122] Disk quota exceeded\n"

    assert found(log).how == chain_rule.OVER_QUOTA


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("ResourceExhaustedError: OOM when allocating tensor with shape[9,9] and type float on "
         "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu", 1),
        ("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 9 "
         "bytes.", 0),
    ],
)  # fmt: skip
def test_memory_of_the_node_is_not_called_that_of_a_gpu(line: str, gpus: int) -> None:
    told = found(line, gpus=gpus)

    assert told.how == chain_rule.OUT_OF_MEMORY
    assert "GPU" not in told.reason
    assert "`memory = " in told.remedy


def test_a_gpu_that_was_asked_for_and_is_missing_is_no_matter_of_asking() -> None:
    told = found("RuntimeError: No CUDA GPUs are available", gpus=2)

    assert "asked for 2 GPUs" in told.reason
    assert "gpus = 1" not in told.remedy


@pytest.mark.parametrize(("used", "wanted"), [(0, "1 GB"), (4 * GB, "6 GB"), (5 * GB, "8 GB")])
def test_more_memory_is_half_as_much_again(used: int, wanted: str) -> None:
    assert out_of_memory.enough(used) == wanted


@pytest.mark.parametrize("version", [1, 2])
def test_the_group_with_the_lowest_limit_is_the_jobs(tmp_path: Path, version: int) -> None:
    root = tmp_path / ("memory" if version == 1 else "")
    job, step = root / "slurm/job_7", root / "slurm/job_7/step_batch"
    step.mkdir(parents=True)
    limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
    (job / limit).write_text("4000\n")
    (step / limit).write_text("9223372036854771712\n" if version == 1 else "max\n")
    own = tmp_path / "cgroup"
    path = "/slurm/job_7/step_batch"
    own.write_text(f"4:memory:{path}\n" if version == 1 else f"0::{path}\n")

    assert limited_cgroup(str(tmp_path), str(own)) == Cgroup(str(job), version, 4000)


@pytest.mark.parametrize("version", [1, 2])
def test_of_equal_limits_the_outermost_is_the_jobs(tmp_path: Path, version: int) -> None:
    """Slurm limits each step as it limits the job; srun starts the program in another step."""
    root = tmp_path / ("memory" if version == 1 else "")
    job, step = root / "slurm/job_7", root / "slurm/job_7/step_batch"
    step.mkdir(parents=True)
    for folder in (job, step):
        (folder / ("memory.limit_in_bytes" if version == 1 else "memory.max")).write_text("4000\n")
    own = tmp_path / "cgroup"
    path = "/slurm/job_7/step_batch"
    own.write_text(f"4:memory:{path}\n" if version == 1 else f"0::{path}\n")

    assert limited_cgroup(str(tmp_path), str(own)) == Cgroup(str(job), version, 4000)


@pytest.mark.parametrize(
    ("rss", "counts", "full"),
    [(10, True, False), (90, True, False), (10, False, False), (90, False, True)],
)
def test_files_in_the_cache_do_not_fill_the_memory_of_a_job(
    tmp_path: Path, rss: int, counts: bool, full: bool
) -> None:
    limit = 2**40
    counted = "oom_kill 0\n" if counts else ""
    (tmp_path / "memory.oom_control").write_text(f"under_oom 0\n{counted}")
    (tmp_path / "memory.stat").write_text(f"total_rss {limit * rss // 100}\n")
    (tmp_path / "memory.max_usage_in_bytes").write_text(f"{limit}\n")

    assert (
        memory_in(Cgroup(str(tmp_path), 1, limit), in_use(Cgroup(str(tmp_path), 1, limit)), 0).full
        is full
    )


def test_a_program_that_srun_starts_is_not_counted_as_our_children() -> None:
    assert "processor" not in UsedResources(elsewhere=True).to_json()
    assert UsedResources(shared=True, elsewhere=True).memory() == MemoryUse()
    assert launch.is_elsewhere(plan.Launch(form="srun", tasks=4))
    assert not launch.is_elsewhere(plan.Launch(form="torchrun", tasks=4))
    assert not launch.is_elsewhere(plan.Launch())


def test_a_group_is_found_where_only_the_end_of_its_path_is_mounted(tmp_path: Path) -> None:
    job = tmp_path / "memory/slurm/job_7"
    job.mkdir(parents=True)
    (job / "memory.limit_in_bytes").write_text("4000\n")
    own = tmp_path / "cgroup"
    own.write_text("4:memory:/container-1/slurm/job_7\n")

    assert limited_cgroup(str(tmp_path), str(own)) == Cgroup(str(job), 1, 4000)


def test_a_container_whose_group_is_the_root_of_the_mount_has_its_limit(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("4000\n")
    own = tmp_path / "cgroup"
    own.write_text("0::/docker/7f3a\n")

    assert limited_cgroup(str(tmp_path), str(own)) == Cgroup(str(tmp_path), 2, 4000)


def test_version_1_counts_kills_where_they_happened(tmp_path: Path) -> None:
    (tmp_path / "step_0").mkdir()
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
    (tmp_path / "step_0/memory.oom_control").write_text("under_oom 0\noom_kill 2\n")
    (tmp_path / "memory.stat").write_text("cache 100\ntotal_rss 30\ntotal_shmem 5\n")
    (tmp_path / "memory.max_usage_in_bytes").write_text("77\n")
    group = Cgroup(str(tmp_path), 1, 100)

    assert (kills(group), in_use(group), highest(group)) == (2, 35, 77)


def test_version_2_counts_what_is_below(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 1\n")
    (tmp_path / "memory.stat").write_text("anon 30\nfile 100\nshmem 5\n")
    (tmp_path / "memory.peak").write_text("77\n")
    group = Cgroup(str(tmp_path), 2, 100)

    assert (kills(group), in_use(group), highest(group)) == (1, 35, 77)


GREEDY = """
    held = []
    print("step 1", flush=True)
    while True:
        held.append(bytearray(8 * 2**20))
"""


@pytest.fixture
def small_group() -> Any:
    """A memory cgroup of 200 MB, version 1 or 2; skipped where none can be made."""
    for root, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                       ("/sys/fs/cgroup", "memory.max")):  # fmt: skip
        group = Path(root, f"rabaska-test-{os.getpid()}")
        try:
            group.mkdir()
            (group / name).write_text(str(200 * 10**6))
        except OSError:
            continue
        break
    else:
        pytest.skip("no memory cgroup can be made here")
    yield group
    group.rmdir()


def test_a_job_that_the_kernel_ends_for_its_memory_ends_the_chain(
    agents_for: Any, small_group: Path
) -> None:
    agents = agents_for(
        GREEDY,
        command=["sh", "-c", f"echo $$ > {small_group}/cgroup.procs; exec python3 train.py"],
        jobs=3,
    )
    first = agents.start()
    (small_group / "cgroup.procs").write_text(str(first.pid))
    first.communicate(timeout=60)

    ended = agents.ended(1)
    assert ended.how == chain_rule.OUT_OF_MEMORY
    assert "of 200 MB" in ended.reason
    assert ended.used["memory_limit"] <= 200 * 10**6
    _, said = agents.job()
    assert "ran out of memory" in said
    assert agents.run.jobs() == [1]
