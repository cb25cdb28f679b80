"""What a session does besides being exact: where it saves, when it stops, what it refuses."""

# ruff: noqa: PT012 (a session ends by an exception inside its own block)

import json
import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from tests import disks  # noqa: E402

import rabaska.training as training  # noqa: E402
from rabaska.node.checkpoints import commit  # noqa: E402
from rabaska.training import session_folders  # noqa: E402


class Numbers:
    """Samples that are their own numbers."""

    def __init__(self, size: int = 20) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> int:
        return place


def ended() -> None:
    """The program has ended: what follows is another process."""
    session_folders.ENDED_HERE.clear()


def used(session: Any, steps: int | None = None, **loader: Any) -> list[list[int]]:
    """The batches that a session hands out, at most `steps` of them."""
    batches = []
    for batch in session.loader(Numbers(), batch_size=4, **loader):
        batches.append(batch.tolist())
        session.step(loss=float(len(batches)))
        if len(batches) == steps:
            break
    return batches


def killed_after(steps: int, folder: Path, **more: Any) -> list[list[int]]:
    """The batches of a training that died without a word."""
    with (
        pytest.raises(KeyboardInterrupt),
        training.session(folder, save_every=1, **more) as session,
    ):
        batches = used(session, steps, epochs=3)
        raise KeyboardInterrupt
    return batches


def test_a_training_goes_on_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    with training.session(tmp_path / "whole") as session:
        everything = used(session, epochs=3)
    # The break comes before the next batch is asked for, so the last step was not saved.
    before = killed_after(7, tmp_path / "cut")

    with training.session(tmp_path / "cut") as session:
        assert session.resumed
        assert session.steps == 6
        after = used(session, epochs=3)

    assert before[:6] + after == everything


def test_losses_of_steps_that_are_made_again_are_logged_once(tmp_path: Path) -> None:
    killed_after(7, tmp_path)

    with training.session(tmp_path) as session:
        used(session, epochs=3)

    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 16))


def test_losses_of_a_training_whose_checkpoints_are_gone_are_kept(tmp_path: Path) -> None:
    """Its user moved the checkpoints away, or a disk has damaged them all."""
    for _ in range(2):
        with training.session(tmp_path) as session:
            used(session, epochs=1)
        for made in commit.newest_first(str(tmp_path)):
            commit.remove(made.path)

    with training.session(tmp_path) as session:
        assert not session.resumed
        used(session, 1, epochs=1)

    names = ("metrics.jsonl.1", "metrics.jsonl.2", "metrics.jsonl")
    assert [len((tmp_path / name).read_text().splitlines()) for name in names] == [5, 5, 1]


def test_a_training_that_is_over_stays_over(tmp_path: Path) -> None:
    with training.session(tmp_path) as session:
        used(session, epochs=1)
    ended()

    with training.session(tmp_path) as session:
        assert session.finished
        assert used(session, epochs=1) == []
    assert json.loads((tmp_path / "DONE.json").read_text()) == {
        "step": 5,
        "epochs": 1,
        "max_steps": None,
    }


def test_the_end_of_an_earlier_training_in_the_folder_is_not_that_of_another(
    tmp_path: Path,
) -> None:
    with training.session(tmp_path) as session:
        used(session, epochs=1)
    for made in commit.newest_first(str(tmp_path)):  # its user moved them away
        commit.remove(made.path)

    killed_after(6, tmp_path)  # with its newest checkpoint at the step where the other one ended
    with training.session(tmp_path) as session:
        assert (session.steps, session.finished) == (5, False)
        assert len(used(session, epochs=3)) == 10


def test_one_that_was_stopped_early_stays_stopped(tmp_path: Path) -> None:
    with training.session(tmp_path) as session:
        used(session, 2, epochs=3)
    ended()

    with training.session(tmp_path) as session:
        assert used(session, epochs=3) == []


def test_more_epochs_of_a_loop_around_the_loader_go_on_too(tmp_path: Path) -> None:
    def trained(count: int) -> list[int]:
        begun = []
        with training.session(tmp_path) as session:
            for epoch in session.epochs(count):
                begun.append(epoch)
                used(session)
        ended()
        return begun

    assert (trained(2), trained(2), trained(3), trained(3)) == ([0, 1], [], [2], [])


def test_more_epochs_go_on_where_the_old_ones_ended(tmp_path: Path) -> None:
    with training.session(tmp_path / "long") as session:
        everything = used(session, epochs=2)
    with training.session(tmp_path / "short") as session:
        first = used(session, epochs=1)
    ended()

    with training.session(tmp_path / "short") as session:
        rest = used(session, epochs=2)

    assert first + rest == everything


def test_epochs_in_a_loop_of_their_own_go_on_too(tmp_path: Path) -> None:
    def run(session: Any, die_at: int | None = None) -> list[Any]:
        seen: list[Any] = []
        for epoch in session.epochs(3):
            for batch in session.loader(Numbers(), batch_size=4):
                session.step()
                seen.append(batch.tolist())
                if session.steps == die_at:
                    raise KeyboardInterrupt
            seen.append(("evaluated", epoch, torch.rand(1).item()))
        return seen

    torch.manual_seed(0)
    with training.session(tmp_path / "whole", save_every=1) as session:
        everything = run(session)
    torch.manual_seed(0)
    with (
        pytest.raises(KeyboardInterrupt),
        training.session(tmp_path / "cut", save_every=1) as session,
    ):
        run(session, die_at=6)  # the last save is that of step 5, at the end of the first epoch
    torch.manual_seed(99)

    with training.session(tmp_path / "cut") as session:
        rest = run(session)

    assert rest == everything[5:]


def test_gradients_added_up_over_batches_are_never_cut(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        training.session(tmp_path, save_every=1) as session,
    ):
        for number, _ in enumerate(session.loader(Numbers(), batch_size=4, epochs=2), 1):
            if number % 3 == 0:
                session.step()
            if number == 8:
                raise KeyboardInterrupt

    with training.session(tmp_path) as session:
        assert session.steps == 2
        batches = used(session, epochs=2)

    assert len(batches) == 10 - 6


def test_a_signal_saves_the_step_and_exits_with_85(tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as end, training.session(tmp_path, save_every=1000) as session:
        for _ in session.loader(Numbers(), batch_size=4, epochs=1000):
            session.step()
            if session.steps == 9:
                os.kill(os.getpid(), signal.SIGUSR1)

    assert end.value.code == 85
    assert [made.step for made in commit.newest_first(str(tmp_path))] == [9, 0]
    assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_the_deadline_is_kept_without_any_signal(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RABASKA_DEADLINE", str(time.time() + 0.5))

    with pytest.raises(SystemExit) as end, training.session(tmp_path) as session:
        for _ in session.loader(Numbers(), batch_size=4, epochs=10**9):
            time.sleep(0.01)
            session.step()

    assert end.value.code == 85
    assert commit.newest_first(str(tmp_path))[0].step == session.steps > 0


def test_a_clock_that_is_set_ahead_is_no_deadline(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RABASKA_DEADLINE", str(time.time() + 600))

    with training.session(tmp_path) as session:
        ahead = time.time() + 3600
        monkeypatch.setattr(time, "time", lambda: ahead)
        for _ in session.loader(Numbers(), batch_size=4, epochs=1):
            session.step()

    assert session.steps > 0


def test_an_interval_in_time_is_kept(tmp_path: Path) -> None:
    every = timedelta(seconds=0.01)
    with training.session(tmp_path, save_every=every) as session:
        for _ in session.loader(Numbers(), batch_size=4, epochs=4):
            time.sleep(0.02)
            session.step()
            if session.steps == 10:
                saved = [made.step for made in commit.newest_first(str(tmp_path))]

    assert saved[0] > 0


def test_the_run_folder_is_where_rabaska_says(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RABASKA_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("RABASKA_OUTPUT", str(tmp_path / "output"))

    with training.session() as session:
        used(session, epochs=1)
    with training.session("second") as session:
        used(session, epochs=1)

    assert (tmp_path / "output" / "metrics.jsonl").exists()
    assert (tmp_path / "checkpoints" / "ckpt-000000005").is_dir()
    assert (tmp_path / "checkpoints" / "second" / "ckpt-000000005").is_dir()


@pytest.mark.parametrize("beside", ["", "output", "code"])
def test_sessions_in_turn_keep_each_others_losses(
    tmp_path: Path, monkeypatch: Any, beside: str
) -> None:
    for name in ("checkpoints", "output", "code"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("RABASKA_CHECKPOINTS", str(tmp_path / "checkpoints"))
    monkeypatch.setenv("RABASKA_OUTPUT", str(tmp_path / "output"))
    monkeypatch.chdir(tmp_path / "code")
    where = str(tmp_path / beside) if beside else ""

    for _ in ("a job", "the next one"):
        for fold in ("0", "1"):
            folder = os.path.join(where, "folds", fold, "saves")
            with training.session(folder, state={"x": 1}) as session:
                used(session, epochs=1)
        ended()

    logs = sorted((tmp_path / "output").rglob("metrics.jsonl"))
    assert [len(log.read_text().splitlines()) for log in logs] == [5, 5]


def test_two_checkpoints_are_kept_and_no_more(tmp_path: Path) -> None:
    with training.session(tmp_path, save_every=1, keep=1) as session:
        used(session, epochs=2)

    assert [made.step for made in commit.newest_first(str(tmp_path))] == [10, 9]


def test_a_dictionary_is_carried_like_a_model(tmp_path: Path) -> None:
    best = {"loss": 3.0}
    killed_after(3, tmp_path, best=best)
    best["loss"] = -1.0

    with training.session(tmp_path, best=best) as session:
        assert session.resumed

    assert best == {"loss": 3.0}


REFUSED = {
    "a loader of another size": (
        lambda session: session.loader(Numbers(), batch_size=5), "batch_size was 4 and is 5"
    ),
    "another dataset": (
        lambda session: session.loader(Numbers(30), batch_size=4), "samples was 20 and is 30"
    ),
    "a stream": (
        lambda session: session.loader(iter([1]), batch_size=4), "PackedDataset"
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_not_be_exact_is_refused(tmp_path: Path, what: str) -> None:
    act, said = REFUSED[what]
    killed_after(3, tmp_path)

    with pytest.raises(training.TrainingError, match=said), training.session(tmp_path) as session:
        act(session)


def test_other_parts_than_were_saved_are_refused(tmp_path: Path) -> None:
    killed_after(3, tmp_path, best={})

    with pytest.raises(training.CannotResume, match=r"saved: best; now: model"):
        training.session(tmp_path, model=torch.nn.Linear(1, 1)).__enter__()


def test_a_model_of_another_shape_is_refused_and_its_checkpoint_stays(tmp_path: Path) -> None:
    killed_after(3, tmp_path, model=torch.nn.Linear(2, 2))

    with pytest.raises(training.CannotResume, match="size mismatch"):
        training.session(tmp_path, model=torch.nn.Linear(3, 3)).__enter__()
    assert commit.newest_first(str(tmp_path))


def test_a_part_without_state_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(training.WrongUse, match="state_dict"):
        training.session(tmp_path, model=object())


def test_an_error_of_the_writer_surfaces_at_the_next_step(tmp_path: Path) -> None:
    folder = tmp_path / "carried"
    with (
        pytest.raises(training.SaveFailed, match="FileNotFoundError"),
        training.session(folder, save_every=1) as session,
    ):
        for _ in session.loader(Numbers(), batch_size=4, epochs=100):
            session.step()
            if session.steps == 3:
                folder.rename(tmp_path / "taken over")

    assert not folder.exists()


def test_a_session_works_outside_the_main_thread(tmp_path: Path) -> None:
    made: list[list[list[int]]] = []

    def train() -> None:
        with training.session(tmp_path) as session:
            made.append(used(session, epochs=1))

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()

    assert len(made[0]) == 5


def test_the_training_keeps_its_generators_to_itself(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)

    with training.session(tmp_path, save_every=1) as session:
        for _ in session.loader(Numbers(), batch_size=4, epochs=2):
            session.step()

    assert torch.equal(torch.rand(3), expected)


def fill(folder: Path) -> None:
    with open(folder / "filler", "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(bytes(4096))
        except OSError:
            return


def test_on_a_full_disk_the_end_is_not_said_to_be_saved(tmp_path: Path, capsys: Any) -> None:
    with disks.small_disk(tmp_path / "small", "2m") as folder:
        weights = {"weights": torch.zeros(100_000)}
        with training.session(folder / "saves", save_every=1000, own=weights) as session:
            used(session, 2, epochs=1)
            fill(folder)

    said = capsys.readouterr().err
    assert "could not save step 2, the newest checkpoint is of step 0" in said
    assert "only in what the program saves itself" in said


def test_who_stops_on_a_full_disk_does_not_say_that_it_saved(tmp_path: Path, capsys: Any) -> None:
    with disks.small_disk(tmp_path / "small", "2m") as folder:
        weights = {"weights": torch.zeros(100_000)}
        with (
            pytest.raises(SystemExit),
            training.session(folder / "saves", save_every=1000, own=weights) as session,
        ):
            for number, _ in enumerate(session.loader(Numbers(), batch_size=4, epochs=1)):
                session.step()
                if number == 1:
                    fill(folder)
                    os.kill(os.getpid(), signal.SIGTERM)

    said = capsys.readouterr().err
    assert "could not save step 2" in said
    assert "saved step 2" not in said
