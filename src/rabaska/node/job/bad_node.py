"""A node where jobs fail that went well elsewhere: the jobs that wait are kept away from it.

A full /tmp or a failed `module load` is the node's fault when earlier jobs of the run had neither.
The next job would often begin on the same node, because that is the one which is free again.
"""

import shlex
import subprocess
from typing import List, Mapping

from .. import asking
from ..record import chain, jobs
from ..record.events import say
from ..record.runfolder import RunFolder
from .this_job import Work

EXCLUDE = "RABASKA_EXCLUDE"  # the scheduler's own command, with NODES in it; "" where it has none
LIST = "RABASKA_NODES"  # a command that lists nodes, each with what it has: `n1,8,64000,gpu:1,`
_PATIENCE = 30.0  # seconds with a scheduler that does not answer
_BY_THE_NODE = (chain.CRASHED, chain.STAGING_FAILED)


def failed_on(run: RunFolder) -> List[str]:
    """The nodes on which the jobs since the last progress failed by themselves."""
    nodes = set()
    for number in reversed(run.jobs()):
        begun, ended = jobs.read_begun(run, number), jobs.read_ended(run, number)
        if ended is None or ended.progressed:
            break
        if begun is not None and ended.how in _BY_THE_NODE:
            nodes.add(begun.host.partition(".")[0])
    return sorted(nodes)


def keep_away(work: Work, environment: Mapping[str, str]) -> None:
    """Ask the scheduler to start the jobs that wait elsewhere; without that, they just wait."""
    nodes = failed_on(work.run)
    asked = environment.get(EXCLUDE, "")
    # Of several nodes nobody can tell which one is bad.
    if not nodes or not asked or work.plan.launch.nodes > 1:
        return
    named = ", ".join(nodes)
    try:
        if not _has_others(_said(environment.get(LIST, "")), nodes):
            say("{} is not excluded: no other node here is like it".format(named))
            return
        _said(asked.replace("NODES", ",".join(nodes)))
    except OSError as problem:
        say("{} could not be excluded: {}".format(named, problem))
        return
    say("the jobs that wait will not run on {}".format(named))
    work.diary.note("excluded", nodes=nodes)


def _has_others(listed: str, nodes: List[str]) -> bool:
    """Whether the job could run elsewhere; else it would wait for ever."""
    has = dict(line.strip().partition(",")[::2] for line in listed.splitlines() if line.strip())
    bad = {has[node] for node in nodes if node in has}
    return any(what in bad for node, what in has.items() if node not in nodes)


def _said(command: str) -> str:
    told = asking.heard(shlex.split(command), _PATIENCE, stderr=subprocess.STDOUT)
    said = told.said.decode("utf-8", "replace")
    if told.exit_code == asking.NO_ANSWER:
        raise OSError("{} did not answer".format(command))
    if told.exit_code != 0:
        raise OSError("{} said: {}".format(command, " ".join(said.split())))
    return said
