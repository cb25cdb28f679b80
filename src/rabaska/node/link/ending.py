"""The end of a link: results kept, the record written, the chain's verdict said."""

import os
import shlex
import subprocess
import time
from typing import Callable, List, Mapping, Sequence, Tuple

from .. import files
from ..record import chain, links, patterns, resumption, secrets, tracks
from ..record.events import say
from . import bad_node, copies, growing, keep, snapshot
from .job import Work, say_in_log
from .program import End

NOT_READY = 1  # exit code of an agent whose program could not start
_PATIENCE = 30.0  # seconds with a scheduler that does not answer


def keep_results(
    work: Work, code: str, before: snapshot.Listing, going: Callable[[], bool]
) -> None:
    """Keep what is new beside the code, the newest checkpoint first, as long as there is time."""

    def may_write() -> bool:
        return not work.lease.lost()

    try:
        kept = keep.keep_new(
            code, work.carried, before, may_write, work.plan.patterns, going, kept_elsewhere(work)
        )
    except OSError as problem:
        kept = keep.Kept([], 0, [str(problem)])
    if kept.paths:
        work.diary.note("kept", files=len(kept.paths), bytes=kept.size)
    if kept.left:
        why = "{} of {} new files beside the code ({}): no time was left".format(
            len(kept.left), len(kept.left) + len(kept.paths), some(kept.left)
        )
        kept.problems.append(why + "; what is saved to {output} needs none")
    if kept.passed_over:
        say_in_log(work, "passed over, as no results: {}".format(some(kept.passed_over)))
        work.diary.note("passed over", paths=list(kept.passed_over))
    for path, why in kept.damaged:
        told = "{} beside the code is damaged ({}): it is kept as {}.damaged, and the valid one "
        say_in_log(work, (told + "that was copied before it stays").format(path, why, path))
        work.diary.note("kept as damaged", path=path, why=why)
    for why in kept.problems:
        say_in_log(work, "could not keep {}".format(why))
        work.diary.note("not kept", why=why)


def some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(list(names)[:most]) + (" …" if len(names) > most else "")


def kept_elsewhere(work: Work) -> copies.Said:
    def said(path: str, place: str) -> None:
        told = "{} beside the code is kept as {} in the output, which has another {} already"
        say_in_log(work, told.format(path, place, path))
        work.diary.note("kept elsewhere", path=path, place=place)

    return said


def write_end(work: Work, found: links.Saved, end: End) -> None:
    """Record how the link ended; `found` is the checkpoint it started from."""
    superseded = end.how == chain.SUPERSEDED
    after = None if superseded else links.newest(work.run, work.link, work.plan.patterns)
    if not superseded and not links.progressed(found, after):
        after = unfitting(work) or after
    progressed = links.progressed(found, after)
    reason, remedy = end.reason, end.remedy
    if end.how == chain.TIME_LIMIT and not progressed:
        told = growing.foretold(work, None)
        reason, remedy = told.get("stuck") or reason, told.get("hint", "")
    own, judged = began(work, end.how, progressed)
    if judged.state == chain.STARTED_OVER and end.how != chain.FINISHED:
        remedy = judged.hint
    ended = links.Ended(
        link=work.link,
        job=work.job.name,
        how=end.how,
        reason=reason,
        exit_code=end.exit_code,
        signal=end.signal,
        ended=time.time(),
        checkpoint=after,
        progressed=progressed,
        remedy=remedy,
        tracks=tracks.to_json(own),
        resumption=dict(judged._asdict()),
    )
    say("link {} ended: {} ({})".format(work.link, end.how, reason))
    work.diary.note("ended", how=end.how, reason=reason)
    try:
        # DONE first: after the record of its end, the link no longer holds the run.
        if end.how == chain.FINISHED:
            files.write_json(work.run.done, {"link": work.link, "time": time.time()})
            secrets.forget(work.run)
        links.write_ended(work.run, ended)
    except OSError as problem:
        say("the end of link {} could not be recorded: {}".format(work.link, problem))


def unfitting(work: Work) -> links.Saved:
    """A checkpoint that the link wrote and no pattern fits; from now on one does."""
    try:
        found = patterns.learn(work.run, work.link, work.plan.patterns)
    except OSError as problem:
        say("what the program saved could not be looked through: {}".format(problem))
        return None
    if found is None:
        return None
    told = "{} is a checkpoint, and none of the patterns {} fits it: `{}` is added to them".format(
        found.path, " ".join(work.plan.patterns), found.pattern
    )
    say_in_log(work, told + " for this run; name it in `[checkpoints] patterns`")
    work.diary.note("pattern added", path=found.path, pattern=found.pattern)
    return {"path": found.path, "size": found.size, "mtime_ns": found.mtime_ns}


def began(work: Work, how: str, progressed: bool) -> Tuple[List[tracks.Track], resumption.Judged]:
    """Where the link began to count, and whether that is where its checkpoint was saved."""
    if how == chain.SUPERSEDED:
        return [], resumption.NOTHING  # what it carried is another's now
    own = tracks.of_link(work.run, work.link, work.plan.progress, work.plan.patterns)
    return own, resumption.judge(work.run, work.link, work.plan, own, how, progressed)


def conclude(work: Work, end: End) -> None:
    """Say at once when the chain is over, rather than leave it to the next link; else see to it."""
    verdict = resumption.verdict_on(work.run, work.plan)
    if verdict.decision in (chain.FINISHED, chain.GIVE_UP):
        cancel_rest(os.environ)
    if verdict.decision == chain.GIVE_UP:
        say("giving up: {}".format(verdict.reason))
        work.diary.note("gave up", reason=verdict.reason, hint=verdict.hint)
        ended = links.read_ended(work.run, work.link)
        if ended is not None and (ended.resumption or {}).get("state") == chain.STARTED_OVER:
            say_in_log(work, "{}; {}".format(verdict.reason, verdict.hint))
    if verdict.decision == chain.GO_ON:
        bad_node.keep_away(work, os.environ)
        growing.see_to_next(work, end)


def cancel_rest(environment: Mapping[str, str]) -> None:
    """Take the links that still wait out of the queue; those that begin all the same do nothing."""
    words = shlex.split(environment.get("RABASKA_CANCEL_REST", ""))
    if not words:
        return
    try:
        code = subprocess.call(words, stdin=subprocess.DEVNULL, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as problem:
        say("the links that wait could not be cancelled: {}".format(problem))
        return
    # Whether they are gone is what counts: some schedulers complain of those that were before.
    if code != 0 and growing.links_waiting(environment) != 0:
        say("the links that wait could not be cancelled: {} gave {}".format(words[0], code))


def exit_code(end: End) -> int:
    """0 when the chain simply goes on or is finished; otherwise as the program ended."""
    if end.how in (chain.STAGING_FAILED, chain.NO_TIME_LEFT, chain.DAMAGED_DATA):
        return NOT_READY
    if end.how != chain.CRASHED:
        return 0
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
