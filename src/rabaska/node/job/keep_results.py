"""Keeps the results in the code folder at the end of a job, and says what could not be kept."""

import os
import time
from typing import Callable, List, Sequence

from ..record import (
    chain_rule,
    jobs,
)
from ..record.events import say
from . import copied_files, results, unpacked_code
from .finish import despite_bugs
from .program_process import ProgramEnd
from .this_job import Work, say_in_log

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
    _report(work, kept)
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
        # Not by `work.stop_reason`, for which a lease that is not renewed is a reason to stop.
        return not work.lease.superseded
    return kept.may_pass and work.stop_reason() is None


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
    nothing: List[str] = []
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


def _report(work: Work, kept: results.KeptFiles) -> None:
    if kept.paths:
        work.event_log.note("kept", files=len(kept.paths), bytes=kept.size)
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
        work.event_log.note("passed over", paths=list(kept.passed_over))
    for path, why in kept.damaged:
        told = "{} in the code folder is damaged ({}): it is kept as {}.damaged, next to the "
        say_in_log(work, (told + "valid copy made earlier").format(path, why, path))
        work.event_log.note("kept as damaged", path=path, why=why)
    for why in kept.problems:
        say_in_log(work, "could not keep {}".format(why))
        work.event_log.note("not kept", why=why)


def some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(list(names)[:most]) + (" …" if len(names) > most else "")


def kept_elsewhere(work: Work) -> copied_files.Notify:
    def said(path: str, place: str) -> None:
        told = "{} in the code folder is kept as {} in the output, which already has another {}"
        say_in_log(work, told.format(path, place, path))
        work.event_log.note("kept elsewhere", path=path, place=place)

    return said
