"""`rabaska pack` by its quick path: the same words, the same refusals, and less imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = 'command = "python train.py"\n[data.animals]\npath = "animals"\n'
# What takes long to import and says nothing about packing.
HEAVY = {"click", "pydantic", "rich", "rabaska.settings.project_file", "rabaska.views.runs"}


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "animals" / "cats").mkdir(parents=True)
    (folder / "animals" / "cats" / "1.jpg").write_bytes(b"a cat")
    (folder / "train.py").write_text("")
    (folder / "rabaska.toml").write_text(PROJECT)
    return folder


def typed(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ, RABASKA_HOME=str(project.parent / "home"))
    command = [sys.executable, "-m", "rabaska", "pack", *words]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )


def test_the_first_pack_is_checked_meanwhile_and_the_next_by_a_note(project):
    first = typed(project)
    next_one = typed(project)

    assert (first.returncode, next_one.returncode) == (0, 0), first.stderr + next_one.stderr
    assert "data animals: 1 file, 5 bytes, packed as animals-" in first.stderr
    assert "animals-" in next_one.stderr
    (note,) = (project.parent / "home" / "checked").glob("datasets-*.json")
    assert json.loads(note.read_text())["datasets"][0]["name"] == "animals"


def test_a_pack_that_was_noted_imports_little(project):
    typed(project)
    program = (
        "import sys\nfrom rabaska.cli import main\n"
        "try:\n    main(['pack', '-q'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    environment = dict(os.environ, RABASKA_HOME=str(project.parent / "home"))

    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=project, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert ended.stdout == "[]\n"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (PROJECT + "[resources]\nwalltime = 'soon'\n", "walltime"),
        (PROJECT.replace('"animals"', '"animal"'), "animal"),
        (PROJECT + "no_such_key = 1\n", "no_such_key"),
    ],
)
def test_a_mistake_is_named_as_every_command_names_it(project, changed, said):
    """Also where an earlier content of the file was noted as good."""
    typed(project)
    (project / "rabaska.toml").write_text(changed)

    refused = typed(project)

    assert refused.returncode == 3
    assert said in refused.stderr
    assert "packed as" not in refused.stderr
    assert refused.stdout == ""


def test_a_folder_that_was_removed_since_is_named(project):
    typed(project)
    (project / "animals").rename(project / "beasts")

    refused = typed(project)

    assert refused.returncode == 3
    assert "no folder" in refused.stderr
