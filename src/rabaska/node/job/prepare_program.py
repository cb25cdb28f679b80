"""What a program needs before it starts: its checkpoint, its code, what it is told."""

import errno
import os
import shutil
import time
from typing import Dict, List, Optional

from ..checkpoints import newest_checkpoint, tensorflow
from ..checkpoints.commit import NO_SPACE
from ..checkpoints.unreadable import Unreadable
from ..record import jobs, learned_patterns, metrics, resume_evidence
from ..record.events import say
from ..record.plan import Plan
from ..record.run_folder import RunFolder
from . import program_command, program_process, unpacked_code
from .copied_files import Copies
from .copy_files import copy_whole
from .this_job import Work
from .unpacked_code import listing


def show(code: str, carried: str, keep: List[str]) -> None:
    """Make `keep`, and what earlier jobs left beside the code, appear beside it as links.

    Checkpoints appear as copies: a program that saves in place, and is killed while it does, must
    not tear the only one there is.
    """
    output = os.path.join(carried, "output")
    known = Copies(code, carried)
    for path in keep:
        _show_one(code, path, os.path.join(output, path))
    for path in known.paths():
        there = os.path.join(output, known.place_of(path))
        if not os.path.lexists(there) or _covered(code, path):
            continue
        if not known.is_save(path) or not _show_copy(code, path, there):
            _show_one(code, path, there)
    known.shown(keep)


def _show_copy(code: str, path: str, there: str) -> bool:
    """Put a copy beside the code; False, and it is said, when the node's disk has no room."""
    here = os.path.join(code, path)
    os.makedirs(os.path.dirname(here), exist_ok=True)
    try:
        # Twice: the program needs as much again, to write the next one.
        if _room_in(os.path.dirname(here)) < 2 * os.lstat(there).st_size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy_whole(there, here)
    except OSError as problem:
        if problem.errno not in NO_SPACE:
            raise
        told = "{} in the code folder is the only copy: the node's disk has no room for another; "
        told += "write to a temporary name first, then rename it"
        say(told.format(path))
        return False
    return True


def _room_in(folder: str) -> int:
    return shutil.disk_usage(folder).free


def _show_one(code: str, path: str, there: str) -> None:
    here = os.path.join(code, path)
    if _covered(code, path):
        return
    if os.path.isdir(here):
        _merge(here, there)
        shutil.rmtree(here)
    elif os.path.lexists(here):
        if not os.path.lexists(there):
            copy_whole(here, there)
        os.unlink(here)
    elif not os.path.lexists(there):
        # Nothing says yet what it will be; a name without a suffix is taken for a folder.
        is_file = "." in os.path.basename(path).lstrip(".") and not path.endswith("/")
        os.makedirs(os.path.dirname(there) if is_file else there, exist_ok=True)
    here = here.rstrip("/")
    os.makedirs(os.path.dirname(here), exist_ok=True)
    os.symlink(there.rstrip("/"), here)


def _covered(code: str, path: str) -> bool:
    """Whether `path`, or a folder above it, is shown already."""
    parts = path.strip("/").split("/")
    above = [os.path.join(code, *parts[:depth]) for depth in range(1, len(parts) + 1)]
    return any(os.path.islink(one) for one in above)


def _merge(source: str, target: str) -> None:
    os.makedirs(target, exist_ok=True)
    for path in listing(source):
        there = os.path.join(target, path)
        if not os.path.lexists(there) and os.path.isfile(os.path.join(source, path)):
            os.makedirs(os.path.dirname(there), exist_ok=True)
            copy_whole(os.path.join(source, path), there)


def paths(carried: str) -> List[str]:
    """The paths in the code folder that earlier jobs left."""
    return Copies("", carried).paths()


_READABLE = 120.0  # seconds for storage that refuses what may be the newest checkpoint
_ANOTHER_TRY = 1.0


class CheckpointsLost(OSError):
    """All that earlier jobs saved is gone or damaged, and no program of the run did that."""

    remedy = "put it back, then `rabaska resume`; without it, `rabaska resume` starts over"


def choose_checkpoint(work: Work) -> jobs.Saved:
    """The newest valid checkpoint, noted in begun.json; damaged ones are set aside."""

    def damaged(path: str, why: str) -> None:
        say("the checkpoint {} is damaged and set aside: {}".format(path, why))
        work.event_log.note("checkpoint damaged", path=path, why=why)

    found = _newest(work, damaged)
    if found is None and work.job > 1:
        # Whoever was killed could not look for it; see `ending.unfitting`.
        missing = learned_patterns.learn(work.run, work.job - 1, work.plan.patterns)
        known = work.plan.patterns + ([missing.pattern] if missing else [])
        found = jobs.newest(work.run, work.job, known, damaged) if missing else None
    if found is None and not work.plan.cuts:  # a rehearsal damages them itself
        _refuse_to_start_over(work.run, work.job)
    begun = jobs.read_begun(work.run, work.job)
    if begun is not None:
        begun = begun._replace(
            resumed_from=found["path"] if found and resume_evidence.given(work.plan) else None,
            checkpoint_seen=found,
            epoch=_epoch(work, found),
            until=work.this_job.ask_at,
            ready=True,
        )
        jobs.write_begun(work.run, begun)
    return found


def _refuse_to_start_over(run: RunFolder, job: int) -> None:
    """CheckpointsLost if the last program left a checkpoint: a site has deleted it since, perhaps.

    Who resumed the run after that job knows. A program may remove its own checkpoints.
    """
    for number in range(job - 1, jobs.forgiven(run), -1):
        begun, ended = jobs.read_begun(run, number), jobs.read_ended(run, number)
        if begun is None or not begun.ready:
            continue  # its program was not started
        if ended is not None and ended.checkpoint is not None:
            told = "{}, which job {} left, is gone or damaged, and there is no other checkpoint: {}"
            path, why = ended.checkpoint["path"], "the run would start over"
            raise CheckpointsLost(told.format(path, number, why))
        return


def _newest(work: Work, damaged: newest_checkpoint.Report) -> jobs.Saved:
    """The newest valid checkpoint; storage that refuses it is given a while to answer again."""
    until = time.monotonic() + float(os.environ.get("RABASKA_READABLE_SECONDS") or _READABLE)
    said = ""
    while True:
        try:
            return jobs.newest(work.run, work.job, work.plan.patterns, damaged)
        except Unreadable as problem:
            if time.monotonic() > until or work.stop_reason() is not None:
                raise
            if str(problem) != said:
                said = str(problem)
                say(said + "; trying again")
                work.event_log.note("checkpoint unreadable", why=said)
        time.sleep(_ANOTHER_TRY)


def _epoch(work: Work, found: jobs.Saved) -> Optional[float]:
    """How many epochs were over when the checkpoint was saved, as far as the last job told."""
    last = jobs.read_begun(work.run, work.job - 1)
    if found is None or last is None:
        return None
    lines = metrics.tail(work.run, work.job - 1)
    return metrics.epoch_at(lines, found["mtime_ns"] / 1e9, last.epoch or 0.0)


def unpack_code(work: Work, code: str) -> unpacked_code.Listing:
    """Unpack the snapshot; what lies beside the code before the program starts."""
    place_code(work.run, work.plan, work.carried, code)
    return unpacked_code.listing(code)


def place_code(run: RunFolder, plan: Plan, carried: str, code: str) -> None:
    unpacked_code.refuse_damaged(run.code(plan.code), plan)
    unpacked_code.unpack(run.code(plan.code), code)
    show(code, carried, plan.keep)


def places(work: Work, data: Dict[str, str], found: jobs.Saved) -> program_command.Places:
    return program_command.Places(
        data=data,
        output=work.run.output(work.job),
        checkpoints=work.run.checkpoints(work.job),
        checkpoint=_as_given(work, found["path"]) if found else None,
    )


def _as_given(work: Work, path: str) -> str:
    return tensorflow.as_given(os.path.join(work.carried, path))


def run_variables(work: Work, local: str) -> Dict[str, str]:
    """Variables that say which run and job this is, and how long it has."""
    return {
        "RABASKA_RUN": work.run.name,
        "RABASKA_JOB": str(work.job),
        "RABASKA_DEADLINE": "{:.3f}".format(time.time() + work.deadline.left()),
        "RABASKA_LOCAL": local,
        program_process.TAG: program_process.tag(work.run, work.job),
    }
