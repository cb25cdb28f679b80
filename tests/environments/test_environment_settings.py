"""[environment] in rabaska.toml, as it becomes a recipe."""

import pytest

from rabaska.errors import SettingsError
from rabaska.settings.project_file import load


@pytest.fixture
def recipe(tmp_path):
    """The project of a rabaska.toml with these lines under [environment]."""

    def project(text):
        (tmp_path / "rabaska.toml").write_text(f'command = "python t.py"\n[environment]\n{text}')
        return load(tmp_path, cluster="here")

    return project


def test_a_packed_environment_in_the_project_travels_but_not_as_code(recipe, tmp_path):
    (tmp_path / "env.tar.gz").touch()

    project = recipe('kind = "packed"\npath = "./env.tar.gz"\n')

    assert project.environment.here == tmp_path / "env.tar.gz"
    assert "/env.tar.gz" in project.exclude


@pytest.mark.parametrize("path", ["/opt/env.tar", "~/env", "$SCRATCH/env.tar.gz"])
def test_any_other_path_is_the_clusters(recipe, path):
    project = recipe(f'kind = "packed"\npath = "{path}"\n')

    assert project.environment.here is None
    assert project.environment.path == path


def test_an_archive_that_is_not_there_is_told_with_its_line(recipe):
    with pytest.raises(SettingsError) as refused:
        recipe('kind = "packed"\npath = "gone.tar"\n')

    assert "no readable archive or environment `gone.tar` in rabaska.toml, line 4" in str(
        refused.value
    )


def test_packed_needs_a_path(recipe):
    with pytest.raises(SettingsError, match=r'`kind = "packed"` in rabaska.toml, line 3'):
        recipe('kind = "packed"\n')


def test_where_it_is_built_is_a_choice_of_two(recipe):
    with pytest.raises(SettingsError, match="it can be `job`, `once`"):
        recipe('build = "sometimes"\n')
