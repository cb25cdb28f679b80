"""A search beside Optuna: how long an ask takes, and how many small trials run each second."""

import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rows import Row

import rabaska
from rabaska.domain.search import SearchStatus
from rabaska.node.search import choose, stopping
from rabaska.node.search import space as spaces
from rabaska.node.search import study as studies
from rabaska.node.search import trials as records
from rabaska.node.search.study import FINISHED, Settings, Study, Trial
from rabaska.node.search.trials import Trials

NAME = "search"
QUICK = False  # at a smaller size, starting programs takes most of the time
WORKERS = 8
SPACE = {"x": {"float": [0.0, 1.0]}, "lr": {"log": [1e-5, 1e-1]}}
TRAIN = """
import argparse, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--lr", type=float)
options = parser.parse_args()
time.sleep(0.01)
print("score", options.x)
"""
SETTINGS = f"""
name = "bench"
command = "{sys.executable} train.py"
[search]
metric = "score"
at_once = {WORKERS}
[search.space]
x = {{float = [0.0, 1.0]}}
lr = {{log = [1e-5, 1e-1]}}
"""
# What somebody with Optuna would write: each worker starts the program for each of its trials.
OPTUNA = """
import subprocess, sys
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
kind, path, count, program = sys.argv[1:]
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = f"sqlite:///{path}" if kind == "sqlite" else JournalStorage(JournalFileBackend(path))
study = optuna.create_study(study_name="s", storage=storage, direction="maximize",
                            sampler=optuna.samplers.RandomSampler(), load_if_exists=True)
def objective(trial):
    x, lr = trial.suggest_float("x", 0, 1), trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    words = [sys.executable, program, "--x", str(x), "--lr", str(lr)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return float(said.split()[-1])
study.optimize(objective, n_trials=int(count))
"""


def run(*, quick: bool) -> list[Row]:
    count = 10_000
    with tempfile.TemporaryDirectory() as folder:
        study = _finished(Path(folder), count)
        first, then = _asked(study), _asked_by(study)
        asha = _compared(study)
        tpe = _tpe_beside_optuna(study)
    rows = [
        Row(f"first ask at {count:,} finished trials", "100 ms", first, 0.1, 0.1 / first),
        Row(f"next ask at {count:,}", "100 ms", then, 0.1, 0.1 / then, 1.0),
        Row(f"ASHA's decision at {count:,}", "100 ms", asha, 0.1, 0.1 / asha, 1.0),
    ]
    return [*rows, *tpe, _between_trials(8 if quick else 20), *_throughput(80 if quick else 500)]


def _tpe_beside_optuna(study: Study) -> list[Row]:
    """An ask of TPE by processor time, in turn with Optuna's own in memory at that size."""
    if importlib.util.find_spec("optuna") is None:
        return []
    from rabaska.node.search.sampler import OptunaMemory

    trials = Trials(study)
    trials.refresh()
    memory, peer = OptunaMemory(settings_with(method="tpe")), _optuna_in_memory(trials.ended)
    number = len(trials.all) + 1
    memory.proposed(number, trials.all)  # learns
    ours, theirs = [], []
    for turn in range(1, 6):
        began = time.process_time()
        trials.refresh()
        memory.proposed(number + turn, trials.all)
        ours.append(time.process_time() - began)
        began = time.process_time()
        asked = peer.ask()
        asked.suggest_float("x", 0, 1)
        asked.suggest_float("lr", 1e-5, 1e-1, log=True)
        theirs.append(time.process_time() - began)
    own, other = statistics.median(ours), statistics.median(theirs)
    work = f"ask of TPE at {len(trials.ended):,}"
    return [Row(work, "Optuna in memory, + 100 ms", own, other + 0.1, (other + 0.1) / own, 1.0)]


def _optuna_in_memory(ended: list[Trial]) -> Any:
    import optuna  # type: ignore[import-untyped,import-not-found,unused-ignore]

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=0, constant_liar=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    made = optuna.distributions.FloatDistribution
    spread = {"x": made(0.0, 1.0), "lr": made(1e-5, 1e-1, log=True)}
    study.add_trials(
        [
            optuna.trial.create_trial(
                params=one.values, distributions=spread, value=(one.result or {})["value"]
            )
            for one in ended
        ]
    )
    return study


def _between_trials(count: int) -> Row:
    """What a trial costs beyond its program, which does nothing; one worker, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        found = _searched(Path(folder), "print('score', 1)\n", trials=count, at_once=1)
        begun = sorted(trial.begun for trial in found.trials)
        pauses = [after - before for before, after in itertools.pairwise(begun)]
    bare = []
    for _ in range(count):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append(time.perf_counter() - began)
    gap = statistics.median(pauses) - statistics.median(bare)
    return Row("from a trial to the next", "1 s beyond `python -c pass`", gap, 1.0, 1.0 / gap, 1.0)


def settings_with(**changes: object) -> Settings:
    usual: dict[str, object] = {
        "space": spaces.parameters(SPACE), "given": SPACE, "metric": "score", "goal": "max",
        "trials": 20_000, "method": "random", "stopping": "none", "seed": 0, "at_once": 8,
        "take": "last", "first_report": 1, "reduction": 3, "keep_best": 20,
        "keep_others": "all", "spelled": {}, "plan": {},
        "growth": {}, "workers": {},
    }  # fmt: skip
    return Settings(**{**usual, **changes})  # type: ignore[arg-type]


def _finished(folder: Path, count: int) -> Study:
    """A search with so many results, gathered as workers do, and some that are not yet."""
    study = Study(str(folder / "searches" / "bench"))
    for block in range(count // studies.BLOCK + 1):
        first = block * studies.BLOCK
        numbers = [one for one in range(max(1, first), first + studies.BLOCK) if one <= count]
        os.makedirs(study.block(first), exist_ok=True)
        made = [_trial(number) for number in numbers]
        if len(numbers) == studies.BLOCK or block == 0:
            studies.publish(os.path.join(study.block(first), "all.json"), {"trials": made})
        else:
            for one in made:
                claimed = records.claim(study, one["number"], one["values"])
                assert claimed is not None
                records.end(study, claimed, one["result"])
    return study


def _trial(number: int) -> dict[str, object]:
    curve = [[at, number / 1e4 + at] for at in range(1, 21)]
    result = {"state": FINISHED, "value": number / 1e4, "why": "", "seconds": 1.0, "curve": curve}
    values = {"x": number / 1e4, "lr": 0.01}
    return {"number": number, "values": values, "begun": 0.0, "result": result}


def _asked(study: Study) -> float:
    """By a worker that has just begun."""
    began = time.perf_counter()
    trials = Trials(study)
    trials.refresh()
    chosen = choose.Chooser(study, settings_with()).next_trial(trials, 1e9)
    assert chosen.trial is not None
    return time.perf_counter() - began


def _asked_by(study: Study) -> float:
    trials, chooser, spent = Trials(study), choose.Chooser(study, settings_with()), []
    trials.refresh()
    for _ in range(20):
        began = time.perf_counter()
        trials.refresh()
        records.gather(study, trials)
        chosen = chooser.next_trial(trials, 1e9)
        spent.append(time.perf_counter() - began)
        assert chosen.trial is not None
        records.end(study, chosen.trial, {"state": FINISHED, "value": 0.5})
    return statistics.median(spent)


def _compared(study: Study) -> float:
    trials = Trials(study)
    trials.refresh()
    rule = stopping.Rule(stopping.ASHA, 1)
    began = time.perf_counter()
    trials.refresh()
    others = [one.reports for one in trials.all if one.reports]
    stopping.why_stop(rule, 20_001, [0.5] * 9, others)
    return time.perf_counter() - began


def _throughput(count: int) -> list[Row]:
    ours = _ours(count)
    if importlib.util.find_spec("optuna") is None:
        return [Row(f"{count} trials of 10 ms", "(Optuna is not installed)", ours, 0, 1, unit="/s")]
    return [
        Row(f"{count} trials of 10 ms", f"Optuna, {kind}", ours, theirs, ours / theirs, 1.0, "/s")
        for kind, theirs in ((kind, _optuna(kind, count)) for kind in ("journal", "sqlite"))
    ]


def _ours(count: int) -> float:
    """Trials per second, from the begin of the first to the end of the last."""
    with tempfile.TemporaryDirectory() as folder:
        found = _searched(Path(folder), TRAIN, trials=count, at_once=WORKERS)
        ended = [trial.ended for trial in found.trials if trial.ended]
        assert len(ended) == count
        return count / (max(ended) - min(trial.begun for trial in found.trials))


def _searched(folder: Path, program: str, **search: Any) -> SearchStatus:
    os.environ["RABASKA_HOME"] = f"{folder}/home"
    project = folder / "project"
    project.mkdir()
    (project / "rabaska.toml").write_text(SETTINGS)
    (project / "train.py").write_text(program)
    return rabaska.search(project, doctor=False, values_as="options", **search)


def _optuna(kind: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        program, worker = Path(folder, "train.py"), Path(folder, "worker.py")
        program.write_text(TRAIN)
        worker.write_text(OPTUNA)
        words = [sys.executable, str(worker), kind, f"{folder}/study"]
        subprocess.run([*words, "0", str(program)], check=True)  # makes the study
        began = time.perf_counter()
        each = [str(count // WORKERS), str(program)]
        workers = [subprocess.Popen([*words, *each]) for _ in range(WORKERS)]
        for process in workers:
            process.wait()
        return count / (time.perf_counter() - began)
