"""The end of a job: results kept, the record written, the chain's verdict said."""

import os
import shlex
import time
import traceback
from typing import Callable, List, Mapping, Tuple, TypeVar

from .. import files, timed_command
from ..record import (
    chain_rule,
    jobs,
    learned_patterns,
    resume_evidence,
    secrets_file,
    standstill,
    step_tracks,
)
from ..record.events import say
from . import extend_chain
from .program_process import ProgramEnd
from .this_job import Work, say_in_log

Found = TypeVar("Found")

NOT_READY = 1  # exit code of an agent whose program could not start, or whose results are lost
_PATIENCE = 30.0  # seconds with a scheduler that does not answer
# Ends of which the scheduler is told, by the exit code of the program.
_FAILED = (
    chain_rule.CRASHED,
    chain_rule.OUT_OF_MEMORY,
    chain_rule.OVER_QUOTA,
    chain_rule.DISK_FULL,
    chain_rule.NO_GPU,
)


def write_end(work: Work, found: jobs.Saved, end: ProgramEnd) -> None:
    """Record how the job ended; `found` is the checkpoint it started from."""
    if end.how == chain_rule.FINISHED:
        _write_done(work)
    after = despite_bugs(None, _newest, work, found, end.how)
    progressed = jobs.progressed(found, after)
    reason, remedy = end.reason, end.remedy
    if end.how == chain_rule.TIME_LIMIT and not progressed:
        no_forecast = {}  # type: files.Json
        forecast = despite_bugs(no_forecast, extend_chain.forecast_of_job, work, None)
        reason, remedy = forecast.get("stuck") or reason, forecast.get("hint", "")
    nothing_seen = [], resume_evidence.NOTHING  # type: Tuple[List[step_tracks.Track], resume_evidence.Judged]
    own, judged = despite_bugs(nothing_seen, judge_beginning, work, end.how, progressed)
    if judged.state == chain_rule.STARTED_OVER and end.how not in (
        chain_rule.FINISHED,
        chain_rule.NOT_KEPT,
    ):
        remedy = judged.hint
    ended = jobs.Ended(
        job=work.job,
        id=work.this_job.id,
        how=end.how,
        reason=reason,
        exit_code=end.exit_code,
        signal=end.signal,
        ended=time.time(),
        checkpoint=after,
        progressed=progressed,
        remedy=remedy,
        tracks=step_tracks.to_json(own),
        resumption=dict(judged._asdict()),
        missing=list(end.missing),
        used=end.used,
    )
    still = despite_bugs("", standstill.shown, work.run, work.job, work.plan.progress, own, ended)
    if still:
        say_in_log(work, "{}, although it saved again".format(still))
    ended = ended._replace(standstill=still or None)
    say("job {} ended: {} ({})".format(work.job, end.how, reason))
    work.event_log.note("ended", how=end.how, reason=reason)
    try:
        jobs.write_ended(work.run, ended)
    except OSError as problem:
        say("could not record the end of job {}: {}".format(work.job, problem))


def _write_done(work: Work) -> None:
    """Before all else: after the record of its end, the job no longer holds the run."""
    try:
        files.write_json(work.run.done, {"job": work.job, "time": time.time()})
        secrets_file.remove_secrets(work.run)
    except OSError as problem:
        say("could not record that the run is finished: {}".format(problem))


def despite_bugs(otherwise: Found, judge: Callable[..., Found], *given: object) -> Found:
    """What `judge` finds, or `otherwise` where it fails: the end of a job is recorded first.

    What a job did in days must not be lost by a mistake in the judging of it, nor by storage that
    refuses one read. A bug keeps its traceback, in the output of the job.
    """
    try:
        return judge(*given)
    except OSError as problem:
        say("{}; recording the end of the job anyway".format(problem))
        return otherwise
    except Exception:  # whatever it is
        say("a bug in rabaska; recording the end of the job anyway:")
        traceback.print_exc()
        return otherwise


def _newest(work: Work, found: jobs.Saved, how: str) -> jobs.Saved:
    """The newest checkpoint after the job, whatever it is called."""
    if how == chain_rule.SUPERSEDED:
        return None
    after = jobs.newest(work.run, work.job, work.plan.patterns)
    if jobs.progressed(found, after):
        return after
    return despite_bugs(None, learn_pattern, work) or after


def learn_pattern(work: Work) -> jobs.Saved:
    """A checkpoint that the job wrote and no pattern fits; from now on one does."""
    try:
        found = learned_patterns.learn(work.run, work.job, work.plan.patterns)
    except OSError as problem:
        say("could not search what the program saved: {}".format(problem))
        return None
    if found is None:
        return None
    told = "{} is a checkpoint, but matches none of the patterns {}: added `{}`".format(
        found.path, " ".join(work.plan.patterns), found.pattern
    )
    say_in_log(work, told + " for this run; add it to `[checkpoints] patterns`")
    work.event_log.note("pattern added", path=found.path, pattern=found.pattern)
    return {"path": found.path, "size": found.size, "mtime_ns": found.mtime_ns}


def judge_beginning(
    work: Work, how: str, progressed: bool
) -> Tuple[List[step_tracks.Track], resume_evidence.Judged]:
    """Where the job began to count, and whether that is where its checkpoint was saved."""
    if how == chain_rule.SUPERSEDED:
        return [], resume_evidence.NOTHING  # what it carried is another's now
    own = step_tracks.of_job(work.run, work.job, work.plan.progress, work.plan.patterns)
    judged = resume_evidence.judge(work.run, work.job, work.plan, own, how, progressed)
    if judged.state == resume_evidence.UNKNOWN and judged.why:
        say_in_log(work, "{}; {}".format(judged.why, judged.hint))
        work.event_log.note("beginning not known", why=judged.why)
    return own, judged


def conclude(work: Work, end: ProgramEnd) -> None:
    """Say at once when the chain is over, rather than leave it to the next job; else see to it."""
    verdict = resume_evidence.verdict_on(work.run, work.plan)
    if verdict.decision in (chain_rule.FINISHED, chain_rule.GIVE_UP):
        cancel_rest(os.environ)
    if verdict.decision == chain_rule.GIVE_UP:
        say("giving up: {}".format(verdict.reason))
        work.event_log.note("gave up", reason=verdict.reason, hint=verdict.hint)
        ended = jobs.read_ended(work.run, work.job)
        if ended is not None and (ended.resumption or {}).get("state") == chain_rule.STARTED_OVER:
            say_in_log(work, "{}; {}".format(verdict.reason, verdict.hint))
    if verdict.decision == chain_rule.GO_ON:
        extend_chain.exclude_failed_nodes(work, os.environ)
        extend_chain.extend_if_needed(work, end)


def cancel_rest(environment: Mapping[str, str]) -> None:
    """Take the jobs that still wait out of the queue; those that begin all the same do nothing."""
    words = shlex.split(environment.get("RABASKA_CANCEL_REST", ""))
    if not words:
        return
    try:
        code = timed_command.run(words, _PATIENCE, stderr=None).exit_code
    except OSError as problem:
        say("could not cancel the waiting jobs: {}".format(problem))
        return
    # Whether they are gone is what counts: some schedulers complain of those that were before.
    if code != 0 and extend_chain.jobs_waiting(environment) != 0:
        say("could not cancel the waiting jobs: {} exited with {}".format(words[0], code))


def exit_code(end: ProgramEnd) -> int:
    """0 when the chain simply goes on or is finished; otherwise as the program ended."""
    if end.how in (
        chain_rule.STAGING_FAILED,
        chain_rule.NO_TIME_LEFT,
        chain_rule.DAMAGED_DATA,
        chain_rule.NOT_KEPT,
    ):
        return NOT_READY
    if end.how not in _FAILED:
        return 0
    if end.exit_code is None and end.signal is None:
        return NOT_READY  # its environment found no room, say
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
