"""The chain rule: whether a run is finished, continues, grows or gives up."""

import shlex
from typing import List, NamedTuple, Optional, Sequence

from ..files import Json
from . import metrics, plan
from .plan import Plan

# How a job ended.
FINISHED = "finished"
TIME_LIMIT = "time limit"
CRASHED = "crashed"
KILLED = "killed"
CANCELLED = "cancelled"
ASKED_TO_GO_ON = "asked to go on"
SUPERSEDED = "superseded"
STAGING_FAILED = "staging failed"
DAMAGED_DATA = "damaged data"
NO_TIME_LEFT = "no time left"
OUT_OF_MEMORY = "out of memory"  # of the node or of its GPU
OVER_QUOTA = "quota exceeded"
DISK_FULL = "disk full"
NO_GPU = "no GPU"
NOT_KEPT = "results missing"  # the program finished, and what it left could not be kept
LOST = "lost"  # it began, left no record of its end, and its holder is gone
RUNNING = "running"
# How a job began that had a checkpoint to go on from, and did not.
STARTED_OVER = "started over"

# What is decided.
NOT_BEGUN = "not begun"
GO_ON = "go on"
GIVE_UP = "give up"

GO_ON_EXIT_CODE = 85  # a program's way to say "there is more to do, start me again"

# The same program ends in the same way again: another job would be spent for nothing. Unless an
# earlier job could do it: then a bad or busy node, or slow storage, is the likelier reason.
ITS_OWN_FAULT = (CRASHED, TIME_LIMIT, NO_TIME_LEFT, STAGING_FAILED, DISK_FULL, NO_GPU)
# Whatever it saved: without a change, the next job would end in the same way.
ENDS_THE_RUN = (DAMAGED_DATA, OUT_OF_MEMORY, OVER_QUOTA)
PATIENCE = 3  # jobs in a row that ended before anything was saved


class Job(NamedTuple):
    """How one job ended, as far as the chain rule cares."""

    number: int
    how: str
    progressed: bool = False
    reason: str = ""
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    remedy: str = ""  # what to do about it, where its pace or its beginning told
    started_over: str = ""  # what shows that it did not go on from its checkpoint
    standstill: str = ""  # what shows that it got no further, though it saved


class ChainVerdict(NamedTuple):
    decision: str
    reason: str = ""
    hint: str = ""


class Again(NamedTuple):
    """That another job begins with the first step, whatever was saved, and why."""

    why: str = ""  # "" where it goes on
    certain: bool = True

    def __str__(self) -> str:
        """What `rabaska resume` does, to be said after its name."""
        if not self.why:
            return "continues"
        return "{} start over: {}".format("would" if self.certain else "may", self.why)


GOES_ON = Again()
_SAVE_IN_TIME = (
    "make the program save more often than the time limit, or ask for a longer one; if it does "
    "save, name its files in `[checkpoints] patterns`"
)
_STANDS_STILL = (
    "find out why it stops there (`rabaska logs` shows its last output, `rabaska explain` may "
    "know); `rabaska run` after a change, or `rabaska resume` to try again"
)
_AFTER_A_CHANGE = "after a change to code, data or [environment], use `rabaska run`"
# What ends a run whose jobs all begin with the first step; of `rabaska resume` it is not one.
ALL_IN_ONE = (
    "give it a longer `--walltime`, enough for all of it in one job, or make the program save "
    "model, optimizer and counter and load them from its checkpoint; then `rabaska run`"
)


_IN_WORDS = {
    OUT_OF_MEMORY: "ran out of memory",
    OVER_QUOTA: "could not write",
    DISK_FULL: "could not write",
    NO_GPU: "found no GPU",
}


def verdict(
    jobs: Sequence[Job],
    done: bool = False,
    stopped: bool = False,
    forgiven: int = 0,
    again: Again = GOES_ON,
) -> ChainVerdict:
    """What to do next, given every job so far; jobs up to number `forgiven` count no more.

    The hint says how to get further, should no other job follow.
    """
    decided = _decided(jobs, done, stopped, forgiven, again)
    if decided.decision == GO_ON and again.why:
        # What ended otherwise, with its node perhaps, may well fit into another job of that length.
        too_long = jobs[-1].how in (TIME_LIMIT, ASKED_TO_GO_ON)
        hint = "`rabaska resume` {}".format(again)
        return decided._replace(hint="{}; {}".format(hint, remedy(again)) if too_long else hint)
    return decided


def remedy(again: Again) -> str:
    """What to do about a program that begins again, or about one that may."""
    return ALL_IN_ONE if again.certain else "if it does, " + ALL_IN_ONE


def _decided(
    jobs: Sequence[Job], done: bool, stopped: bool, forgiven: int, again: Again
) -> ChainVerdict:
    if done:
        return ChainVerdict(FINISHED, "the program finished")
    if stopped:
        return ChainVerdict(GIVE_UP, "cancelled", "`rabaska resume` continues the run")
    if not jobs:
        return ChainVerdict(NOT_BEGUN, "no job has begun yet")
    last = jobs[-1]
    if last.how == RUNNING:
        return ChainVerdict(GO_ON, "job {} is running".format(last.number))
    if last.how == FINISHED:
        # DONE could not be written, for want of space perhaps; the job's own record will do.
        return ChainVerdict(FINISHED, "the program finished")
    if last.number <= forgiven:
        return ChainVerdict(GO_ON, "the run was resumed after job {}".format(forgiven))
    if last.how == NOT_KEPT:
        return ChainVerdict(GIVE_UP, last.reason, last.remedy)
    if last.how in ENDS_THE_RUN:
        return _give_up(last, again)
    if last.started_over:
        # What it saved is the same again: no number of jobs would finish the run.
        return ChainVerdict(GIVE_UP, "it starts over: " + last.started_over, last.remedy)
    if last.progressed:
        return ChainVerdict(GO_ON, "job {} saved progress".format(last.number))
    if last.how in ITS_OWN_FAULT and not any(job.progressed for job in jobs):
        return _give_up(last, again)
    return _after_interruption(last, [job for job in jobs if job.number > forgiven], again)


def _after_interruption(last: Job, jobs: List[Job], again: Again) -> ChainVerdict:
    """`last` ended before it saved anything, by bad luck perhaps: try again, but not for ever."""
    fruitless = 0
    for job in reversed(jobs):
        if job.progressed:
            break
        fruitless += 1
    if fruitless < PATIENCE and last.standstill:
        return ChainVerdict(GO_ON, "{}; trying another job".format(last.standstill))
    if fruitless < PATIENCE and last.how in ITS_OWN_FAULT:
        reason = "job {} failed ({}) where earlier jobs did not; trying another job"
        return ChainVerdict(GO_ON, reason.format(last.number, last.reason or last.how))
    if fruitless < PATIENCE:
        return ChainVerdict(GO_ON, "job {} was interrupted ({})".format(last.number, last.how))
    if last.standstill:
        said = last.reason or last.how
        reason = "{} jobs in a row made no progress ({}): {}".format(
            fruitless, said, last.standstill
        )
        return ChainVerdict(GIVE_UP, reason, _STANDS_STILL)
    return ChainVerdict(
        GIVE_UP,
        "{} jobs in a row saved nothing; the last one: {}".format(
            fruitless, last.reason or last.how
        ),
        last.remedy or _after_many(again),
    )


def _after_many(again: Again) -> str:
    """What to do about jobs that something ends, one after another."""
    found_out = "find out why the jobs end (`rabaska explain` may know)"
    if again.why and again.certain:
        return "{}; `rabaska resume` {}".format(found_out, again)
    return "{}, then `rabaska resume`; or save more often: {}".format(found_out, _AFTER_A_CHANGE)


def _give_up(last: Job, again: Again) -> ChainVerdict:
    said = last.reason or last.how
    if last.how == TIME_LIMIT:
        why = ": {}".format(said) if last.remedy else ""
        return ChainVerdict(
            GIVE_UP,
            "job {} reached its time limit and nothing was saved{}".format(last.number, why),
            last.remedy or (ALL_IN_ONE if again.why and again.certain else _SAVE_IN_TIME),
        )
    if last.how == NO_TIME_LEFT:
        return ChainVerdict(
            GIVE_UP,
            "job {} had no time left to train: {}".format(last.number, said),
            "ask for a longer time limit with `--walltime`",
        )
    if last.how == DAMAGED_DATA:
        return ChainVerdict(
            GIVE_UP,
            "job {} read damaged data: {}".format(last.number, said),
            last.remedy or "`rabaska data verify` names what is damaged",
        )
    if last.how in _IN_WORDS:
        return ChainVerdict(
            GIVE_UP,
            "job {} {}: {}".format(last.number, _IN_WORDS[last.how], said),
            last.remedy or "`rabaska logs` shows the program's last output",
        )
    if last.how == STAGING_FAILED:
        return ChainVerdict(
            GIVE_UP,
            "job {} could not be prepared: {}".format(last.number, said),
            last.remedy or "fix that, then `rabaska resume`; {}".format(_AFTER_A_CHANGE),
        )
    return ChainVerdict(
        GIVE_UP,
        "job {} crashed before anything was saved: {}".format(last.number, said),
        "`rabaska logs` shows the program's last output; correct the program, then `rabaska run`",
    )


USUAL = 30  # jobs, of a run whose user did not say how many
TRIED = 2  # that it takes to see whether a program goes on, where its source does not show it

NOT_SHOWN = "nothing shows that the program resumes from a checkpoint"


def limit(run_plan: Plan, lines: List[Json], shown: bool = False) -> int:
    """How many jobs the run may have in all; `lines` are those of a job in metrics.jsonl.

    `shown`: one of its jobs was seen to go on from a checkpoint.
    """
    said = run_plan.growth.at_most
    if said is None:
        said = USUAL if goes_on(run_plan, lines, shown) else TRIED if _may_go_on(run_plan) else 0
    return max(said, run_plan.jobs)


def goes_on(run_plan: Plan, lines: List[Json], shown: bool = False) -> bool:
    """Whether it is known to go on from a checkpoint: else each job would begin anew."""
    own = metrics.watched(lines)
    if shown or (own and own[-1].get("anywhere")):
        return True
    if run_plan.resumes in (plan.NOT, plan.WEIGHTS, plan.UNREAD):
        return False
    return _is_told(run_plan) or run_plan.resumes in (plan.ITSELF, plan.VARIABLE)


def _may_go_on(run_plan: Plan) -> bool:
    return run_plan.resumes == plan.UNREAD and _is_told(run_plan)


def _is_told(run_plan: Plan) -> bool:
    return bool(run_plan.resume) or any("{checkpoint}" in word for word in run_plan.command)


def hindrance(run_plan: Plan, lines: List[Json], submitted: int, shown: bool = False) -> str:
    """Why no job may be added to the `submitted`; "" when one may."""
    most = limit(run_plan, lines, shown)
    if submitted < most:
        return run_plan.growth.why_not
    if run_plan.growth.at_most is None and not goes_on(run_plan, lines, shown):
        return NOT_SHOWN
    return "the limit is {} job{}".format(most, "s" if most > 1 else "")


def command(run: str, jobs: int) -> str:
    """What its user types to add jobs, once those that were submitted are over."""
    return "rabaska resume {} --jobs {}".format(shlex.quote(run), max(1, jobs))
