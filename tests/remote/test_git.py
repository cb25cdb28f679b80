"""Which files of a project are its own, as git sees it."""

import subprocess
from contextlib import suppress

from rabaska.errors import CommandFailed
from rabaska.remote.programs import own_files


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


def test_a_project_of_somebody_else_starts_no_program_of_theirs(tmp_path):
    """Looking at a project is not running it: a `.git` folder may name programs."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "train.py").write_text("")
    (tmp_path / ".gitattributes").write_text("*.py filter=theirs diff=theirs\n")
    subprocess.run(["git", "-C", tmp_path, "add", "-A"], check=True)
    ran = tmp_path / ".git" / "ran"
    hook = tmp_path / ".git" / "theirs"
    hook.write_text(f'#!/bin/sh\necho "$0 $@" >> {ran}\n')
    hook.chmod(0o755)
    for hooked in ("post-index-change", "query-watchman", "fsmonitor-watchman"):
        (tmp_path / ".git" / "hooks" / hooked).symlink_to(hook)
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "diff.external",
                 "filter.theirs.clean", "filter.theirs.process", "diff.theirs.textconv",
                 "core.alternateRefsCommand", "pager.ls-files", "alias.ls-files"):  # fmt: skip
        subprocess.run(["git", "-C", tmp_path, "config", name, str(hook)], check=True)
    (tmp_path / "train.py").write_text("changed")

    assert sorted(own_files(tmp_path)) == [".gitattributes", "train.py"]
    assert not ran.exists(), ran.read_text()


def test_a_file_that_git_lacks_is_not_fetched_by_a_program_of_the_project(tmp_path):
    """Rules that are only in the index are read from objects, and missing ones are fetched."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "train.py").write_text("")
    (tmp_path / ".gitignore").write_text("scratch\n")
    git = ["git", "-C", tmp_path]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "update-index", "--skip-worktree", ".gitignore"], check=True)
    (tmp_path / ".gitignore").unlink()
    for path in (tmp_path / ".git" / "objects").glob("??/*"):
        path.unlink()
    ran = tmp_path / ".git" / "ran"
    for name, value in (
        ("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "theirs"),
        ("remote.theirs.promisor", "true"), ("remote.theirs.url", f"ext::sh -c touch% {ran}"),
        ("protocol.ext.allow", "always"),
    ):  # fmt: skip
        subprocess.run([*git, "config", name, value], check=True)
    (tmp_path / "new.py").write_text("")

    with suppress(CommandFailed):
        own_files(tmp_path)

    assert not ran.exists()
