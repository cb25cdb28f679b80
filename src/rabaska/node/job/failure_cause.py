"""Why a program failed where the job can tell: memory, a full disk, a quota, a missing GPU.

What is found becomes how the job ended, with the numbers and the line to change, so that `status`
and `explain` say the same and no further job is spent on it.
"""

import os
import re
import signal
from typing import List, NamedTuple, Optional

from ..record import chain_rule, out_of_memory
from ..record.out_of_memory import say_size
from ..record.plan import Plan
from ..record.run_folder import RunFolder
from . import full_disk, node_checks
from .full_disk import Disks
from .program_process import ProgramEnd
from .used_resources import MemoryUse

_END_OF_LOG = 64 * 1024  # bytes
_LAST_LINES = 100  # an error that a program survived stands further up

_GPU_MEMORY = re.compile(
    r"(CUDA|HIP) out of memory|torch\.(cuda\.)?OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY"
    r"|cudaErrorMemoryAllocation|OOM when allocating tensor|RESOURCE_EXHAUSTED: Out of memory"
    r"|CUBLAS_STATUS_ALLOC_FAILED"
)
_MEMORY = re.compile(
    r"^MemoryError\b|numpy\S*MemoryError|std::bad_alloc|DefaultCPUAllocator: (can't allocate|not "
    r"enough) memory|\[Errno 12\]|DataLoader worker .* killed by signal: Killed"
    r"|oom[-_ ]kill event|Exceeded job memory limit|exceeded memory limit"
)
_SHARED_MEMORY = re.compile(
    r"DataLoader worker .* killed by signal: Bus error|insufficient shared memory"
)
_QUOTA = re.compile(r"Disk quota exceeded|\[Errno 122\]|\(os error 122\)")
_NO_GPU = re.compile(
    r"No CUDA GPUs are available|Found no NVIDIA driver|Torch not compiled with CUDA enabled"
    r"|no CUDA-capable device|torch\.cuda\.is_available\(\) is False|No HIP GPUs are available"
    r"|CUDA_ERROR_NO_DEVICE"
)
_ON_PROCESSOR = re.compile(r"device:CPU|by allocator cpu")
_NAMES_GPU = re.compile(r"CUDA|HIP|GPU|CUBLAS", re.IGNORECASE)
_ERROR = re.compile(r"Error\b|Exception\b|\berror:", re.IGNORECASE)
# TensorFlow tells of a missing GPU on every start, as an error.
_GOT_OVER = re.compile(
    r"warning|\bretry|\btrying (again|a|with)\b|\bskipping\b|\breducing\b|failed call to cuInit",
    re.IGNORECASE,
)
_GPU_SIZE = re.compile(r"(?:total capacity of|; )\s*([\d.]+ ?[GM]iB)(?: total capacity)?")
_TRIED = re.compile(r"Tried to allocate ([\d.]+ ?[GMK]iB)")
_BATCH = re.compile(r"^(--?[\w.-]*batch[_-]?size|--?bs|[\w.]*batch_?size)(?:=(\d+))?$")


class FailureCause(NamedTuple):
    how: str  # of `chain_rule`
    reason: str
    remedy: str


def with_cause(
    end: ProgramEnd, run: RunFolder, job: int, plan: Plan, memory: MemoryUse, local: str
) -> ProgramEnd:
    """How the program ended; with its cause, where it failed by itself and the cause shows."""
    if end.how not in (chain_rule.CRASHED, chain_rule.KILLED) or end.stop is not None:
        return end
    found = cause(end, _end_of(run.log(job)), plan, memory, Disks(run.path, local))
    return end if found is None else end._replace(**dict(found._asdict()))


def not_prepared(problem: OSError, plan: Plan, run: RunFolder) -> ProgramEnd:
    """The end of a job whose program could not be started."""
    remedy = str(getattr(problem, "remedy", ""))
    if isinstance(problem, node_checks.NoRoom):
        return ProgramEnd(chain_rule.DISK_FULL, str(problem), remedy=remedy)
    full = None if remedy else full_disk.of_preparation(plan, problem, Disks(run.path, ""))
    if full is not None:
        return ProgramEnd(chain_rule.DISK_FULL, full.said, remedy=full.remedy)
    return ProgramEnd(chain_rule.STAGING_FAILED, str(problem), remedy=remedy)


def cause(
    end: ProgramEnd, log: str, plan: Plan, memory: MemoryUse, disks: Disks
) -> Optional[FailureCause]:
    """What the kernel counted first; then the last cause that the program printed."""
    killed = signal.SIGKILL in (end.signal, (end.exit_code or 0) - 128)
    if memory.kills or (killed and memory.full):
        return _out_of_memory(plan, memory, "")
    lines = [line.strip() for line in log.splitlines() if line.strip()][-_LAST_LINES:]
    for line in reversed(lines):
        found = None if _GOT_OVER.search(line) else _printed(line, plan, memory, disks)
        if found is not None:
            return found
    return None


def _printed(line: str, plan: Plan, memory: MemoryUse, disks: Disks) -> Optional[FailureCause]:
    """The cause that one line tells."""
    if _GPU_MEMORY.search(line) and not _is_of_processor(line, plan):
        return _out_of_gpu_memory(plan, line)
    if _SHARED_MEMORY.search(line):
        return _out_of_shared_memory(line)
    if _MEMORY.search(line) or _GPU_MEMORY.search(line):
        return _out_of_memory(plan, memory, line)
    if _QUOTA.search(line):
        return _over_quota(plan, line)
    if full_disk.PATTERN.search(line):
        return _disk_full(plan, line, disks)
    # A library may also tell that it found no GPU, and go on without.
    return _no_gpu(plan, line) if _NO_GPU.search(line) and _ERROR.search(line) else None


def _is_of_processor(line: str, plan: Plan) -> bool:
    """Whether the memory of the node was full, in words that are used for GPUs as well."""
    names_gpu = _NAMES_GPU.search(line) or plan.request.resources.gpus
    return not names_gpu or _ON_PROCESSOR.search(line) is not None


def _out_of_memory(plan: Plan, memory: MemoryUse, line: str) -> FailureCause:
    asked = plan.request.resources.memory
    limit = memory.limit or asked or 0
    if limit:
        peak = min(memory.peak, limit) if memory.kills or memory.full else memory.peak
        used = "its processes reached {} of {}".format(say_size(peak), say_size(limit))
    else:
        used = "its processes reached {}".format(say_size(memory.peak)) if memory.peak else ""
    asked_words = "" if limit else "; the job asked for no amount of memory"
    said = used + asked_words + (" ({})".format(line) if line else "")
    remedy = out_of_memory.remedy(plan.run, max(asked or 0, limit, memory.peak))
    return FailureCause(chain_rule.OUT_OF_MEMORY, said, remedy)


def _out_of_gpu_memory(plan: Plan, line: str) -> FailureCause:
    size, tried = _GPU_SIZE.search(line), _TRIED.search(line)
    said = "the memory of its GPU was full"
    if size:
        said = "the GPU's {} of memory were full".format(size.group(1))
    if tried:
        said += " when it wanted {} more".format(tried.group(1))
    smaller = _smaller_batch(plan.command)
    first = "`{}` in `command`".format(smaller) if smaller else "a smaller batch"
    remedy = (
        "use {}, mixed precision, or a GPU with more memory (`gpu_model` in [resources]; "
        "`rabaska clusters show` lists them); then `rabaska run`"
    )
    return FailureCause(chain_rule.OUT_OF_MEMORY, said, remedy.format(first))


def _smaller_batch(command: List[str]) -> str:
    """The option for the batch with half its value; "" where the command has none."""
    for word, following in zip(command, command[1:] + [""]):
        found = _BATCH.match(word)
        value = (found.group(2) or following) if found else ""
        if found and value.isdigit() and int(value) > 1:
            between = "=" if found.group(2) else " "
            return "{}{}{}".format(found.group(1), between, int(value) // 2)
    return ""


def _out_of_shared_memory(line: str) -> FailureCause:
    said = "the shared memory of its node (/dev/shm) was full ({})".format(line)
    remedy = (
        "use fewer DataLoader workers, or call "
        "torch.multiprocessing.set_sharing_strategy('file_system'); then `rabaska run`"
    )
    return FailureCause(chain_rule.OUT_OF_MEMORY, said, remedy)


def _over_quota(plan: Plan, line: str) -> FailureCause:
    on = plan.origin.cluster or "here"
    remedy = (
        "`rabaska storage --on {0}` shows what is stored, `rabaska clean --on {0}` removes what no "
        "run needs; then `rabaska resume {1}`"
    ).format(on, plan.run)
    said = "your quota on the storage of {} is used up ({})".format(on, line)
    return FailureCause(chain_rule.OVER_QUOTA, said, remedy)


def _disk_full(plan: Plan, line: str, disks: Disks) -> FailureCause:
    if full_disk.path_in(line).startswith("/dev/shm/"):
        return _out_of_shared_memory(line)
    found = full_disk.of_program(plan, line, disks)
    return FailureCause(chain_rule.DISK_FULL, found.said, found.remedy)


def _no_gpu(plan: Plan, line: str) -> FailureCause:
    gpus = plan.request.resources.gpus
    if not gpus:
        said = "the program needs a GPU, and the job asked for none ({})".format(line)
        remedy = "set `gpus = 1` in [resources] and `rabaska run`, or `rabaska resume {} --gpus 1`"
        return FailureCause(chain_rule.NO_GPU, said, remedy.format(plan.run))
    said = "the job asked for {} GPU{}, and the program found none ({})".format(
        gpus, "s" if gpus > 1 else "", line
    )
    on = plan.origin.cluster or "here"
    remedy = (
        "`rabaska doctor --on {}` checks whether the packages are built for its GPUs; if they are, "
        "its node may be broken: `rabaska resume {}` tries another"
    )
    return FailureCause(chain_rule.NO_GPU, said, remedy.format(on, plan.run))


def _end_of(path: str) -> str:
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _END_OF_LOG))
            return stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
