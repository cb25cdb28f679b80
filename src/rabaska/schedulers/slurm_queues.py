"""Slurm's words for its queues, their limits, and the states of jobs."""

import re
from collections.abc import Iterator
from dataclasses import replace

from rabaska.domain.clusters import Cluster, Partition, ProfileFact
from rabaska.domain.jobs import JobState, JobStatus
from rabaska.schedulers.protocol import SiteQueries
from rabaska.schedulers.queue_values import count, together, walltime

QUESTIONS = {
    "partitions": "sinfo --noheader --format='%P|%l|%D|%c|%m|%G|%a|.'",
    # Where sacctmgr is for administrators only, sshare tells the same.
    "accounts": "sacctmgr --noheader --parsable2 show associations user=$(id -un) format=Account "
    "2>/dev/null || sshare -U --noheader --parsable2 --format=Account",
}
CONFIG = {"config": "scontrol show config"}

# Slurm's own have 1024 x 1024 bytes, but people ask for 22000M of a node that has 22 GB: what it
# tells and what it is asked for are read alike, so that all of a node can be asked for.
MEGABYTE = 10**6

_LIMITS = ("MaxArraySize", "MaxJobCount", "KillWait", "EnforcePartLimits", "PreemptMode")
_CLOSED = {
    "down": "it starts no jobs: its state is down",
    "drain": "it takes no jobs: its state is drain",
    "inact": "it takes and starts no jobs: its state is inactive",
}


def partitions(text: str) -> tuple[Partition, ...]:
    """From `sinfo`, which gives a line for each kind of node: the largest kind counts."""
    found: dict[str, Partition] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) != 8 or parts[7] != "." or not parts[0].strip("*"):
            continue
        one = _partition(*parts[:7])
        found[one.name] = together(found[one.name], one) if one.name in found else one
    queues = tuple(found.values())
    # Where each has GPUs, jobs without must go to one of them; elsewhere they have their own.
    if all(queue.gpus for queue in queues):
        return tuple(replace(queue, without_gpus=True) for queue in queues)
    return queues


def _partition(
    name: str, limit: str, nodes: str, cores: str, memory: str, gres: str, state: str
) -> Partition:
    gpus, model = gpus_of(gres)
    return Partition(
        name=name.rstrip("*"),
        walltime=walltime(limit),
        nodes=count(nodes),
        cores=count(cores),
        memory=count(memory) * MEGABYTE,
        gpus=gpus,
        gpu_model=model,
        default=name.endswith("*"),
        closed=_CLOSED.get(state.strip(), ""),
    )


def gpus_of(gres: str) -> tuple[int, str]:
    """`gpu:v100:4(S:0-1)` → 4 of v100; of several kinds the most numerous."""
    # A model may begin with a digit, or be a number: `gpu:2080ti:4`, `gpu:3090:8`.
    kinds = re.findall(r"(?:^|,)gpu(?::([\w.-]+))?:(\d{1,6})(?=$|[,(])", gres, re.ASCII)
    counted = [(int(count), model) for model, count in kinds]
    return max(counted, default=(0, ""))


def accounts(text: str) -> tuple[str, ...]:
    """One for each association; the same account comes back for each of its partitions."""
    words = (line.strip().split("|")[0] for line in text.splitlines())
    return tuple(dict.fromkeys(word for word in words if re.fullmatch(r"[\w.@+-]+", word)))


def limits(text: str) -> dict[str, str]:
    found = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", text, re.MULTILINE))
    return {name: found[name] for name in _LIMITS if name in found}


def how_gpus_are_requested(cluster: Cluster, version: str) -> Iterator[ProfileFact]:
    """`--gpus-per-node` came with 19.05."""
    number = re.search(r"(\d{1,9})\.(\d{1,9})", version)
    if not number:
        return
    old = (int(number[1]), int(number[2])) < (19, 5)
    says = "gres" if cluster.gpus_as_gres else "gpus-per-node"
    verdict = "differs" if old and not cluster.gpus_as_gres else "ok"
    yield ProfileFact(
        "jobs.gpus", says, verdict, f"{version} knows {'gres only' if old else 'both'}"
    )


SITE = SiteQueries(
    programs=("sbatch",),
    version_commands=("sbatch --version",),
    version=r"slurm(?:-wlm)? \d\S*",
    questions=QUESTIONS,
    first_questions=CONFIG,
    local_variables=("SLURM_TMPDIR",),
    is_there=lambda programs, versions: "sbatch" in programs,
    partitions=lambda answer: partitions(answer("partitions")),
    accounts=lambda answer: accounts(answer("accounts")),
    limits=lambda answer: limits(answer("config")),
    compare=how_gpus_are_requested,
)


# squeue(1) and sacct(1) spell states in full; `CANCELLED by 1000` and `COMPLETED+` occur too.
_STATES = {
    "PENDING": JobState.QUEUED,
    "CONFIGURING": JobState.QUEUED,
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "EXPEDITING": JobState.QUEUED,
    "POWER_UP_NODE": JobState.QUEUED,
    "SPECIAL_EXIT": JobState.HELD,
    "REQUEUE_HOLD": JobState.HELD,
    "RESV_DEL_HOLD": JobState.HELD,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.STOPPING,
    "UPDATE_DB": JobState.STOPPING,
    "STOPPED": JobState.SUSPENDED,  # by SIGSTOP; it keeps its cores
    "COMPLETING": JobState.STOPPING,
    "COMPLETED": JobState.DONE,
    "FAILED": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "BOOT_FAIL": JobState.NODE_FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
    "LAUNCH_FAILED": JobState.NODE_FAILED,
    "RECONFIG_FAIL": JobState.NODE_FAILED,
    "TIMEOUT": JobState.TIMEOUT,
    "DEADLINE": JobState.TIMEOUT,
    "CANCELLED": JobState.CANCELLED,
    "REVOKED": JobState.CANCELLED,
    "PREEMPTED": JobState.PREEMPTED,
}

_HELD_REASONS = ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied")
_ELEMENT = re.compile(r"(?P<job>\d+)(?:_(?P<range>\[[^\]]*\]|\d+))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?", re.ASCII)  # no site allows longer arrays


def elements(job: str) -> list[str]:
    """`12`, `12_3`, or each of `12_[3,5-7%1]` for elements that wait in one line."""
    found = _ELEMENT.fullmatch(job)
    if not found:
        return []
    if not (waiting := found["range"] or "").startswith("["):
        return [job]
    names: list[str] = []
    for part in waiting[1:-1].partition("%")[0].split(","):
        if ends := _RANGE.fullmatch(part):
            numbers = range(int(ends[1]), int(ends[2] or ends[1]) + 1)
            names += [f"{found['job']}_{number}" for number in numbers]
    return names


def status_of(spelled: str, reason: str, exit_code: int | None = None) -> JobStatus:
    word = spelled.split()[0].rstrip("+") if spelled.split() else ""
    state = _STATES.get(word, JobState.UNKNOWN)
    reason = "" if reason in ("None", "(null)") else reason
    if state is JobState.QUEUED and reason in _HELD_REASONS:
        state = JobState.HELD
    # A job that has not ended is shown with exit code 0.
    code = exit_code if state.over else None
    return JobStatus(state=state, spelled=spelled, reason=reason, exit_code=code)
