"""Repeats: the best trials with other seeds, their mean and spread, and when nobody wins."""

import json

import pytest

from rabaska.domain.repeats import repeated, rivals
from rabaska.domain.search import FINISHED, SearchState, SearchStatus, Trial
from rabaska.errors import NoWinner, SettingsError

TRAIN = """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.add_argument("--noise", type=float, default=0.01)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
print("epoch 1 score", options.lr + options.noise * (options.seed % 3), flush=True)
"""
SETTINGS = """\
name = "tiny"
command = "python train.py"
[resources]
walltime = "60s"
[search]
metric = "score"
method = "grid"
at_once = 2
repeats = 2
repeat_best = 2
[search.space]
lr = [0.1, 0.5, 0.4]
"""


@pytest.fixture
def project(laptop):
    (laptop.project / "train.py").write_text(TRAIN)
    (laptop.project / "rabaska.toml").write_text(SETTINGS)
    return laptop


@pytest.mark.slow
def test_the_best_are_repeated_with_other_seeds_and_one_of_them_wins(project):
    project.types("search", "run", "--wait", "--no-doctor")

    found = json.loads(project.types("search", "status", "--json"))
    assert found["total"] == len(found["trials"]) == 3 + 2 * 2
    repeats = [one for one in found["trials"] if one["repeats"]]
    assert {(one["repeats"], one["values"]["seed"]) for one in repeats} == {
        (2, 2), (2, 3), (3, 2), (3, 3),
    }  # fmt: skip
    assert [one["trial"] for one in found["repeated"]] == [2, 3]
    assert found["repeated"][0]["mean"] == pytest.approx(0.51)
    best = project.types("search", "best")
    assert "trial 2, score 0.51, lr=0.5" in best
    assert "with 2 other seeds: score 0.51 ± 0.014" in best


@pytest.mark.slow
def test_no_winner_is_named_within_the_noise(project):
    project.types("search", "run", "--wait", "--no-doctor", "--", "--noise", "1")

    with pytest.raises(NoWinner) as refusal:
        project.types("search", "best")

    assert refusal.value.exit_code == 20
    assert "trial 2: 1.5 ± 1.4, trial 3: 1.4 ± 1.4" in refusal.value.why
    assert "best: trials 2, 3, which differ by no more than chance" in project.types(
        "search", "status"
    )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("lr = [", "seed = [1, 2]\nlr = [", "`repeats` varies `seed`, and so does [search.space]"),
        ('metric = "score"\n', "", "without a `metric` there are none"),
    ],
)
def test_repeats_that_contradict_the_rest_are_refused(project, old, new, words):
    (project.project / "rabaska.toml").write_text(SETTINGS.replace(old, new))

    with pytest.raises(SettingsError) as refusal:
        project.types("search", "run")

    assert words in str(refusal.value)


def test_repeats_need_an_option_for_a_seed(project):
    (project.project / "train.py").write_text(TRAIN.replace("seed", "luck"))

    with pytest.raises(SettingsError, match="which has no option for a seed"):
        project.types("search", "run")


def _status(*values):
    """A search with one trial for each list of values, which its repeats gave."""
    trials = [Trial(n, f"r-t{n}", {}, FINISHED, 0.9) for n in range(1, len(values) + 1)]
    for of, given in enumerate(values, 1):
        for value in given:
            number = len(trials) + 1
            trials.append(Trial(number, f"r-t{number}", {}, FINISHED, value, repeats=of))
    return SearchStatus(
        "r", "here", "/r", SearchState.FINISHED, "score", "max", "grid", "none", 9, 1, tuple(trials)
    )


@pytest.mark.parametrize(
    ("values", "winner", "beside"),
    [
        # Welch's t is 4.9 with 4 degrees of freedom, and 1.2; the limit is 2.78.
        (([0.80, 0.81, 0.82], [0.84, 0.85, 0.86]), 2, []),
        (([0.80, 0.81, 0.82], [0.81, 0.82, 0.83]), 2, [1]),
        (([0.8, 0.8, 0.8], [0.8, 0.8, 0.8]), 1, [2]),  # the same to the last digit
        (([0.8, 0.8, 0.8], [0.9, 0.9, 0.9]), 2, []),
        (([0.8], [0.9]), 2, [1]),  # one value shows nothing
    ],
)
def test_a_mean_wins_by_more_than_chance_or_not_at_all(values, winner, beside):
    ranked = repeated(_status(*values))

    assert ranked[0].trial.number == winner
    assert [one.trial.number for one in rivals(ranked)] == beside
