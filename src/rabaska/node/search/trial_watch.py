"""A trial that runs, watched by its worker: told to stop early, or that the search ends."""

import os
import signal
import time
from typing import NamedTuple

from .. import files
from ..job import stop_signals
from ..record.events import say
from ..record.run_folder import RunFolder
from . import metric, stopping
from . import trials as records
from .study import Settings, Study, Trial
from .trials import Trials

_LOOK_FOR_STOP = 1.0  # seconds


class Watched(NamedTuple):
    """The search that a trial is of, and what its worker was told."""

    study: Study
    settings: Settings
    signals: stop_signals.Interrupts


def _tell(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class TrialWatch:
    """Looks after a running trial."""

    def __init__(
        self,
        search: Watched,
        trial: Trial,
        trials: Trials,
        run: RunFolder,
        reports: metric.Reports,
    ) -> None:
        self._search, self._trial, self._trials = search, trial, trials
        self._run, self._reports = run, reports
        settings = search.settings
        self._rule = stopping.Rule(
            settings.stopping, settings.better, settings.first_report, settings.reduction
        )
        self._known, self._told, self._looked = 0, False, 0.0
        self.why = ""

    def look(self, agent_process: int) -> None:
        received = self._search.signals.received()
        if received and not self._told:
            self._told = True
            _tell(agent_process, getattr(signal, received, signal.SIGTERM))
        now = time.monotonic()
        if now - self._looked >= _LOOK_FOR_STOP:
            self._looked = now
            if os.path.exists(self._search.study.stop):
                self._stop(agent_process)
        if self._rule.how != stopping.NONE and not self.why and not self._trial.repeats:
            self._compare(agent_process)

    def _compare(self, agent_process: int) -> None:
        values = self._reports.read()
        if len(values) <= self._known:
            return
        try:
            records.report(self._search.study, self._trial, values)
            self._trials.refresh()
        except OSError:
            return  # a full disk, or storage that does not answer: the next look compares
        self._known = len(values)
        others = [
            one.reports
            for one in self._trials.all
            if one.number != self._trial.number and one.reports and not one.repeats
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
