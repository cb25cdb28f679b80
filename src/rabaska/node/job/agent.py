"""The agent: one job of a run, from the claim to the record of its end."""

import os
import socket
import time
from contextlib import contextmanager
from typing import Iterator, List, Optional

from .. import files, own_program
from ..data import stage
from ..record import chain_rule, events, jobs, lease, plan, resume_evidence
from ..record.events import EventLog, say
from ..record.phases import BUILDING, STAGING, PhaseLog, script_seconds
from ..record.run_folder import RunFolder
from . import (
    asked_servers,
    copy_files,
    failure_cause,
    finish,
    interruptions,
    job_folder,
    kept_environment,
    node_checks,
    other_nodes,
    prepare_program,
    program_environment,
    program_process,
    run_program,
    stage_datasets,
)
from .program_process import ProgramEnd
from .stop_signals import Deadline, Interrupts
from .this_job import (
    ThisJob,
    Work,
    reasons_to_stop,
    this_job_from,
    told_to_end,
)

HELD_BY_ANOTHER = 75  # "try again later", as sysexits.h spells it

_BEGAN = time.monotonic()
_WORTH_TELLING = 5.0  # seconds of the job's script; without an environment to build it is quick
_ANOTHER_LOOK = 0.5  # seconds; this node may remember for a while what others changed
_UNTIL_ENDED = 120.0  # seconds for a scheduler that said it would end the job
_RESERVED = 16384  # bytes set aside, so that a full disk cannot swallow the record of the end


def main(argv: List[str]) -> int:
    if len(argv) != 1:
        say("usage: run RUNFOLDER")
        return 2
    run = RunFolder(os.path.realpath(argv[0]))
    if own_program.is_damaged():
        # Not by us: jobs that run may still load parts of it.
        said = "{} is damaged; remove it, and `rabaska resume {}` sends it again"
        say(said.format(own_program.program_path(), run.name))
        return finish.NOT_READY
    try:
        run_plan = plan.load(run)
    except (plan.WrongFormat, ValueError, KeyError, TypeError) as problem:
        say("{} cannot be read: {}".format(run.plan, problem))
        return finish.NOT_READY
    if run_plan is None:
        say("{} does not exist: nothing to run".format(run.plan))
        return finish.NOT_READY
    keeper = os.environ.get("RABASKA_KEEPER", "")
    signals = Interrupts(int(keeper) if keeper.isdigit() else None)
    signals.install()
    kept_environment.use(os.environ)
    try:
        return one_job(run, run_plan, this_job_from(os.environ, run_plan, time.time()), signals)
    except lease.LeaseDiskFull as problem:
        say("{}; this job exits".format(problem))
        return finish.NOT_READY
    finally:
        node_checks.clean(os.environ)


def one_job(run: RunFolder, run_plan: plan.Plan, this_job: ThisJob, signals: Interrupts) -> int:
    """Carry the run one job further, if there is anything left to do."""
    if os.path.exists(run.done) or os.path.exists(run.stop):
        return nothing_to_do(run, resume_evidence.verdict_on(run, run_plan))
    holding: Optional[lease.Lease] = None
    while holding is None:
        turn = lease.wait_for_turn(run, lease.seconds(), lambda: bool(signals.received()))
        if not turn.free and this_job.one_at_a_time:
            turn = taken_over(run, turn, this_job, signals, run_plan.grace)
        if not turn.free:
            return held_by_another(run, turn.job)
        verdict = resume_evidence.verdict_on(run, run_plan)
        if verdict.decision not in (chain_rule.GO_ON, chain_rule.NOT_BEGUN):
            return nothing_to_do(run, verdict)
        # Of a job that was killed on this very node nothing is left then; others are out of sight.
        dead = lease.holder_alive(run, turn.job) is False and run_plan.launch.nodes == 1
        program_process.end_left_by(program_process.tag(run, turn.job))
        holding = lease.claim(run, turn.job, this_job.id, lease.seconds(), dead=dead)
        if holding is None:
            time.sleep(_ANOTHER_LOOK)
    return carry_held(run, run_plan, this_job, signals, holding)


def taken_over(
    run: RunFolder, turn: lease.LeaseTurn, this_job: ThisJob, signals: Interrupts, grace: float
) -> lease.LeaseTurn:
    """Have a holder that the scheduler gave up save and leave, if it is of our submission."""
    if signals.received() or not lease.ask_to_hand_over(run, turn.job, this_job.id):
        return turn
    say("asking job {} to hand over {}".format(turn.job, run.name))
    return lease.wait_for_turn(run, lease.seconds() + grace, lambda: bool(signals.received()))


def carry_held(
    run: RunFolder,
    run_plan: plan.Plan,
    this_job: ThisJob,
    signals: Interrupts,
    holding: lease.Lease,
) -> int:
    event_log = EventLog(run, holding.job, may_write=lambda: not holding.lost())
    deadline = Deadline(this_job.due, run_plan.grace, holding.clock.slept, os.environ)
    reasons = reasons_to_stop(holding, signals, deadline)
    look = interruptions.planned_for(run, run_plan, holding.job, reasons)
    told = told_to_end(run, signals, deadline)
    try:
        phases = begun_phases(run, holding)
        return carry(
            Work(run, run_plan, this_job, holding, event_log, deadline, look, told, phases)
        )
    finally:
        holding.end()


def begun_phases(run: RunFolder, holding: lease.Lease) -> PhaseLog:
    log = PhaseLog(run, holding.job, may_write=lambda: not holding.lost())
    spent = script_seconds(_BEGAN)
    if spent >= _WORTH_TELLING:
        log.spent(BUILDING, spent)
    log.enter(STAGING)
    return log


def nothing_to_do(run: RunFolder, verdict: chain_rule.ChainVerdict) -> int:
    say("nothing left to do for {}: {}".format(run.name, verdict.reason))
    finish.cancel_rest(os.environ)
    if verdict.decision == chain_rule.GIVE_UP and not _said_already(run, verdict):
        EventLog(run, run.holder()).note("gave up", reason=verdict.reason, hint=verdict.hint)
    return 0


def _said_already(run: RunFolder, verdict: chain_rule.ChainVerdict) -> bool:
    said = [event for event in events.read(run) if event["event"] == "gave up"]
    last = said[-1] if said else {}
    return bool(last.get("job") == run.holder() and last.get("reason") == verdict.reason)


def held_by_another(run: RunFolder, job: int) -> int:
    begun = jobs.read_begun(run, job)
    who = "job {}".format(job)
    if begun is not None:
        who += " (id {}, process {} on {})".format(begun.id or "?", begun.pid, begun.host)
    say("{} is held by {}; this job exits".format(run.name, who))
    return HELD_BY_ANOTHER


def carry(work: Work) -> int:
    """One job of a claimed run, from the choice of its checkpoint to the record of its end."""
    reserve = os.path.join(work.run.job(work.job), "reserve")
    found, looked, end = None, False, None  # type: jobs.Saved, bool, Optional[ProgramEnd]
    try:
        files.write_whole(reserve, b"\0" * _RESERVED)
        program_environment.clear(work.carried)
        copy_files.recover(work.carried)
        found, looked = prepare_program.choose_checkpoint(work), True
        announce(work, found)
        node_checks.note_disk(work)
        node_checks.check(os.environ, work.run, work.job, work.this_job.id, work.plan)
        # A folder that every job finds could have been prepared by somebody on another node.
        agreed = work.plan.launch.nodes > 1 and bool(work.plan.nearby.shared)
        with local_space(work.this_job, agreed) as local, other_nodes.left_clean(work, local):
            with asked_servers.answered(work):
                end = run_program.run_program(work, local, found)
    except OSError as problem:
        if end is not None:  # the program did run, and only its folder is left to be cleaned
            say("cleaning up failed: {}".format(problem))
        end = end or failure_cause.not_prepared(problem, work.plan, work.run)
        if not looked:  # it did nothing, so what can be read now is no progress of its own
            found = jobs.newest(work.run, work.job, work.plan.patterns)
    finish.despite_bugs(None, files.remove_if_there, reserve)
    work.lease.renew()
    if work.lease.superseded:
        end = ProgramEnd(chain_rule.SUPERSEDED, work.lease.lost(), end.exit_code, end.signal)
    finish.despite_bugs(None, interruptions.damage_if_planned, work)
    work.phases.end()
    finish.write_end(work, found, end)
    if end.how != chain_rule.SUPERSEDED:
        finish.conclude(work, end)
    if end.stop is not None and end.stop.scheduler_ends:
        time.sleep(_UNTIL_ENDED)
    return finish.exit_code(end)


@contextmanager
def local_space(this_job: ThisJob, all_nodes: bool = False) -> Iterator[str]:
    """A new folder on the node-local storage that the job was given, removed afterwards."""
    given = job_folder.given(os.environ)  # the job script put the environment there
    made = given or job_folder.make(this_job.local, all_nodes=all_nodes)
    local = job_folder.job_folder(made)
    try:
        yield local
    finally:
        try:
            stage_datasets.leave()
            stage.remove(local)
            if not given:
                job_folder.remove(made)
        except OSError as problem:
            say("{} could not be removed: {}".format(local, problem))


def announce(work: Work, found: jobs.Saved) -> None:
    given = found["path"] if found and resume_evidence.given(work.plan) else None
    start = "from the beginning"
    if found:
        start = "continuing from {}" if given else "with {} in its folder"
        start = start.format(found["path"])
    host = socket.gethostname()
    say("job {} of {} on {}, {}".format(work.job, work.run.name, host, start))
    work.event_log.note("claimed", id=work.this_job.id, host=host, resumed_from=given)
