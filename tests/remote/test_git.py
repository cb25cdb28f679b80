"""Which files of a project are its own, as git sees it."""

import subprocess

from rabaska.remote.git import own_files


def test_ignored_files_are_not_the_projects_own(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("scratch/\n")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "big.bin").write_text("")

    assert sorted(own_files(tmp_path)) == [".gitignore", "train.py"]


def test_outside_of_git_everything_is(tmp_path):
    assert own_files(tmp_path) is None


def test_inside_an_ignored_folder_everything_is(tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("*\n")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "train.py").write_text("")

    assert own_files(tmp_path / "project") is None
