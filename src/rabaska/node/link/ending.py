"""The end of a link: results kept, the record written, the chain's verdict said."""

import os
import shlex
import subprocess
import time
from typing import Mapping

from .. import files
from ..record import chain, links
from ..record.events import say
from . import growing, keep, snapshot
from .job import Work
from .program import End

NOT_READY = 1  # exit code of an agent whose program could not start
_PATIENCE = 30.0  # seconds with a scheduler that does not answer


def keep_results(work: Work, code: str, before: snapshot.Listing) -> None:
    try:
        kept = keep.keep_new(code, work.carried, before, may_write=lambda: not work.lease.lost())
    except OSError as problem:
        kept = keep.Kept([], 0, [str(problem)])
    if kept.paths:
        work.diary.note("kept", files=len(kept.paths), bytes=kept.size)
    for why in kept.problems:
        say("could not keep {}".format(why))
        work.diary.note("not kept", why=why)


def write_end(work: Work, found: links.Saved, end: End) -> None:
    """Record how the link ended; `found` is the checkpoint it started from."""
    superseded = end.how == chain.SUPERSEDED
    after = None if superseded else links.newest(work.run, work.link, work.plan.patterns)
    progressed = links.progressed(found, after)
    reason, remedy = end.reason, ""
    if end.how == chain.TIME_LIMIT and not progressed:
        told = growing.foretold(work, None)
        reason, remedy = told.get("stuck") or reason, told.get("hint", "")
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
    )
    say("link {} ended: {} ({})".format(work.link, end.how, reason))
    work.diary.note("ended", how=end.how, reason=reason)
    try:
        # DONE first: after the record of its end, the link no longer holds the run.
        if end.how == chain.FINISHED:
            files.write_json(work.run.done, {"link": work.link, "time": time.time()})
        links.write_ended(work.run, ended)
    except OSError as problem:
        say("the end of link {} could not be recorded: {}".format(work.link, problem))


def conclude(work: Work, end: End) -> None:
    """Say at once when the chain is over, rather than leave it to the next link; else see to it."""
    verdict = links.verdict_on(work.run, work.plan.patterns)
    if verdict.decision in (chain.FINISHED, chain.GIVE_UP):
        cancel_rest(os.environ)
    if verdict.decision == chain.GIVE_UP:
        say("giving up: {}".format(verdict.reason))
        work.diary.note("gave up", reason=verdict.reason, hint=verdict.hint)
    if verdict.decision == chain.GO_ON:
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
    if code != 0:
        say("the links that wait could not be cancelled: {} gave {}".format(words[0], code))


def exit_code(end: End) -> int:
    """0 when the chain simply goes on or is finished; otherwise as the program ended."""
    if end.how in (chain.STAGING_FAILED, chain.NO_TIME_LEFT):
        return NOT_READY
    if end.how != chain.CRASHED:
        return 0
    return end.exit_code if end.exit_code is not None else 128 + (end.signal or 0)
