"""The series of a job: one number in two places is one series, and no step is told twice."""

import contextlib
import json
import math
import os
from pathlib import Path

import pytest
from tests.disks import small_disk
from tests.node.made_runs import begin_job, make_run
from tests.node.series.written import event

from rabaska.node.series import collector
from rabaska.node.series.job_series import JobSeries, finish_earlier, summary_file
from rabaska.node.series.main_metric import main_metric
from rabaska.node.series.same_series import agree
from rabaska.records.series_files import read_series


class Program:
    """A run whose program writes files, job after job."""

    def __init__(self, folder: Path) -> None:
        self.run = make_run(folder)
        self.now = 1.79e9

    def begins(self):
        self.job = begin_job(self.run)
        self.output = Path(self.run.output(self.job))
        roots = [str(self.output)]
        finish_earlier(self.run, self.job, roots, self.now)
        self.series = JobSeries(self.run, self.job, self.now, roots)

    def writes(self, name, text):
        path = self.output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    def prints(self, text):
        with open(self.run.log(self.job), "a") as log:
            log.write(text)

    def goes_on(self, at_end=False):
        self.now += 5
        self.series.look(self.now, at_end)

    def curves(self):
        return {
            name: dict(zip(curve.steps, curve.values, strict=True))
            for name, curve in read_series(Path(self.run.path)).items()
        }


@pytest.fixture
def program(tmp_path):
    made = Program(tmp_path)
    made.begins()
    return made


def test_what_is_printed_and_logged_is_one_series(program):
    for step in range(1, 101):
        program.writes("runs/a/events.out.tfevents.1", event(step, **{"train/loss": 1 / step}))
        if step % 10 == 0:
            program.prints(f"step {step} loss {1 / step:.4f}\n")
        if step % 30 == 0:
            program.goes_on()
    program.goes_on(at_end=True)

    curves = program.curves()

    assert list(curves) == ["train/loss"]
    assert list(curves["train/loss"]) == list(range(1, 101))


def test_what_was_shown_as_printed_is_withdrawn_when_the_log_appears(program):
    program.prints("step 10 loss 0.1000\nstep 20 loss 0.0500\n")
    program.goes_on()
    before = list(program.curves())

    for step in range(1, 31):
        program.writes("log.jsonl", json.dumps({"step": step, "loss": 1 / step}) + "\n")
    program.goes_on()

    assert before == ["loss"]
    assert list(program.curves()["loss"]) == list(range(1, 31))


def test_a_place_that_counts_from_one_and_one_that_counts_from_zero_are_one_series(program):
    program.writes("keras.csv", "epoch,loss\n")
    for epoch in range(5):
        program.writes("keras.csv", f"{epoch},{2.66533 / (epoch + 1)}\n")
        program.prints(f"Epoch {epoch + 1}/5\n - loss: {2.66533 / (epoch + 1):.4f}\n")
    program.goes_on()
    program.goes_on(at_end=True)

    assert list(program.curves()) == ["loss"]


def test_the_name_may_say_first_what_is_measured_and_then_on_what(program):
    for step in range(1, 31):
        program.writes("runs/a/events.out.tfevents.1", event(step, **{"Loss/train": 1 / step}))
        if step % 5 == 0:
            program.prints(f"step {step} loss {1 / step:.4f}\n")
    program.goes_on(at_end=True)

    assert list(program.curves()) == ["Loss/train"]


def test_the_series_of_add_scalars_are_named_by_their_keys_whichever_comes_first(program):
    for key in ("val", "train"):
        program.writes(f"runs/a/acc_{key}/events.out.tfevents.1", event(1, acc=0.5))
        program.goes_on()

    assert sorted(program.curves()) == ["acc/train", "acc/val"]


def test_what_is_printed_before_the_first_step_does_not_take_the_steps_away(program):
    program.prints("best acc 0.0\nstep 1 acc 0.5\nstep 2 acc 0.6\n")
    program.goes_on(at_end=True)
    program.begins()
    program.prints("best acc 0.5\nstep 2 acc 0.7\nstep 3 acc 0.8\n")
    program.goes_on(at_end=True)

    assert program.curves() == {"acc": {1: 0.5, 2: 0.7, 3: 0.8}}


def test_a_part_of_an_epoch_is_a_step_of_its_own(program):
    for part in range(8):
        program.writes("log.jsonl", json.dumps({"epoch": part / 4, "loss": part + 0.5}) + "\n")
    program.goes_on(at_end=True)

    assert list(program.curves()["loss"]) == [part / 4 for part in range(8)]


def test_a_log_that_begins_late_is_found_before_the_job_is_much_older(program):
    for _ in range(12):
        program.goes_on()
    program.writes("log.csv", "step,loss\n1,0.5\n")

    program.goes_on()

    assert program.curves() == {"loss": {1: 0.5}}


def test_two_numbers_of_one_name_stay_apart(program):
    for step in range(1, 11):
        program.writes("log.csv", "step,loss\n" if step == 1 else "")
        program.writes("log.csv", f"{step},{1 / step}\n")
        program.prints(f"step {step} loss {2 / step + 3}\n")
    program.goes_on(at_end=True)

    assert sorted(program.curves()) == ["loss", "loss (printed)"]


def test_training_and_validation_of_keras_stay_apart(program):
    for split in ("train", "validation"):
        program.writes(f"logs/{split}/events.out.tfevents.1", event(1, epoch_loss=0.5))
    program.goes_on(at_end=True)

    assert sorted(program.curves()) == ["train/epoch_loss", "validation/epoch_loss"]


def test_a_job_that_was_killed_and_resumed_leaves_no_gap_and_no_double_point(program):
    for step in range(1, 51):
        program.writes("runs/events.out.tfevents.1", event(step, loss=float(step)))
        if step == 40:
            program.goes_on()  # and what comes then is written but not read
    program.begins()
    for step in range(31, 81):
        program.writes("runs/events.out.tfevents.2", event(step, loss=step + 0.5))
        if step % 20 == 0:
            program.goes_on()
    program.goes_on(at_end=True)

    loss = program.curves()["loss"]

    assert list(loss) == list(range(1, 81))
    assert (loss[30], loss[31], loss[50]) == (30.0, 31.5, 50.5)


def test_a_killed_job_is_told_to_its_last_point(program):
    for step in range(1, 51):
        program.writes("events.out.tfevents.1", event(step, loss=float(step)))
        if step == 40:
            program.goes_on()

    program.begins()

    assert list(program.curves()["loss"]) == list(range(1, 51))


def test_a_log_that_the_next_job_cuts_and_continues_is_told_once(program):
    rows = [json.dumps({"step": step, "loss": step / 4}) + "\n" for step in range(1, 61)]
    program.writes("log.jsonl", "".join(rows[:40]))
    program.goes_on()
    began = program.now
    program.begins()
    (program.output / "log.jsonl").write_text("".join(rows[:30]))
    program.goes_on()
    program.writes("log.jsonl", "".join(rows[30:]))
    program.goes_on(at_end=True)

    curve = read_series(Path(program.run.path))["loss"]

    assert list(curve.steps) == list(range(1, 61))
    assert curve.times[29] <= began  # it was told when it happened
    assert len((Path(program.run.path) / "series/job-002.tsv").read_text().splitlines()) == 2 + 20


def test_what_was_there_before_the_program_is_not_its_own(tmp_path):
    program = Program(tmp_path)
    program.job = 0
    program.output = Path(program.run.output(0))
    program.writes("old/events.out.tfevents.1", event(1, loss=9.0))
    program.begins()
    program.writes("old/events.out.tfevents.1", event(2, loss=1.0))
    program.goes_on(at_end=True)

    assert program.curves() == {"loss": {2: 1.0}}


def test_numbers_that_are_none_are_kept(program):
    program.prints("step 1 loss nan\nstep 2 loss inf\nstep 3 loss 1\n")
    program.goes_on(at_end=True)

    values = list(program.curves()["loss"].values())

    assert math.isnan(values[0])
    assert values[1:] == [math.inf, 1.0]
    assert json.loads(Path(summary_file(program.run)).read_text())["curve"] == [None, None, 1.0]


def test_a_million_names_are_cut_short_and_counted(program, monkeypatch):
    monkeypatch.setattr(collector, "MOST_NAMES", 50)
    rows = (json.dumps({"step": step, f"loss-{step}": 1.0}) + "\n" for step in range(500))
    program.writes("log.jsonl", "".join(rows))
    program.goes_on(at_end=True)

    assert len(program.curves()) == 50
    assert json.loads(Path(summary_file(program.run)).read_text())["left_out"] == 50


def test_a_clock_that_jumps_moves_no_point(program):
    program.writes("events.out.tfevents.1", event(1, 4e9, a=1.0) + event(2, 5.0, a=2.0))
    program.goes_on(at_end=True)

    times = read_series(Path(program.run.path))["a"].times

    assert list(times) == [program.now, program.now]


def test_the_checkpoints_of_a_trainer_are_one_series(program):
    for last in (10, 20, 30):
        history = [{"step": step, "loss": 1 / step} for step in range(1, last + 1)]
        text = json.dumps({"log_history": history})
        program.writes(f"checkpoint-{last}/trainer_state.json", text)
        program.goes_on()
    program.goes_on(at_end=True)

    assert list(program.curves()["loss"]) == list(range(1, 31))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(0.23456, 0.235, True), (0.23456, 0.234, False), (1e-05, 1.04e-05, True), (2.0, 2.04, True),
     (2.0, 2.6, False), (math.nan, math.nan, True), (math.nan, 1.0, False), (math.inf, 1.0, False)],
)  # fmt: skip
def test_a_number_agrees_with_itself_rounded(one, other, same):
    assert agree(one, other) is same


def test_the_training_loss_is_the_main_metric():
    assert main_metric(["lr", "val/loss", "train/loss", "acc"]) == "train/loss"
    assert main_metric(["lr", "foo"]) == "lr"
    assert main_metric([]) is None


def test_what_was_on_the_disk_of_a_killed_job_is_known_from_what_it_printed(program):
    for step in range(1, 51):
        program.writes("events.out.tfevents.1", event(step, **{"train/loss": 1 / step}))
        program.prints(f"step {step} loss {1 / step:.4f}\n" if step % 5 == 0 else "")
        if step == 32:
            program.goes_on()
    (program.output / "events.out.tfevents.1").unlink()
    program.begins()
    program.prints("step 51 loss 0.0196\n")
    program.writes("events.out.tfevents.2", event(51, **{"train/loss": 1 / 51}))
    program.goes_on(at_end=True)

    curves = program.curves()

    assert list(curves) == ["train/loss"]
    assert list(curves["train/loss"]) == [*range(1, 33), 35, 40, 45, 50, 51]


def test_of_a_job_that_was_killed_at_once_everything_is_read_by_the_next(program):
    for step in range(1, 11):
        program.writes("events.out.tfevents.1", event(step, loss=float(step)))
        program.prints(f"step {step} reward {step}\n")

    program.begins()

    curves = program.curves()
    assert {name: list(points) for name, points in curves.items()} == {
        "loss": list(range(1, 11)),
        "reward": list(range(1, 11)),
    }


def test_a_killed_job_that_withdrew_a_series_gives_each_its_own_last_points(program):
    program.prints("step 10 loss 0.1000\nstep 20 loss 0.0500\n")
    program.goes_on()  # shown as printed, until the log appears
    for step in range(1, 61):
        row = {"step": step, "loss": 1 / step, "acc": 100 + step, "lr": 200 + step}
        program.writes("log.jsonl", json.dumps(row) + "\n")
        if step == 40:
            program.goes_on()

    program.begins()

    curves = program.curves()
    assert curves["acc"] == {step: 100 + step for step in range(1, 61)}
    assert curves["lr"] == {step: 200 + step for step in range(1, 61)}
    assert list(curves["loss"]) == list(range(1, 61))


def test_a_field_that_is_too_long_costs_its_row_and_no_other(program):
    rows = ["step,loss,text", "1,0.5,a", f"2,0.4,{'x' * 140_000}", "3,0.3,b"]
    program.writes("log.csv", "\n".join(rows) + "\n")

    program.goes_on()

    assert program.curves() == {"loss": {1: 0.5, 3: 0.3}}


def test_what_a_full_disk_took_a_part_of_is_written_once_there_is_room(tmp_path):
    with small_disk(tmp_path / "disk", "128k") as disk:
        program = Program(disk)
        program.begins()
        program.prints("".join(f"step {step} loss {1 / step:.6f}\n" for step in range(1, 400)))
        filler = disk / "filler"
        _fill(filler)
        with pytest.raises(OSError, match="No space left"):
            program.goes_on()
        filler.unlink()
        program.goes_on()

        loss = program.curves()["loss"]

    assert list(loss) == list(range(1, 400))


def _fill(file: Path) -> None:
    """All but one page, so that a part of what is written fits."""
    size = 0
    with file.open("wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            size += stream.write(b"x" * 4096)
    os.truncate(file, size - 4096)
