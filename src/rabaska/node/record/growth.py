"""Whether a chain that is too short may add a link by itself, and what its user can do if not.

Pure. One link at a time: each that is the last in the queue sees to the one after it, so that a
forecast that was wrong costs no more than one job that begins and has nothing to do.
"""

import shlex
from typing import List

from ..files import Json
from . import metrics
from .plan import Plan

USUAL = 30  # links, of a run whose user did not say how many


def limit(asked: Plan, lines: List[Json]) -> int:
    """How many links the run may have in all; `lines` are those of a link in metrics.jsonl."""
    said = asked.growth.at_most
    if said is None:
        said = USUAL if goes_on(asked, lines) else 0
    return max(said, asked.links)


def goes_on(asked: Plan, lines: List[Json]) -> bool:
    """Whether it is known to go on from a checkpoint: else each link would begin anew."""
    told = any("{checkpoint}" in word for word in asked.command)
    own = metrics.watched(lines)
    return told or bool(asked.resume) or bool(own and own[-1].get("anywhere"))


def hindrance(asked: Plan, lines: List[Json], there: int) -> str:
    """Why no link may be added to the `there` that were submitted; "" when one may."""
    most = limit(asked, lines)
    if there < most:
        return asked.growth.why_not
    if asked.growth.at_most is None and not goes_on(asked, lines):
        return "nothing tells that the program goes on from a checkpoint"
    return "it may have {} link{}".format(most, "s" if most > 1 else "")


def command(run: str, links: int) -> str:
    """What its user types to add links, once those that were submitted are over."""
    return "rabaska resume {} --links {}".format(shlex.quote(run), max(1, links))
