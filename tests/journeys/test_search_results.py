"""What is proposed for a search, and what its results become elsewhere."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from rabaska.domain.search import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    PRUNED,
    SearchState,
    SearchStatus,
    Trial,
)
from rabaska.domain.trial_values import arguments_of, each_of, trial_numbered
from rabaska.errors import CommandFailed, NoSuchRun, SettingsError, SubmissionRefused, WrongUse
from rabaska.journeys import search as journey
from rabaska.journeys import search_init, search_results
from rabaska.node.login.submit_job import REFUSED
from rabaska.node.search import commands
from rabaska.node.search import trials as records
from rabaska.node.search.study import Study
from rabaska.records.home import Home
from rabaska.records.search_index import SearchRecord
from rabaska.remote.place import Outcome
from rabaska.settings.project_file import load
from rabaska.steps import submit_search
from rabaska.steps.connect import connect
from rabaska.views import search as views

FOUND = SearchStatus(
    name="cats-7f3a",
    cluster="here",
    path="/s",
    state=SearchState.FINISHED,
    metric="val_loss",
    goal="min",
    method="random",
    stopping="asha",
    total=3,
    at_once=1,
    trials=(
        Trial(1, "cats-7f3a-t1", {"lr": 0.1, "k": "a"}, FINISHED, 0.5, ended=1.0, seconds=2.0),
        Trial(2, "cats-7f3a-t2", {"lr": 0.2, "k": "b"}, PRUNED, 0.4, "behind", ended=1.0,
              curve=((1, 0.6), (2, 0.4))),
        Trial(3, "cats-7f3a-t3", {"lr": 0.3, "k": "a"}, FAILED, None, "it crashed", ended=1.0),
    ),
    space={"lr": {"float": [0.0, 1.0]}, "k": ["a", "b"]},
    spelled={"lr": ["option", "--lr"], "k": ["override", "model.k"]},
)  # fmt: skip


def test_the_table_is_exported_as_csv():
    assert search_results.as_csv(FOUND).splitlines() == [
        "trial,state,val_loss,lr,k,seconds,run,why",
        "1,finished,0.5,0.1,a,2.0,cats-7f3a-t1,",
        "2,stopped early,0.4,0.2,b,,cats-7f3a-t2,behind",
        "3,failed,,0.3,a,,cats-7f3a-t3,it crashed",
    ]


def test_trials_are_added_to_an_optuna_storage_once(tmp_path):
    optuna = pytest.importorskip("optuna")
    storage = f"sqlite:///{tmp_path}/cats.db"

    added = [search_results.to_optuna(FOUND, storage) for _ in range(2)]

    study = optuna.load_study(study_name="cats-7f3a", storage=storage)
    assert added == [3, 0]
    assert study.best_trial.params == {"lr": 0.1, "k": "a"}
    assert [one.state.name for one in study.trials] == ["COMPLETE", "PRUNED", "FAIL"]
    assert study.trials[1].intermediate_values == {1: 0.6, 2: 0.4}


def test_a_storage_that_optuna_cannot_use_is_told():
    pytest.importorskip("optuna")

    with pytest.raises(WrongUse, match="Optuna cannot use the storage nonsense"):
        search_results.to_optuna(FOUND, "nonsense")


def test_the_values_of_a_trial_are_words_for_the_program():
    assert arguments_of(FOUND, FOUND.trials[0]) == ("--lr", "0.1", "model.k=a")
    with pytest.raises(NoSuchRun, match="search cats-7f3a has no trial 17"):
        trial_numbered(FOUND, 17)


def test_the_best_is_the_smallest_where_less_is_better_and_pruned_trials_come_after():
    assert FOUND.best.number == 1
    assert [one.number for one in FOUND.ranked] == [1, 2, 3]
    shown = views.table(FOUND)
    assert shown.headings == ("trial", "val_loss", "lr", "k", "state", "time", "why")
    assert shown.rows[0][:4] == ("1", "0.5", "0.1", "a")
    with pytest.raises(WrongUse, match="there is no column `depth`"):
        views.table(FOUND, sort="depth")


def test_what_a_user_should_know_stands_beside_the_table():
    full = Trial(4, "cats-7f3a-t4", {"lr": 0.3, "k": "a"}, INTERRUPTED, None, "quota exceeded")
    missing = replace(FOUND.trials[2], names=("loss",), why="it never reported val_loss")
    told = {
        "full": replace(FOUND, state=SearchState.INTERRUPTED, trials=(*FOUND.trials, full)),
        "missing": replace(FOUND, trials=(FOUND.trials[0], missing)),
    }

    said = {name: [str(one) for one in views.remarks(found)] for name, found in told.items()}

    assert said["full"][0] == (
        "trial 4: quota exceeded; free some space, then `rabaska search more 0 cats-7f3a`"
    )
    assert said["missing"] == ["trial 3: it never reported val_loss"]


def test_each_takes_lists_and_ranges():
    words = ["lr=0.1,1e-3", "seed=1..3", "--kind=a,b"]

    assert each_of(words) == {"lr": [0.1, 0.001], "seed": [1, 2, 3], "kind": ["a", "b"]}


@pytest.mark.parametrize("word", ["lr", "lr=", "=3", "seed=5..1"])
def test_each_refuses_what_names_no_values(word):
    with pytest.raises(WrongUse):
        each_of([word])


TRAIN = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.001)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--layers", type=int, default=4)
parser.add_argument("--dropout", type=float, default=0.1)
parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
parser.add_argument("--seed", type=int, default=0)
options = parser.parse_args()
print(f"epoch 1 val_acc 0.5 loss 0.3")
"""


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rabaska.toml").write_text('name = "cats"\ncommand = "python train.py"\n')
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def test_a_space_is_proposed_from_the_options_of_the_program(project):
    proposal = search_init.propose(load(project))

    assert (proposal.metric, proposal.goal) == ("val_acc", "max")
    assert {one.name: one.text for one in proposal.parameters} == {
        "lr": "{log = [3e-5, 0.03]}",
        "batch-size": "[16, 32, 64, 128]",
        "layers": "{int = [2, 8]}",
        "dropout": "{float = [0.0, 0.6]}",
        "optimizer": '["sgd", "adam"]',
    }
    assert proposal.parameters[0].place == "train.py, line 3"


def test_what_is_proposed_is_written_once_and_is_valid(project):
    proposal = search_init.propose(load(project))

    search_init.write(proposal)

    search = load(project).search
    assert search.space["lr"] == {"log": [3e-5, 0.03]}
    with pytest.raises(WrongUse, match=r"has a \[search\] already"):
        search_init.write(proposal)
    search_init.write(proposal, force=True)
    assert load(project).search == search


def test_constants_are_out_of_reach(project):
    (project / "train.py").write_text("LR = 0.1\nprint('val_acc', LR)\n")

    with pytest.raises(SettingsError, match=r"train.py takes no options") as refusal:
        search_init.propose(load(project))

    assert "constants in its source are out of reach" in str(refusal.value)


def test_an_array_that_is_too_large_is_told_with_what_to_change():
    cluster = SimpleNamespace(name="lab")
    said = "sbatch: error: Batch job submission failed: Invalid job array specification"

    refusal = submit_search._refused("cats-7f3a", cluster, Outcome(REFUSED, "", said), "sbatch")

    assert isinstance(refusal, SubmissionRefused)
    assert "Invalid job array specification" in refusal.why
    assert "a smaller `at_once`" in refusal.hint


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What a cluster answers of a search with one trial."""
    home = tmp_path_factory.mktemp("home")
    project = tmp_path_factory.mktemp("cats")
    (project / "train.py").write_text("import sys\nprint('step 1 loss', sys.argv[1][5:])\n")
    (project / "rabaska.toml").write_text(
        'name = "cats"\ncommand = "python3 train.py"\n[search]\nmetric = "loss"\ntrials = 1\n'
        'values_as = "overrides"\n[search.space]\nlr = {float = [0.1, 0.2]}\n'
    )
    cluster = connect("here", Home(home))
    planned = journey.preview(load(project), "here", Home(home), name="cats-7f3a")
    path = f"{home}/store/searches/cats-7f3a"
    submit_search.create(planned, cluster, path)
    study = Study(path)
    trial = records.claim(study, 1, {"lr": 0.1})
    result = {"state": FINISHED, "value": 0.5, "curve": [[1, 0.5]], "ended": 1.7e9, "jobs": 1}
    records.end(study, trial, result)
    return json.dumps(commands.report(study, curves=True))


RECORD = SearchRecord("cats-7f3a", "here", "/s/searches/cats-7f3a", "", 0.0)


def test_what_a_cluster_answers_of_a_search_is_understood(answer):
    found = submit_search.read_report(RECORD, answer, {})

    assert (found.best.number, found.best.run, found.best.value) == (1, "cats-7f3a-t1", 0.5)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("trials", 0, "number"), "1/../../../.ssh"),
        (("trials", 0, "number"), -1),
        (("trials", 0, "run"), "cats-7f3a-t2"),
        (("trials", 0, "values"), {"lr": {"a": 1}}),
        (("trials", 0, "curve"), [[1]]),
        (("trials",), None),
        (("settings", "plan", "code"), "../../.ssh/id_ed25519"),
        (("settings", "plan", "datasets"), [{"pack": "../../mail"}]),
        (("settings", "workers", "spec"), {}),
        (("settings", "goal"), "both"),
        (("settings",), []),
        (("now",), float("nan")),
    ],
)
def test_an_answer_that_would_reach_other_files_is_not_used(answer, place, value):
    told = json.loads(answer)
    *above, last = place
    inner = told
    for name in above:
        inner = inner[name]
    inner[last] = value

    with pytest.raises(CommandFailed, match="never gives"):
        submit_search.read_report(RECORD, json.dumps(told), {})
