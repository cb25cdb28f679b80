"""Our folder on this computer: nobody else can change what it holds."""

import grp  # noqa: F401 - now: the user that we become may not read where Python keeps it
import os
import stat

import pytest

from rabaska.errors import SettingsError
from rabaska.records import home as records

ALICE, MALLORY, STAFF = 4241, 4242, 4243  # any numbers will do: no names are needed for them

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be several users")


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A folder of root's in which alice, who we are from here on, and all others may write."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o777 == 0o700:
            folder.chmod(0o755)
    place = made(tmp_path / "shared", 0, 0o1777)
    os.seteuid(0)
    monkeypatch.setattr(os, "getuid", lambda: ALICE)
    os.seteuid(ALICE)
    yield place
    os.seteuid(0)


def made(path, owner, mode, group=None):
    before = os.geteuid()
    os.seteuid(0)
    path.mkdir()
    os.chown(path, owner, owner if group is None else group)
    path.chmod(mode)
    os.seteuid(before)
    return path


def opened(folder, monkeypatch):
    monkeypatch.setenv("RABASKA_HOME", str(folder))
    return records.home()


def refused(folder, monkeypatch):
    with pytest.raises(SettingsError) as caught:
        opened(folder, monkeypatch)
    return str(caught.value)


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o2770], ids=oct)
def test_a_folder_of_roots_where_others_may_write_is_refused(shared, monkeypatch, mode):
    home = made(shared / "home", 0, mode, STAFF)

    assert f"others may write to {home}" in refused(home, monkeypatch)


@pytest.mark.parametrize("room", ["clusters", "store", "runs"])
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777], ids=oct)
def test_a_room_of_somebody_else_is_refused(shared, monkeypatch, room, mode):
    home = made(shared / "home", ALICE, 0o755)
    made(home / room, MALLORY, mode)

    assert f"{home}/{room} belongs to another user" in refused(home, monkeypatch)


def test_a_room_that_leads_to_somebody_else_is_refused(shared, monkeypatch):
    home = made(shared / "home", ALICE, 0o700)
    (home / "store").symlink_to(made(shared / "theirs", MALLORY, 0o755))

    assert f"{home}/store belongs to another user" in refused(home, monkeypatch)


def test_a_room_that_others_can_reach_and_write_to_is_refused(shared, monkeypatch):
    home = made(shared / "home", ALICE, 0o755)
    made(home / "clusters", ALICE, 0o777)

    assert f"others may write to {home}/clusters" in refused(home, monkeypatch)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o2775], ids=oct)
def test_a_folder_with_other_things_is_refused_where_others_may_write(shared, monkeypatch, mode):
    home = made(shared / "home", ALICE, mode, STAFF)
    made(home / "mine", ALICE, 0o700)

    assert f"others may write to {home}" in refused(home, monkeypatch)


def test_a_folder_above_that_anybody_could_have_made_is_refused(shared, monkeypatch):
    made(shared / "alice", MALLORY, 0o755)
    home = made(shared / "alice" / "home", ALICE, 0o700)

    assert f"{shared}/alice belongs to another user" in refused(home, monkeypatch)


def test_a_folder_above_in_which_everybody_may_rename_is_refused(shared, monkeypatch):
    home = made(shared / "home", ALICE, 0o700)
    os.seteuid(0)
    shared.chmod(0o777)
    os.seteuid(ALICE)

    assert f"everybody may rename {home}" in refused(home, monkeypatch)


def test_a_link_that_somebody_else_laid_is_refused(shared, monkeypatch):
    made(shared / "real", ALICE, 0o700)
    (shared / "link").symlink_to(shared / "real")
    os.seteuid(0)
    os.lchown(shared / "link", MALLORY, MALLORY)
    os.seteuid(ALICE)

    assert f"{shared}/link belongs to another user" in refused(shared / "link", monkeypatch)


def test_what_is_only_readable_is_closed_and_used(shared, monkeypatch):
    home = made(shared / "home", ALICE, 0o755)
    made(home / "runs", ALICE, 0o755)

    assert opened(home, monkeypatch).folder == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


def test_a_home_in_a_colleagues_project_folder_is_used(shared, monkeypatch):
    os.seteuid(0)
    shared.chmod(0o755)
    project = made(shared / "def-prof", MALLORY, 0o2770, STAFF)
    project.chmod(0o2775)
    home = made(project / "home", ALICE, 0o700)
    os.seteuid(ALICE)

    assert opened(home, monkeypatch).folder == home


def test_what_is_not_there_yet_can_be_made(shared, monkeypatch):
    assert opened(shared / "home", monkeypatch).folder == shared / "home"
