"""The end of a job: results kept, the record written, the chain's verdict said."""

import os
import shlex
import subprocess
import time
import traceback
from typing import Callable, List, Mapping, Sequence, Tuple, TypeVar

from .. import files
from ..record import (
    chain_rule,
    jobs,
    learned_patterns,
    plan,
    resume_evidence,
    standstill,
    step_tracks,
)
from ..record.events import say
from . import copied_files, extend_chain, results, unpacked_code
from .program_process import ProgramEnd
from .this_job import Work, say_in_log

Found = TypeVar("Found")

NOT_READY = 1  # exit code of an agent whose program could not start, or whose results are lost
_PATIENCE = 30.0  # seconds with a scheduler that does not answer
_TRYING = 300.0  # seconds with storage that takes nothing, if the job has so long
_LONGEST_PAUSE = 30.0  # seconds
_ALL_NEW = "new files in the code folder"
_NAMED = 50  # files that are missing: on a full disk there is little room to say so

_MAKE_ROOM = (
    "make room where the run is stored (`rabaska storage`, `rabaska clean`), then `rabaska resume` "
    "runs the program again from its newest checkpoint; files saved to {output} need no copy"
)
_MORE_TIME = (
    "`rabaska resume` runs the program again from its newest checkpoint; a longer `--walltime` "
    "gives more time to copy, and files saved to {output} need no copy"
)
_STORAGE_BACK = (
    "once the storage of the run can be reached, `rabaska resume` runs the program again from its "
    "newest checkpoint; files saved to {output} need no copy"
)


def keep_results(
    work: Work, code: str, before: unpacked_code.Listing, going: Callable[[], bool], end: ProgramEnd
) -> ProgramEnd:
    """Keep what is new beside the code, the newest checkpoint first, as long as there is time.

    The end of the job, which is another one if results are missing.
    """
    nothing = results.KeptFiles(
        [], 0, ["a bug in rabaska, see the job's output"], failed=[_ALL_NEW]
    )
    kept = despite_bugs(nothing, _keep_trying, work, code, before, going)
    _tell(work, kept)
    return with_missing(work, kept, end)


def _keep_trying(
    work: Work, code: str, before: unpacked_code.Listing, going: Callable[[], bool]
) -> results.KeptFiles:
    until = time.monotonic() + float(os.environ.get("RABASKA_KEEP_SECONDS") or _TRYING)
    pause = 1.0
    kept = _keep_once(work, code, before, going)
    while _worth_another_try(work, kept) and time.monotonic() + pause <= until and going():
        why = "cannot write to the run folder" if kept.cut_off else kept.problems[0]
        say("{}; trying again in {:.0f} s".format(why, pause))
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        kept = _keep_once(work, code, before, going)
    return kept


def _worth_another_try(work: Work, kept: results.KeptFiles) -> bool:
    if kept.cut_off:
        # Not by `work.look`, for which a lease that is not renewed is a reason to stop.
        return not work.lease.superseded
    return kept.may_pass and work.look() is None


def _keep_once(
    work: Work, code: str, before: unpacked_code.Listing, going: Callable[[], bool]
) -> results.KeptFiles:
    def may_write() -> bool:
        return not work.lease.lost()

    try:
        return results.keep_new(
            code, work.carried, before, may_write, work.plan.patterns, going, kept_elsewhere(work)
        )
    except OSError as problem:
        passing = problem.errno in results.PASSING
        return results.KeptFiles([], 0, [str(problem)], failed=[_ALL_NEW], may_pass=passing)


def with_missing(work: Work, kept: results.KeptFiles, end: ProgramEnd) -> ProgramEnd:
    """`end`, but a program whose results are not all there did not simply finish."""
    if end.how == chain_rule.SUPERSEDED or work.lease.superseded:
        return end
    nothing = []  # type: List[str]
    output = os.path.join(work.carried, "output")
    earlier = despite_bugs(nothing, jobs.not_kept, work.run, output)
    missing = kept.missing + [path for path in earlier if path not in kept.missing]
    if end.how != chain_rule.FINISHED or not missing:
        return end._replace(missing=kept.missing[:_NAMED])
    why = "; ".join(kept.problems) or "{} of earlier jobs".format(some(earlier))
    counted = "{} file{}".format(len(missing), "" if len(missing) == 1 else "s")
    return end._replace(
        how=chain_rule.NOT_KEPT,
        reason="the program finished, but {} could not be kept: {}".format(counted, why),
        remedy=_remedy(kept),
        missing=missing[:_NAMED],
    )


def _remedy(kept: results.KeptFiles) -> str:
    if kept.cut_off:
        return _STORAGE_BACK
    return _MORE_TIME if kept.left else _MAKE_ROOM


def _tell(work: Work, kept: results.KeptFiles) -> None:
    if kept.paths:
        work.diary.note("kept", files=len(kept.paths), bytes=kept.size)
    if kept.left:
        why = "{} of {} new files in the code folder ({}): ".format(
            len(kept.left), len(kept.left) + len(kept.paths), some(kept.left)
        )
        if kept.cut_off:
            why += work.lease.lost() or "the run folder could not be reached in time"
        else:
            why += "no time was left to copy; files saved to {output} need no copy"
        kept.problems.append(why)
    if kept.passed_over:
        say_in_log(work, "ignored, not results: {}".format(some(kept.passed_over)))
        work.diary.note("passed over", paths=list(kept.passed_over))
    for path, why in kept.damaged:
        told = "{} in the code folder is damaged ({}): it is kept as {}.damaged, next to the "
        say_in_log(work, (told + "valid copy made earlier").format(path, why, path))
        work.diary.note("kept as damaged", path=path, why=why)
    for why in kept.problems:
        say_in_log(work, "could not keep {}".format(why))
        work.diary.note("not kept", why=why)


def some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(list(names)[:most]) + (" …" if len(names) > most else "")


def kept_elsewhere(work: Work) -> copied_files.Said:
    def said(path: str, place: str) -> None:
        told = "{} in the code folder is kept as {} in the output, which already has another {}"
        say_in_log(work, told.format(path, place, path))
        work.diary.note("kept elsewhere", path=path, place=place)

    return said


def write_end(work: Work, found: jobs.Saved, end: ProgramEnd) -> None:
    """Record how the job ended; `found` is the checkpoint it started from."""
    if end.how == chain_rule.FINISHED:
        _write_done(work)
    after = despite_bugs(None, _newest, work, found, end.how)
    progressed = jobs.progressed(found, after)
    reason, remedy = end.reason, end.remedy
    if end.how == chain_rule.TIME_LIMIT and not progressed:
        nothing_told = {}  # type: files.Json
        told = despite_bugs(nothing_told, extend_chain.foretold, work, None)
        reason, remedy = told.get("stuck") or reason, told.get("hint", "")
    nothing_seen = [], resume_evidence.NOTHING  # type: Tuple[List[step_tracks.Track], resume_evidence.Judged]
    own, judged = despite_bugs(nothing_seen, began, work, end.how, progressed)
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
    )
    still = despite_bugs("", standstill.shown, work.run, work.job, work.plan.progress, own, ended)
    if still:
        say_in_log(work, "{}, although it saved again".format(still))
    ended = ended._replace(standstill=still or None)
    say("job {} ended: {} ({})".format(work.job, end.how, reason))
    work.diary.note("ended", how=end.how, reason=reason)
    try:
        jobs.write_ended(work.run, ended)
    except OSError as problem:
        say("could not record the end of job {}: {}".format(work.job, problem))


def _write_done(work: Work) -> None:
    """Before all else: after the record of its end, the job no longer holds the run."""
    try:
        files.write_json(work.run.done, {"job": work.job, "time": time.time()})
        plan.remove_secrets(work.run)
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
    return despite_bugs(None, unfitting, work) or after


def unfitting(work: Work) -> jobs.Saved:
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
    work.diary.note("pattern added", path=found.path, pattern=found.pattern)
    return {"path": found.path, "size": found.size, "mtime_ns": found.mtime_ns}


def began(
    work: Work, how: str, progressed: bool
) -> Tuple[List[step_tracks.Track], resume_evidence.Judged]:
    """Where the job began to count, and whether that is where its checkpoint was saved."""
    if how == chain_rule.SUPERSEDED:
        return [], resume_evidence.NOTHING  # what it carried is another's now
    own = step_tracks.of_job(work.run, work.job, work.plan.progress, work.plan.patterns)
    judged = resume_evidence.judge(work.run, work.job, work.plan, own, how, progressed)
    if judged.state == resume_evidence.UNKNOWN and judged.why:
        say_in_log(work, "{}; {}".format(judged.why, judged.hint))
        work.diary.note("beginning not known", why=judged.why)
    return own, judged


def conclude(work: Work, end: ProgramEnd) -> None:
    """Say at once when the chain is over, rather than leave it to the next job; else see to it."""
    verdict = resume_evidence.verdict_on(work.run, work.plan)
    if verdict.decision in (chain_rule.FINISHED, chain_rule.GIVE_UP):
        cancel_rest(os.environ)
    if verdict.decision == chain_rule.GIVE_UP:
        say("giving up: {}".format(verdict.reason))
        work.diary.note("gave up", reason=verdict.reason, hint=verdict.hint)
        ended = jobs.read_ended(work.run, work.job)
        if ended is not None and (ended.resumption or {}).get("state") == chain_rule.STARTED_OVER:
            say_in_log(work, "{}; {}".format(verdict.reason, verdict.hint))
    if verdict.decision == chain_rule.GO_ON:
        extend_chain.keep_away(work, os.environ)
        extend_chain.see_to_next(work, end)


def cancel_rest(environment: Mapping[str, str]) -> None:
    """Take the jobs that still wait out of the queue; those that begin all the same do nothing."""
    words = shlex.split(environment.get("RABASKA_CANCEL_REST", ""))
    if not words:
        return
    try:
        code = subprocess.call(words, stdin=subprocess.DEVNULL, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as problem:
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
    if end.how != chain_rule.CRASHED:
        return 0
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
