"""Where the time of a training goes: validation, logs and waiting, told apart as it happens."""

import json
from types import ModuleType

import pytest
from test_watching import Iterator, Program

from rabaska.training.watching.counting import Lines, several
from rabaska.training.watching.time_hooks import TIME_HOOKS, logged
from rabaska.training.watching.watcher import Watcher


def seconds(program, *names):
    line = program.count.line(0.0)
    return pytest.approx(tuple(line.get(name, 0.0) for name in names))


def trained(waiting=1.0, computing=2.0, batches=3):
    program = Program()
    loader = Iterator(batches)
    while program.batch(loader, waiting):
        program.clock.now += computing
        program.step()
    return program


def test_a_validation_counts_with_what_it_waited_for():
    program = trained(waiting=1.0)
    held_out = Iterator(4)

    while program.batch(held_out, 0.5):
        program.clock.now += 0.25

    assert seconds(program, "waiting", "validating") == (4.0, 3.5)


@pytest.mark.parametrize(("persistent", "starting"), [(False, 2.0), (True, 1.0)])
def test_to_end_the_workers_of_an_epoch_counts_as_starting_others(persistent, starting):
    program = Program()
    loader = Iterator(3)
    loader._num_workers, loader._persistent_workers = 2, persistent

    while program.batch(loader, 1.0):
        program.step()

    assert seconds(program, "waiting", "starting") == (4.0, starting)


def test_a_validation_that_is_under_way_counts_too():
    program = trained(waiting=1.0)
    before = program.count.line(0.0)["waiting"]
    held_out = Iterator(400)

    for _ in range(10):
        program.batch(held_out, 0.5)
        program.clock.now += 0.5

    assert seconds(program, "waiting", "validating") == (before, 10.0)


def test_the_first_batches_of_an_epoch_are_no_validation():
    program = trained()
    loader = Iterator(5)
    for _ in range(2):
        program.batch(loader, 1.0)
        program.clock.now += 1.0
        program.step()

    assert seconds(program, "validating") == (0.0,)


def test_what_comes_before_the_first_step_is_no_validation():
    program = Program()
    program.evaluate(3)

    assert "validating" not in program.count.line(0.0)


def test_logging_counts_once_and_not_inside_a_loader():
    watcher = Watcher({})
    watcher.count.clock = clock = Program().clock

    def write(depth=0):
        clock.now += 1.0
        if depth:
            log(depth - 1)

    log = logged(write, watcher)
    log(2)
    watcher.count.aside = True
    log()

    assert watcher.count.logging == 3.0


def test_a_tracker_is_timed_where_a_program_uses_it():
    watcher = Watcher({})

    class SummaryWriter:
        def add_scalar(self, name, value, step=None):
            return name, value, step

    module = ModuleType("tensorboardX.writer")
    module.SummaryWriter = SummaryWriter
    watcher.attach(module)

    assert SummaryWriter().add_scalar("loss", 1.0, step=3) == ("loss", 1.0, 3)
    assert SummaryWriter.add_scalar.__wrapped__
    assert "wandb.sdk.wandb_run" in TIME_HOOKS
    assert not watcher.count.off


def test_a_tracker_writes_what_it_keeps_back_before_the_program_saves():
    watcher = Watcher({})
    written = []

    class SummaryWriter:
        def flush(self):
            written.append("events")

    class _ExperimentWriter:
        def save(self):
            written.append("table")

    for name, kind in (
        ("torch.utils.tensorboard.writer", SummaryWriter),
        ("lightning.fabric.loggers.csv_logs", _ExperimentWriter),
    ):
        module = ModuleType(name)
        setattr(module, kind.__name__, kind)
        watcher.attach(module)
    logs = [SummaryWriter(), _ExperimentWriter()]

    watcher.save_begins()
    watcher.save_begins()  # in the same moment
    logs.clear()
    watcher.count.clock = lambda: 1e9
    watcher.save_begins()

    assert sorted(written) == ["events", "table"]
    assert not watcher.count.off


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, False), ({"WORLD_SIZE": "1"}, False), ({"WORLD_SIZE": "2"}, True),
     ({"SLURM_NTASKS": "8"}, True), ({"WORLD_SIZE": "many"}, False)],
)  # fmt: skip
def test_several_processes_are_known_by_their_launcher(environment, expected):
    assert several(environment) is expected


def test_each_rank_tells_how_long_it_took_and_only_the_first_the_rest(tmp_path):
    (tmp_path / "jobs" / "001").mkdir(parents=True)
    given = {"RABASKA_METRICS": str(tmp_path / "metrics.jsonl"), "RABASKA_JOB": "1"}
    program = trained(waiting=1.0)
    program.count.forward = 6.0
    for rank in ("0", "1"):
        Lines({**given, "RANK": rank, "WORLD_SIZE": "2"}).write(program.count)

    told = (tmp_path / "jobs/001/ranks.jsonl").read_text().splitlines()
    ranks = [json.loads(line) for line in told]
    assert [one["rank"] for one in ranks] == [0, 1]
    assert ranks[1]["forward"] == 6.0
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1


def test_ranks_tell_seldom(tmp_path):
    (tmp_path / "jobs" / "001").mkdir(parents=True)
    lines = Lines({
        "RABASKA_METRICS": str(tmp_path / "metrics.jsonl"), "RABASKA_JOB": "1", "WORLD_SIZE": "2",
    })  # fmt: skip
    for moment in (1000.0, 1001.0, 1059.0, 1061.0):
        lines.append({"time": moment, "began": 0.0, "steps": 3, "waiting": 1.0})

    assert len((tmp_path / "jobs/001/ranks.jsonl").read_text().splitlines()) == 2
