"""What a program needs before it starts: its checkpoint, its code, what it is told."""

import os
import time
from typing import Dict, Optional

from ..checkpoints import newest_checkpoint, tensorflow
from ..checkpoints.unreadable import Unreadable
from ..record import jobs, learned_patterns, metrics, resume_evidence
from ..record.events import say
from ..record.plan import Plan
from ..record.run_folder import RunFolder
from . import earlier_results, program_command, program_process, unpacked_code
from .this_job import Work

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
    earlier_results.show(code, carried, plan.keep)


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
