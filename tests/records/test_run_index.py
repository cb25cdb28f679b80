"""What this computer remembers of its runs."""

from pathlib import Path

import pytest

from rabaska.domain.clusters import Observations, ProfileFact
from rabaska.errors import NoSuchRun
from rabaska.records.caches import cache_observations, cached_observations
from rabaska.records.home import home
from rabaska.records.run_index import RunRecord, adopt, find, forget, remember, remembered


def record(name, created, project="/p"):
    return RunRecord(name, "here", f"/store/runs/{name}", project, created)


@pytest.fixture
def folder(tmp_path):
    for number, name in enumerate(["cats-7f3a", "cats-7f99", "dogs-0001"]):
        project = "/dogs" if name.startswith("dogs") else "/cats"
        adopt(tmp_path, record(name, float(number), project))
    return tmp_path


def test_runs_are_listed_oldest_first(folder):
    assert [each.name for each in remembered(folder)] == ["cats-7f3a", "cats-7f99", "dogs-0001"]


def test_a_name_can_be_shortened_while_it_is_unambiguous(folder):
    assert find(folder, "dog").name == "dogs-0001"
    assert find(folder, "cats-7f3").name == "cats-7f3a"


def test_an_ambiguous_name_lists_what_it_could_mean(folder):
    with pytest.raises(NoSuchRun, match="cats-7f3a, cats-7f99"):
        find(folder, "cats")


def test_without_a_name_the_newest_run_of_the_project_is_meant(folder):
    assert find(folder, project=Path("/cats")).name == "cats-7f99"
    assert find(folder, project=Path("/elsewhere")).name == "dogs-0001"


def test_an_unknown_name_says_how_to_list_the_known_ones(folder):
    with pytest.raises(NoSuchRun) as caught:
        find(folder, "birds")

    assert "rabaska status --all" in caught.value.hint


def test_no_runs_at_all_says_how_to_start_one(tmp_path):
    with pytest.raises(NoSuchRun, match="no runs yet"):
        find(tmp_path / "nowhere")


def test_a_damaged_record_does_not_hide_the_others(folder):
    (folder / "broken.json").write_text('{"name": ')
    (folder / "older.json").write_text('{"name": "x", "shape": "other"}')

    assert len(remembered(folder)) == 3


def test_a_forgotten_run_is_no_longer_listed(folder):
    dogs = find(folder, "dogs-0001")

    forget(folder, dogs)
    remember(folder, dogs)  # a command that was at work meanwhile

    assert "dogs-0001" not in [each.name for each in remembered(folder)]


def test_the_home_folder_follows_its_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("RABASKA_HOME", str(tmp_path / "elsewhere"))

    assert home().runs == tmp_path / "elsewhere" / "runs"


def test_without_the_variable_it_is_the_platforms_usual_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("RABASKA_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert home().folder == tmp_path / "rabaska"


def test_what_a_cluster_showed_is_remembered_until_its_profile_changes(tmp_path):
    profile = tmp_path / "site.toml"
    profile.write_text('title = "A site"\n')
    seen = Observations(
        "2026-11-15", (ProfileFact("python", "python3", "ok"),), accounts=("proj",), internet=False
    )

    cache_observations(tmp_path / "seen", profile, seen)

    assert cached_observations(tmp_path / "seen", profile) == seen
    profile.write_text('title = "Another site"\n')
    assert cached_observations(tmp_path / "seen", profile) is None


def test_a_damaged_memory_of_a_cluster_is_none(tmp_path):
    profile = tmp_path / "site.toml"
    profile.write_text("")
    cache_observations(tmp_path / "seen", profile, Observations("2026-11-15"))
    for file in (tmp_path / "seen").iterdir():
        file.write_text("{")

    assert cached_observations(tmp_path / "seen", profile) is None
