"""`rabaska pack`: datasets of a project, or folders given by name, by the front door."""

import json
import os
from pathlib import Path

import pytest

from rabaska.cli import main

PROJECT = """\
command = "python train.py {data}"

[data.both]
path = "train"
beside = ["val"]
samples = true
"""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "home"))
    here = tmp_path / "project"
    for name in ("train/1.jpg", "train/1.cls", "train/2.jpg", "train/2.cls", "val/3.jpg"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(name)
    monkeypatch.chdir(here)
    return here


def rabaska(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def names_in(dataset: str, capfd) -> list[str]:
    capfd.readouterr()
    assert rabaska("data", "ls", dataset, "--json") == 0
    return [each["name"] for each in json.loads(capfd.readouterr().out)]


def test_folders_become_one_dataset_side_by_side_without_a_project(folder, capfd):
    assert rabaska("pack", "train", "val", "--name", "all", "--samples") == 0

    said = capfd.readouterr().err
    assert "3 samples of .cls, .jpg" in said
    assert "1 of them has other files, such as val/3" in said
    assert names_in("all", capfd)[:2] == ["train/1.cls", "train/1.jpg"]
    assert "val/3.jpg" in names_in("all", capfd)


def test_a_project_names_folders_that_lie_beside(folder, capfd):
    (folder / "rabaska.toml").write_text(PROJECT)

    assert rabaska("pack", "both") == 0

    assert "3 samples of .cls, .jpg" in capfd.readouterr().err
    assert "val/3.jpg" in names_in("both", capfd)


def test_a_folder_beside_that_is_not_there_is_named_with_its_line(folder, capfd):
    (folder / "rabaska.toml").write_text(PROJECT.replace('"val"', '"vel"'))

    assert rabaska("pack") == 3

    assert f"no folder {folder / 'vel'} for dataset `both` in rabaska.toml, line 5" in (
        capfd.readouterr().err
    )


def test_an_unknown_dataset_says_which_there_are(folder, capfd):
    (folder / "rabaska.toml").write_text(PROJECT)

    assert rabaska("pack", "bath") == 2

    said = capfd.readouterr().err
    assert "there is no dataset or folder `bath`" in said
    assert "the datasets in rabaska.toml are: both" in said


@pytest.mark.parametrize(("content", "said"), [("text", "shrinks to"), ("noise", "does not")])
def test_it_is_measured_and_said_whether_compressing_pays(folder, capfd, content, said):
    data = b"a line of text\n" * 10**6 if content == "text" else os.urandom(10**7)
    (folder / "val" / "large").write_bytes(data)

    assert rabaska("pack", "val") == 0

    assert said in capfd.readouterr().err


@pytest.mark.parametrize("words", [("/nope", "--name", "x"), ("/nope",), ("nope",), ("a/nope",)])
@pytest.mark.parametrize("project", [False, True])
def test_a_folder_that_is_not_there_is_said_so(folder, capfd, words, project):
    if project:
        (folder / "rabaska.toml").write_text('command = "python train.py"')
        (folder / "train.py").touch()

    known_word = project and words == ("nope",)
    assert rabaska("pack", *words) == (2 if known_word else 4)

    told = capfd.readouterr().err
    assert "nope" in told
    assert "rabaska.toml in" not in told
