"""Cluster profiles: built in, the user's own, and wrong ones."""

import pytest

from rabaska.domain.clusters import Cluster
from rabaska.errors import SettingsError
from rabaska.settings.profile_files import names
from rabaska.settings.profiles import load_cluster
from rabaska.steps.probe_site import profile_questions

BELUGA = """\
title = "Béluga"
scheduler = "slurm"
python = "python3.6"
source = "the site's wiki"
checked = "2026-11-15"
notes = ["No internet on compute nodes."]

[reach]
host = "beluga"

[storage]
store = "$SCRATCH/rabaska"
local = "$SLURM_TMPDIR"

[variables]
HF_HUB_OFFLINE = 1
"""


@pytest.fixture
def profiles(tmp_path):
    (tmp_path / "beluga.toml").write_text(BELUGA, "utf-8")
    return tmp_path


def test_this_computer_is_always_known():
    here = load_cluster("here")

    assert here.is_here
    assert here.scheduler == "local"
    assert here.source
    assert here.checked


@pytest.mark.parametrize("name", names())
def test_every_built_in_profile_is_right(name):
    assert load_cluster(name).name == name


def test_a_profile_of_the_users_own_is_read(profiles):
    cluster = load_cluster("beluga", user_profiles=profiles)

    assert cluster == Cluster(
        name="beluga",
        title="Béluga",
        scheduler="slurm",
        host="beluga",
        store="$SCRATCH/rabaska",
        local_space="$SLURM_TMPDIR",
        python="python3.6",
        source="the site's wiki",
        checked="2026-11-15",
        notes=("No internet on compute nodes.",),
        variables={"HF_HUB_OFFLINE": "1"},
    )


def test_the_users_own_profile_wins_over_the_built_in_one(profiles):
    (profiles / "here.toml").write_text('title = "My workstation"\nscheduler = "local"\n')

    assert load_cluster("here", user_profiles=profiles).title == "My workstation"


def test_this_computer_is_named_first(profiles):
    (profiles / "abacus.toml").write_text(BELUGA)

    known = names(profiles)

    assert known[0] == "here"
    assert {"abacus", "beluga"} < set(known)


def test_a_folder_of_profiles_that_does_not_exist_holds_none(tmp_path):
    assert names(tmp_path / "nowhere") == names()


def test_an_unknown_cluster_offers_the_nearest(profiles):
    with pytest.raises(SettingsError) as refused:
        load_cluster("belgua", user_profiles=profiles)

    assert str(refused.value) == (
        "unknown cluster `belgua`\n  hint: did you mean `beluga`? "
        "`rabaska clusters add belgua --host USER@LOGIN-NODE` adds a new one"
    )


def test_a_name_cannot_lead_out_of_the_folder(profiles):
    below = profiles / "below"
    below.mkdir()

    with pytest.raises(SettingsError, match="unknown cluster"):
        load_cluster("../beluga", user_profiles=below)


def test_an_unknown_key_is_told_with_its_line(profiles):
    file = profiles / "beluga.toml"
    file.write_text(BELUGA.replace("[storage]", "[stroage]"), "utf-8")

    with pytest.raises(SettingsError) as refused:
        load_cluster("beluga", user_profiles=profiles)

    assert str(refused.value) == (
        f"unknown key `stroage` in {file}, line 11; did you mean `storage`?"
    )


def test_a_profile_without_a_scheduler_is_refused(profiles):
    (profiles / "beluga.toml").write_text('title = "Béluga"\n', "utf-8")

    with pytest.raises(SettingsError, match="no `scheduler` in"):
        load_cluster("beluga", user_profiles=profiles)


@pytest.mark.parametrize("name", ["A=B", "1ST", "", "A B", "A\\u0000B", "é"])
def test_what_cannot_be_the_name_of_a_variable_is_refused(profiles, name):
    changed = BELUGA.replace("HF_HUB_OFFLINE", f'"{name}"')
    (profiles / "beluga.toml").write_text(changed, "utf-8")

    with pytest.raises(SettingsError, match="cannot be the name of an environment variable"):
        load_cluster("beluga", user_profiles=profiles)


def test_a_command_of_spaces_is_none(profiles):
    changed = BELUGA.replace("[storage]", '[storage]\nquota = " "')
    (profiles / "beluga.toml").write_text(changed, "utf-8")

    cluster = load_cluster("beluga", user_profiles=profiles)

    assert cluster.quota == ""
    assert "quota" not in profile_questions(cluster)
