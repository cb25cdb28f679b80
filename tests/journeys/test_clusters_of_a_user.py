"""A project's own cluster; profiles that are edited and removed."""

import sys

import pytest
from click.testing import CliRunner

from rabaska.cli.commands import rabaska
from rabaska.errors import SettingsError, WrongUse

PROFILE = 'title = "Campus"\nscheduler = "slurm"\n[reach]\nhost = "ada@login.campus.example"\n'


@pytest.fixture
def campus(laptop):
    file = laptop.user.home / "clusters" / "campus.toml"
    file.parent.mkdir(parents=True)
    file.write_text(PROFILE)
    return file


def edit_with(laptop, monkeypatch, script):
    editor = laptop.user.home.parent / "editor.py"
    editor.write_text(f"import sys\npath = sys.argv[1]\n{script}\n")
    monkeypatch.setenv("VISUAL", f"{sys.executable} {editor}")


def test_a_project_has_a_cluster_of_its_own(laptop, campus):
    assert laptop.types("use") == "here"

    laptop.types("use", "campus")

    assert laptop.types("use") == "campus"
    with pytest.raises(Exception, match="campus"):
        laptop.types("run", "-q")
    assert laptop.types("run", "-q", "--on", "here").startswith("tiny-")


def test_an_unknown_cluster_names_the_nearest_and_how_to_add_it(laptop, campus):
    for words in (["use", "campu"], ["run", "--on", "campu"], ["clusters", "remove", "campu"]):
        with pytest.raises(SettingsError) as refused:
            laptop.types(*words, *(["--yes"] if words[-2] == "remove" else []))

        assert "did you mean `campus`?" in refused.value.hint
        assert "`rabaska clusters add campu --host" in refused.value.hint


def test_an_edited_profile_replaces_the_old_one(laptop, campus, monkeypatch):
    edit_with(laptop, monkeypatch, "open(path, 'a').write('python = \"python3.9\"\\n')")
    campus.write_text(PROFILE.partition("[reach]")[0])

    laptop.types("clusters", "edit", "campus")

    assert 'python = "python3.9"' in campus.read_text()


def test_a_mistake_is_shown_with_its_line_and_the_profile_stays(laptop, campus, monkeypatch):
    edit_with(laptop, monkeypatch, "open(path, 'a').write('hosst = 1\\n')")

    with pytest.raises(SettingsError, match="line 5") as refused:
        laptop.types("clusters", "edit", "campus")

    assert campus.read_text() == PROFILE
    assert "campus.toml.rejected" in refused.value.hint
    assert "hosst" in campus.with_suffix(".toml.rejected").read_text()


def test_a_built_in_profile_is_copied_when_it_is_edited_and_comes_back(laptop, monkeypatch):
    edit_with(laptop, monkeypatch, "open(path, 'a').write('# mine\\n')")

    laptop.types("clusters", "edit", "narval")

    own = laptop.user.home / "clusters" / "narval.toml"
    assert own.read_text().endswith("# mine\n")
    assert "comes with rabaska" in laptop.types("clusters", "remove", "narval", "--yes", both=True)
    assert not own.exists()
    with pytest.raises(WrongUse, match="cannot be removed"):
        laptop.types("clusters", "remove", "narval", "--yes")


def test_a_cluster_is_removed_only_with_a_yes(laptop, campus):
    with pytest.raises(WrongUse, match="nothing was removed"):
        laptop.types("clusters", "remove", "campus")

    laptop.types("clusters", "remove", "campus", "--yes")

    assert not campus.exists()


def test_a_cluster_with_an_active_run_stays_unless_forced(laptop, campus):
    campus.write_text('title = "Campus"\nscheduler = "local"\n')
    laptop.says("60", command="sleep")
    run = laptop.types("run", "-q", "--on", "campus")

    with pytest.raises(WrongUse, match="not over"):
        laptop.types("clusters", "remove", "campus", "--yes")
    assert campus.exists()
    said = laptop.types("clusters", "remove", "campus", "--yes", "--force", both=True)

    assert f"dropped from the list, their folders stay there: {run}" in said
    assert not campus.exists()
    assert "no runs" in str(CliRunner().invoke(rabaska, ["status"]).exception)


def test_a_profile_behind_a_link_is_edited_where_it_is(laptop, campus, monkeypatch):
    kept = campus.with_name("dotfiles.txt")
    campus.rename(kept)
    campus.symlink_to(kept)
    edit_with(laptop, monkeypatch, "open(path, 'a').write('# mine\\n')")

    laptop.types("clusters", "edit", "campus")

    assert campus.is_symlink()
    assert kept.read_text().endswith("# mine\n")


def test_a_profile_that_changed_while_it_was_edited_is_not_overwritten(laptop, campus, monkeypatch):
    edit_with(
        laptop,
        monkeypatch,
        f"open(path, 'a').write('# mine\\n'); open({str(campus)!r}, 'a').write('# theirs\\n')",
    )

    with pytest.raises(WrongUse, match="was changed meanwhile") as refused:
        laptop.types("clusters", "edit", "campus")

    assert campus.read_text().endswith("# theirs\n")
    assert "campus.toml.rejected" in refused.value.hint
    assert campus.with_name("campus.toml.rejected").read_text().endswith("# mine\n")


def test_an_editor_that_removes_the_file_is_no_traceback(laptop, campus, monkeypatch):
    edit_with(laptop, monkeypatch, "import os; os.remove(path)")

    assert "nothing was changed" in laptop.types("clusters", "edit", "campus", both=True)
    assert campus.read_text() == PROFILE
