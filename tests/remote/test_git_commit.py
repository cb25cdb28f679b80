"""Which commit a project is at, and whether its files are that commit's."""

import os
import subprocess

import pytest

from rabaska.remote.git_commit import Revision, revision

WHO = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a"}


def git(folder, *words):
    variables = {**os.environ, **WHO, "GIT_COMMITTER_EMAIL": "a"}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=variables, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "link").symlink_to("train.py")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_folder_outside_of_git_has_no_commit(tmp_path):
    assert revision(tmp_path) == Revision()


def test_a_project_without_changes_is_clean(project):
    (project / "results").mkdir()
    (project / "results" / "fetched").touch()

    assert revision(project) == Revision(git(project, "rev-parse", "HEAD"), "clean")


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "train.py").write_text("print(2)\n"),
        lambda folder: (folder / "train.py").unlink(),
        lambda folder: (folder / "new.py").touch(),
        lambda folder: git(folder, "mv", "train.py", "other.py"),
    ],
)
def test_a_changed_a_missing_or_a_new_file_is_a_change(project, change):
    change(project)

    assert revision(project).tree == "changed"


def test_line_ends_are_no_change(project):
    (project / "train.py").write_bytes(b"print(1)\r\n")

    assert revision(project).tree == "clean"


def test_no_filter_of_the_repository_is_started(project):
    (project / ".gitattributes").write_text("*.py filter=evil\n")
    git(project, "config", "filter.evil.clean", f"touch {project}/started; cat")
    (project / "train.py").write_text("print(3)\n")

    assert revision(project).tree == "changed"  # by the new file
    assert not (project / "started").exists()


def test_a_project_below_the_top_is_compared_with_its_own_files(project):
    (project / "below").mkdir()
    (project / "below" / "a.py").touch()
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "second")
    (project / "train.py").write_text("print(4)\n")

    assert revision(project / "below").tree == "clean"


def test_what_a_filter_stores_otherwise_is_no_change(project):
    (project / ".gitattributes").write_text("*.bin filter=lfs\n*.py -filter\n")
    git(project, "config", "filter.lfs.clean", "echo pointer")
    (project / "model.bin").write_text("weights")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "second")

    assert revision(project).tree == "clean"

    (project / "train.py").write_text("print(2)\n")
    assert revision(project).tree == "changed"


def test_a_project_in_a_folder_that_git_ignores_is_of_no_commit(project):
    (project / ".gitignore").write_text("inner/\n")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "second")
    inner = project / "inner"
    inner.mkdir()
    (inner / "train.py").touch()

    assert revision(inner) == Revision()
