"""The program of one job: prepared, started, watched, and its results kept."""

import os
import signal
import socket
import subprocess
import time
from typing import Dict, List, Optional

from .. import files, processes
from ..data import free_space, pack_format
from ..record import chain_rule, jobs, phases, secrets_file, step_tracks
from ..record.events import say
from . import (
    container,
    failure_cause,
    finish,
    job_vitals,
    keep_results,
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
    series_writer,
    stage_datasets,
    stage_together,
    stop_signals,
    unpacked_code,
    used_resources,
)
from .program_process import ProgramEnd
from .stop_signals import Stop, StoppedEarly
from .this_job import (
    Work,
    say_in_log,
    seconds_for_records,
    seconds_to_save,
)
from .used_resources import MemoryUse, UsedResources


def run_program(work: Work, local: str, found: jobs.Saved) -> ProgramEnd:
    """Make ready, start and watch the program: how it ended."""
    code = os.path.join(local, "code")
    began = time.monotonic()
    elsewhere = None  # type: other_nodes.Step
    try:
        with stop_signals.stopped_early_when(work.stop_reason), free_space.named_when_full(local):
            before = prepare_program.unpack_code(work, code)
            with stage_together.first_meeting(work) as meeting:
                elsewhere = other_nodes.begin_staging(work, local, meeting)
                data = stage_datasets.stage_data(work, local, meeting)
            places = prepare_program.places(work, data, found)
            other_nodes.finish_staging(elsewhere)
        step_tracks.remember(work.run, work.job, step_tracks.look(work.carried, work.plan.patterns))
        series = finish.despite_bugs(None, series_writer.SeriesWriter, work, code)
        process = start_program(work, code, places)
    except StoppedEarly as broken:
        processes.end_all(lambda: processes.descendants(os.getpid()), 0)
        return not_ready(broken.stop, time.monotonic() - began)
    except program_process.NotStarted as problem:
        return ProgramEnd(chain_rule.CRASHED, problem.reason, problem.code)
    except (
        unpacked_code.WrongSnapshot,
        pack_format.BadPack,
        stage_datasets.NotOnNode,
        program_command.UnknownPlaceholder,
    ) as wrong:
        return ProgramEnd(
            chain_rule.STAGING_FAILED, str(wrong), remedy=getattr(wrong, "remedy", "")
        )
    finally:
        other_nodes.break_off_staging(elsewhere)
    return watch_program(work, process, code, before, data, series)


def watch_program(
    work: Work,
    process: "subprocess.Popen[bytes]",
    code: str,
    before: unpacked_code.Listing,
    data: Dict[str, str],
    series: Optional[series_writer.SeriesWriter] = None,
) -> ProgramEnd:
    """Watch the program to its end, and keep what it leaves beside its code.

    Whatever else fails meanwhile, its results are kept, and how it ended is recorded.
    """
    ask = int(getattr(signal, "SIG" + work.plan.signal))
    notify = keep_results.kept_elsewhere(work)
    rescue = rescue_checkpoints.Rescue(
        code, work.carried, work.plan.patterns, before, not_rescued(work), notify
    )
    rescue.start(rescue_checkpoints.seconds(), may_write=lambda: not work.lease.lost())
    progress = finish.despite_bugs(None, log_progress.started, work)
    used = finish.despite_bugs(None, used_resources.counted, work.plan)
    finish.despite_bugs(None, series_writer.start, series)
    vitals = finish.despite_bugs(None, job_vitals.start, work, os.path.dirname(code))
    finish.despite_bugs(None, node_checks.try_once, work)
    clock, grace = work.lease.clock.now, work.plan.grace
    stops = NotedStops(work, data)
    first_end = program_process.watch(
        process, ask, stops.look, lambda: seconds_to_save(grace, rescue.needed()), clock
    )
    end = finish.despite_bugs(
        first_end, program_process.stopped_meanwhile, first_end, work.end_signal
    )
    if first_end.stop is None and end.stop is not None and process.returncode < 0:
        finish.despite_bugs(None, wait_for_saves, work, seconds_to_save(grace, rescue.needed()))
    end = finish.despite_bugs(end, with_first_failure, work, end)
    end = finish.despite_bugs(end, with_cause, work, used, os.path.dirname(code), end)
    end = finish.despite_bugs(end, with_damaged_data, work, data, end)
    rescue.end()
    if progress is not None:
        progress.end()
    finish.despite_bugs(None, series_writer.end, series)
    end = finish.despite_bugs(end, used_resources.with_used, used, end)
    stuck = finish.despite_bugs(None, job_vitals.end, work, vitals)
    until = stops.ends(end.stop)
    work.phases.enter(phases.KEEPING)
    finish.despite_bugs(None, log_progress.count_parts, work)
    finish.despite_bugs(None, end_left_processes, work, process, end, stuck)
    return keep_results.keep_results(work, code, before, lambda: clock() < until, end)


def wait_for_saves(work: Work, seconds: float) -> None:
    """Wait for what a shell left when it died of a signal that went to all processes of the job."""
    clock = work.lease.clock.now
    until = clock() + seconds

    def is_over() -> bool:
        return clock() >= until or bool(work.lease.lost())

    tagged = processes.carrying(program_process.TAG, program_process.tag(work.run, work.job))
    program_process.wait_for_left(processes.started(tagged), is_over)


def with_cause(
    work: Work, used: Optional[UsedResources], local: str, end: ProgramEnd
) -> ProgramEnd:
    memory = used.memory() if used is not None else MemoryUse()
    found = failure_cause.with_cause(end, work.run, work.job, work.plan, memory, local)
    if found.how != end.how:
        say_in_log(work, "{}: {}; {}".format(found.how, found.reason, found.remedy))
    return found


def with_first_failure(work: Work, end: ProgramEnd) -> ProgramEnd:
    return program_task.explained_by_first_failure(
        end, program_task.first(work.run.failures(work.job))
    )


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
    stop = work.stop_reason()
    if stop is not None:
        raise StoppedEarly(stop)
    how = work.plan.launch
    local = os.path.dirname(code)
    where = launch.allocation(os.environ, work.this_job.id, socket.gethostname(), local)
    words = program_command.words_for(work.plan.command, work.plan.resume, places)
    failed = work.run.failures(work.job)
    files.remove_if_there(failed)  # of an earlier attempt
    box = container.given(os.environ, work.plan.request.resources)
    inside = container.start_words(box, code, container.shown(work.run, places, local))
    noted = failed if launch.by_starter(how) else None
    task = launch.task_words(work.plan.signal, noted, "python3" if box else "")
    words = launch.launched(words, how, where, task, inside)
    given = dict(os.environ, **work.plan.variables)
    if box:
        given = container.without_host_python(os.environ, work.plan.variables)
    given.update(secrets_file.load_secrets(work.run, list(work.plan.secrets)))
    variables = prepare_program.run_variables(work, local)
    variables.update(launch.variables(how, where, given))
    variables.update(launch.mpi_variables(how, work.run.path, given))
    environment = program_command.environment(places, given, variables)
    environment = program_environment.environment(environment, work.run, work.plan)
    environment = program_environment.with_trackers(environment, work.run)
    processes.become_reaper()
    os.makedirs(work.run.logs, exist_ok=True)
    if box:
        environment = container.environment(environment, box, work.run, inside)
    else:
        environment = with_both_pythons(work, words, environment)
    with work.lease.quiet:
        log, listens = work.run.log(work.job), launch.through_tasks(how)
        process = program_process.start(words, code, environment, log, listens)
    work.event_log.note("started", command=words, pid=process.pid)
    work.phases.enter(phases.LOADING)
    if environment[program_environment.SWITCH] == "1":
        program_environment.note_if_unwatchable(words, work.run, work.job, time.time())
    return process


def with_both_pythons(work: Work, words: List[str], environment: Dict[str, str]) -> Dict[str, str]:
    """`environment` with `python` and `python3`; the log says which stands in for the other."""
    instead = program_environment.stand_in_note(words, environment)
    if instead:
        say(instead)
        program_process.say_in_log(work.run.log(work.job), instead)
    return program_environment.provide(environment, work.run)


def with_damaged_data(work: Work, data: Dict[str, str], end: ProgramEnd) -> ProgramEnd:
    """The end, unless the program was given damaged data: then that is how the job ended."""
    for why in stage_datasets.not_arriving(data):
        say(why)
        work.event_log.note("not arriving", why=why)
    if end.how == chain_rule.FINISHED:
        stage_datasets.finish_proof()
    found = stage_datasets.damaged(work.plan, data)
    if found is None or end.how in (chain_rule.SUPERSEDED, chain_rule.CANCELLED):
        return end
    return end._replace(how=chain_rule.DAMAGED_DATA, reason=found.reason, remedy=found.remedy)


class NotedStops:
    """`work.stop_reason`, and damaged data; the first reason to stop is noted, and when."""

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
            self._work.event_log.note("asked to stop", why=stop.reason)
            self._work.phases.enter(phases.SAVING)
        return stop

    def _look(self) -> Optional[Stop]:
        stop = self._work.stop_reason()
        if stop is None:
            found = stage_datasets.damaged(self._work.plan, self._data)
            stop = Stop(chain_rule.DAMAGED_DATA, found.reason) if found else None
        return stop

    def ends(self, stop: Optional[Stop]) -> float:
        """Until when results are kept, by the clock of the lease: the rest is for the records."""
        grace, now = self._work.plan.grace, self._work.lease.clock.now()
        left = grace - seconds_for_records(grace)
        if stop is None or stop.how == chain_rule.TIME_LIMIT:
            return now + max(0.0, self._work.deadline.left() + left)
        # Nobody says how long a job that is told to end has; `grace` is what was asked for.
        return (now if self._asked is None else self._asked) + left


def not_rescued(work: Work) -> rescue_checkpoints.Report:
    def report(path: str, why: str) -> None:
        hint = "save to {output} or {checkpoints}, which are kept after the job"
        told = "{} in the code folder could not be backed up yet: {}; {}"
        say_in_log(work, told.format(path, why, hint))
        work.event_log.note("not rescued", path=path, why=why, hint=hint)

    return report


def end_left_processes(
    work: Work, process: "subprocess.Popen[bytes]", end: ProgramEnd, stuck: Optional[int]
) -> None:
    tag = program_process.tag(work.run, work.job)
    count = program_process.end_rest(process, tag, ours=stuck)
    if not count:
        return
    counted = "1 process" if count == 1 else "{} processes".format(count)
    told = "stopped {} that the program left running".format(counted)
    work.event_log.note("ended stragglers", count=count)
    if end.how == chain_rule.FINISHED:  # too early, if one of them was the training
        told += "; if the training runs in the background, end the script with `wait`"
        say_in_log(work, told)
    else:
        say(told)
