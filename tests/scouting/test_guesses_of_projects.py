"""What is guessed for small projects in the style of public training scripts."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from rabaska.scouting import settings_draft
from rabaska.scouting.project_facts import scout
from rabaska.settings.project_file import load

PROJECTS = Path(__file__).parent / "projects"


@dataclass(frozen=True)
class Expected:
    command: str
    folders: tuple[str, ...] = ()  # where files of data are put before looking
    data: str = ""
    resume: tuple[str, ...] = ()
    jobs: int = 3
    keep: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    gpus: str = ""
    progress: str = ""  # a line it must find the number 7 in
    warning: str = ""  # part of one of the warnings
    launch: str = ""
    pictures: tuple[str, ...] = ()  # folders of a few files that are no data
    files: tuple[str, ...] = ()  # that another script made


TABLE = {
    "imagenet": Expected(
        "python main.py {data} --resume {checkpoint}",
        folders=("imagenet/train/cat", "imagenet/val/cat"), data="imagenet",
        keep=("checkpoint.pth.tar",), patterns=("checkpoint.pth.tar",), gpus="several",
        progress="Epoch: [7][0/10]",
    ),
    "cifar": Expected(
        'sh -c mkdir -p data && ln -sfn "$RABASKA_DATA_CIFAR_10" data/cifar-10 && exec "$@" links '
        "python main.py",
        folders=("data/cifar-10",), data="data/cifar-10", resume=("--resume",),
        keep=("checkpoint",), patterns=("ckpt.pth",), gpus="used", progress="Epoch: 7",
        warning="downloads its data",
    ),
    "mnist": Expected(
        "python main.py --save-model", jobs=1, keep=("mnist_cnn.pt",), patterns=("mnist_cnn.pt",),
        progress="Train Epoch: 7 [0/938] Loss: 0.1", warning="does not resume from a checkpoint",
    ),
    "unet": Expected(
        'sh -c ln -sfn "$RABASKA_DATA_DATA" data && exec "$@" links python train.py '
        "--load {checkpoint}",
        folders=("data/imgs", "data/masks"), data="data", keep=("wandb", "checkpoints"), jobs=1,
        patterns=("checkpoint_epoch*.pth",), warning="loads only the weights",
    ),
    "lightning": Expected(
        "python train.py --data_dir {data} --ckpt_path {checkpoint}",
        folders=("datasets/flowers/rose", "datasets/flowers/tulip"), data="datasets/flowers",
        keep=("lightning_logs",), patterns=("*.ckpt",),
    ),
    "lightning_cli": Expected(
        "python main.py fit --trainer.default_root_dir {output} --ckpt_path {checkpoint}",
    ),
    "lightning_cli_fit": Expected(
        "python main.py --trainer.default_root_dir {output}", jobs=1,
        warning="what it saves (main.py, line 6: LightningCLI) is not loaded again",
    ),
    "transformers": Expected(
        "python run_clm.py --train_file {data} --output_dir {output} --do_train",
        folders=("texts",), data="texts",
    ),
    "finetune": Expected(
        "python finetune.py --data_dir {data} --output_dir {output} "
        "--resume_from_checkpoint {checkpoint}",
        folders=("reviews",), data="reviews", patterns=("checkpoint-*",),
    ),
    "keras": Expected(
        "python fit.py --image-dir {data} --logdir {output}/logs",
        folders=("photos/cat", "photos/dog"), data="photos", keep=("weights", "backup"),
        patterns=("epoch-*.keras",), gpus="several",
    ),
    "click_gan": Expected(
        "python train.py --data {data} --outdir {output} --resume {checkpoint}",
        folders=("faces",), data="faces", patterns=("network-snapshot-*.pkl",), progress="step 7",
    ),
    "hydra": Expected(
        "python train.py data.root={data} trainer.checkpoint_dir={checkpoints} "
        "resume_from={checkpoint} hydra.run.dir={output}",
        folders=("data/birds/owl", "data/birds/tit"), data="data/birds",
        patterns=("epoch=*.ckpt",),
    ),
    "package": Expected(
        "python -m src.vision.train --dataset-root {data} --save-dir {output} "
        "--load-checkpoint {checkpoint}",
        folders=("images/a", "images/b"), data="images", patterns=("model_*.pth",),
        progress="iter: 7",
    ),
    "typer_app": Expected(
        "python train.py {data} --output-dir {output}", folders=("scans",), data="scans",
        resume=("--resume",), patterns=("state.npz",),
    ),
    "absl_flags": Expected(
        "python main.py --data_dir {data} --model_dir {output}",
        folders=("records",), data="records", progress="global_step: 7 of 10",
    ),
    "subcommands": Expected(
        "python main.py train --data-root {data} --checkpoint-dir {checkpoints} "
        "--resume-from {checkpoint}",
        folders=("data",), data="data", patterns=("last.pt",),
    ),
    "two_scripts": Expected(
        "python train_a.py --data {data} --checkpoint {checkpoints}/checkpoint_a.pt",
        folders=("data",), data="data", jobs=1, warning="train_b.py can be started too",
    ),
    "splits": Expected(
        "python train.py --train-dir {data}/train --val-dir {data}/val --model small "
        "--token FILL-IN",
        folders=("pictures/train", "pictures/val"), data="pictures", jobs=1,
        keep=("runs", "saved"), patterns=("model-*.pt",), warning="replace FILL-IN",
    ),
    "argv": Expected(
        "python run.py {data} {output}", folders=("others", "samples"), data="others", jobs=1,
        patterns=("weights.npy",), warning="may also be samples",
    ),
    "fire_cli": Expected(
        "python train.py --data_path {data} --save_path {output}/model.pt "
        "--resume_from {checkpoint}",
        data="FILL-IN", patterns=("model.pt",), warning="no data folder was found",
    ),
    "config_template": Expected(
        "python train.py --config config.json --resume {checkpoint}", keep=("saved",),
        patterns=("checkpoint-epoch*.pth",), progress="Train Epoch: 7 Loss: 0.1", gpus="used",
    ),
    "torchrun_readme": Expected(
        "python multigpu.py 50 10", launch="torchrun", keep=("snapshot.pt",), gpus="several",
        patterns=("snapshot.pt",), progress="[GPU0] Epoch 7 | Batchsize: 32",
    ),
    "flax_flags": Expected(
        "python main.py --workdir {output} --config configs/default.py",
        progress="train step: 7, loss: 0.1",
    ),
    "no_trainer": Expected(
        "python run_no_trainer.py --model_name_or_path bert-base-cased --output_dir {output} "
        "--checkpointing_steps epoch --resume_from_checkpoint {checkpoint}",
        progress="epoch 7: loss 1.0",
    ),
    "unfolded": Expected(
        "python train.py --outdir {output} --data {data} --resume {checkpoint}",
        folders=("faces",), data="faces", patterns=("training-state-*.pt",),
    ),
    "scripts_and_package": Expected(
        "python -m scripts.train --save-dir {output} --resume {checkpoint}", patterns=("model.pt",)
    ),
    "borrowed_tools": Expected(
        "python train.py --out_dir {output}", patterns=("ckpt.pt",), progress="epoch 7 loss 1.0"
    ),
    "speech_brain": Expected(
        "python train.py hparams/train.yaml --data_folder {data} --output_folder {output}",
        folders=("words",), data="words",
    ),
    "ignite_fire": Expected(
        "python main.py run --output_path {output} --resume_from {checkpoint}",
    ),
    "restarted": Expected(
        "python main_rings.py --output_dir {output}", patterns=("checkpoint.pth",)
    ),
    "prepared_bin": Expected(
        'sh -c mkdir -p data && ln -sfn "$RABASKA_DATA_LETTERS" data/letters && exec "$@" links '
        "python train.py --out_dir={output}",
        files=("data/letters/train.bin",), data="data/letters", resume=("--init_from=resume",),
        patterns=("ckpt.pt",), progress="iter 7: trained", warning="makes a link to the data",
    ),
    "trainer_argument": Expected(
        "python run_clm.py --output_dir {output} --do_train --resume_from_checkpoint {checkpoint}"
    ),
    "progress_bar": Expected(
        "sh -c mkdir -p .bin && echo 'echo 24 80' > .bin/stty && chmod +x .bin/stty && "
        'export PATH="$PWD/.bin:$PATH" && exec "$@" links python main.py',
        resume=("--resume",), keep=("checkpoint",), patterns=("ckpt.pth",), progress="Epoch: 7",
        warning="asks for the size of its terminal",
    ),
    "pictures": Expected(
        "python main.py", pictures=("imgs", "data"), keep=("agent.pt",), jobs=1,
        patterns=("agent.pt",), warning="it saves only at its end (main.py, line 11: torch.save)",
    ),
    "nothing": Expected("python FILL-IN", warning="save explore.ipynb as a script first"),
    "library": Expected("python FILL-IN", warning="no Python script that can be started"),
    "python2": Expected("python FILL-IN", warning="train.py was skipped: Python 3 cannot"),
}  # fmt: skip


@pytest.fixture(params=TABLE)
def case(request, tmp_path):
    expected = TABLE[request.param]
    project = tmp_path / request.param
    shutil.copytree(PROJECTS / request.param, project)
    for folder in expected.folders:
        fill(project / folder)
    for folder in expected.pictures:
        (project / folder).mkdir()
        (project / folder / ".gitkeep").write_bytes(b"")
    for name in expected.files:
        (project / name).write_bytes(b"made")
    for number in range(12 if expected.pictures else 0):
        (project / "imgs" / f"{number}.png").write_bytes(b"png")
    return project, expected


def fill(folder, files=120):
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"{number:03d}.jpg").write_bytes(b"jpeg")


def test_every_project_has_its_row_in_the_table():
    assert {path.name for path in PROJECTS.iterdir()} == set(TABLE)


def test_the_guesses_are_those_of_the_table(case):
    project, expected = case

    found = scout(project)

    assert " ".join(found.command) == expected.command
    assert tuple(path for _, path in found.datasets) == tuple(filter(None, [expected.data]))
    assert found.resume == expected.resume
    assert found.jobs == expected.jobs
    assert found.keep == expected.keep
    assert found.patterns == expected.patterns
    assert found.gpus == expected.gpus
    assert found.launch == expected.launch


def test_the_step_is_found_in_what_the_project_prints(case):
    project, expected = case

    found = scout(project)

    if not expected.progress:
        assert found.progress == ""
    else:
        match = re.search(found.progress, expected.progress)
        assert match
        assert set(match.groupdict().values()) == {"7"}  # of a step, or else of an epoch


def test_a_warning_says_what_to_look_at(case):
    project, expected = case

    found = scout(project)

    if expected.warning:
        assert any(expected.warning in warning for warning in found.warnings), found.warnings
    else:
        assert found.warnings == ()


def test_the_draft_loads_as_it_is_and_says_the_same(case):
    project, _ = case
    found = scout(project)

    (project / "rabaska.toml").write_text(settings_draft.text(found), encoding="utf-8")
    loaded = load(project)

    assert loaded.command == found.command
    assert loaded.resume == found.resume
    assert [(each.name, each.path) for each in loaded.datasets] == [
        (name, project / path) for name, path in found.datasets
    ]
    assert loaded.keep == found.keep
    assert loaded.progress == found.progress
    assert loaded.chain.jobs == found.jobs


def test_every_guess_read_from_a_line_names_a_line_that_says_so(case):
    project, _ = case

    for guess in scout(project).guesses:
        place = re.match(r"(\S+), line (\d+): (\S+)", guess.evidence)
        if place:
            name, line, shown = place.groups()
            lines = (project / name).read_text().splitlines()
            assert shown.strip("'-;:").rpartition(".")[2] in lines[int(line) - 1], guess


def test_the_answer_to_a_question_is_taken(tmp_path):
    shutil.copytree(PROJECTS / "two_scripts", tmp_path / "p")

    found = scout(tmp_path / "p", script="train_b.py")

    assert found.command[1] == "train_b.py"


def test_a_chosen_data_folder_wins_over_the_likelier_one(tmp_path):
    shutil.copytree(PROJECTS / "argv", tmp_path / "p")
    fill(tmp_path / "p" / "others")
    fill(tmp_path / "p" / "samples")

    found = scout(tmp_path / "p", data="samples")

    assert found.datasets == (("samples", "samples"),)


def test_data_above_the_project_is_proposed_as_a_dataset(tmp_path):
    shutil.copytree(PROJECTS / "mnist", tmp_path / "p")
    script = tmp_path / "p" / "main.py"
    script.write_text(script.read_text() + '\nimages = open_folder("../data")\n')
    fill(tmp_path / "data" / "raw")

    found = scout(tmp_path / "p")

    assert found.datasets == (("data", "../data"),)
    assert 'ln -sfn "$RABASKA_DATA_DATA" ../data' in found.command[2]


def test_a_settings_file_that_only_the_readme_has_is_left_to_fill_in(tmp_path):
    shutil.copytree(PROJECTS / "speech_brain", tmp_path / "p")
    (tmp_path / "p" / "README.md").write_text("    python train.py hparams/file.yaml\n")
    script = tmp_path / "p" / "train.py"
    script.write_text(script.read_text().replace("hparams/train.yaml", "hparams/file.yaml"))

    found = scout(tmp_path / "p")

    assert found.command == ("python", "train.py", "FILL-IN")
    assert any("is required, and its value is not known" in each for each in found.warnings)


def test_the_lines_that_would_let_a_program_resume_are_in_its_own_words():
    found = scout(PROJECTS / "pictures")

    told = "\n".join(found.advice)
    assert "main.py, line 6" in told
    assert 'model.load_state_dict(state["model"])' in told
    assert 'first = state["j"] + 1' in told
    assert "for j in range(first, 10):" in told
    assert "#   for j in range(first, 10):" in settings_draft.text(found)


def test_a_program_that_resumes_gets_no_such_lines():
    assert scout(PROJECTS / "imagenet").advice == ()


def test_checkpoints_with_more_than_tensors_can_be_loaded_by_newer_versions(tmp_path):
    found = scout(PROJECTS / "config_template")
    shutil.copytree(PROJECTS / "config_template", tmp_path / "p")
    (tmp_path / "p" / "rabaska.toml").write_text(settings_draft.text(found), encoding="utf-8")

    loaded = load(tmp_path / "p")

    assert dict(found.variables) == {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    assert "base/base_trainer.py, line" in settings_draft.text(found)
    assert dict(loaded.environment.variables) == dict(found.variables)
    assert scout(PROJECTS / "imagenet").variables == ()


def test_what_lightning_saves_of_a_modules_arguments_can_be_loaded(tmp_path):
    (tmp_path / "train.py").write_text(
        "import hydra\nimport lightning as L\n\n"
        "@hydra.main(config_path='.', config_name='train')\n"
        "def main(cfg):\n"
        "    model = hydra.utils.instantiate(cfg.model)\n"
        "    L.Trainer().fit(model, ckpt_path=cfg.get('ckpt_path'))\n\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    (tmp_path / "train.yaml").write_text("ckpt_path: null\nmodel:\n  _target_: net.Net\n")

    found = scout(tmp_path)

    assert found.jobs == 3
    assert dict(found.variables) == {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("    pip install tqdm numpy>=1.20\n", "tqdm 'numpy>=1.20'"),
        ("`pip install torch --index-url https://pypi.org/x` first\npip3 install -U six\n",
         "torch six"),
        ("pip install -r requirements/dev.txt\npip install -e .\n", ""),
        ("Type pip install foo to get it, then pip install .\n", ""),
        ("pip install git+https://x.org/y.git\n", ""),
    ],
)  # fmt: skip
def test_packages_that_only_a_readme_names_are_told_with_a_command_that_lists_them(
    text, names, tmp_path
):
    (tmp_path / "train.py").write_text("for epoch in range(3):\n    print(epoch)\n")
    (tmp_path / "README.md").write_text(f"# Rings\n{text}")

    told = [each for each in scout(tmp_path).warnings if "requirements.txt" in each]

    if not names:
        assert told == []
        return
    (warning,) = told
    assert warning.startswith("README.md, line 2 installs packages")
    (command,) = re.findall(r"`(printf .*)`", warning)
    assert command == f"printf '%s\\n' {names} > requirements.txt"
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    found = scout(tmp_path)
    assert found.packages.file == "requirements.txt"
    assert not any("requirements.txt" in each for each in found.warnings)
