"""One worker of a search: it takes a trial, runs it, writes its result, and takes the next.

An agent, as of any run, runs the trial; it is forked from the worker, so that nothing is loaded
twice. The worker looks after it: it stops a trial early, hands on signals, and tells the result.
"""

import os
import select
import signal
import time
from typing import Dict, NamedTuple, Optional

from .. import files
from ..job import agent, stop_signals
from ..job.this_job import ThisJob
from ..record import lease
from ..record.events import say
from ..record.plan import IN_PLACE, Growth, Plan, StagedData
from ..record.run_folder import RunFolder
from . import choose, metric, stopping, thinning, trial_run
from . import study as studies
from . import trials as records
from .study import Settings, Study, Trial
from .trials import Trials

_LOOK = 0.25  # seconds between two looks at a trial
_LOOK_FOR_STOP = 1.0
_TRIES = 3  # agents in a row that did not even begin a job
_FOLLOW = 1.0  # seconds of a trial's life after which its reports are followed
_MANY_JOBS = 100000  # a trial has as many as it takes: workers come and go


class Worker(NamedTuple):
    study: Study
    settings: Settings
    this_job: ThisJob
    signals: stop_signals.Interrupts
    data: Dict[str, str]  # where the datasets were put, by name
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
        while not worker.must_stop():
            try:
                trials.refresh()
            except OSError as problem:  # of a file server, mostly; it answers again
                say("the trials cannot be read: {}".format(problem))
                time.sleep(_LOOK_FOR_STOP)
                continue
            if records.gather(worker.study, trials):
                trials.refresh()
                thinning.thin(worker.study, worker.settings, trials)
            chosen = chooser.next_trial(trials, worker.seconds_left())
            if chosen.trial is not None:
                count += _bring_to_end(worker, chosen.trial, trials)
            elif chosen.wait:
                time.sleep(min(chosen.wait, max(0.1, worker.seconds_left())))
            else:
                say(chosen.why)
                break
    finally:
        chooser.end()
    return count


def _bring_to_end(worker: Worker, trial: Trial, trials: Trials) -> bool:
    """Run a trial as far as this job goes; whether it has a result."""
    study, settings = worker.study, worker.settings
    run = trial_run.make(study, settings, trial)
    run_plan = _plan(worker, trial)
    reports = metric.Reports(run, settings.metric, run_plan.progress)
    fruitless = 0
    if not os.path.exists(study.stop):
        files.remove_if_there(run.stop)  # of an earlier stop of the search
    while True:
        result = trial_run.result_of(settings, trial, run, run_plan, reports)
        if result is None and not records.is_ours(study, trial):
            say("another worker has trial {} by now".format(trial.number))
            return False
        if result is None and (worker.must_stop() or fruitless >= _TRIES):
            result = _not_begun(run) if fruitless >= _TRIES else None
            if result is None:
                records.leave(study, trial)
                return False
        if result is None:
            before = run.holder()
            why = _run_agent(worker, trial, trials, run, run_plan, reports)
            fruitless = 0 if run.holder() > before else fruitless + 1
            if why and records.is_ours(study, trial):
                result = trial_run.result_of(settings, trial, run, run_plan, reports)
                result = result or trial_run.pruned(settings, run, why, reports.read())
        if result is not None:
            records.end(study, trial, result)
            value = result.get("value")
            shown = "" if value is None else ", {} {:.6g}".format(settings.metric, value)
            say("trial {}: {}{}".format(trial.number, result["state"], shown))
            return True


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
) -> str:
    """Run one job of the trial; why it was stopped early, if it was."""
    reading, writing = os.pipe()  # closed at exec, so it ends with the agent
    child = os.fork()
    if child == 0:
        os.close(reading)
        _agent(worker, run, run_plan)
    os.close(writing)
    watch = _Watch(worker, trial, trials, run, reports)
    try:
        while not select.select([reading], [], [], _LOOK)[0]:
            watch.look(child)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    return watch.why


def _agent(worker: Worker, run: RunFolder, run_plan: Plan) -> None:
    """In a process of its own: it never returns."""
    code = 70
    try:
        signals = stop_signals.Interrupts(os.getppid())
        signals.install()
        code = agent.one_job(run, run_plan, worker.this_job, signals)
    except lease.LeaseDiskFull as problem:
        say("{}; this trial is left".format(problem))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _tell(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class _Watch:
    """Looks after a running trial."""

    def __init__(
        self, worker: Worker, trial: Trial, trials: Trials, run: RunFolder, reports: metric.Reports
    ) -> None:
        self._worker, self._trial, self._trials = worker, trial, trials
        self._run, self._reports = run, reports
        settings = worker.settings
        self._rule = stopping.Rule(
            settings.stopping, settings.better, settings.first_report, settings.reduction
        )
        self._known, self._told, self._looked = 0, False, 0.0
        self.why = ""

    def look(self, agent_process: int) -> None:
        received = self._worker.signals.received()
        if received and not self._told:
            self._told = True
            _tell(agent_process, getattr(signal, received, signal.SIGTERM))
        now = time.monotonic()
        if now - self._looked >= _LOOK_FOR_STOP:
            self._looked = now
            if os.path.exists(self._worker.study.stop):
                self._stop(agent_process)
        if self._rule.how != stopping.NONE and not self.why:
            self._compare(agent_process)

    def _compare(self, agent_process: int) -> None:
        values = self._reports.read()
        if len(values) <= self._known:
            return
        try:
            records.report(self._worker.study, self._trial, values)
            self._trials.refresh()
        except OSError:
            return  # a full disk, or storage that does not answer: the next look compares
        self._known = len(values)
        others = [
            one.reports
            for one in self._trials.all
            if one.number != self._trial.number and one.reports
        ]
        self.why = stopping.why_stop(self._rule, self._trial.number, values, others)
        if self.why:
            say("trial {} is stopped early: {}".format(self._trial.number, self.why))
            self._stop(agent_process)

    def _stop(self, agent_process: int) -> None:
        """As `rabaska cancel` does: the program may save."""
        if not os.path.exists(self._run.stop):
            files.write_whole(self._run.stop, "")
            _tell(agent_process, signal.SIGTERM)
