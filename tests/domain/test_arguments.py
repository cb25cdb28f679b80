"""Arguments of a command: replaced where they are there, added where they are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.arguments import changed_words, what_differs, with_arguments

COMMAND = [
    "python",
    "train.py",
    "--data",
    "{data}",
    "--lr",
    "0.1",
    "--fast",
    "--size",
    "3",
    "4",
    "model.width=8",
]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("--lr 0.2", "python train.py --data {data} --lr 0.2 --fast --size 3 4 model.width=8"),
        ("--lr=0.2", "python train.py --data {data} --lr=0.2 --fast --size 3 4 model.width=8"),
        ("--lr -0.2", "python train.py --data {data} --lr -0.2 --fast --size 3 4 model.width=8"),
        ("--size 5 6", "python train.py --data {data} --lr 0.1 --fast --size 5 6 model.width=8"),
        ("--fast", "python train.py --data {data} --lr 0.1 --fast --size 3 4 model.width=8"),
        (
            "model.width=9",
            "python train.py --data {data} --lr 0.1 --fast --size 3 4 model.width=9",
        ),
        (
            "--epochs 3 seed=1 last",
            "python train.py --data {data} --lr 0.1 --fast --size 3 4 model.width=8 "
            "--epochs 3 seed=1 last",
        ),
    ],
)
def test_an_option_that_is_there_gets_the_new_value_and_others_follow(other, expected):
    assert " ".join(with_arguments(COMMAND, other.split())) == expected


def test_a_value_after_an_equals_sign_is_replaced_by_two_words():
    assert with_arguments(["p", "t.py", "--lr=0.1", "x"], ["--lr", "1"]) == (
        "p", "t.py", "--lr", "1", "x",
    )  # fmt: skip


words = st.lists(
    st.sampled_from(
        ["--lr", "--fast", "0.1", "-1", "x", "a=1", "b=", "=", "-", "--", "--lr=3", "{data}"]
    )
)
one = st.sampled_from([["--lr", "7"], ["--lr=7"], ["--new"], ["a=7"], ["--size", "7", "8"]])


@given(words, one)
def test_what_is_given_stands_in_the_command_and_nothing_else_is_new(command, other):
    words = with_arguments(["python", "train.py", *command], other)
    places = range(len(words))

    assert words[:2] == ("python", "train.py")
    assert any(list(words[place : place + len(other)]) == other for place in places)
    assert set(words) <= {"python", "train.py", *command, *other}


def test_what_only_one_command_has_is_told_of_each():
    assert changed_words(COMMAND, with_arguments(COMMAND, ["--lr", "1"])) == ("--lr 0.1", "--lr 1")


def test_runs_are_told_apart_by_the_arguments_that_not_all_of_them_have():
    commands = [
        ["python", "train.py", "--lr", "0.1", "--epochs", "3"],
        ["python", "train.py", "--lr", "0.2", "--epochs", "3"],
        ["python", "train.py", "--lr", "0.1", "--epochs", "3", "--fast"],
        [],
    ]

    assert what_differs(commands) == ["--lr 0.1", "--lr 0.2", "--lr 0.1 --fast", ""]
    assert what_differs(commands[:1]) == [""]
