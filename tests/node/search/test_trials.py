"""The folder of a search: claimed once, ended once, gathered, and read whatever is damaged."""

import errno
import os
import threading
import time

import pytest
from tests.node.search.test_trial_results import settings as usual_settings

from rabaska.node import files
from rabaska.node.record import jobs
from rabaska.node.search import choose, thinning
from rabaska.node.search import study as studies
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


def test_who_lost_a_trial_to_another_knows(study):
    trial = records.claim(study, 1, {"lr": 0.1})
    before = records.is_ours(study, trial)

    taken = records.take_over(study, trial)

    assert (before, records.is_ours(study, trial), records.is_ours(study, taken)) == (
        True, False, True,
    )  # fmt: skip


def test_a_trial_of_a_node_that_is_silent_is_taken_over_after_the_lease(study, monkeypatch):
    monkeypatch.setenv("RABASKA_LEASE_SECONDS", "0.3")
    trial = records.claim(study, 1, {"lr": 0.1})
    path = study.file(1, ".json")
    elsewhere = dict(trial.owner, host="another-node")
    files.write_json(path, {"values": trial.values, "begun": 1.0, "owner": elsewhere})
    run = study.run(1)
    os.makedirs(run.job(1))
    os.makedirs(run.carried(1))
    settings = usual_settings(trials=1)
    chooser = choose.Chooser(study, settings)

    asked = [chooser.next_trial(_read(study), 60.0)]
    end = time.monotonic() + 0.9
    while time.monotonic() < end:  # it gives signs of life
        with open(run.heartbeat(1), "w") as stream:
            stream.write(str(time.monotonic()))
        asked.append(chooser.next_trial(_read(study), 60.0))
        time.sleep(0.05)
    time.sleep(0.4)
    silent = chooser.next_trial(_read(study), 60.0)

    assert all(one.trial is None and one.wait for one in asked)
    assert (silent.trial.number, silent.trial.tries) == (1, 2)


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


def test_a_gathering_that_cannot_be_read_now_is_not_put_aside(study):
    os.makedirs(os.path.join(study.block(1), records.ALL))  # reading it is an error, not damage

    with pytest.raises(OSError, match="directory"):
        _read(study)

    assert os.listdir(study.block(1)) == [records.ALL]


def test_without_hard_links_who_comes_second_gets_nothing_too(study, monkeypatch):
    def refused(*_words):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    os.makedirs(study.block(1))
    os.symlink("nowhere", study.file(1, ".json"))  # made by another just now, and not seen yet

    assert records.claim(study, 1, {"lr": 0.1}) is None


def test_trials_are_added_once_though_it_is_said_twice(study):
    os.makedirs(study.path)
    settings = type("Settings", (), {"trials": 10})

    for count, mark in ((5, "a1"), (5, "a1"), (7, "b2")):
        studies.add_trials(study, count, 0.0, mark)

    assert studies.total(study, settings) == 22


_PAIR = {"checkpoints/model-2.pt": 2, "checkpoints/optimizer-2.pt": 2}
_SAVES = {  # what is written, step by step, and what the newest checkpoint is
    "files": ({"output/c-1.pt": 1, "output/c-2.pt": 2}, {"output/c-2.pt"}),
    "folders": (
        {"output/checkpoint-1/model.pt": 1, "output/checkpoint-2/model.pt": 2,
         "output/checkpoint-2/optimizer.pt": 2, "output/checkpoint-2/trainer_state.json": 2},
        {"output/checkpoint-2/model.pt", "output/checkpoint-2/optimizer.pt",
         "output/checkpoint-2/trainer_state.json"},
    ),
    "two files": ({"checkpoints/model-1.pt": 1, **_PAIR}, set(_PAIR)),
}  # fmt: skip


def _trial_that_saved(study, number, saves):
    run = study.run(number)
    place = os.path.join(run.path, "kept/000")
    for folder in (f"{place}/output", f"{place}/checkpoints", run.job(1), f"{run.path}/carried"):
        os.makedirs(folder, exist_ok=True)
    os.symlink("../kept/000", run.carried(1))
    for path, step in saves.items():
        os.makedirs(os.path.dirname(f"{place}/{path}"), exist_ok=True)
        with open(f"{place}/{path}", "w") as file:
            file.write('{"log_history": []}' if path.endswith("json") else "a save")
        os.utime(f"{place}/{path}", (1.7e9 + 60 * step, 1.7e9 + 60 * step))
    saved = {"path": "output/c-2.pt", "size": 0, "mtime_ns": 1}
    jobs.write_ended(run, jobs.Ended(1, "", "finished", "", 0, None, 1.0, saved, progressed=True))


def _thinned(study, keep):
    """As after a hundred trials, of which the last five are the best."""
    ended = [
        {"number": number, "values": {}, "begun": 1.0, "result": dict(DONE, value=number)}
        for number in range(1, 100)
    ]
    os.makedirs(study.block(1))
    studies.publish(os.path.join(study.block(1), records.ALL), {"trials": ended})
    trials = _read(study)
    settings = type("S", (), {"keep_best": 5, "keep_others": keep, "better": 1})
    thinning.thin(study, settings, trials)
    thinning.thin(study, settings, trials)  # once is enough


def _left(run):
    kept = os.path.join(run.path, "kept/000")
    return {
        os.path.relpath(os.path.join(parent, name), kept)
        for parent, _, names in os.walk(kept)
        for name in names
    }


@pytest.mark.parametrize("keep", ["all", "checkpoint", "nothing"])
@pytest.mark.parametrize("saves", _SAVES)
def test_what_is_kept_of_trials_that_are_not_the_best(study, keep, saves):
    written, newest = _SAVES[saves]
    for number in (94, 95):
        _trial_that_saved(study, number, written)

    _thinned(study, keep)

    others = {"all": set(written), "checkpoint": newest, "nothing": set()}[keep]
    assert (_left(study.run(94)), _left(study.run(95))) == (others, set(written))
    assert os.path.exists(study.run(94).path) == (keep != "nothing")
    assert len(_read(study).ended) == 99


def test_a_trial_that_somebody_resumed_by_itself_is_left_alone(study):
    for number in (7, 8):
        _trial_that_saved(study, number, _SAVES["files"][0])
    os.rename(study.run(7).carried(1), study.run(7).carried(2))  # its second job

    _thinned(study, "nothing")

    assert _left(study.run(7)) == set(_SAVES["files"][0])
    assert not os.path.exists(study.run(8).path)
