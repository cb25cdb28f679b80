"""Slurm: sbatch, squeue, sacct, scancel."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from rabaska.domain.jobs import Capabilities, InJob, JobId, JobSpec, JobState, JobStatus

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
    "SUSPENDED": JobState.RUNNING,
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
_ELEMENT = re.compile(r"(?P<job>\d+)(?:_(?P<range>\[[^\]]*\]|\d+))?(?:\.\S+)?")
_MARK = "slurm"  # begins each of our lines, so that banners cannot be taken for one


@dataclass(frozen=True)
class Slurm:
    @property
    def name(self) -> str:
        return "slurm"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            array=True, dependency=True, signal_before_limit=True, mail=True, features=True,
            accounts=True,
        )  # fmt: skip

    def directives(self, spec: JobSpec) -> list[str]:
        return [f"#SBATCH {option}" for option in self._options(spec)]

    def _options(self, spec: JobSpec) -> list[str]:
        asked = spec.resources
        chosen = {
            "--job-name": spec.name,
            "--account": spec.account,
            "--partition": spec.queue,
            "--time": _time(asked.walltime),
            "--nodes": str(asked.nodes),
            "--gpus-per-node": _gpus(asked.gpus, asked.gpu_model),
            "--cpus-per-task": str(asked.cores or ""),
            "--mem": f"{asked.memory // 10**6}M" if asked.memory else "",
            "--constraint": "&".join(spec.features),
            "--array": f"1-{spec.links}%1" if spec.links > 1 else "",
            "--signal": f"B:USR1@{_seconds(spec.warn_before)}" if spec.warn_before else "",
            "--mail-user": spec.mail,
            "--mail-type": "BEGIN,END,FAIL" if spec.mail else "",
            "--output": f"{spec.folder}/job-{'%A_%a' if spec.links > 1 else '%j'}.out",
        }
        options = [f"{option}={value}" for option, value in chosen.items() if value]
        # A requeued job would run beside the next element of its own chain.
        return [*options, "--no-requeue", *spec.native]

    def unmet(self, spec: JobSpec) -> list[str]:
        return []

    def submit_command(self, script: str) -> list[str]:
        return ["sbatch", "--parsable", script]

    def read_job_id(self, output: str) -> JobId | None:
        # With several clusters configured, --parsable prints "1234;cluster" (sbatch(1)).
        found = re.findall(r"^(\d+)(?:;\S+)?\s*$", output, re.MULTILINE)
        found = found or re.findall(r"Submitted batch job (\d+)", output)
        return JobId(found[-1]) if found else None

    def status_command(self, jobs: Sequence[JobId]) -> list[str]:
        ids = ",".join(job.native for job in jobs)
        of_whom = ["--jobs", ids] if ids else ["--me"]
        form = f"{_MARK}|%i|%T|%r|."
        return ["squeue", "--noheader", "--array", "--states=all", *of_whom, "--format", form]

    def history_command(self, jobs: Sequence[JobId]) -> list[str]:
        """For what has left the queue; sites without a database answer with an error."""
        ids = ",".join(job.native for job in jobs)
        return [
            "sacct", "--noheader", "--parsable2", "--allocations", "--array",
            "--format=JobID,State,ExitCode,Reason", "--jobs", ids,
        ]  # fmt: skip

    def read_status(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        for line in output.splitlines():
            parts = line.strip().split("|")
            if len(parts) == 5 and parts[0] == _MARK and parts[4] == ".":
                _, job, state, reason, _ = parts
                found.update((name, _status(state, reason)) for name in _elements(job))
        return found

    def read_history(self, output: str) -> Mapping[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        for line in output.splitlines():
            parts = line.strip().split("|")
            if len(parts) == 4 and re.fullmatch(r"\d+:\d+", parts[2]):
                job, state, code, reason = parts
                exit_code, signal = (int(number) for number in code.split(":"))
                known = _status(state, reason, exit_code or (128 + signal if signal else 0))
                found.update((name, known) for name in _elements(job))
        return found

    def cancel_command(self, jobs: Sequence[JobId]) -> list[str]:
        return ["scancel", *(job.native for job in jobs)]

    def in_job(self) -> InJob:
        element = "${SLURM_ARRAY_JOB_ID:+_$SLURM_ARRAY_TASK_ID}"
        return InJob(
            job="${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}" + element,
            ends="${SLURM_JOB_END_TIME:-}",
            local_space="${SLURM_TMPDIR:-}",
        )


def _time(walltime: timedelta) -> str:
    """`D-HH:MM:SS`, rounded up to whole minutes as Slurm does itself."""
    minutes = -(-round(walltime.total_seconds()) // 60)
    days, rest = divmod(minutes, 1440)
    return f"{days}-{rest // 60:02d}:{rest % 60:02d}:00"


def _seconds(span: timedelta) -> int:
    return max(1, round(span.total_seconds()))


def _gpus(count: int, model: str) -> str:
    return f"{model}:{count}" if count and model else str(count or "")


def _elements(job: str) -> list[str]:
    """`12`, `12_3`, or each of `12_[3,5-7%1]` for elements that wait in one line."""
    found = _ELEMENT.fullmatch(job)
    if not found:
        return []
    if not (waiting := found["range"] or "").startswith("["):
        return [job]
    names: list[str] = []
    for part in waiting[1:-1].partition("%")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            names += [f"{found['job']}_{n}" for n in range(int(first), int(last or first) + 1)]
    return names


def _status(spelled: str, reason: str, exit_code: int | None = None) -> JobStatus:
    word = spelled.split()[0].rstrip("+") if spelled.split() else ""
    state = _STATES.get(word, JobState.UNKNOWN)
    reason = "" if reason in ("None", "(null)") else reason
    if state is JobState.QUEUED and reason in _HELD_REASONS:
        state = JobState.HELD
    return JobStatus(state=state, spelled=spelled, reason=reason, exit_code=exit_code)
