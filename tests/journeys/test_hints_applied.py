"""No hint leads to the same error again: each is followed literally, and the command then works."""

import os
import re

import pytest

from rabaska.errors import RabaskaError

TRAIN = "for epoch in range(3):\n    print('epoch', epoch)\n"
SETTINGS = """name = "tiny"
command = "python train.py {data}"
[data.digits]
path = "data/digits"
[resources]
walltime = "1h"
"""
DRY = ("run", "--dry-run")


@pytest.fixture
def project(laptop):
    folder = laptop.project
    (folder / "data" / "digits").mkdir(parents=True)
    (folder / "data" / "digits" / "1.txt").write_text("1")
    (folder / "train.py").write_text(TRAIN)
    (folder / "requirements.txt").write_text("")
    (folder / "rabaska.toml").write_text(SETTINGS)
    return laptop


def refusal(laptop, *words):
    with pytest.raises(RabaskaError) as refused:
        laptop.types(*words)
    return " ".join([refused.value.what, refused.value.hint or ""])


def edit(laptop, old, new):
    file = laptop.project / "rabaska.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))


MISSPELT = {
    "a key": ("walltime", "waltime"),
    "a table": ("[resources]", "[resource]"),
    "a dataset's folder": ("data/digits", "data/digts"),
    "a script": ("train.py", "trian.py"),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_what_is_misspelt_in_the_settings_is_named_as_it_is_spelt(project, what):
    right, wrong = MISSPELT[what]
    edit(project, right, wrong)

    (meant,) = re.findall(r"did you mean `([^`]+)`", refusal(project, *DRY))

    last = wrong.strip("[]").rpartition("/")[2]
    edit(project, last, meant)
    assert "train.py" in project.types(*DRY)


def test_a_misspelt_cluster_is_named_as_it_is_spelt(project):
    (meant,) = re.findall(r"did you mean `([^`]+)`", refusal(project, *DRY, "--on", "hree"))

    assert "train.py" in project.types(*DRY, "--on", meant)


LINES = {
    "current next to requirements": (
        '[environment]\nkind = "current"\nrequirements = "requirements.txt"\n',
        'kind = "current"',
    ),
    "two sources of a dataset": ('[data.more]\npath = "data/digits"\nas = "shard"\n', '"shard"'),
}


@pytest.mark.parametrize("what", LINES)
def test_a_line_that_cannot_be_is_told_with_one_that_can(project, what):
    more, wrong = LINES[what]
    file = project.project / "rabaska.toml"
    file.write_text(file.read_text().replace("{data}", "{data.digits}") + more)

    told = refusal(project, *DRY)

    (right,) = re.findall(r"write `([^`]+)` there instead|did you mean `([^`]+)`", told)
    word = "".join(right)
    edit(project, wrong, word if "=" in word else f'"{word}"')
    assert "train.py" in project.types(*DRY)


def test_a_path_of_this_computer_is_named_by_path(project):
    edit(project, 'path = "data/digits"', 'at = "data/digits"')

    (key,) = re.findall(r"data on this computer is named by `(\w+)`", refusal(project, *DRY))

    edit(project, "at =", f"{key} =")
    assert "train.py" in project.types(*DRY)


def test_a_link_in_a_dataset_is_followed_by_the_line_that_is_named(project, tmp_path):
    (tmp_path / "far.txt").write_text("far")
    os.symlink(tmp_path / "far.txt", project.project / "data" / "digits" / "far.txt")

    (line,) = re.findall(r"set `(follow_links = true)`", refusal(project, "pack"))

    edit(project, "[resources]", f"{line}\n[resources]")
    assert "digits-" in project.types("pack", both=True)


def hinted(told):
    """The commands that a hint names, but for those with a word to fill in."""
    return [each.split() for each in re.findall(r"`rabaska ([^`A-Z]+)`", told)]


def test_without_settings_the_command_that_is_named_writes_them(project):
    (project.project / "rabaska.toml").unlink()

    (command,) = hinted(refusal(project, *DRY))

    project.types(*command, "--yes")
    assert "train.py" in project.types(*DRY)
    (again,) = hinted(refusal(project, "init", "--yes"))
    project.types(*again, "--yes")


def test_a_pack_that_is_not_there_is_made_by_the_command_that_is_named(project):
    (command,) = hinted(refusal(project, "data", "verify", "digits"))

    project.types(*command)
    assert "is complete" in project.types("data", "verify", "digits", both=True)


def test_files_that_would_be_overwritten_go_where_the_hint_says(project):
    project.types("pack")
    words = ("data", "extract", "digits", "--into", "out")
    project.types(*words)
    for file in project.project.glob("out/**/1.txt"):
        file.write_text("mine")

    assert "choose another folder with `--into`" in refusal(project, *words)
    assert "1" in project.types(*words[:-1], "other", both=True)


def test_a_pack_that_is_damaged_is_repaired_by_the_command_that_is_named(project):
    project.types("pack")
    (shard,) = project.user.home.glob("store/packs/digits-*/shard-00000.tar")
    times = (shard.stat().st_atime_ns, shard.stat().st_mtime_ns)
    content = bytearray(shard.read_bytes())
    content[513] ^= 255
    shard.write_bytes(content)
    os.utime(shard, ns=times)

    (command,) = hinted(refusal(project, "data", "verify"))

    project.types(*command)
    assert "is complete" in project.types("data", "verify", both=True)


@pytest.mark.slow
def test_runs_that_cannot_be_found_resumed_or_deleted(project):
    """One run for all of them: each costs a second."""
    (start, *_) = hinted(refusal(project, "status"))
    run = project.types(*start, "-q")
    project.types("wait", run, "-q")

    for command in hinted(refusal(project, "status", "nobody")):
        assert run in project.types(*command)
    fetch, rerun = re.findall(r"`rabaska ([^`]+)`", refusal(project, "resume", run))
    project.types(*fetch.split())
    assert f"rerun {run} --from-checkpoint" in rerun
    (other,) = re.findall(r"`rabaska (fetch [^`]+)`", refusal_of_others_folder(project, run))
    project.types(*other.split())
    assert "`--yes` deletes at once" in refusal(project, "delete", run)
    project.types("delete", run, "--yes")


def refusal_of_others_folder(laptop, run):
    """What is said to somebody who fetches a second run into the folder of the first."""
    second = laptop.types("run", "-q")
    laptop.types("wait", second, "-q")
    return refusal(laptop, "fetch", second, "--to", str(laptop.project / "results" / run))
