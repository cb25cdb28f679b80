"""Numbers read on from the files of other programs, whatever state these are in."""

import json
import math
import struct

import pytest
from tests.node.series.written import event, masked, wandb_log, wandb_record

from rabaska.node.series.event_files import EventFile, masked_crc
from rabaska.node.series.find_sources import find, kind_of
from rabaska.node.series.printed_series import PrintedSeries
from rabaska.node.series.tables import CsvTable, JsonLines, TrainerState
from rabaska.node.series.wandb_log import WandbLog

# As tensorboard 2.21.0 wrote it: its version, then train/loss and acc at the steps 0 and 1.
REAL = bytes.fromhex(
    "4800000000000000fe92489d09f8b1016068bfda411a0d627261696e2e4576656e743a32522e0a2c74656e736f72626f"
    "6172642e73756d6d6172792e7772697465722e6576656e745f66696c655f7772697465726076d7471e00000000000000"
    "d9dc123209000000e04eacda412a130a110a0a747261696e2f6c6f7373150000803fafa7289c1700000000000000e7ce"
    "f81e09000000e04eacda412a0c0a0a0a03616363150000803fbcbf3007200000000000000029eda95009666606e04eac"
    "da4110012a130a110a0a747261696e2f6c6f7373150000003fccf37a04"
)
# A scalar as a tensor, as TensorFlow 2 writes it: epoch_loss is 0.25 at the step 300.
TENSOR = bytes.fromhex(
    "3500000000000000d6c55de609000000e04eacda4110ac022a270a250a0a65706f63685f6c6f7373420a080112"
    "002a040000803e4a0b0a090a077363616c61727357a74238"
)


def told(points):
    return [(point.name, point.step, point.value) for point in points]


def test_a_real_event_file_is_read(tmp_path):
    (tmp_path / "events.out.tfevents.1").write_bytes(REAL)

    points = EventFile(str(tmp_path / "events.out.tfevents.1")).read()

    assert told(points) == [("train/loss", 0, 1.0), ("acc", 0, 1.0), ("train/loss", 1, 0.5)]
    assert points[0].moment == 1.79e9


def test_scalars_that_are_tensors_are_read(tmp_path):
    (tmp_path / "events").write_bytes(TENSOR)

    assert told(EventFile(str(tmp_path / "events")).read()) == [("epoch_loss", 300, 0.25)]


def test_the_checksum_is_that_of_tensorboard():
    assert masked_crc(REAL[:8]) == int.from_bytes(REAL[8:12], "little")


def test_only_what_is_new_is_read(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(event(0, a=1.0) + event(300, a=math.nan, b=math.inf))
    file = EventFile(str(path))

    first = told(file.read())
    with path.open("ab") as stream:
        stream.write(event(70000, a=-2.0))

    assert repr(first) == "[('a', 0, 1.0), ('a', 300, nan), ('b', 300, inf)]"
    assert told(file.read()) == [("a", 70000, -2.0)]
    assert file.read() == []
    assert told(EventFile(str(path), **file.state()).read()) == []


def test_half_a_record_is_read_when_the_rest_is_there(tmp_path):
    path, data = tmp_path / "events", event(1, a=1.0) + event(2, a=2.0) + event(3, a=3.0)

    found = []
    file = EventFile(str(path))
    for size in range(0, len(data) + 1, 7):
        path.write_bytes(data[:size])
        found += told(file.read())
    path.write_bytes(data)
    found += told(file.read())

    assert found == [("a", 1, 1.0), ("a", 2, 2.0), ("a", 3, 3.0)]


@pytest.mark.parametrize("place", [3, 9, 15, 25, 40])
def test_a_damaged_record_gives_no_wrong_number(tmp_path, place):
    good, other = event(1, a=1.0), event(2, b=2.0)
    data = bytearray(good + other + good)
    data[len(good) + place] ^= 0xFF
    (tmp_path / "events").write_bytes(bytes(data))

    points = told(EventFile(str(tmp_path / "events")).read())

    assert set(points) <= {("a", 1, 1.0), ("b", 2, 2.0)}
    assert points[0] == ("a", 1, 1.0)


def test_a_file_that_was_cut_and_written_anew_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "events"
    path.write_bytes(event(1, a=1.0) + event(2, a=2.0))
    file = EventFile(str(path))
    file.read()

    path.write_bytes(event(1, moment=1.8e9, a=5.0))

    assert told(file.read()) == [("a", 1, 5.0)]


def test_pictures_are_passed_over(tmp_path):
    inside = b"\x09" + b"\0" * 8 + b"\x2a\x80\x80\x80\x03" + b"\1" * (6 << 20)
    length = struct.pack("<Q", len(inside))
    picture = length + masked(length) + inside + b"\0\0\0\0"
    (tmp_path / "events").write_bytes(event(1, a=1.0) + picture + event(2, a=2.0))

    assert told(EventFile(str(tmp_path / "events")).read()) == [("a", 1, 1.0), ("a", 2, 2.0)]


@pytest.mark.parametrize("as_json", [True, False])
def test_the_log_of_wandb_is_read_across_its_blocks(tmp_path, as_json):
    path = tmp_path / "run-x.wandb"
    names = [f"metric-{number}" for number in range(300)]
    rows = [{"_timestamp": 1.79e9 + step, **dict.fromkeys(names, step / 2)} for step in range(20)]
    records = [
        b"\x08\x01",
        *(wandb_record(step, row, as_json=as_json) for step, row in enumerate(rows)),
    ]
    path.write_bytes(wandb_log(records))

    points = WandbLog(str(path)).read()

    assert len(points) == 20 * 300
    assert points[-1] == ("metric-299", 19, 1.79e9 + 19, 9.5)


def test_the_log_of_wandb_is_read_on_and_skips_what_is_no_number(tmp_path):
    path = tmp_path / "run-x.wandb"
    values = {"loss": 0.5, "name": "x", "ok": True, "bad": "NaN", "deep": {"a": 1}, "_runtime": 3}
    data = wandb_log([wandb_record(1, values), wandb_record(2, {"loss": math.inf})])
    log, found = WandbLog(str(path)), []

    for size in (0, 5, 40, len(data) - 3, len(data)):
        path.write_bytes(data[:size])
        found += told(log.read())

    assert repr(found) == "[('loss', 1, 0.5), ('bad', 1, nan), ('loss', 2, inf)]"


LIGHTNING = "epoch,step,train_loss,val_acc\n0,9,0.5,\n0,19,0.25,\n0,19,,0.75\n"


def test_tables_of_lightning_and_keras_are_read(tmp_path):
    (tmp_path / "metrics.csv").write_text(LIGHTNING)
    (tmp_path / "training.csv").write_text("epoch;accuracy;loss\n0;0.5;nan\n1;0.75;0.1\n")

    lightning = CsvTable(str(tmp_path / "metrics.csv")).read()
    keras = CsvTable(str(tmp_path / "training.csv")).read()

    assert told(lightning) == [
        ("train_loss", 9, 0.5),
        ("train_loss", 19, 0.25),
        ("val_acc", 19, 0.75),
    ]
    assert repr(told(keras)).startswith("[('accuracy', 0, 0.5), ('loss', 0, nan)")


def test_a_table_that_gets_a_column_is_read_again(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n1,0.5\n2,0.25\n")
    table = CsvTable(str(path))
    table.read()

    path.write_text("step,loss,val\n1,0.5,\n2,0.25,\n2,,0.75\n")

    assert ("val", 2, 0.75) in told(table.read())


def test_data_is_no_log(tmp_path):
    (tmp_path / "prices.csv").write_text("name,price\na,1\n")
    (tmp_path / "config.json").write_text('{"step": 3, "lr": 0.1}')  # no line of it ends
    (tmp_path / "vocab.json").write_text('{"a": 1,\n"b": 2}\n')

    assert [kind_of(path) for path in find([str(tmp_path)]).values()] == [None, None, None]


def test_lines_of_json_are_read(tmp_path):
    rows = [
        {"step": 1, "loss": 0.5, "val": {"acc": 0.25}, "time": 1.79e9},
        {"epoch": 2, "loss": "NaN"},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"ste')

    points = JsonLines(str(tmp_path / "log.jsonl")).read()

    assert repr(told(points)) == "[('loss', 1, 0.5), ('val/acc', 1, 0.25), ('loss', 2, nan)]"
    assert points[0].moment == 1.79e9


def test_the_state_of_the_trainer_is_read(tmp_path):
    history = [
        {"loss": 0.5, "learning_rate": 1e-5, "epoch": 0.1, "step": 10},
        {"eval_loss": 0.25, "step": 20},
    ]
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": history}))

    assert told(TrainerState(str(path)).read()) == [
        ("loss", 10, 0.5),
        ("learning_rate", 10, 1e-5),
        ("eval_loss", 20, 0.25),
    ]


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("step 10 loss 0.23\n", [("loss", 10, 0.23)]),
        ("step=10 loss=0.23\n", [("loss", 10, 0.23)]),
        ("{'loss': 0.23, 'epoch': 2.0}\n", [("loss", 2, 0.23)]),
        ("epoch 3\naccuracy: 0.5\n", [("accuracy", 3, 0.5)]),
        (
            "Epoch 1:  40%|██  | 4/10 [00:02<00:03, 1.9it/s, v_num=0, foo=1.5, train_loss=2e-3]\r",
            [("train_loss", 4, 0.002), ("foo", 4, 1.5)],  # counted from the first, as in `status`
        ),
        (
            "Epoch 1/4 [2/10] loss: 0.5 lr: 1e-3\nEpoch 2/4 [1/10] loss: 0.4\n",
            [("loss", 2, 0.5), ("lr", 2, 0.001), ("loss", 11, 0.4)],
        ),
        (
            "{'loss': 0.5, 'epoch': 0.25}\n{'loss': 0.4, 'epoch': 0.5}\n",
            [("loss", 0.25, 0.5), ("loss", 0.5, 0.4)],
        ),
        (
            "Train Epoch: 1 [6400/64000 (10%)]\tLoss: 2.3\n"
            "Test set: Average loss: 0.3, Accuracy: 91.5%\n",
            [("train_Loss", 1.1, 2.3), ("test_loss", 1.1, 0.3), ("test_Accuracy", 1.1, 91.5)],
        ),
        (
            "step 9 train loss 0.5 | val loss 0.4 acc 0.8 lr 0.1\n",
            [("train_loss", 9, 0.5), ("val_loss", 9, 0.4), ("val_acc", 9, 0.8), ("lr", 9, 0.1)],
        ),
        ("train.py:12 INFO step 3 loss 0.5\n", [("loss", 3, 0.5)]),
        ("Epoch 0: 100%|█| 2/2 [00:01<00:00, 2it/s, loss=1]`max_epochs=6`\r", [("loss", 2, 1.0)]),
        ("step 1 loss nan\nstep 2 loss inf\n", "[('loss', 1, nan), ('loss', 2, inf)]"),
        ("resumed from step 9, loss 0.1\n", []),
        ("rabaska: step 4 loss 3\n", []),
        ("step 1 loss 0.5", []),  # the line may go on
    ],
)
def test_printed_numbers_have_the_step_they_were_printed_at(tmp_path, text, points):
    (tmp_path / "job-001.log").write_text(text)

    found = told(PrintedSeries(str(tmp_path / "job-001.log")).read())

    assert repr(found) == points if isinstance(points, str) else sorted(found) == sorted(points)


def test_a_line_of_megabytes_is_passed_over(tmp_path):
    (tmp_path / "job-001.log").write_bytes(b"x" * (5 << 20) + b"\nstep 1 loss 0.5\n")

    assert told(PrintedSeries(str(tmp_path / "job-001.log")).read()) == [("loss", 1, 0.5)]


def test_of_gigabytes_of_lines_the_newest_are_read(tmp_path):
    path = tmp_path / "job-001.log"
    with path.open("wb") as log:
        log.write(b"step 1 loss 1.0\n")
        log.seek(10 << 30)  # a hole: nothing is written
        log.write(b"\nstep 2 loss 0.5\n")

    assert told(PrintedSeries(str(path)).read()) == [("loss", 2, 0.5)]
