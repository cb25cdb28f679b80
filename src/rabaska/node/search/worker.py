"""One worker of a search: it takes a trial, runs it, writes its result, and takes the next.

An agent, as of any run, runs the trial; it is forked from the worker, so that nothing is loaded
twice. The worker looks after it: it stops a trial early, hands on signals, and tells the result.
"""

import errno
import os
import select
import time
from typing import Dict, NamedTuple, Optional, Tuple

from .. import files
from ..job import agent, stop_signals
from ..job.this_job import ThisJob
from ..record import chain_rule, lease
from ..record.events import say
from ..record.plan import IN_PLACE, Growth, Plan, StagedData
from ..record.run_folder import RunFolder
from . import choose, metric, room, thinning, trial_run
from . import study as studies
from . import trials as records
from .study import Settings, Study, Trial
from .trial_watch import TrialWatch, Watched
from .trials import Trials

_LOOK = 0.25  # seconds between two looks at a trial
_LOOK_FOR_ROOM = 1.0
_TRIES = 3  # agents in a row that did not even begin a job, or found a full disk
_KILLED = 20  # jobs of a trial that others end; a run by itself gives up after three in a row
_NO_SPACE = 74  # an agent's exit code: "input/output error", as sysexits.h spells it
_MANY_JOBS = 100000  # a trial has as many as it takes: workers come and go


class Worker(NamedTuple):
    study: Study
    settings: Settings
    this_job: ThisJob
    signals: stop_signals.Interrupts
    data: Dict[str, str]  # where the datasets were put, by name
    slots: room.Slots
    slot: int = 0

    def seconds_left(self) -> float:
        return self.this_job.due - time.monotonic()

    def must_stop(self) -> bool:
        return bool(
            self.signals.received() or self.seconds_left() <= 0 or os.path.exists(self.study.stop)
        )


def work(worker: Worker) -> int:
    """Run trials until none is left or this job must end; how many it brought to an end."""
    trials, chooser, count = Trials(worker.study), choose.Chooser(worker.study, worker.settings), 0
    try:
        worker.slots.open()
        while not worker.must_stop():
            if _waits(worker):
                continue
            try:
                trials.refresh()
                if records.gather(worker.study, trials):
                    trials.refresh()
                    thinning.thin(worker.study, worker.settings, trials)
                chosen = chooser.next_trial(trials, worker.seconds_left())
            except OSError as problem:
                if not room.is_full(problem):  # of a file server, mostly; it answers again
                    say("the trials cannot be read: {}".format(problem))
                    time.sleep(_LOOK_FOR_ROOM)
                elif not _space(worker, str(problem)):
                    raise
                continue
            if chosen.trial is not None:
                ended = _with_space(worker, chosen.trial, trials)
                count += ended is True
                if ended is None:
                    break
            elif chosen.wait:
                time.sleep(min(chosen.wait, max(0.1, worker.seconds_left())))
            else:
                say(chosen.why)
                break
    finally:
        worker.slots.leave()
        chooser.end()
    return count


def _waits(worker: Worker) -> bool:
    """Whether the GPU has no room for one more trial now; then a moment has passed."""
    why = worker.slots.why_wait()
    if not why:
        return False
    time.sleep(min(_LOOK_FOR_ROOM, max(0.1, worker.seconds_left())))
    return True


def _space(worker: Worker, problem: str) -> bool:
    """Wait until the storage takes something again; False where it does not."""
    say("no trial can be recorded: {}; waiting for space".format(problem))
    return room.wait_for_space(worker.study.path, worker.must_stop)


def _with_space(worker: Worker, trial: Trial, trials: Trials) -> Optional[bool]:
    """Run a trial; whether it has a result, or None where this worker must end.

    A full disk is no fault of its values: once there is space, it goes on.
    """
    worker.slots.begin()
    ended: Optional[bool] = None
    try:
        while ended is None:
            try:
                ended = _bring_to_end(worker, trial, trials)
            except _NoRoomBeside as problem:
                say("{}; this worker of the job ends".format(problem))
                return None
            except OSError as problem:
                if not room.is_full(problem):
                    raise
                if not _space(worker, str(problem)):
                    say("there is still no space; trial {} is left".format(trial.number))
                    return None
    finally:
        worker.slots.end(complete=bool(ended))
    return ended


class _NoRoomBeside(Exception):
    """A trial did not fit into the memory that others of this job left it."""


def _bring_to_end(worker: Worker, trial: Trial, trials: Trials) -> bool:
    """Run a trial as far as this job goes; whether it has a result."""
    study, settings = worker.study, worker.settings
    run = trial_run.make(study, settings, trial)
    run_plan = _plan(worker, trial)
    reports = metric.Reports(run, settings.metric, run_plan.progress)
    fruitless, forgiven = 0, 0
    if not os.path.exists(study.stop):
        files.remove_if_there(run.stop)  # of an earlier stop of the search
    while True:
        result = trial_run.result_of(settings, trial, run, run_plan, reports)
        if result is None and not records.is_ours(study, trial):
            say("another worker has trial {} by now".format(trial.number))
            return False
        if result is not None and result["state"] == studies.FAILED:
            result = _if_its_fault(worker, trial, run, result, forgiven)
            forgiven += result is None
        if result is None and (worker.must_stop() or fruitless >= _TRIES):
            result = _not_begun(run) if fruitless >= _TRIES else None
            if result is None:
                records.leave(study, trial)
                return False
        if result is None:
            before = run.holder()
            why, killed = _run_agent(worker, trial, trials, run, run_plan, reports)
            fruitless = 0 if run.holder() > before else fruitless + (not killed)
            if why and records.is_ours(study, trial):
                result = trial_run.result_of(settings, trial, run, run_plan, reports)
                result = result or trial_run.pruned(settings, run, why, reports.read())
        if result is not None:
            records.end(study, trial, result)
            value = result.get("value")
            shown = "" if value is None else ", {} {:.6g}".format(settings.metric, value)
            say("trial {}: {}{}".format(trial.number, result["state"], shown))
            return True


def _if_its_fault(
    worker: Worker, trial: Trial, run: RunFolder, result: files.Json, forgiven: int
) -> Optional[files.Json]:
    """Its result; None where something else than its values made it fail, and it goes on."""
    last = room.last_end(run)
    how = last.how if last is not None else chain_rule.LOST
    if how == chain_rule.OUT_OF_MEMORY and worker.slots.shared:
        room.forgive(run, worker.this_job.id)
        if worker.slots.close():
            records.leave(worker.study, trial)
            raise _NoRoomBeside(
                "trial {} had too little memory next to others".format(trial.number)
            )
        return None
    if how in room.ENDED_BY_OTHERS and len(run.jobs()) < _KILLED:
        room.forgive(run, worker.this_job.id)
        return None
    # A full disk takes a program's last words as well; then it is tried once more.
    silent = how == chain_rule.CRASHED and trial_run.said_nothing(run)
    if forgiven >= (1 if silent else _TRIES) or not (silent or room.is_for_space(last)):
        return result
    say("trial {}: {}; waiting for space".format(trial.number, result["why"]))
    if not room.wait_for_space(run.path, worker.must_stop):
        raise OSError(errno.ENOSPC, "no space for trial {}".format(trial.number))
    room.forgive(run, worker.this_job.id)
    return None


def _not_begun(run: RunFolder) -> Optional[files.Json]:
    """None where somebody else is at it: it may have been resumed by itself, as any run."""
    if lease.holder_alive(run, run.holder()) is not False:
        return None
    why = "{} agents in a row could not begin a job of {}".format(_TRIES, run.name)
    return dict(
        trial_run._result(run, studies.FAILED, None, why, []), cause="no job could be begun"
    )


def _plan(worker: Worker, trial: Trial) -> Plan:
    """The plan of its run, with the data that this worker has staged already."""
    from ..record import plan as plans

    run_plan = plans.load(worker.study.run(trial.number))
    assert run_plan is not None
    staged = [
        StagedData(one.name, "", IN_PLACE, worker.data[one.name])
        if one.name in worker.data
        else one
        for one in run_plan.datasets
    ]
    return run_plan._replace(datasets=staged, growth=Growth(), jobs=_MANY_JOBS)


def _run_agent(
    worker: Worker,
    trial: Trial,
    trials: Trials,
    run: RunFolder,
    run_plan: Plan,
    reports: metric.Reports,
) -> Tuple[str, bool]:
    """Run one job of the trial: why it was stopped early, and whether its agent was killed."""
    reading, writing = os.pipe()  # closed at exec, so it ends with the agent
    child = os.fork()
    if child == 0:
        os.close(reading)
        _agent(worker, run, run_plan)
    os.close(writing)
    watch = TrialWatch(
        Watched(worker.study, worker.settings, worker.signals), trial, trials, run, reports
    )
    try:
        while not select.select([reading], [], [], _LOOK)[0]:
            watch.look(child)
            worker.slots.measure()
    finally:
        os.close(reading)
        status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NO_SPACE:
        raise OSError(errno.ENOSPC, "there is no space for the records of {}".format(run.name))
    return watch.why, os.WIFSIGNALED(status)


def _agent(worker: Worker, run: RunFolder, run_plan: Plan) -> None:
    """In a process of its own: it never returns."""
    code = 70
    try:
        signals = stop_signals.Interrupts(os.getppid())
        signals.install()
        code = agent.one_job(run, run_plan, worker.this_job, signals)
    except lease.LeaseDiskFull as problem:
        say(str(problem))
        code = _NO_SPACE
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)
