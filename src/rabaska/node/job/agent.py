"""The agent: one job of a run, from the claim to the record of its end."""

import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from typing import Dict, Iterator, List, Optional

from .. import files, own_program, processes
from ..data import free_space, pack_format, stage
from ..record import chain_rule, events, jobs, lease, plan, resume_evidence, step_tracks
from ..record.events import Diary, say
from ..record.run_folder import RunFolder
from . import (
    copy_files,
    finish,
    interruptions,
    job_folder,
    launch,
    log_progress,
    node_checks,
    other_nodes,
    prepare_program,
    program_command,
    program_environment,
    program_process,
    program_task,
    rescue_checkpoints,
    stage_datasets,
    stop_signals,
    unpacked_code,
)
from .program_process import ProgramEnd
from .stop_signals import BrokenOff, Deadline, Interrupts, Stop
from .this_job import (
    ThisJob,
    Work,
    for_records,
    patience,
    reasons_to_stop,
    say_in_log,
    this_job_from,
    told_to_end,
)

HELD_BY_ANOTHER = 75  # "try again later", as sysexits.h spells it

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
        wanted = plan.load(run)
    except (plan.WrongFormat, ValueError, KeyError, TypeError) as problem:
        say("{} cannot be read: {}".format(run.plan, problem))
        return finish.NOT_READY
    if wanted is None:
        say("{} does not exist: nothing to run".format(run.plan))
        return finish.NOT_READY
    keeper = os.environ.get("RABASKA_KEEPER", "")
    signals = Interrupts(int(keeper) if keeper.isdigit() else None)
    signals.install()
    try:
        return one_job(run, wanted, this_job_from(os.environ, wanted, time.time()), signals)
    except lease.LeaseDiskFull as problem:
        say("{}; this job exits".format(problem))
        return finish.NOT_READY
    finally:
        node_checks.clean(os.environ)


def one_job(run: RunFolder, wanted: plan.Plan, this_job: ThisJob, signals: Interrupts) -> int:
    """Carry the run one job further, if there is anything left to do."""
    if os.path.exists(run.done) or os.path.exists(run.stop):
        return nothing_to_do(run, resume_evidence.verdict_on(run, wanted))
    holding = None  # type: Optional[lease.Lease]
    while holding is None:
        turn = lease.wait_for_turn(run, lease.seconds(), lambda: bool(signals.received()))
        if not turn.free and this_job.one_at_a_time:
            turn = taken_over(run, turn, this_job, signals, wanted.grace)
        if not turn.free:
            return held_by_another(run, turn.job)
        verdict = resume_evidence.verdict_on(run, wanted)
        if verdict.decision not in (chain_rule.GO_ON, chain_rule.NOT_BEGUN):
            return nothing_to_do(run, verdict)
        # Of a job that was killed on this very node nothing is left then; others are out of sight.
        dead = lease.holder_alive(run, turn.job) is False and wanted.launch.nodes == 1
        program_process.end_left_by(program_process.tag(run, turn.job))
        holding = lease.claim(run, turn.job, this_job.id, lease.seconds(), dead=dead)
        if holding is None:
            time.sleep(_ANOTHER_LOOK)
    return carry_held(run, wanted, this_job, signals, holding)


def taken_over(
    run: RunFolder, turn: lease.LeaseTurn, this_job: ThisJob, signals: Interrupts, grace: float
) -> lease.LeaseTurn:
    """Have a holder that the scheduler gave up save and leave, if it is of our submission."""
    if signals.received() or not lease.ask_to_hand_over(run, turn.job, this_job.id):
        return turn
    say("asking job {} to hand over {}".format(turn.job, run.name))
    return lease.wait_for_turn(run, lease.seconds() + grace, lambda: bool(signals.received()))


def carry_held(
    run: RunFolder, wanted: plan.Plan, this_job: ThisJob, signals: Interrupts, holding: lease.Lease
) -> int:
    diary = Diary(run, holding.job, may_write=lambda: not holding.lost())
    deadline = Deadline(this_job.due, wanted.grace, holding.clock.slept, os.environ)
    reasons = reasons_to_stop(holding, signals, deadline)
    look = interruptions.planned_for(run, wanted, holding.job, reasons)
    told = told_to_end(run, signals, deadline)
    try:
        return carry(Work(run, wanted, this_job, holding, diary, deadline, look, told))
    finally:
        holding.end()


def nothing_to_do(run: RunFolder, verdict: chain_rule.ChainVerdict) -> int:
    say("nothing left to do for {}: {}".format(run.name, verdict.reason))
    finish.cancel_rest(os.environ)
    if verdict.decision == chain_rule.GIVE_UP and not _said_already(run, verdict):
        Diary(run, run.holder()).note("gave up", reason=verdict.reason, hint=verdict.hint)
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
        node_checks.check(os.environ, work.run, work.job, work.this_job.id)
        # A folder that every job finds could have been prepared by somebody on another node.
        agreed = work.plan.launch.nodes > 1 and bool(work.plan.nearby.shared)
        with local_space(work.this_job, agreed) as local, other_nodes.left_clean(work, local):
            end = run_program(work, local, found)
    except OSError as problem:
        if end is not None:  # the program did run, and only its folder is left to be cleaned
            say("cleaning up failed: {}".format(problem))
        end = end or ProgramEnd(chain_rule.STAGING_FAILED, str(problem))
        if not looked:  # it did nothing, so what can be read now is no progress of its own
            found = jobs.newest(work.run, work.job, work.plan.patterns)
    finish.despite_bugs(None, files.remove_if_there, reserve)
    work.lease.renew()
    if work.lease.superseded:
        end = ProgramEnd(chain_rule.SUPERSEDED, work.lease.lost(), end.exit_code, end.signal)
    finish.despite_bugs(None, interruptions.damage_if_planned, work)
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
    work.diary.note("claimed", id=work.this_job.id, host=host, resumed_from=given)


def run_program(work: Work, local: str, found: jobs.Saved) -> ProgramEnd:
    """Make ready, start and watch the program: how it ended."""
    code = os.path.join(local, "code")
    began = time.monotonic()
    try:
        with stop_signals.broken_off_when(work.look), free_space.named_when_full(local):
            before = prepare_program.unpack_code(work, code)
            elsewhere = other_nodes.begin_staging(work, local)
            data = stage_datasets.stage_data(work, local)
            places = prepare_program.places(work, data, found)
            other_nodes.finish_staging(elsewhere)
        step_tracks.remember(work.run, work.job, step_tracks.look(work.carried, work.plan.patterns))
        process = start_program(work, code, places)
    except BrokenOff as broken:
        processes.end_all(lambda: processes.descendants(os.getpid()), 0)
        return not_ready(broken.stop, time.monotonic() - began)
    except program_process.NotStarted as problem:
        return ProgramEnd(chain_rule.CRASHED, problem.reason, problem.code)
    except (
        unpacked_code.WrongSnapshot,
        pack_format.DamagedPack,
        program_command.UnknownPlaceholder,
    ) as wrong:
        return ProgramEnd(
            chain_rule.STAGING_FAILED, str(wrong), remedy=getattr(wrong, "remedy", "")
        )
    return watched(work, process, code, before, data)


def watched(
    work: Work,
    process: "subprocess.Popen[bytes]",
    code: str,
    before: unpacked_code.Listing,
    data: Dict[str, str],
) -> ProgramEnd:
    """Watch the program to its end, and keep what it leaves beside its code.

    Whatever else fails meanwhile, its results are kept, and how it ended is recorded.
    """
    ask = int(getattr(signal, "SIG" + work.plan.signal))
    said = finish.kept_elsewhere(work)
    saver = rescue_checkpoints.Rescue(
        code, work.carried, work.plan.patterns, before, not_rescued(work), said
    )
    saver.start(rescue_checkpoints.seconds(), may_write=lambda: not work.lease.lost())
    gauge = finish.despite_bugs(None, started_gauge, work)
    finish.despite_bugs(None, node_checks.try_once, work)
    clock, grace = work.lease.clock.now, work.plan.grace
    noted = Noting(work, data)
    seen = program_process.watch(
        process, ask, noted.look, lambda: patience(grace, saver.needed()), clock
    )
    end = finish.despite_bugs(seen, program_process.asked_meanwhile, seen, work.told)
    if seen.stop is None and end.stop is not None and process.returncode < 0:
        finish.despite_bugs(None, let_save, work, patience(grace, saver.needed()))
    end = finish.despite_bugs(end, of_first_failure, work, end)
    end = finish.despite_bugs(end, of_data, work, data, end)
    saver.end()
    if gauge is not None:
        gauge.end()
    until = noted.ends(end.stop)
    finish.despite_bugs(None, end_stragglers, work, process, end)
    return finish.keep_results(work, code, before, lambda: clock() < until, end)


def let_save(work: Work, seconds: float) -> None:
    """Wait for what a shell left when it died of a signal that went to all processes of the job."""
    clock = work.lease.clock.now
    until = clock() + seconds

    def is_over() -> bool:
        return clock() >= until or bool(work.lease.lost())

    tagged = processes.carrying(program_process.TAG, program_process.tag(work.run, work.job))
    program_process.wait_for_left(processes.started(tagged), is_over)


def started_gauge(work: Work) -> Optional[log_progress.LogProgress]:
    gauge = log_progress.LogProgress(work)
    gauge.start(may_write=lambda: not work.lease.lost())
    return gauge


def of_first_failure(work: Work, end: ProgramEnd) -> ProgramEnd:
    return program_task.blamed(end, program_task.first(work.run.failures(work.job)))


def not_ready(stop: Stop, spent: float) -> ProgramEnd:
    """The job was over before its program could start."""
    if stop.how == chain_rule.TIME_LIMIT:
        reason = "its time limit was reached after {:.0f} s of staging".format(spent)
        return ProgramEnd(chain_rule.NO_TIME_LEFT, reason, stop=stop)
    return ProgramEnd(stop.how, stop.reason, stop=stop)


def start_program(
    work: Work, code: str, places: program_command.Places
) -> "subprocess.Popen[bytes]":
    """Start the program, unless a reason to stop came up meanwhile."""
    stop = work.look()
    if stop is not None:
        raise BrokenOff(stop)
    how = work.plan.launch
    local = os.path.dirname(code)
    where = launch.allocation(os.environ, work.this_job.id, socket.gethostname(), local)
    words = program_command.words_for(work.plan.command, work.plan.resume, places)
    failed = work.run.failures(work.job)
    files.remove_if_there(failed)  # of an earlier attempt
    task = launch.task_words(work.plan.signal, failed if launch.by_starter(how) else None)
    words = launch.launched(words, how, where, task)
    given = dict(os.environ, **work.plan.variables)
    given.update(plan.load_secrets(work.run, list(work.plan.secrets)))
    told = prepare_program.told_to_program(work, local)
    told.update(launch.variables(how, where, given))
    told.update(launch.mpi_variables(how, work.run.path, given))
    environment = program_command.environment(places, given, told)
    environment = program_environment.environment(environment, work.run, work.plan)
    processes.become_reaper()
    os.makedirs(work.run.logs, exist_ok=True)
    instead = program_environment.told(words, environment)
    if instead:
        say(instead)
        program_process.say_in_log(work.run.log(work.job), instead)
    environment = program_environment.provide(environment, work.run)
    with work.lease.quiet:
        log, listens = work.run.log(work.job), launch.through_tasks(how)
        process = program_process.start(words, code, environment, log, listens)
    work.diary.note("started", command=words, pid=process.pid)
    if environment[program_environment.SWITCH] == "1":
        program_environment.note_if_deaf(words, work.run, work.job, time.time())
    return process


def of_data(work: Work, data: Dict[str, str], end: ProgramEnd) -> ProgramEnd:
    """The end, unless the program was given damaged data: then that is how the job ended."""
    for why in stage_datasets.not_arriving(data):
        say(why)
        work.diary.note("not arriving", why=why)
    if end.how == chain_rule.FINISHED:
        stage_datasets.finish_proof()
    found = stage_datasets.damaged(work.plan, data)
    if found is None or end.how in (chain_rule.SUPERSEDED, chain_rule.CANCELLED):
        return end
    return end._replace(how=chain_rule.DAMAGED_DATA, reason=found.reason, remedy=found.remedy)


class Noting:
    """`work.look`, and a look at the data; it also notes the first reason it sees, and when."""

    def __init__(self, work: Work, data: Dict[str, str]) -> None:
        self._work = work
        self._data = data
        self._asked = None  # type: Optional[float]

    def look(self) -> Optional[Stop]:
        try:
            stop = self._look()
        except OSError:
            stop = None  # the next look is soon
        if stop is not None and self._asked is None:
            self._asked = self._work.lease.clock.now()
            say("asking the program to stop: {}".format(stop.reason))
            self._work.diary.note("asked to stop", why=stop.reason)
        return stop

    def _look(self) -> Optional[Stop]:
        stop = self._work.look()
        if stop is None:
            found = stage_datasets.damaged(self._work.plan, self._data)
            stop = Stop(chain_rule.DAMAGED_DATA, found.reason) if found else None
        return stop

    def ends(self, stop: Optional[Stop]) -> float:
        """Until when results are kept, by the clock of the lease: the rest is for the records."""
        grace, now = self._work.plan.grace, self._work.lease.clock.now()
        left = grace - for_records(grace)
        if stop is None or stop.how == chain_rule.TIME_LIMIT:
            return now + max(0.0, self._work.deadline.left() + left)
        # Nobody says how long a job that is told to end has; `grace` is what was asked for.
        return (now if self._asked is None else self._asked) + left


def not_rescued(work: Work) -> rescue_checkpoints.Report:
    def report(path: str, why: str) -> None:
        hint = "save to {output} or {checkpoints}, which are kept after the job"
        told = "{} in the code folder could not be backed up yet: {}; {}"
        say_in_log(work, told.format(path, why, hint))
        work.diary.note("not rescued", path=path, why=why, hint=hint)

    return report


def end_stragglers(work: Work, process: "subprocess.Popen[bytes]", end: ProgramEnd) -> None:
    count = program_process.end_rest(process, program_process.tag(work.run, work.job))
    if not count:
        return
    counted = "1 process" if count == 1 else "{} processes".format(count)
    told = "stopped {} that the program left running".format(counted)
    work.diary.note("ended stragglers", count=count)
    if end.how == chain_rule.FINISHED:  # too early, if one of them was the training
        told += "; if the training runs in the background, end the script with `wait`"
        say_in_log(work, told)
    else:
        say(told)
