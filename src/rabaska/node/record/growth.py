"""Whether a chain that is too short may add a job by itself, and what its user can do if not.

Pure. One job at a time: each that is the last in the queue sees to the one after it, so that a
forecast that was wrong costs no more than one job that begins and has nothing to do.
"""

import shlex
from typing import List

from ..files import Json
from . import metrics, plan
from .plan import Plan

USUAL = 30  # jobs, of a run whose user did not say how many
TRIED = 2  # that it takes to see whether a program goes on, where its source does not show it

NOT_SHOWN = "nothing shows that the program goes on from a checkpoint"


def limit(asked: Plan, lines: List[Json], shown: bool = False) -> int:
    """How many jobs the run may have in all; `lines` are those of a job in metrics.jsonl.

    `shown`: one of its jobs was seen to go on from a checkpoint.
    """
    said = asked.growth.at_most
    if said is None:
        said = USUAL if goes_on(asked, lines, shown) else TRIED if _may_go_on(asked) else 0
    return max(said, asked.jobs)


def goes_on(asked: Plan, lines: List[Json], shown: bool = False) -> bool:
    """Whether it is known to go on from a checkpoint: else each job would begin anew."""
    own = metrics.watched(lines)
    if shown or (own and own[-1].get("anywhere")):
        return True
    if asked.resumes in (plan.NOT, plan.WEIGHTS, plan.UNREAD):
        return False
    return _is_told(asked) or asked.resumes in (plan.ITSELF, plan.VARIABLE)


def _may_go_on(asked: Plan) -> bool:
    return asked.resumes == plan.UNREAD and _is_told(asked)


def _is_told(asked: Plan) -> bool:
    return bool(asked.resume) or any("{checkpoint}" in word for word in asked.command)


def hindrance(asked: Plan, lines: List[Json], there: int, shown: bool = False) -> str:
    """Why no job may be added to the `there` that were submitted; "" when one may."""
    most = limit(asked, lines, shown)
    if there < most:
        return asked.growth.why_not
    if asked.growth.at_most is None and not goes_on(asked, lines, shown):
        return NOT_SHOWN
    return "it may have {} job{}".format(most, "s" if most > 1 else "")


def command(run: str, jobs: int) -> str:
    """What its user types to add jobs, once those that were submitted are over."""
    return "rabaska resume {} --jobs {}".format(shlex.quote(run), max(1, jobs))
