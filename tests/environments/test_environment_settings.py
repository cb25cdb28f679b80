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


def of(folder, cluster, text):
    (folder / "rabaska.toml").write_text(f'command = "python t.py"\n{text}')
    return load(folder, cluster=cluster).environment


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-train.txt"])
def test_a_cluster_gets_a_virtualenv_of_the_listed_packages_and_this_computer_does_not(
    tmp_path, name
):
    (tmp_path / name).write_text("numpy\n")

    assert of(tmp_path, "narval", "").kind == "virtualenv"
    assert of(tmp_path, "narval", "").requirements == "numpy\n"
    assert of(tmp_path, "here", "").kind == "current"


def test_a_project_without_a_list_runs_in_the_python_of_the_cluster(tmp_path):
    assert of(tmp_path, "narval", "").kind == "current"


def test_current_is_for_this_computer_unless_a_cluster_is_said_to_have_it(tmp_path):
    (tmp_path / "requirements.txt").write_text("numpy\n")
    general = '[environment]\nkind = "current"\n'

    assert of(tmp_path, "narval", general).kind == "virtualenv"
    assert of(tmp_path, "here", general).kind == "current"
    assert of(tmp_path, "narval", f'{general}modules = ["python"]\n').kind == "current"
    own = '[cluster.narval.environment]\nkind = "current"\n'
    assert of(tmp_path, "narval", own).kind == "current"


@pytest.mark.parametrize("table", ["environment", "cluster.narval.environment"])
def test_current_beside_requirements_is_a_contradiction_with_the_line_to_replace(tmp_path, table):
    (tmp_path / "requirements.txt").write_text("numpy\n")
    text = f'[{table}]\nrequirements = "requirements.txt"\nkind = "current"\n'

    with pytest.raises(SettingsError) as refused:
        of(tmp_path, "narval", text)

    assert '`kind = "current"` next to `requirements` in rabaska.toml, line 4' in str(refused.value)
    replaced = text.replace('kind = "current"', 'kind = "virtualenv"')
    assert 'write `kind = "virtualenv"` there instead' in str(refused.value)
    assert of(tmp_path, "narval", replaced).kind == "virtualenv"
