"""Placeholders and environment of the program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.job.program_command import (
    Places,
    UnknownPlaceholder,
    environment,
    placeholders,
    words_for,
)

PLACES = Places({"cats": "/d/cats", "dogs": "/d/dogs"}, "/o", "/c")
RESUMED = PLACES._replace(checkpoint="/c/step 4.npz")

words = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)


def escaped(word: str) -> str:
    return word.replace("{", "{{").replace("}", "}}")


@given(st.lists(words))
def test_words_without_placeholders_arrive_unchanged(command: list[str]) -> None:
    assert words_for([escaped(word) for word in command], [], PLACES) == command


@given(words, words, st.sampled_from(["data", "data.cats", "data.dogs", "output", "checkpoints"]))
def test_a_placeholder_is_filled_in_wherever_it_stands(before: str, after: str, name: str) -> None:
    values = {"data": "/d/cats", "data.cats": "/d/cats", "data.dogs": "/d/dogs", "output": "/o",
              "checkpoints": "/c"}  # fmt: skip

    found = words_for([escaped(before) + "{" + name + "}" + escaped(after)], [], PLACES)

    assert found == [before + values[name] + after]


@given(st.lists(words.map(escaped)), st.lists(words.map(escaped)))
def test_no_word_about_a_checkpoint_is_left_when_there_is_none(
    before: list[str], after: list[str]
) -> None:
    found = words_for(["run", *before, "--resume={checkpoint}", *after], [], PLACES)

    assert found == words_for(["run", *before, *after], [], PLACES)


def test_an_option_vanishes_together_with_its_missing_checkpoint() -> None:
    command = ["python", "train.py", "--resume", "{checkpoint}", "--epochs", "3"]

    assert words_for(command, [], PLACES) == ["python", "train.py", "--epochs", "3"]
    assert words_for(command, [], RESUMED)[2:4] == ["--resume", "/c/step 4.npz"]


def test_an_option_with_a_value_of_its_own_stays() -> None:
    command = ["train", "--lr=0.1", "{checkpoint}"]

    assert words_for(command, [], PLACES) == ["train", "--lr=0.1"]


def test_the_word_before_a_positional_checkpoint_stays() -> None:
    assert words_for(["train", "{data}", "{checkpoint}"], [], PLACES) == ["train", "/d/cats"]


def test_resume_words_are_added_only_once_there_is_a_checkpoint() -> None:
    assert words_for(["train"], ["--resume", "{checkpoint}"], PLACES) == ["train"]
    assert words_for(["train"], ["--resume", "{checkpoint}"], RESUMED) == [
        "train", "--resume", "/c/step 4.npz",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["dat", "data.birds", "Output"])
def test_an_unknown_placeholder_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UnknownPlaceholder, match=r"\{data\}") as refused:
        words_for(["train", "{" + name + "}"], [], PLACES)

    assert "{" + name + "}" in str(refused.value)


def test_data_is_unknown_when_there_is_no_dataset() -> None:
    with pytest.raises(UnknownPlaceholder):
        words_for(["train", "{data}"], [], PLACES._replace(data={}))


def test_braces_around_no_name_are_left_alone() -> None:
    assert words_for(['{"lr": 0.1}', "{}"], [], PLACES) == ['{"lr": 0.1}', "{}"]


@given(st.lists(words))
def test_placeholders_never_fail(command: list[str]) -> None:
    assert all("{" + name + "}" in "".join(command) for name in placeholders(command))


def test_the_environment_names_every_dataset() -> None:
    told = environment(PLACES._replace(data={"my cats-2": "/a", "b": "/b"}), {"A": "1"}, {})

    assert told["RABASKA_DATA"] == "/a"
    assert told["RABASKA_DATA_MY_CATS_2"] == "/a"
    assert told["RABASKA_DATA_B"] == "/b"
    assert told["A"] == "1"


def test_a_checkpoint_of_an_outer_run_is_not_inherited() -> None:
    told = environment(PLACES, {"RABASKA_CHECKPOINT": "/old"}, {})

    assert "RABASKA_CHECKPOINT" not in told
    assert told["RABASKA_RESUME"] == "0"


def test_the_path_to_rabaska_comes_after_the_users_own() -> None:
    told = environment(RESUMED, {"PYTHONPATH": "/mine"}, {})

    assert told["PYTHONPATH"].startswith("/mine:")
    assert told["RABASKA_RESUME"] == "1"
