"""What ten thousand trials leave on a disk: files and bytes, counted."""

import os

import pytest
from tests.node.search.test_trial_results import PLAN

from rabaska.node import files
from rabaska.node.record import jobs, plan
from rabaska.node.search import thinning
from rabaska.node.search import trials as records
from rabaska.node.search.study import BLOCK, FINISHED, Study
from rabaska.node.search.trials import Trials

# What a trial of two jobs with three checkpoints of 100 kB leaves, as a real one does.
LEFT = {
    "run.json": 4000, "params.json": 80, "trial.json": 100, "job.sh": 3000, "job-more.sh": 3000,
    "events.jsonl": 1500, "metrics.jsonl": 900, "submissions.jsonl": 300, "DONE": 20,
    "logs/job-001.log": 2000, "logs/job-001.times": 200, "logs/job-002.log": 900,
    "logs/job-002.times": 100, "series/job-001.tsv": 700, "series/job-002.tsv": 300,
    "vitals/job-001-n1.tsv": 5000, "vitals/job-002-n1.tsv": 2000, "jobs/001/begun.json": 300,
    "jobs/001/phase.json": 100, "jobs/001/alive": 10, "jobs/002/begun.json": 300,
    "jobs/002/phase.json": 100, "kept/001/output/c-1.pt": 100_000,
    "kept/001/output/c-2.pt": 100_000, "kept/001/output/c-3.pt": 100_000,
    "kept/001/saved.jsonl": 300, "kept/001/output/events.out.tfevents": 5000,
}  # fmt: skip

RUN_JSON = plan.dumps(PLAN).encode()


def _leave(study, number):
    """A trial that ended, with what it left; sizes are told by sparse files."""
    run = study.run(number)
    for path, size in LEFT.items():
        target = os.path.join(run.path, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as stream:
            # All zeros would be a damaged checkpoint, and a plan that cannot be read keeps all.
            stream.write(RUN_JSON.ljust(size) if path == "run.json" else b"x")
            stream.truncate(size)
    os.makedirs(os.path.join(run.path, "carried"))
    os.symlink("../kept/001", run.carried(2))
    saved = {"path": "output/c-3.pt", "size": 100_000, "mtime_ns": 1}
    for job in (1, 2):
        ended = jobs.Ended(job, "", "finished", "", 0, None, 1.0, saved, progressed=True)
        jobs.write_ended(run, ended)


def _counted(folder):
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return len(paths), sum(os.lstat(path).st_size for path in paths)


@pytest.mark.slow
@pytest.mark.parametrize("count", [299, pytest.param(9999, marks=pytest.mark.thorough)])
def test_trials_leave_a_bounded_number_of_files_and_bytes(tmp_path, count):
    study = Study(str(tmp_path / "searches" / "cats-7f3a"))
    settings = type("S", (), {"keep_best": 20, "keep_others": "checkpoint", "better": 1})
    trials = Trials(study)

    for first in range(0, count + 1, BLOCK):
        os.makedirs(study.block(first))
        made = []
        for number in range(max(1, first), first + BLOCK):
            _leave(study, number)
            # Each is better than all before it, which is the worst for who keeps the best.
            done = {"state": FINISHED, "value": number, "why": ""}
            trial = {"number": number, "values": {"x": 1}, "begun": 0.0, "result": done}
            made.append(trial)
        files.write_json(os.path.join(study.block(first), records.ALL), {"trials": made})
        trials.refresh()
        thinning.thin(study, settings, trials)

    of_runs, size = _counted(tmp_path / "runs")
    of_search, _ = _counted(study.path)
    assert of_runs <= 20 * (len(LEFT) + 4) + (count - 20) * 13
    assert size <= 20 * 350_000 + (count - 20) * 112_000
    assert of_search == 2 * (count // BLOCK + 1)
    complete = [n for n in range(1, count + 1) if os.path.exists(study.run(n).path + "/job.sh")]
    assert complete == list(range(count - 19, count + 1))
    assert os.path.exists(study.run(1).path + "/kept/001/output/c-3.pt")
