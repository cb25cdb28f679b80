"""Whether a job went on from the checkpoint that the jobs before it left, or started over.

A chain whose jobs all begin with the first step is never finished, however many there are. What
shows it: a later job counts again what the first one did, one number after another. Its source is
no proof: programs go on in ways that nobody reads off it, such as a database beside the code. What
cannot be known is not claimed: then the chain goes on, and `status` and the log say so.
"""

import os
import re
from typing import Callable, Dict, List, NamedTuple, Optional

from ..files import Json
from . import chain_rule, jobs, metrics, plan, repeated_steps, step_tracks
from .plan import Plan
from .printed_line import LONGEST_LINE, LOOKING_BACK
from .repeated_steps import (
    ALONE,
    compare_tracks,
    first_number_proves,
    may_be_its_last_epoch,
    resumed_at,
    saved_after_first,
)
from .run_folder import RunFolder
from .step_tracks import Track

CONTINUED = repeated_steps.CONTINUED
STARTED_OVER = chain_rule.STARTED_OVER
UNKNOWN = repeated_steps.UNKNOWN

# The program was not at work, or was given what it could not work with.
_NO_FAULT = (
    chain_rule.STAGING_FAILED,
    chain_rule.DISK_FULL,
    chain_rule.NO_TIME_LEFT,
    chain_rule.DAMAGED_DATA,
)
# Printed or not.
_AT_WORK = (
    chain_rule.FINISHED,
    chain_rule.NOT_KEPT,
    chain_rule.TIME_LIMIT,
    chain_rule.ASKED_TO_GO_ON,
)
_RESUMES = (plan.FULL, plan.ITSELF, plan.VARIABLE)  # as its source shows
_OWN_LINES = b"rabaska: "
_LOOKED_AT = 65536  # bytes of a log
# "training fold 3", "Trial: 2", "stage=1": several trainings, one after another
_PART = re.compile(
    r"(?<![a-z_])(fold|split|stage|phase|trial)\s*[:=#]?\s*(\d{1,6})(?![\w.]*[a-z%])",
    re.IGNORECASE,
)


_GIVE_IT = (
    "give the program an option that loads model, optimizer and counter from a file, and name it "
    "in `command` with {checkpoint}, or under `resume`; or run all of it in one job: "
    "`--jobs 1 --at-most 1` with a longer `--walltime`"
)
_RESTORE = (
    "also load the counter (epoch or step) from the checkpoint, and start the training loop from "
    "it; or run all of it in one job: `--jobs 1 --at-most 1` with a longer `--walltime`"
)
_TELL_COUNTER = (
    "if it starts over, `rabaska cancel` saves the time of the remaining jobs; set `[progress] "
    "pattern` to the number that counts, so that this is known next time"
)


class Judged(NamedTuple):
    state: str  # CONTINUED, STARTED_OVER or UNKNOWN
    why: str = ""
    hint: str = ""
    step: Optional[float] = None  # that it went on with, where its log told others before


NOTHING = Judged(UNKNOWN)


def given(run_plan: Plan) -> Optional[bool]:
    """Whether the program is given the checkpoint it shall go on from; None: nobody knows."""
    words = " ".join(list(run_plan.command) + list(run_plan.resume))
    named = any("{checkpoint}" in word for word in run_plan.command)
    if named or run_plan.resume or "RABASKA_CHECKPOINT" in words or "RABASKA_RESUME" in words:
        return True
    if run_plan.resumes in (plan.VARIABLE, plan.WEIGHTS):
        return True
    return False if run_plan.resumes == plan.NOT else None


def judge(
    run: RunFolder,
    job: int,
    run_plan: Plan,
    own: List[Track],
    how: str = chain_rule.RUNNING,
    progressed: bool = False,
) -> Judged:
    """How `job` began, of which `own` are the tracks, and which ended as `how` says."""
    crashed = how == chain_rule.CRASHED and not progressed
    if crashed and own and all(track.seen < 2 for track in own):
        return NOTHING  # before any step: one number is of a setting, or of a path
    found = _as_tracked(run, job, run_plan, own)
    if found.state == STARTED_OVER and how in _NO_FAULT:
        return NOTHING
    if found.state != UNKNOWN:
        return found
    did_something = progressed or bool(own) or how in _AT_WORK or _printed(run.log(job))
    if how in _NO_FAULT or not did_something:
        return NOTHING  # it was over before it could begin anywhere
    without = _without_evidence(run, job, run_plan)
    return found if found.why or without == NOTHING else without


def _printed(log: str) -> bool:
    """Whether the program printed anything; lines of ours do not count."""
    return any(line.strip() and not line.startswith(_OWN_LINES) for line in _beginning(log))


def _beginning(log: str) -> List[bytes]:
    try:
        with open(log, "rb") as file:
            return file.read(_LOOKED_AT).splitlines()
    except OSError:
        return []


def _as_tracked(run: RunFolder, job: int, run_plan: Plan, own: List[Track]) -> Judged:
    begun = jobs.read_begun(run, job)
    if begun is None or begun.checkpoint_seen is None or run_plan.cuts:
        return NOTHING  # there was nothing to go on from; a rehearsal judges for itself
    path, passed_on = begun.checkpoint_seen["path"], given(run_plan)
    origin = _origin(run, job, run_plan)
    before = _tracks(run, job - 1, run_plan)
    over = mixed = NOTHING
    for mine in own:
        first = next((track for track in origin if track.what == mine.what), None)
        last = next((track for track in before if track.what == mine.what), None)
        state = compare_tracks(mine, first, last)
        if state == ALONE:
            certain = first_number_proves(mine, last, begun, run)
        else:
            certain = saved_after_first(last, begun, run)
        if run_plan.resumes in _RESUMES and may_be_its_last_epoch(mine, first, last, begun, run):
            certain = False
        if state == CONTINUED:
            # Whatever else it counts may begin again.
            return Judged(CONTINUED, step=resumed_at(mine, first, last))
        if state in (STARTED_OVER, ALONE) and certain:
            over = _began_again(job, path, passed_on, mine) if over == NOTHING else over
        elif state != UNKNOWN:
            mixed = _not_known(job, mine)
    if over != NOTHING and _is_next_part(run, job):
        return Judged(CONTINUED)
    return mixed if over == NOTHING else over


def _is_next_part(run: RunFolder, job: int) -> bool:
    """Whether it is at a later part than the job before, such as the next fold.

    Each part counts from its beginning. What a program does in each job, as `stage 1: preparing`,
    is the same part again.
    """
    mine, before = _parts(run.log(job)), _parts(run.log(job - 1))
    return any(min(mine[name]) > max(before[name]) for name in mine if name in before)


def _parts(log: str) -> Dict[str, List[int]]:
    found = {}  # type: Dict[str, List[int]]
    for line in _beginning(log):
        text = line[:LONGEST_LINE].decode("utf-8", "replace")
        for name, number in [] if LOOKING_BACK.search(text) else _PART.findall(text):
            found.setdefault(name.lower(), []).append(int(number))
    return found


def seen_to_continue(run: RunFolder, run_plan: Plan) -> bool:
    """Whether any job has shown that the program goes on from its checkpoints."""
    return any(judged(run, number, run_plan).state == CONTINUED for number in run.jobs()[1:])


def begins_again(run: RunFolder, run_plan: Plan) -> chain_rule.Again:
    """Whether another job would begin with the first step, as far as is known by now."""
    for number in reversed(run.jobs()):
        shown = judged(run, number, run_plan)
        if shown.state == CONTINUED:
            return chain_rule.GOES_ON
        if shown.state == STARTED_OVER:
            return chain_rule.Again(shown.why)
    watched = metrics.watched(metrics.tail(run, run.holder()))
    if watched and watched[-1].get("anywhere"):
        return chain_rule.GOES_ON
    return by_source(run_plan)


def by_source(run_plan: Plan) -> chain_rule.Again:
    """The same of a run that has not begun."""
    passed_on = given(run_plan)
    if passed_on is False:
        return chain_rule.Again("its program does not resume from a checkpoint")
    if run_plan.resumes == plan.WEIGHTS:
        return chain_rule.Again("its program loads only the weights from a checkpoint")
    if passed_on or run_plan.resumes in (plan.ITSELF, plan.FULL):
        return chain_rule.GOES_ON
    return chain_rule.Again(chain_rule.NOT_SHOWN, certain=False)


def judged(run: RunFolder, job: int, run_plan: Plan) -> Judged:
    """As recorded at its end; for a job that runs, or was lost, as its log shows so far."""
    ended = jobs.read_ended(run, job)
    if ended is not None:
        told = ended.resumption or {}
        return (
            Judged(**{name: told[name] for name in Judged._fields if name in told})
            if told
            else NOTHING
        )
    return judge(run, job, run_plan, _tracks(run, job, run_plan))


def verdict_on(run: RunFolder, run_plan: Plan) -> chain_rule.ChainVerdict:
    """The chain rule applied to what lies in the run folder, whose last job is over."""
    return verdict(run, run_plan, lambda: jobs.newest(run, run.holder(), run_plan.patterns))


def verdict(
    run: RunFolder,
    run_plan: Optional[Plan],
    newest: Callable[[], jobs.Saved],
    last_is_over: bool = True,
) -> chain_rule.ChainVerdict:
    """The same, where somebody else knows the newest checkpoint, and whether a job runs."""

    def beginning(job: int) -> Json:
        return {} if run_plan is None else dict(judged(run, job, run_plan)._asdict())

    return chain_rule.verdict(
        jobs.history(run, newest, last_is_over, beginning),
        done=os.path.exists(run.done),
        stopped=os.path.exists(run.stop),
        forgiven=jobs.forgiven(run),
        again=chain_rule.GOES_ON if run_plan is None else begins_again(run, run_plan),
    )


def _origin(run: RunFolder, job: int, run_plan: Plan) -> List[Track]:
    """The tracks of the first job that began without a checkpoint and counted anything."""
    for number in range(1, job):
        begun = jobs.read_begun(run, number)
        if begun is not None and begun.ready and begun.checkpoint_seen is None:
            found = _tracks(run, number, run_plan)
            if found:
                return found
    return []


def _tracks(run: RunFolder, job: int, run_plan: Plan) -> List[Track]:
    ended = jobs.read_ended(run, job)
    if ended is not None and ended.tracks:
        return step_tracks.from_json(ended.tracks)
    # Its files are looked through once, at its end: `status` may be run often.
    told = (
        step_tracks.of_log(run.log(job), run_plan.progress),
        step_tracks.of_watched(metrics.tail(run, job)),
    )
    return [track for track in told if track is not None]


def _not_known(job: int, mine: Track) -> Judged:
    place = "{} {:g}".format(mine.what.partition(" in ")[0], mine.first[0])
    why = "job {} begins with {}, as job 1 did; not clear whether it resumed or started over"
    return Judged(UNKNOWN, why.format(job, place), _TELL_COUNTER)


def _began_again(job: int, path: str, passed_on: Optional[bool], mine: Track) -> Judged:
    place = "{} {}".format(mine.what.partition(" in ")[0], "{:g}".format(mine.first[0]))
    told = "started over at {}, where job 1 began".format(place)
    if passed_on:
        why = "job {} was given {} and {}".format(job, path, told)
        return Judged(STARTED_OVER, why, _RESTORE)
    why = "job {} {}: nothing passes the checkpoint {} to its program".format(job, told, path)
    return Judged(STARTED_OVER, why, _GIVE_IT)


def _without_evidence(run: RunFolder, job: int, run_plan: Plan) -> Judged:
    """Nothing that it counts can be compared: what its source showed is a reason to warn."""
    begun = jobs.read_begun(run, job)
    if begun is None or begun.checkpoint_seen is None or run_plan.cuts:
        return NOTHING
    path, passed_on = begun.checkpoint_seen["path"], given(run_plan)
    if passed_on is False:
        why = "job {} was not given the checkpoint {}".format(job, path)
    elif passed_on and run_plan.resumes == plan.WEIGHTS:
        why = "job {} was given {}, but its program seems to load only the weights".format(
            job, path
        )
    else:
        return NOTHING
    return Judged(UNKNOWN, why + "; not clear whether it started over", _TELL_COUNTER)
