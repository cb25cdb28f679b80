"""Which trial a worker takes next: one that was cut, or a new one; and when it is done."""

import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..record import lease
from ..record.events import say
from . import proposals, repeats, sampler
from . import study as studies
from . import trials as records
from .study import FAILED, Settings, Study, Trial
from .trials import Trials

SAME_CAUSE = 3  # trials that fail in one way before any succeeds: then the search stops
_PAUSE = 1.0  # seconds between two looks at trials of other nodes


class Chosen(NamedTuple):
    trial: Optional[Trial] = None
    wait: float = 0.0  # seconds until another look, where it is worth it
    why: str = ""  # there is nothing to do


class Chooser:
    def __init__(self, study: Study, settings: Settings) -> None:
        self._study, self._settings = study, settings
        self._signs: Dict[int, Tuple[Any, float]] = {}  # of life, and since when

        self._sampler = sampler.SamplerProcess(study)

    def end(self) -> None:
        self._sampler.end()

    def next_trial(self, trials: Trials, seconds_left: float) -> Chosen:
        halted = why_halted(trials.ended)
        if halted:
            return Chosen(why="the search stops: {}".format(halted))
        unsure = False
        for trial in trials.open:
            free = self._is_free(trial)
            if free:
                taken = records.take_over(self._study, self._with_values(trial))
                if taken is not None:
                    return Chosen(taken)
            unsure = unsure or free is None
        return self._new_trial(trials, seconds_left, unsure)

    def _new_trial(self, trials: Trials, seconds_left: float, unsure: bool) -> Chosen:
        wanted = studies.total(self._study, self._settings)
        while True:
            number = trials.next_number()
            values = self._values(number, trials) if trials.proposed < wanted else None
            if values is None:
                break
            claimed = self._claimed(trials, number, values)
            if claimed is not None:
                return Chosen(claimed)
        if self._settings.seeds and not unsure:
            return self._repeat(trials)
        if unsure:
            return Chosen(wait=_PAUSE)
        return Chosen(why="no trial is left to begin")

    def _repeat(self, trials: Trials) -> Chosen:
        """One of the best with another seed, once all are over that may be among them."""
        if any(not one.repeats for one in trials.open):
            return Chosen(wait=_PAUSE)
        while True:
            left = repeats.missing(self._settings, trials.all)
            if not left:
                return Chosen(why="no trial is left to begin")
            values = repeats.values_of(self._settings, left[0])
            claimed = self._claimed(trials, trials.next_number(), values, left[0].of.number)
            if claimed is not None:
                return Chosen(claimed)

    def _claimed(
        self, trials: Trials, number: int, values: Dict[str, Any], repeated: int = 0
    ) -> Optional[Trial]:
        claimed = records.claim(self._study, number, values, repeated)
        if claimed is None:
            trials.refresh()
            if number not in trials.by_number:  # claimed, and not to be seen here yet
                unseen = Trial(number, values, time.time(), {}, repeats=repeated)
                trials.by_number[number] = unseen
        return claimed

    def _values(self, number: int, trials: Trials) -> Optional[Dict[str, Any]]:
        if self._settings.method in proposals.BY_OPTUNA:
            values = self._sampler.proposed(number)
            if values is not None:
                return values
            say("{}; trial {} is drawn at random".format(self._sampler.problem, number))
        return proposals.values_of(self._settings, number)

    def _with_values(self, trial: Trial) -> Trial:
        """Where its own file was damaged, what it must have been."""
        if trial.values:
            return trial
        return trial._replace(values=proposals.values_of(self._settings, trial.number) or {})

    def _is_free(self, trial: Trial) -> Optional[bool]:
        """Whether nobody works on it; None while that cannot be told from here."""
        if trial.left:
            return True
        alive = studies.is_alive(trial.owner)
        if alive is not None:
            return not alive
        run = self._study.run(trial.number)
        holder = run.holder()
        sign = (trial.tries, holder, lease.sign_of_life(run, holder) if holder else None)
        known, since = self._signs.get(trial.number, (None, 0.0))
        now = time.monotonic()
        if known != sign:
            self._signs[trial.number] = (sign, now)
            return None
        return True if now - since >= lease.seconds() else None


def is_over(study: Study, settings: Settings, trials: Trials) -> bool:
    """Whether nothing is left to do."""
    if why_halted(trials.ended):
        return True
    number = trials.next_number()
    all_begun = trials.proposed >= studies.total(study, settings) or (
        settings.method == proposals.GRID and proposals.values_of(settings, number) is None
    )
    return all_begun and not trials.open and not repeats.missing(settings, trials.all)


def why_halted(ended: List[Trial]) -> str:
    """Why no more trials are begun; "" while they are."""
    failed = [one for one in ended if one.result and one.result.get("state") == FAILED]
    if any(one.result and one.result.get("state") != FAILED for one in ended):
        return ""
    causes: Dict[str, List[Trial]] = {}
    for one in failed:
        causes.setdefault(str((one.result or {}).get("cause")), []).append(one)
    for alike in causes.values():
        if len(alike) >= SAME_CAUSE:
            said = "{} trials failed in the same way and none succeeded: {}"
            return said.format(len(alike), (alike[-1].result or {}).get("why"))
    return ""
