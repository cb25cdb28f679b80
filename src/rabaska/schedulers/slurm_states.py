"""The states of Slurm's jobs, and how it names the elements of arrays."""

import re

from rabaska.domain.jobs import JobState, JobStatus

# squeue(1) and sacct(1) spell states in full; `CANCELLED by 1000` and `COMPLETED+` occur too.
_STATES = {
    "PENDING": JobState.QUEUED,
    "CONFIGURING": JobState.QUEUED,
    "REQUEUED": JobState.QUEUED,
    "REQUEUE_FED": JobState.QUEUED,
    "SPECIAL_EXIT": JobState.HELD,
    "REQUEUE_HOLD": JobState.HELD,
    "RESV_DEL_HOLD": JobState.HELD,
    "RUNNING": JobState.RUNNING,
    "SUSPENDED": JobState.SUSPENDED,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.STOPPING,
    "STOPPED": JobState.STOPPING,
    "COMPLETING": JobState.STOPPING,
    "COMPLETED": JobState.DONE,
    "FAILED": JobState.FAILED,
    "OUT_OF_MEMORY": JobState.FAILED,
    "BOOT_FAIL": JobState.NODE_FAILED,
    "NODE_FAIL": JobState.NODE_FAILED,
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
