"""Steps, epochs and metrics in what training programs print."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.node.record import printed_progress

STUDENT = "step 100 loss 0.9\nstep 200 loss 0.4123 accuracy 0.91\n"
IMAGENET = (
    "Epoch: [3][ 20/500]\tTime  0.1 ( 0.2)\tLoss 4.1e-01 (5.2e-01)\tAcc@1  61.00 ( 60.1)\n"
    "Test: [10/79]\tTime 0.1\tLoss 3.9e-01 (4.0e-01)\n"
)
KERAS = (
    "Epoch 2/10\n45/45 [======] - 1s 3ms/step - loss: 0.61\n"
    "Epoch 3/10\n"
    " 1/45 [>.....] - ETA: 0s - loss: 0.52\r45/45 [=====] - 1s - loss: 0.41 - val_acc: 0.9\n"
)
TRAINER = (
    "{'loss': 0.7, 'epoch': 0.5}\n 40%|##  | 400/1000 [00:10<00:15]{'loss': 0.5, 'epoch': 1.0}\n"
)
LIGHTNING = (
    "Epoch 3:  10%|#  | 10/100 [00:01<00:09, 9.0it/s, v_num=0, train_loss=0.52]\r"
    "Validation DataLoader 0: 100%|####| 10/10 [00:01<00:00]\r"
    "Epoch 3:  40%|### | 40/100 [00:02<00:03, 20.0it/s, v_num=0, train_loss=0.413]"
)
CAFFE = "I0101 12:00:00.1 123 solver.cpp:228] Iteration 560, loss = 6.69755\n"
BASELINES = "|    total_timesteps | 2048 |\n|    ep_reward       | 20.5 |\n"

RICH = "Epoch 7/7  ━━━━━━ 20/100 0:00:02 • 0:00:09 49.63it/s v_num: 0.000 train_loss: 0.2\n"
TOLD_PER_EPOCH = (
    ">>   Num Epochs = 4\n>>   Num update steps per epoch = 638\nnumber of batches per epoch: 9\n"
    "  2%|#    | 40/2552 [00:01<01:44, 24.01it/s]\n"
    "{'loss': '6.2', 'learning_rate': '4.9e-05', 'epoch': '1.02'}\n"
)
ARGUMENTS = (
    "Overriding: lr_decay_iters = 3000\nOverriding: learning_rate = 0.001\nloss_weight: 3\n"
    "Command line arguments: Namespace(iou_thres=0.5, lr=0.1)\nloss: 0.5\n"
)

LOGS = {
    "a bar of rich": (RICH, 7 * 100 + 20, 7.0, {"train_loss": 0.2}),
    "how much an epoch is": (
        TOLD_PER_EPOCH,
        1,
        1.02,
        {"loss": 6.2, "learning_rate": 4.9e-05},
    ),
    "how files will be named": (
        "    │   └── filename: epoch_{epoch:03d}\nname: '{epoch:02d}-{val_loss:.2f}'\nloss: 0.5\n",
        None,
        None,
        {"loss": 0.5},
    ),
    "arguments are no metrics": (ARGUMENTS, None, None, {"loss": 0.5}),
    "student": (STUDENT, 200, None, {"loss": 0.4123, "accuracy": 0.91}),
    "imagenet": (IMAGENET, 3 * 500 + 20, 3.0, {"Loss": 0.39, "Acc@1": 61.0}),
    "epochs and batches of all": (
        "Epoch 2/4 [3/10] loss: 0.5\n",
        2 * 10 + 3,
        2.0,
        {"loss": 0.5},
    ),
    "keras": (KERAS, 3 * 45 + 45, 3.0, {"loss": 0.41, "val_acc": 0.9}),
    "trainer": (TRAINER, 1, 1.0, {"loss": 0.5}),
    "lightning": (LIGHTNING, 3 * 100 + 40, 3.0, {"train_loss": 0.413}),
    "caffe": (CAFFE, 560, None, {"loss": 6.69755}),
    "baselines": (BASELINES, 2048, None, {"ep_reward": 20.5}),
    "epochs only": ("epoch 4: loss=0.25 acc=93.1%", 4, 4.0, {"loss": 0.25, "acc": 93.1}),
    "key=value": ("epoch=2 global_step=812 lr=1e-4", 812, 2.0, {"lr": 1e-4}),
    "counts to come": ("Namespace(epochs=20, max_steps=1000)\nNum Epochs = 3", None, None, {}),
    "diverged": ("step 6 loss 0.4\nstep 7 loss nan", 7, None, {"loss": None}),
    "diverged, as JSON": ('{"step": 7, "loss": NaN}', 7, None, {"loss": None}),
    "beyond all numbers": ("step 7 loss -inf", 7, None, {"loss": None}),
    "chatter": ("Downloading 3/5 files\nlistening on 0.0.0.0:6006\n12:30:11 hello", None, None, {}),
}


@pytest.mark.parametrize("kind", sorted(LOGS))
def test_ordinary_logs_are_read(kind: str) -> None:
    text, step, epoch, metrics = LOGS[kind]

    assert printed_progress.read(text) == printed_progress.PrintedProgress(step, epoch, metrics)


def test_where_the_program_took_up_its_work_is_not_a_step_it_made() -> None:
    text = "resuming from step 400\n=> loaded checkpoint 'a.pt' (epoch 3)\n"

    assert printed_progress.read(text) == printed_progress.PrintedProgress(None, None, {})


@pytest.mark.parametrize(
    ("pattern", "step", "epoch"),
    [
        (r"seen (?P<step>\d+)", 77, None),
        (r"seen (\d+)", 77, None),
        (r"round (?P<epoch>\d+)", 5, 5.0),
        (r"seen (?P<step>\d+) in round (?P<epoch>\d+)", 77, 5.0),
        (r"never (\d+)", None, None),
    ],
)
def test_the_users_own_expression_wins(pattern: str, step: int | None, epoch: float | None) -> None:
    text = "step 3 seen 77 in round 5 loss 0.5\n"

    assert printed_progress.read(text, pattern) == printed_progress.PrintedProgress(
        step, epoch, {"loss": 0.5}
    )


def test_a_wrong_expression_falls_back_to_what_is_built_in() -> None:
    assert printed_progress.read("step 3", "(").step == 3


def test_the_span_of_a_short_log_is_its_first_and_last_step(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(
        "resuming from step 400\n" + "".join(f"step {n} loss 0.{n}\n" for n in range(401, 451))
    )

    assert printed_progress.span(str(log)) == printed_progress.StepSpan(
        401, 450, None, {"loss": 0.45}, every=1
    )


def test_the_span_of_a_huge_log_needs_only_its_ends(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    with log.open("wb") as stream:
        stream.write(b"step 1 loss 0.9\n")
        stream.seek(20_000_000_000)  # sparse: reading all of it would not end in time
        stream.write(b"\nstep 900 loss 0.1\n")

    assert printed_progress.span(str(log)) == printed_progress.StepSpan(
        1, 900, None, {"loss": 0.1}, every=899
    )


def test_a_log_that_is_not_there_has_no_span(tmp_path: Path) -> None:
    assert printed_progress.span(str(tmp_path / "none")) == printed_progress.StepSpan(
        None, None, None, {}
    )


def test_epochs_before_the_first_step_do_not_become_steps(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("epoch 2\nstep 500 loss 1\nepoch 3\n")

    assert printed_progress.span(str(log)) == printed_progress.StepSpan(
        500, 500, 3.0, {"loss": 1.0}
    )


words = st.sampled_from(
    ["step", "epoch", "Epoch 3/", "loss", "'loss': ", "=", ":", " ", "[", "/", "12", "1e999", "\r",
     "\n", "nan", "\x00", "é", "²", "٣", "9" * 400, "- "]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(words).map("".join)), st.text(max_size=5))
def test_no_text_makes_reading_raise(text: str, pattern: str) -> None:
    seen = printed_progress.read(text, pattern)

    assert seen.step is None or isinstance(seen.step, int)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=2000), st.integers(1, 200))
def test_no_bytes_make_a_span_raise(tmp_path: Path, content: bytes, size: int) -> None:
    log = tmp_path / "job.log"
    log.write_bytes(content)

    found = printed_progress.span(str(log), "", size)

    assert (found.first_step is None) == (found.last_step is None)


def test_our_own_words_in_a_log_are_no_progress(tmp_path):
    log = tmp_path / "job-002.log"
    log.write_text("step 10\nstep 20\n\nrabaska: it starts over: job 2 began again at step 0\n")

    for pattern in ("", r"step\s*(?P<step>\d+)"):
        assert printed_progress.span(str(log), pattern)[:2] == (10, 20)


@pytest.mark.parametrize(("first", "steps"), [(0, (12, 40)), (1, (12, 40))])
def test_bars_are_counted_from_the_first_epoch_whatever_it_is_called(tmp_path, first, steps):
    text = "  3%|#  | 3/40 [00:00<00:01]\nEpoch {}/4:  33%|#  | 12/36 [00:01<00:03, 9.6img/s]\n"
    later = "Epoch {}/4:  11%|#  | 4/36 [00:01<00:03, 9.6img/s]\n"
    log = tmp_path / "job-001.log"
    log.write_text(text.format(first) + later.format(first + 1))

    from_first = printed_progress.first_epoch(str(log))
    span = printed_progress.span(str(log), counted_from=from_first)

    assert (from_first, span.first_step, span.last_step) == (first, *steps)
