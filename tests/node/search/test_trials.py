"""The folder of a search: claimed once, ended once, gathered, and read whatever is damaged."""

import os
import threading

import pytest

from rabaska.node.record import jobs
from rabaska.node.search import study as studies
from rabaska.node.search import thinning
from rabaska.node.search import trials as records
from rabaska.node.search.study import FINISHED, Study
from rabaska.node.search.trials import Trials

DONE = {"state": FINISHED, "value": 0.5, "why": ""}


@pytest.fixture
def study(tmp_path):
    return Study(str(tmp_path / "searches" / "cats-7f3a"))


def _read(study):
    trials = Trials(study)
    trials.refresh()
    return trials


def test_of_many_who_claim_a_number_one_gets_it(study):
    got = []

    def claim():
        for number in range(1, 31):
            if records.claim(study, number, {"lr": 0.1}):
                got.append(number)

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got) == list(range(1, 31))


def test_a_trial_is_open_until_it_has_a_result_and_gets_one(study):
    trial = records.claim(study, 1, {"lr": 0.1})

    first = records.end(study, trial, DONE)
    second = records.end(study, trial, dict(DONE, value=0.9))

    assert (first, second) == (True, False)
    assert _read(study).open == []
    assert _read(study).ended[0].result["value"] == 0.5


def test_a_hundred_trials_become_one_file_and_nothing_is_lost(study):
    for number in range(1, 151):
        records.end(study, records.claim(study, number, {"x": number}), dict(DONE, value=number))

    records.gather(study, _read(study))

    first = os.path.join(study.trials, "0000")
    assert os.listdir(first) == ["all.json"]
    found = _read(study)
    assert [one.number for one in found.all] == list(range(1, 151))
    assert [one.result["value"] for one in found.ended] == list(range(1, 151))
    assert found.next_number() == 151


def test_who_has_not_seen_the_gathering_claims_nothing_again(study):
    for number in range(1, 100):
        records.end(study, records.claim(study, number, {"x": 1}), DONE)
    records.gather(study, _read(study))

    assert records.claim(study, 5, {"x": 2}) is None
    assert os.listdir(os.path.join(study.trials, "0000")) == ["all.json"]


def test_one_takes_over_a_trial_that_was_left(study):
    trial = records.claim(study, 1, {"lr": 0.1})
    records.leave(study, trial)
    (left,) = _read(study).open

    assert left.left
    assert records.take_over(study, left).tries == 2
    assert records.take_over(study, left) is None
    (taken,) = _read(study).open
    assert (taken.tries, taken.left, taken.values) == (2, False, {"lr": 0.1})


@pytest.mark.parametrize("torn", [b"", b'{"values": {"lr', b"\0" * 40])
def test_a_torn_file_costs_its_own_trial_only(study, torn):
    for number in range(1, 4):
        records.end(study, records.claim(study, number, {"lr": number}), DONE)
    for name in ("000002.result.json", "000003.json"):
        with open(os.path.join(study.trials, "0000", name), "wb") as stream:
            stream.write(torn)

    found = _read(study)

    assert [one.number for one in found.open] == [2]
    assert [one.number for one in found.ended] == [1, 3]
    assert records.end(study, found.open[0], dict(DONE, value=0.7))
    assert [one.result["value"] for one in _read(study).ended] == [0.5, 0.7, 0.5]


def test_a_damaged_gathering_is_put_aside_and_its_numbers_are_claimed_again(study):
    for number in range(1, 100):
        records.end(study, records.claim(study, number, {"x": 1}), DONE)
    records.gather(study, _read(study))
    with open(os.path.join(study.trials, "0000", "all.json"), "wb") as stream:
        stream.write(b"{")

    assert _read(study).next_number() == 1
    assert records.claim(study, 1, {"x": 1}) is not None


def test_trials_are_added_by_files_of_their_own(study):
    os.makedirs(study.path)
    settings = type("Settings", (), {"trials": 10})

    studies.add_trials(study, 5, 0.0)
    studies.add_trials(study, 7, 0.0)

    assert studies.total(study, settings) == 22


@pytest.mark.parametrize(
    ("keep", "files_of_others"), [("all", 3), ("checkpoint", 2), ("nothing", 0)]
)
def test_what_is_kept_of_trials_that_are_not_the_best_is_counted(study, keep, files_of_others):
    for number in range(1, 100):
        run = study.run(number)
        output = os.path.join(run.path, "kept/000/output")
        for folder in (output, run.job(1), os.path.join(run.path, "carried/001")):
            os.makedirs(folder)
        for name in ("c-1.pt", "c-2.pt"):
            open(os.path.join(output, name), "w").close()
        os.rmdir(run.carried(1))
        os.symlink("../kept/000", run.carried(1))
        saved = {"path": "output/c-2.pt", "size": 0, "mtime_ns": 1}
        jobs.write_ended(
            run, jobs.Ended(1, "", "finished", "", 0, None, 1.0, saved, progressed=True)
        )
        records.end(study, records.claim(study, number, {"x": number}), dict(DONE, value=number))
    trials = _read(study)
    records.gather(study, trials)
    trials.refresh()
    settings = type("S", (), {"keep_best": 5, "keep_others": keep, "better": 1})

    thinning.thin(study, settings, trials)
    thinning.thin(study, settings, trials)  # once is enough

    runs = os.path.dirname(study.run(1).path)
    counts = {number: _files(study.run(number).path) for number in range(1, 100)}
    assert {counts[number] for number in range(95, 100)} == {3}
    assert {counts[number] for number in range(1, 95)} == {files_of_others}
    assert (keep != "nothing") or len(os.listdir(runs)) == 5
    assert len(_read(study).ended) == 99


def _files(folder):
    return sum(len(names) for _, _, names in os.walk(folder))
