"""What each job leaves behind: begun.json, ended.json, and the verdict they lead to."""

import os
from typing import Any, Callable, List, NamedTuple, Optional

from .. import files
from ..checkpoints import newest_checkpoint
from ..checkpoints.save_slots import Look
from . import chain_rule, field_types, out_of_memory, scheduler_output, submissions
from .run_folder import RunFolder

_SIGKILL = 9
_LOOKS = 5  # more jobs than may pass without a save

Saved = Optional[files.Json]  # {"path", "size", "mtime_ns"} of a checkpoint, or None


class Begun(NamedTuple):
    job: int
    id: str  # as its scheduler calls it
    host: str
    boot: str  # where a pid means something: this boot of this machine, this pid namespace
    pid: int
    started: Optional[str]  # tells the process from a later one with the same pid
    begun: float  # seconds since 1970
    resumed_from: Optional[str] = None  # that its program was given, relative to what is carried
    checkpoint_seen: Saved = None  # the newest valid one before the program started
    epoch: Optional[float] = None  # how many were over when that was saved
    until: Optional[float] = None  # when its program will be asked to stop
    ready: bool = False  # the checkpoint was looked for; before that, the job did nothing


class Ended(NamedTuple):
    job: int
    id: str  # as its scheduler calls it
    how: str
    reason: str
    exit_code: Optional[int]
    signal: Optional[int]
    ended: float  # seconds since 1970
    checkpoint: Saved
    progressed: bool
    remedy: Optional[str] = None  # what to do about a job that saved nothing
    tracks: Optional[List[files.Json]] = None  # where it began to count (see `tracks`)
    resumption: Optional[files.Json] = None  # whether it went on (see `resumption`)
    missing: Optional[List[str]] = None  # files that it left and that could not be kept
    standstill: Optional[str] = None  # what shows that it got no further (see `standstill`)
    used: Optional[files.Json] = None  # of its node (see `used_resources`)


def write_begun(run: RunFolder, begun: Begun) -> None:
    files.write_json(run.begun(begun.job), dict(begun._asdict()))


def write_ended(run: RunFolder, ended: Ended) -> None:
    files.write_json(run.ended(ended.job), dict(ended._asdict()))


def read_begun(run: RunFolder, job: int) -> Optional[Begun]:
    value = _read(run.begun(job))
    if value is None or field_types.misfit(value, field_types.BEGUN, ("id", "host", "boot", "pid")):
        return None
    if _is_damaged(value.get("checkpoint_seen")):
        return None
    return Begun(**_fields(Begun, value, job))


def read_ended(run: RunFolder, job: int) -> Optional[Ended]:
    value = _read(run.ended(job))
    if value is None or field_types.misfit(value, field_types.ENDED, ("how",)):
        return None
    if _is_damaged(value.get("checkpoint")):
        return None
    ended = Ended(**_fields(Ended, value, job))
    missing = [path for path in ended.missing or [] if isinstance(path, str)]
    return ended._replace(
        resumption=field_types.fitting(ended.resumption or {}, field_types.JUDGED) or None,
        missing=missing or None,
        used=field_types.fitting(ended.used or {}, field_types.USED) or None,
    )


def damaged(run: RunFolder) -> List[str]:
    """The records of jobs that are there and cannot be read, as they are called in the run."""
    paths = []  # type: List[str]
    for number in run.jobs():
        for path, record in (
            (run.begun(number), read_begun(run, number)),
            (run.ended(number), read_ended(run, number)),
        ):
            if record is None and os.path.exists(path):
                paths.append(os.path.relpath(path, run.path))
    return paths


def _is_damaged(saved: Saved) -> bool:
    return saved is not None and bool(
        field_types.misfit(saved, field_types.SAVED, list(field_types.SAVED))
    )


def _read(path: str) -> Optional[files.Json]:
    try:
        return files.read_json(path)
    except ValueError:
        return None  # damaged on disk: as good as never written


def _fields(kind: Any, value: files.Json, job: int) -> files.Json:
    fields = {name: value.get(name) for name in kind._fields}
    fields["job"] = job
    return fields


def history(
    run: RunFolder,
    newest: Callable[[], Saved],
    last_is_over: bool = True,
    judged: Optional[Callable[[int], files.Json]] = None,
) -> List[chain_rule.Job]:
    """How every job ended, oldest first.

    `newest` is asked for the newest valid checkpoint, and `judged` how it began, only when the
    last job left no record of its end; then what it saved shows on disk alone.
    """
    holder = run.holder()
    ended = [
        _job(run, number, newest, running=number == holder and not last_is_over)
        for number in range(1, holder + 1)
    ]
    if judged is not None and ended and ended[-1].how == chain_rule.LOST:
        ended[-1] = _begun_anew(ended[-1], judged(holder))
    return ended


def _begun_anew(job: chain_rule.Job, judged: Optional[files.Json]) -> chain_rule.Job:
    """The job, if it started over with the reason and what to do about it."""
    if not judged or judged.get("state") != chain_rule.STARTED_OVER:
        return job
    return job._replace(started_over=judged.get("why", ""), remedy=judged.get("hint", ""))


def _job(run: RunFolder, number: int, newest: Callable[[], Saved], running: bool) -> chain_rule.Job:
    ended = read_ended(run, number)
    if ended is not None:
        memory = killed_for_memory(run, ended)
        if memory:
            return _out_of_memory(run, number, memory)
        job = chain_rule.Job(
            number,
            ended.how,
            bool(ended.progressed) and not ended.standstill,
            ended.reason or "",
            ended.exit_code,
            ended.signal,
            ended.remedy or "",
            standstill=ended.standstill or "",
        )
        return _begun_anew(job, ended.resumption)
    if running:
        return chain_rule.Job(number, chain_rule.RUNNING)
    begun = read_begun(run, number)
    memory = scheduler_output.memory_line(run, begun.id) if begun is not None else ""
    if memory:
        return _out_of_memory(run, number, memory)
    reason = "it ended without a record"
    if begun is None or not begun.ready:
        return chain_rule.Job(number, chain_rule.LOST, False, reason)
    following = read_begun(run, number + 1)
    after = following.checkpoint_seen if following is not None and following.ready else newest()
    return chain_rule.Job(number, chain_rule.LOST, progressed(begun.checkpoint_seen, after), reason)


def killed_for_memory(run: RunFolder, ended: Ended) -> str:
    """What the scheduler said after a job whose program was killed, where it saw no cgroup."""
    if ended.how != chain_rule.KILLED:
        return ""
    killed = ended.signal == _SIGKILL or ended.exit_code == 128 + _SIGKILL
    return scheduler_output.memory_line(run, ended.id or "", asked_first=not killed)


def _out_of_memory(run: RunFolder, number: int, said: str) -> chain_rule.Job:
    remedy = out_of_memory.remedy(run.name, out_of_memory.asked(run))
    return chain_rule.Job(number, chain_rule.OUT_OF_MEMORY, False, said, remedy=remedy)


def progressed(before: Saved, after: Saved) -> bool:
    """Whether a job left another newest checkpoint than it found."""
    return after is not None and after != before


def forgiven(run: RunFolder) -> int:
    """The last job before somebody took the run up again; what it did counts no more.

    A resume that the scheduler refused took nothing up.
    """
    possible = (0, None, submissions.NOT_KNOWN)
    return max(
        (
            int(each.get("after_job") or 0)
            for each in submissions.submissions(run)
            if each.get("resume") and each.get("exit_code") in possible
        ),
        default=0,
    )


def not_kept(run: RunFolder, output: str) -> List[str]:
    """Files that jobs left and could not keep, and that no later job brought to `output`.

    Who took the run up again knows what was missing by then.
    """
    paths = []  # type: List[str]
    last = max(run.jobs(), default=0)
    for number in range(forgiven(run) + 1, last + 1):
        ended = read_ended(run, number)
        for path in (ended.missing if ended is not None else None) or []:
            # The last version of a file may be missing where an older one was kept.
            if number == last or not os.path.lexists(os.path.join(output, path)):
                paths.append(path)
    return list(dict.fromkeys(paths))


def newest(
    run: RunFolder,
    job: int,
    patterns: List[str],
    damaged: Optional[newest_checkpoint.Report] = None,
) -> Saved:
    """The newest valid checkpoint of what `job` carries.

    With `damaged` it is read whole, and damaged ones are set aside and told: for the holder of
    the run, before its program starts. Without, a look at sizes and headers is enough.
    """
    checkpoint = newest_checkpoint.newest_valid(
        run.carried(job),
        patterns,
        set_aside=damaged is not None,
        report=damaged,
        deep=damaged is not None,
        looks=_looks(run, job),
    )
    return None if checkpoint is None else dict(checkpoint._asdict())


def _looks(run: RunFolder, job: int) -> List[Look]:
    """What lay there before the programs of the last jobs started (see `tracks`)."""
    records = [_read(run.found(number)) for number in range(job, max(0, job - _LOOKS), -1)]
    return [field_types.pairs(record.get("saves")) for record in records if record is not None]
