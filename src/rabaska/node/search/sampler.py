"""`search sample STUDY`: Optuna's own samplers, in a process of their own, fed from the folder.

It runs with a Python that has Optuna. A line on its input asks for a trial: {"number": 17}. Its
answer is a line {"values": {…}}, or {"problem": "…"}. Optuna stores nothing: what it is told is
read from the study each time, and kept in memory.
"""

import importlib
import json
import math
import os
import random
import subprocess
import sys
from typing import Any, Dict, List, Optional, Set, Tuple

from . import space as spaces
from . import study as studies
from .proposals import CMA
from .study import FINISHED, PRUNED, Settings, Study, Trial
from .trials import Trials

SCRIPT = "sampler.sh"  # in the study; enters the environment, and starts this


def main(path: str) -> int:
    study = Study(os.path.realpath(path))
    settings = studies.load(study)
    # What a library prints is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    memory = OptunaMemory(settings)
    trials = Trials(study)
    for line in sys.stdin:
        try:
            number = int(json.loads(line)["number"])
            trials.refresh()
            answer: Dict[str, Any] = {"values": memory.proposed(number, trials.all)}
        except Exception as problem:  # whatever Optuna says
            answer = {"problem": "{}: {}".format(type(problem).__name__, problem)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


class OptunaMemory:
    """A study of Optuna in memory, with all trials of ours."""

    def __init__(self, settings: Settings) -> None:
        self._optuna: Any = importlib.import_module("optuna")
        self._settings = settings
        self._parameters = {one.name: one for one in settings.space}
        self._over: Set[int] = set()  # our numbers that Optuna knows the result of
        self._running: Dict[int, Tuple[int, Dict[str, Any]]] = {}  # Optuna's id, and the values
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        direction = "maximize" if settings.better > 0 else "minimize"
        self._study = self._optuna.create_study(direction=direction)
        self._storage = self._study._storage
        self._seeded = False

    def proposed(self, number: int, trials: List[Trial]) -> Dict[str, Any]:
        """The values of trial `number`, by what the others showed."""
        for one in trials:
            if one.number not in self._over and not one.repeats:
                self._learn(one)
        if not self._seeded:
            self._study.sampler, self._seeded = self._sampler(number), True
        trial = self._study.ask()
        values: Dict[str, Any] = {}
        for parameter in self._in_order():
            if _counts(parameter, values):
                values[parameter.name] = self._suggested(trial, parameter)
        if number in self._running:
            self._give_up(self._running[number][0])
        self._running[number] = (trial._trial_id, values)
        return {one.name: values[one.name] for one in self._settings.space if one.name in values}

    def _learn(self, one: Trial) -> None:
        """Tell Optuna of a trial that began or ended, its own proposal or another worker's."""
        known = self._running.get(one.number)
        if known is not None and known[1] != one.values:
            self._give_up(known[0])
            known = None
        if known is None and one.values:
            states = self._optuna.trial.TrialState
            self._study.add_trial(self._begun(one, states.RUNNING))
            newest = self._storage.get_all_trials(self._study._study_id, deepcopy=False)[-1]
            known = (newest._trial_id, dict(one.values))
            self._running[one.number] = known
        if one.result is None or known is None:
            return
        self._end(known[0], one.result)
        del self._running[one.number]
        self._over.add(one.number)

    def _end(self, trial: int, result: Dict[str, Any]) -> None:
        states, value = self._optuna.trial.TrialState, result.get("value")
        usable = isinstance(value, (int, float)) and math.isfinite(value)
        if result.get("state") == PRUNED:
            for at, number in result.get("curve") or []:
                self._storage.set_trial_intermediate_value(trial, int(at), float(number))
        if result.get("state") == FINISHED and usable:
            self._storage.set_trial_state_values(trial, states.COMPLETE, [float(value or 0)])
        elif result.get("state") == PRUNED and usable:
            self._storage.set_trial_state_values(trial, states.PRUNED, [float(value or 0)])
        else:
            self._give_up(trial)

    def _give_up(self, trial: int) -> None:
        self._storage.set_trial_state_values(trial, self._optuna.trial.TrialState.FAIL)

    def _begun(self, one: Trial, state: Any) -> Any:
        return self._optuna.trial.create_trial(
            state=state,
            params=dict(one.values),
            distributions={name: self._distribution(name) for name in one.values},
        )

    def _sampler(self, number: int) -> Any:
        """Another seed for each worker: they do not know of each other's random numbers.

        Who asks for the first trial proposes what Optuna itself would with that seed.
        """
        drawn = random.Random("{}/{}".format(self._settings.seed, number))
        samplers, seed = self._optuna.samplers, drawn.getrandbits(31)
        if number == 1:
            seed = self._settings.seed % 2**31
        if self._settings.method == CMA:
            return samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False)
        return samplers.TPESampler(seed=seed, constant_liar=True)

    def _distribution(self, name: str) -> Any:
        one, made = self._parameters[name], self._optuna.distributions
        if one.kind == spaces.CHOICE:
            return made.CategoricalDistribution(list(one.choices))
        if one.whole:
            return made.IntDistribution(int(one.low), int(one.high), log=one.kind == spaces.LOG)
        return made.FloatDistribution(one.low, one.high, log=one.kind == spaces.LOG)

    def _suggested(self, trial: Any, one: spaces.Parameter) -> Any:
        if one.kind == spaces.CHOICE:
            return trial.suggest_categorical(one.name, list(one.choices))
        if one.whole:
            log = one.kind == spaces.LOG
            return trial.suggest_int(one.name, int(one.low), int(one.high), log=log)
        return trial.suggest_float(one.name, one.low, one.high, log=one.kind == spaces.LOG)

    def _in_order(self) -> List[spaces.Parameter]:
        """Each after those that its condition names."""
        ordered: List[spaces.Parameter] = []
        waiting = list(self._settings.space)
        while waiting:
            names = {one.name for one in ordered}
            ready = [one for one in waiting if set(one.when) <= names]
            ordered += ready
            waiting = [one for one in waiting if one not in ready]
        return ordered


def _counts(one: spaces.Parameter, values: Dict[str, Any]) -> bool:
    return all(other in values and values[other] in wanted for other, wanted in one.when.items())


class SamplerProcess:
    """The worker's side: starts the process when it is first asked."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._process: "Optional[subprocess.Popen[str]]" = None
        self.problem = ""

    def proposed(self, number: int) -> Optional[Dict[str, Any]]:
        """The values of trial `number`; None, with a `problem`, where it does not answer."""
        for _ in range(2):  # a process that was killed is started once more
            answer = self._asked(number)
            if answer is not None:
                self.problem = str(answer.get("problem", ""))
                return answer.get("values")
            self.end()
        self.problem = "the process of Optuna does not answer"
        return None

    def _asked(self, number: int) -> Optional[Dict[str, Any]]:
        if self._process is None:
            self._process = subprocess.Popen(
                ["bash", os.path.join(self._study.path, SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                universal_newlines=True,
                start_new_session=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps({"number": number}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            answer = json.loads(line)
        except (OSError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    def end(self) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        pass
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
