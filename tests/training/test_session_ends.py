"""How long a session trains: its epochs, its end, and what it is asked for afterwards."""

# ruff: noqa: PT012 (a session ends by an exception inside its own block)

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import rabaska.training as training  # noqa: E402
from rabaska.training import session_folders  # noqa: E402


class Numbers:
    """Samples that are their own numbers; five batches of four."""

    def __len__(self) -> int:
        return 20

    def __getitem__(self, place: int) -> int:
        return place


@pytest.fixture(autouse=True)
def _a_process_of_its_own() -> Any:
    session_folders.ENDED_HERE.clear()
    yield
    session_folders.ENDED_HERE.clear()


def plain_loop(folder: Path, epochs: int, die_at: int | None = None) -> list[tuple[int, Any]]:
    """What a program sees whose own loop counts the epochs, in a process of its own."""
    session_folders.ENDED_HERE.clear()
    seen: list[tuple[int, Any]] = []
    try:
        with training.session(folder, save_every=1) as session:
            for epoch in range(epochs):
                for batch in session.loader(Numbers(), batch_size=4):
                    seen.append((epoch, batch.tolist()))
                    session.step()
                    if session.steps == die_at:
                        raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    return seen


def test_a_loop_that_counts_epochs_itself_trains_all_of_them(tmp_path: Path) -> None:
    with training.session(tmp_path / "one") as session:
        expected = [batch.tolist() for batch in session.loader(Numbers(), batch_size=4, epochs=3)]

    seen = plain_loop(tmp_path / "other", 3)

    assert [batch for _, batch in seen] == expected
    assert [epoch for epoch, _ in seen] == [0] * 5 + [1] * 5 + [2] * 5


@pytest.mark.parametrize("die_at", [1, 5, 6, 8, 11])
def test_such_a_loop_goes_on_in_the_epoch_in_which_it_died(tmp_path: Path, die_at: int) -> None:
    everything = plain_loop(tmp_path / "whole", 3)

    before = plain_loop(tmp_path / "cut", 3, die_at)
    after = plain_loop(tmp_path / "cut", 3)

    assert before[: die_at - 1] + after == everything  # the last step was not saved
    assert len(after) == 15 - (die_at - 1)


def test_such_a_loop_that_had_ended_trains_only_what_is_more(tmp_path: Path, capsys: Any) -> None:
    everything = plain_loop(tmp_path / "whole", 4)
    first = plain_loop(tmp_path / "cut", 3)
    capsys.readouterr()

    assert plain_loop(tmp_path / "cut", 3) == []
    assert "this training had ended at step 15; nothing is left to do" in capsys.readouterr().err
    assert first + plain_loop(tmp_path / "cut", 4) == everything


def test_a_batch_that_is_only_looked_at_is_not_an_epoch(tmp_path: Path) -> None:
    with training.session(tmp_path) as session:
        loader = session.loader(Numbers(), batch_size=4)
        example = next(iter(loader)).tolist()
        seen = []
        for _ in range(2):
            for batch in loader:
                seen.append(batch.tolist())
                session.step()

    assert len(seen) == 10
    assert seen[0] == example


@pytest.mark.parametrize("die_at", [None, 3, 12, 17])
def test_epochs_of_a_loop_of_its_own_follow_those_of_a_loader(tmp_path: Path, die_at: Any) -> None:
    def trained(die_at: int | None) -> int:
        with training.session(tmp_path, save_every=1) as session:
            warm = session.loader(Numbers(), batch_size=4, epochs=2)
            for loader in (warm, *[session.loader(Numbers(), batch_size=4)] * 2):
                for _ in loader:
                    session.step()
                    if session.steps == die_at:
                        raise KeyboardInterrupt
        return int(session.steps)

    if die_at is not None:
        with pytest.raises(KeyboardInterrupt):
            trained(die_at)

    assert trained(None) == 20


def test_an_epoch_that_is_left_early_is_followed_by_the_next(tmp_path: Path) -> None:
    with training.session(tmp_path) as session:
        begun = []
        for _ in range(3):
            for _ in session.loader(Numbers(), batch_size=4):
                begun.append(session.epoch)
                session.step()
                if len(begun) % 2 == 0:
                    break

    assert begun == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("epochs", [None, 1])
def test_batches_that_are_used_up_are_not_an_empty_loop(tmp_path: Path, epochs: Any) -> None:
    with (
        pytest.raises(training.WrongUse, match="no batches are left"),
        training.session(tmp_path) as session,
    ):
        for _ in session.epochs(1):
            for _ in range(2):
                for _ in session.loader(Numbers(), batch_size=4, epochs=epochs):
                    session.step()

    assert session.steps == 5


def test_a_loader_without_a_batch_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(training.WrongUse, match="has no batches"),
        training.session(tmp_path) as session,
    ):
        session.loader(Numbers(), batch_size=21, drop_last=True)


def until(folder: Path, steps: int) -> int:
    """Train in a process of its own until so many steps are made, as if for ever."""
    session_folders.ENDED_HERE.clear()
    rounds = 0
    with training.session(folder) as session:
        while session.steps < steps:
            for _ in session.loader(Numbers(), batch_size=4, epochs=100):
                session.step()
                if session.steps >= steps:
                    break
            rounds += 1
            assert rounds < 5
    return int(session.steps)


def test_a_loop_until_a_step_that_had_ended_goes_on_to_a_later_step(tmp_path: Path) -> None:
    assert [until(tmp_path, steps) for steps in (7, 7, 12)] == [7, 7, 12]


@pytest.mark.parametrize(
    ("now", "goes_on"),
    [
        ({"max_steps": 3}, False),
        ({"max_steps": 2}, False),
        ({"max_steps": 4}, True),
        ({"epochs": 1}, True),
        ({"epochs": 1, "max_steps": 3}, False),
    ],
)
def test_steps_are_compared_with_steps(tmp_path: Path, now: Any, goes_on: bool) -> None:
    with training.session(tmp_path) as session:
        session.ask(max_steps=3)
        for _ in session.loader(Numbers(), batch_size=4).rest_of_epoch():
            session.step()
            if session.steps == 3:
                break
    record = {"step": 3, "epochs": None, "max_steps": 3}
    assert json.loads((tmp_path / "DONE.json").read_text()) == record
    session_folders.ENDED_HERE.clear()

    with training.session(tmp_path) as session:
        batches = session.loader(Numbers(), batch_size=4)
        assert session.ask(**now) == goes_on
        assert bool(list(batches.rest_of_epoch())) == goes_on


def test_a_second_training_in_one_folder_is_refused_in_one_process(tmp_path: Path) -> None:
    def fold() -> None:
        with training.session(tmp_path, state={}) as session:
            for _ in session.loader(Numbers(), batch_size=4, epochs=1):
                session.step()

    fold()

    with pytest.raises(training.WrongUse, match=r'session\("fold-1"'):
        fold()


def test_two_trainings_in_one_folder_at_once_are_refused(tmp_path: Path) -> None:
    with (
        training.session(tmp_path),
        pytest.raises(training.WrongUse, match=r'session\("fold-1"'),
        training.session(tmp_path),
    ):
        pass


def test_one_that_failed_may_be_tried_again_in_the_same_process(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), training.session(tmp_path) as session:
        raise RuntimeError("out of memory")

    with training.session(tmp_path) as session:
        assert not session.finished


def test_a_save_before_the_first_step_of_an_epoch_skips_nothing(tmp_path: Path) -> None:
    with training.session(tmp_path / "whole") as session:
        everything = []
        for batch in session.loader(Numbers(), batch_size=4, epochs=3):
            everything.append((session.epoch, batch.tolist()))
            session.step()
    with (
        pytest.raises(KeyboardInterrupt),
        training.session(tmp_path / "cut", save_every=1000) as session,
    ):
        for _ in session.loader(Numbers(), batch_size=4, epochs=3):
            if session.steps == 5:
                session.save()
                raise KeyboardInterrupt
            session.step()

    with training.session(tmp_path / "cut") as session:
        rest = []
        for batch in session.loader(Numbers(), batch_size=4, epochs=3):
            rest.append((session.epoch, batch.tolist()))
            session.step()

    assert rest == everything[5:]


@pytest.mark.parametrize("every", [0, -3, 10.0, "10", True, timedelta(0)])
def test_an_interval_that_is_none_is_refused_at_once(tmp_path: Path, every: Any) -> None:
    with pytest.raises(training.WrongUse, match="save_every"):
        training.session(tmp_path, save_every=every)


RANKS = """
import datetime, sys, time, torch
import rabaska.training

torch.distributed.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
first = torch.distributed.get_rank() == 0
with rabaska.training.session(sys.argv[1], save_every=10**6, own={"x": 1}) as session:
    for _ in session.loader(range(400), batch_size=2, epochs=1):
        time.sleep(0.02)
        session.step()
        if first and session.steps == 2:
            session.save()
        if session.steps == 90:
            session.wait()
            raise SystemExit(3)
"""


@pytest.mark.slow
def test_the_first_of_several_processes_may_ask_for_a_save(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RANKS)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [sys.executable, *launcher, program, tmp_path / "saves"]

    subprocess.run(
        command, check=False, timeout=100, env={**os.environ, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip

    assert len(list((tmp_path / "saves").glob("ckpt-*[0-9]"))) == 2
