"""What prints and calls give away."""

import re
import textwrap

import pytest

from rabaska.scouting import script_traits, scripts


def script_of(tmp_path, text):
    (tmp_path / "train.py").write_text(textwrap.dedent(text))
    return scripts.find(tmp_path).found[0]


@pytest.mark.parametrize(
    ("printing", "printed"),
    [
        ('print(f"step {n}: {loss:.3f}")', "step 7: 0.123"),
        ('print("epoch", e, "step", n)', "epoch 2 step 7"),
        ('print("Epoch [{}/{}]".format(n, m))', "Epoch [7/90]"),
        ('log.info("iter: %d loss %f", n, loss)', "iter: 7 loss 0.1"),
        ('tqdm.write(f"Iteration={n}")', "Iteration=7"),
        ('print(f"global step {n} step {k}")', "global step 7 step 3"),
    ],
)
def test_the_pattern_finds_the_step_in_what_is_printed(tmp_path, printing, printed):
    found = script_traits.progress(script_of(tmp_path, f"for n in range(9):\n    {printing}"))

    assert found
    assert set(re.search(found[0], printed).groupdict().values()) == {"7"}


@pytest.mark.parametrize(
    "text",
    [
        'print("starting at epoch", 0)\nfor n in range(9): train()',
        'def main():\n    print(f"epoch {n}")\nmain()',
        'def tell(n):\n    print(f"epoch {n}")\ntell(0)',
    ],
)
def test_what_is_printed_once_tells_no_progress(tmp_path, text):
    assert script_traits.progress(script_of(tmp_path, text)) is None


def test_what_a_function_prints_that_is_called_in_a_loop_tells_progress(tmp_path):
    text = 'def tell(n):\n    print(f"epoch {n}")\nfor n in range(9):\n    tell(n)'

    assert script_traits.progress(script_of(tmp_path, text)) is not None


def test_a_line_about_resuming_is_not_taken_for_progress(tmp_path):
    script = script_of(
        tmp_path,
        """\
        print(f"resuming from {path} at step {step}")
        for step in range(9):
            print(f"epoch {epoch} step {step} loss {loss}")
        """,
    )

    pattern, place = script_traits.progress(script)

    assert re.search(pattern, "epoch 2 step 7 loss 0.1")["step"] == "7"
    assert not re.search(pattern, "resuming from x at step 7")
    assert place.line == 3


def test_a_script_that_prints_no_counter_has_no_pattern(tmp_path):
    assert script_traits.progress(script_of(tmp_path, 'print("step by step")')) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.cuda()", "needed"),
        ("if torch.cuda.is_available(): model.cuda()", "used"),
        ("dist.init_process_group('nccl'); model.cuda()", "several"),
        ("device = args.cuda; run()", None),
        ("model.to('cuda')", "used"),
        ("parser.add_argument('--device', default='cuda:0')", "used"),
        ("Trainer(accelerator='gpu')", "used"),
        ("print('no cuda'); Trainer(accelerator='cpu')", None),
    ],
)
def test_how_gpus_are_used(tmp_path, text, expected):
    found = script_traits.gpus(script_of(tmp_path, f"{text}\nstart()\n"))

    assert (found[0] if found else None) == expected
