"""`init` proposes a rabaska.toml that works, and writes over nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rabaska.errors import WrongUse
from rabaska.journeys.init import init, questions, write
from rabaska.settings.project_file import check_data, load

EXAMPLES = Path(__file__).parents[2] / "examples"


def copy_of(example: str, folder: Path) -> Path:
    """The example as a stranger would have it, with its data beside it."""
    folder.mkdir()
    for path in (EXAMPLES / example).glob("*.*"):
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    maker = EXAMPLES / "digits" / "make_data.py"
    command = [sys.executable, maker, folder / "data/digits", "--train", "6", "--test", "2"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("example", ["digits", "digits-torch"])
def test_the_examples_need_no_edit(example, tmp_path):
    project = copy_of(example, tmp_path / example)

    proposal = init(project)
    write(proposal, project / "rabaska.toml")
    loaded = load(project)

    assert " ".join(loaded.command) == (
        "python train.py --data {data} --output {output} --resume {checkpoint}"
    )
    assert [(each.name, each.path) for each in loaded.datasets] == [
        ("digits", project / "data/digits")
    ]
    assert loaded.checkpoints.patterns == (
        ("checkpoint-*.npz",) if example == "digits" else ("checkpoint-*.pt",)
    )
    assert proposal.warnings == ()
    check_data(loaded)


def test_every_guess_says_what_it_was_read_from(tmp_path):
    project = copy_of("digits", tmp_path / "digits")

    guesses = {guess.what: guess for guess in init(project).guesses}

    assert guesses["data"].value == "data/digits"
    assert guesses["data"].evidence.endswith(": --data")
    assert guesses["data"].evidence in init(project).text
    assert guesses["packages"].evidence == "requirements.txt exists"


def test_looking_writes_nothing(tmp_path):
    project = copy_of("digits", tmp_path / "digits")
    before = sorted(path.name for path in project.iterdir())

    init(project)

    assert sorted(path.name for path in project.iterdir()) == before


def test_a_file_that_is_there_is_not_replaced_unless_told(tmp_path):
    target = tmp_path / "rabaska.toml"
    target.write_text("mine")
    proposal = init(tmp_path)

    with pytest.raises(WrongUse, match="is there already"):
        write(proposal, target)
    kept = target.read_text()
    write(proposal, target, overwrite=True)

    assert kept == "mine"
    assert target.read_text() == proposal.text
    assert [path.name for path in tmp_path.iterdir()] == ["rabaska.toml"]


def test_an_empty_folder_gives_a_file_that_says_what_to_fill_in(tmp_path):
    proposal = init(tmp_path)
    write(proposal, tmp_path / "rabaska.toml")

    assert load(tmp_path).command == ("python", "FILL-IN")
    assert "# TO DO: replace FILL-IN." in proposal.text
    assert proposal.warnings


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(WrongUse, match="is not a folder"):
        init(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written_is_told_in_plain_words(tmp_path):
    with pytest.raises(WrongUse, match="cannot be written"):
        write(init(tmp_path), tmp_path / "gone" / "rabaska.toml")


def test_only_real_choices_are_asked(tmp_path):
    one = copy_of("digits", tmp_path / "one")
    two = copy_of("digits", tmp_path / "two")
    os.link(two / "train.py", two / "train_again.py")

    asked = questions(init(two))

    assert questions(init(one)) == ()
    assert [(each.about, each.choices) for each in asked] == [
        ("script", ("train.py", "train_again.py"))
    ]
    answered = init(two, script=asked[0].choices[1])
    assert "python train_again.py" in answered.text


def test_a_program_that_uses_cuda_is_proposed_one_gpu_with_the_line_it_is_from(tmp_path):
    text = "import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    (tmp_path / "train.py").write_text(f"{text}for epoch in range(3):\n    print(epoch)\n")

    proposal = init(tmp_path)

    (guess,) = (each for each in proposal.guesses if each.what == "gpus")
    assert (guess.value, guess.evidence) == (
        "1 on a cluster",
        "train.py, line 2: torch.cuda.is_available",
    )
    assert "gpus = 1   # as `run` asks of a cluster: train.py, line 2" in proposal.text


def test_the_script_and_the_data_can_be_named(tmp_path):
    for name in ("train_a.py", "train_b.py"):
        (tmp_path / name).write_text(
            "import torch\nfor step in range(3):\n    torch.save({}, 'x.pt')\n"
        )

    assert init(tmp_path, script="./train_b.py").text.count("python train_b.py") == 1
    with pytest.raises(WrongUse, match=r"train_c\.py is not a file"):
        init(tmp_path, script="train_c.py")


def test_a_load_that_refuses_what_is_saved_is_told(tmp_path):
    (tmp_path / "train.py").write_text(
        "import argparse, os, torch\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--resume'); parser.add_argument('--output-dir')\n"
        "args = parser.parse_args()\n"
        "start = torch.load(args.resume, weights_only=True)['epoch'] if args.resume else 0\n"
        "for epoch in range(start, 10):\n"
        "    state = {'model': {}, 'epoch': epoch, 'args': args}\n"
        "    torch.save(state, os.path.join(args.output_dir, 'last.pth'))\n"
    )

    told = init(tmp_path)

    assert "jobs = 1 " in told.text
    assert any("train.py, line 5" in each and "train.py, line 7" in each for each in told.warnings)


def test_options_that_cannot_be_read_leave_it_open_whether_a_program_resumes(tmp_path):
    (tmp_path / "train.py").write_text(
        "import argparse\nimport torch as th\nfrom tools import add_dict_to_argparser, TrainLoop\n"
        "parser = argparse.ArgumentParser()\n"
        "add_dict_to_argparser(parser, dict(lr=1e-4, resume_checkpoint=''))\n"
        "args = parser.parse_args()\n"
        "TrainLoop(resume_checkpoint=args.resume_checkpoint).run_loop()\n"
    )

    told = init(tmp_path)

    assert any("could not tell whether train.py resumes" in each for each in told.warnings)
    assert not told.advice
