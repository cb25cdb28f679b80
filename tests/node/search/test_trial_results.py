"""What becomes of a trial's run: its metric, its result, and when a search begins no more."""

import os

import pytest

from rabaska.domain.search import FINISHED as DONE
from rabaska.domain.search import Trial as ShownTrial
from rabaska.domain.search import guessed_goal, ignored
from rabaska.node import files
from rabaska.node.record import chain_rule, jobs, plan
from rabaska.node.record.run_folder import RunFolder
from rabaska.node.search import choose, metric, trial_run
from rabaska.node.search import space as spaces
from rabaska.node.search.study import FAILED, FINISHED, Settings, Trial

PLAN = plan.Plan("t", ["python"], [], "", [], ["*.pt"], [], {}, 60.0, 5.0, "TERM", 1, "")


def settings(**changes):
    usual = {
        "space": spaces.parameters({"lr": [0.1, 0.2]}), "given": {"lr": [0.1, 0.2]},
        "metric": "val_accuracy", "goal": "max", "trials": 5, "method": "random",
        "stopping": "none", "seed": 0, "at_once": 1, "take": "last", "first_report": 1,
        "reduction": 3, "keep_best": 20, "keep_others": "all", "spelled": {},
        "plan": plan.to_json(PLAN), "growth": {}, "workers": {},
    }  # fmt: skip
    return Settings(**{**usual, **changes})


@pytest.fixture
def run(tmp_path):
    folder = RunFolder(str(tmp_path / "runs" / "t"))
    for name in ("logs", "jobs", "carried/001"):
        os.makedirs(os.path.join(folder.path, name))
    return folder


def job(run, log, number=1, how=chain_rule.FINISHED, reason=""):
    os.makedirs(run.job(number), exist_ok=True)
    with open(run.log(number), "w") as stream:
        stream.write(log)
    jobs.write_begun(run, jobs.Begun(number, "1", "n", "b", 1, "1", 100.0, ready=True))
    ended = jobs.Ended(number, "1", how, reason, 0, None, 107.5, None, progressed=False)
    jobs.write_ended(run, ended)
    if how == chain_rule.FINISHED:
        files.write_json(run.done, {"job": number})


def result(run, **changes):
    chosen = settings(**changes)
    reports = metric.Reports(run, chosen.metric)
    return trial_run.result_of(chosen, Trial(1, {}, 0.0, {}), run, PLAN, reports)


LOG = "epoch 1 val_accuracy 0.5\nepoch 2 val_accuracy 0.9\nepoch 3 val_accuracy 0.8\n"


@pytest.mark.parametrize(("take", "value"), [("last", 0.8), ("best", 0.9)])
def test_the_value_of_a_trial_is_its_last_or_its_best(run, take, value):
    job(run, LOG)

    found = result(run, take=take)

    assert (found["state"], found["value"], found["seconds"]) == (FINISHED, value, 7.5)
    assert found["curve"] == [[1, 0.5], [2, 0.9], [3, 0.8]]


def test_what_a_later_job_did_again_counts_once(run):
    job(run, LOG, how=chain_rule.TIME_LIMIT)
    job(run, "epoch 3 val_accuracy 0.7\nepoch 4 val_accuracy 0.6\n", number=2)

    assert metric.Reports(run, "val_accuracy").read() == [0.5, 0.9, 0.7, 0.6]


def test_the_series_of_a_run_tells_what_it_did_not_print(run):
    job(run, "nothing\n")
    os.makedirs(os.path.join(run.path, "series"))
    with open(os.path.join(run.path, "series", "job-001.tsv"), "w") as stream:
        stream.write("# rabaska series 1\tjob 1\tbegan 1.0\n=\t0\ttrain/loss\ttensorboard\n")
        stream.write(
            "=\t1\tval/accuracy\ttensorboard\n0\t1\t0.5\t2.0\n1\t1\t0.5\t0.25\n1\t2\t0.6\tnan\n"
        )
        stream.write("1\t3\t0.7\t0.5")  # a line that is not complete yet

    reports = metric.Reports(run, "val_accuracy")

    assert [str(one) for one in reports.read()] == ["0.25", "nan"]
    assert reports.names == {"train/loss", "val/accuracy"}


def test_the_last_value_is_the_last_however_many_names_there_are(run):
    job(run, "step 1 loss 9.0\n")
    series = [f"=\t{number}\tm{number}\ttensorboard" for number in range(60)]
    os.makedirs(os.path.join(run.path, "series"))
    with open(os.path.join(run.path, "series", "job-001.tsv"), "w") as stream:
        stream.write("\n".join(series) + "\n")
    reports = metric.Reports(run, "")
    reports.read()

    with open(run.log(1), "a") as stream:
        stream.write("step 2 loss 0.1\n")
    reports.read()

    assert reports.last == {"loss": 0.1}


def test_a_metric_that_never_appears_is_told_with_the_names_that_did(run):
    job(run, LOG)

    found = result(run, metric="test_f1")

    assert found["state"] == FAILED
    assert found["why"] == "it never reported test_f1; it reported val_accuracy"


def test_a_metric_that_is_no_number_is_told(run):
    job(run, "epoch 1 val_accuracy nan\n")

    assert (result(run)["state"], result(run)["why"]) == (FAILED, "its metric is nan")


def test_a_crash_is_told_with_its_last_line(run):
    job(run, "Traceback\nValueError: no layer 7\n", how=chain_rule.CRASHED, reason="exit code 1")

    found = result(run)

    assert found["why"] == "exit code 1; its last line: ValueError: no layer 7"
    assert found["cause"] == "crashed: ValueError: no layer #"


@pytest.mark.parametrize(("log", "silent"), [("rabaska: began\n\n", True), ("hello\n", False)])
def test_a_crash_without_a_word_is_known(run, log, silent):
    job(run, log, how=chain_rule.CRASHED)

    assert trial_run.said_nothing(run) is silent


def test_a_trial_that_was_cut_has_no_result_yet(run):
    job(run, LOG, how=chain_rule.KILLED)

    assert result(run) is None


def _failed(number, cause):
    value = {"state": FAILED, "cause": cause, "why": f"ValueError: no layer {number}"}
    return Trial(number, {}, 0.0, {}, result=value)


def test_a_search_whose_trials_all_fail_alike_stops_and_says_why():
    alike = [_failed(number, "crashed: no layer") for number in (1, 2, 3)]
    different = [_failed(number, str(number)) for number in (1, 2, 3)]
    success = Trial(4, {}, 0.0, {}, result={"state": FINISHED, "value": 1.0})

    said = choose.why_halted(alike)

    assert said == ("3 trials failed in the same way and none succeeded: ValueError: no layer 3")
    assert choose.why_halted(alike[:2]) == ""
    assert choose.why_halted(different) == ""
    assert choose.why_halted([*alike, success]) == ""


def test_a_program_that_ignores_its_option_is_noticed():
    def trial(lr, value):
        return ShownTrial(1, "r", {"lr": lr, "seed": 1}, DONE, value)

    assert ignored([trial(0.1, 0.5), trial(0.2, 0.5), trial(0.3, 0.5)]) == "lr"
    assert ignored([trial(0.1, 0.5), trial(0.2, 0.5), trial(0.3, 0.6)]) == ""


def test_an_option_that_is_ignored_beside_one_that_is_not_is_noticed():
    def trial(lr, depth, value):
        return ShownTrial(1, "r", {"lr": lr, "depth": depth}, DONE, value)

    grid = [trial(lr, depth, lr * 2) for lr in (0.1, 0.2) for depth in (3, 4)]

    assert ignored(grid) == "depth"
    assert ignored([*grid, trial(0.1, 5, 0.7)]) == ""
    assert ignored(grid[:3]) == ""  # one pair may be chance


@pytest.mark.parametrize(
    ("name", "goal"),
    [("val_accuracy", "max"), ("val/loss", "min"), ("quality", None), ("f1", "max")],
)
def test_the_goal_is_guessed_from_the_name(name, goal):
    assert guessed_goal(name) == goal


@pytest.mark.parametrize(
    ("style", "words", "variables"),
    [
        (["option", "--lr"], ["--lr", "0.1"], {}),
        (["joined", "--lr"], ["--lr=0.1"], {}),
        (["override", "opt.lr"], ["opt.lr=0.1"], {}),
        (["environment", "LR"], [], {"LR": "0.1"}),
        (["file", "--config"], ["--config", "/r/params.json"], {}),
    ],
)
def test_values_reach_the_program_as_it_takes_them(style, words, variables):
    chosen = settings(spelled={"lr": style})

    assert trial_run.words_of(chosen, {"lr": 0.1}, "/r/params.json") == (words, variables)


def test_a_brace_in_a_value_is_no_placeholder():
    chosen = settings(spelled={"name": ["option", "--name"]})

    assert trial_run.words_of(chosen, {"name": "{x}"}, "")[0] == ["--name", "{{x}}"]


def test_optuna_proposes_other_values_to_each_worker_and_learns():
    pytest.importorskip("optuna")
    from rabaska.node.search.sampler import OptunaMemory

    space = {"x": {"float": [0.0, 1.0]}, "k": ["a", "b"], "y": {"int": [1, 5], "when": {"k": "a"}}}
    chosen = settings(space=spaces.parameters(space), given=space, method="tpe")
    one, other = OptunaMemory(chosen), OptunaMemory(chosen)
    trials = []
    for number in range(1, 31):
        values = (one if number % 2 else other).proposed(number, trials)
        assert ("y" in values) == (values["k"] == "a")
        result = {"state": FINISHED, "value": 1 - abs(values["x"] - 0.3)}
        trials.append(Trial(number, values, 0.0, {}, result=result))

    assert len({repr(trial.values) for trial in trials}) == 30
    late = [abs(trial.values["x"] - 0.3) for trial in trials[20:]]
    assert sorted(late)[5] < 0.2
