"""A chain that is too short grows; waiting jobs are kept away from a node that failed."""

import os
import shlex
import shutil
import subprocess
import sys
import time
import uuid
from typing import Dict, List, Mapping, Optional

from .. import timed_command
from ..files import Json
from ..own_program import own_path
from ..record import chain_rule, jobs, metrics, resume_evidence, submissions
from ..record.events import say
from ..record.run_folder import RunFolder
from ..record.run_forecast import outlook
from .program_process import ProgramEnd
from .this_job import Work, say_in_log

_PATIENCE = 120.0  # seconds with a scheduler that does not answer
_LOOK = 30.0  # seconds with a queue that is only looked at
_PAUSE = 3.0  # seconds between two tries
_LAST_SECONDS = 3.0  # of a job, in which nothing is begun
_GOES_ON = (chain_rule.TIME_LIMIT, chain_rule.ASKED_TO_GO_ON)
# Slurm hands all variables on to what a job submits; these would tell it that it is this job.
_OF_THIS_JOB, _OF_THE_SITE = "SLURM_", ("SLURM_CONF",)


def extend_if_needed(work: Work, end: ProgramEnd) -> None:
    """At the end of a job: if none follows and nobody meant to end it, add one or say how to."""
    submitted = last_job(work)
    # A program may be killed for its memory; what ends its job is asked for by somebody.
    by_itself = end.how in _GOES_ON or (end.how == chain_rule.KILLED and end.stop is None)
    by_itself = (
        by_itself or end.how in chain_rule.ITS_OWN_FAULT
    )  # of a node, where earlier ones went on
    if not by_itself or work.job < submitted:
        return
    why_not = submit_one_more(
        work, "job {} ended and the run is not finished".format(work.job), submitted
    )
    while no_answer(why_not) and _may_wait(work):
        time.sleep(_PAUSE)
        why_not = submit_one_more(
            work, "job {} ended and the run is not finished".format(work.job), submitted
        )
    if why_not:
        ended = jobs.read_ended(work.run, work.job)
        forecast = forecast_of_job(work, ended.checkpoint if ended else None)
        report_not_extended(work, why_not, int(forecast.get("jobs") or 0) - submitted)


def last_job(work: Work) -> int:
    """The last of the chain: this one and those that wait, where the queue tells.

    What was submitted may be gone: OpenPBS deletes with a job all that wait for it. A queue that
    does not answer is taken for what was submitted, or asked for.
    """
    waiting = jobs_waiting(os.environ)
    return submitted_jobs(work) if waiting is None else work.job + waiting


def submitted_jobs(work: Work) -> int:
    """The last that is submitted; where no answer was recorded, as many as were asked for."""
    return max(work.job, submissions.jobs_there(work.run) or work.plan.jobs)


def jobs_waiting(environment: Mapping[str, str]) -> Optional[int]:
    """How many jobs of the run the queue still has, this one left out; None: nobody knows."""
    words = shlex.split(environment.get("RABASKA_WAITING", ""))
    if not words:
        return None
    try:
        answer = timed_command.run(words, _LOOK, stderr=None)
    except OSError:
        return None
    return len(answer.output.split(b"\n")) - 1 if answer.exit_code == 0 else None


def forecast_of_job(work: Work, saved: jobs.Saved) -> Json:
    """The forecast of this job; nothing where its pace is not known, or not to be read."""
    try:
        return outlook(work.run, work.plan, metrics.tail(work.run, work.job), saved) or {}
    except (ValueError, KeyError, TypeError):
        return {}  # a line of the program's own; nothing depends on it


def no_answer(complaint: str) -> bool:
    """Whether the scheduler was not there: then the same words may be said again."""
    return submissions.NO_ANSWER.search(complaint) is not None


def _may_wait(work: Work) -> bool:
    """A server that is started anew is waited for, as long as this job lasts."""
    ends = work.this_job.due + work.plan.grace - _LAST_SECONDS
    return time.monotonic() + _PAUSE < ends and not os.path.exists(work.run.stop)


def submit_one_more(work: Work, why: str, submitted: int) -> str:
    """Submit one more job than `submitted`, to begin after this one; why not, if it could not."""
    began = resume_evidence.judged(work.run, work.job, work.plan)
    if began.state == resume_evidence.STARTED_OVER:
        return began.why
    lines = metrics.tail(work.run, work.job)
    shown = resume_evidence.seen_to_continue(work.run, work.plan)
    hindered = chain_rule.hindrance(work.plan, lines, submitted, shown)
    if hindered:
        return hindered
    words = [word.replace("{after}", _own_id(work)) for word in work.plan.growth.words]
    if not work.this_job.id:
        return "the id of this job is not known"
    if not words or shutil.which(words[0]) is None:
        return "{} is not available on this node".format(words[0] if words else "a scheduler")
    complaint = _submitted(work, words)
    if not complaint:
        say("submitted one more job: {}".format(why))
        work.event_log.note("extended", jobs=1, why=why)
    return complaint


def _own_id(work: Work) -> str:
    """The whole array, if the job is an element of one: its last, as far as we know."""
    return work.this_job.id.partition("_")[0]


def _submitted(work: Work, words: List[str]) -> str:
    """Submit as everybody does; what went wrong, if something did.

    Its mark is made of this job: who says it again, because its scheduler started the job anew or
    the answer was lost, gets the answer of the first.
    """
    mark = uuid.uuid5(uuid.NAMESPACE_URL, "{}/{}".format(work.run.path, work.this_job.id)).hex
    find = " ".join(map(shlex.quote, work.plan.growth.find))
    ours = [sys.executable, own_path(), "submit", work.run.path, "--once", "--mark", mark]
    ours += ["--after", _own_id(work), "--find", find, "--"]
    process = subprocess.Popen(
        ours + words,
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # some schedulers warn every process of a job's group
    )
    try:
        said, complained = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "{} did not answer".format(words[0])
    if process.returncode == 0:
        return ""
    text = (complained or said).decode("utf-8", "replace")
    return "{} said: {}".format(words[0], " ".join(text.split()))


def _environment(own: Mapping[str, str]) -> Dict[str, str]:
    return {
        name: text
        for name, text in own.items()
        if not name.startswith(_OF_THIS_JOB) or name in _OF_THE_SITE
    }


def report_not_extended(work: Work, why: str, count: int) -> None:
    """How its user adds jobs: where the job prints, and where the program did."""
    command = chain_rule.command(work.plan.run, count)
    again = resume_evidence.begins_again(work.run, work.plan)
    told = "this was the last job, and the run is not finished"
    if again.why:
        told = "{}; `{}` {}; {}".format(told, command, again, chain_rule.remedy(again))
    else:
        told = "{} ({}); `{}` {}".format(told, why, command, again)
    say_in_log(work, told)
    work.event_log.note("not extended", why=why, command=command)


EXCLUDE = "RABASKA_EXCLUDE"  # the scheduler's own command, with NODES in it; "" where it has none
LIST = "RABASKA_NODES"  # a command that lists nodes, each with what it has: `n1,8,64000,gpu:1,`
_EXCLUDE_PATIENCE = 30.0  # seconds with a scheduler that does not answer
_BY_THE_NODE = (
    chain_rule.CRASHED,
    chain_rule.STAGING_FAILED,
    chain_rule.DISK_FULL,
    chain_rule.NO_GPU,
)


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


def exclude_failed_nodes(work: Work, environment: Mapping[str, str]) -> None:
    """Ask the scheduler to start the jobs that wait elsewhere; without that, they just wait."""
    nodes = failed_on(work.run)
    asked = environment.get(EXCLUDE, "")
    # Of several nodes nobody can tell which one is bad.
    if not nodes or not asked or work.plan.launch.nodes > 1:
        return
    named = ", ".join(nodes)
    try:
        if not _has_others(_output_of(environment.get(LIST, "")), nodes):
            say("{} is not excluded: there is no other node like it".format(named))
            return
        _output_of(asked.replace("NODES", ",".join(nodes)))
    except OSError as problem:
        say("{} could not be excluded: {}".format(named, problem))
        return
    say("waiting jobs will not run on {}".format(named))
    work.event_log.note("excluded", nodes=nodes)


def _has_others(listed: str, nodes: List[str]) -> bool:
    """Whether the job could run elsewhere; else it would wait for ever."""
    has = dict(line.strip().partition(",")[::2] for line in listed.splitlines() if line.strip())
    bad = {has[node] for node in nodes if node in has}
    return any(what in bad for node, what in has.items() if node not in nodes)


def _output_of(command: str) -> str:
    answer = timed_command.run(shlex.split(command), _EXCLUDE_PATIENCE, stderr=subprocess.STDOUT)
    output = answer.output.decode("utf-8", "replace")
    if answer.exit_code == timed_command.NO_ANSWER:
        raise OSError("{} did not answer".format(command))
    if answer.exit_code != 0:
        raise OSError("{} said: {}".format(command, " ".join(output.split())))
    return output
