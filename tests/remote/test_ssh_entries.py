"""Entries for ssh: a cluster that lies about its user cannot keep ssh from other hosts."""

import os
import stat
import subprocess

import pytest

from rabaska.errors import CommandFailed
from rabaska.remote import ssh_entries


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "ssh" / "c0ffee"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize("user", ["ada", "ada.l-1", "UNI\\ada", "ada@uni.example"])
def test_ssh_reads_the_entry_of_a_run(folder, user):
    config = ssh_entries.write_entry(folder, "rabaska-cats-1", user, ["true", "a b"])

    words = ["ssh", "-F", str(config), "-G", "rabaska-cats-1"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"user {user}\n" in said
    assert "proxycommand true 'a b'\n" in said


@pytest.mark.parametrize(
    "user", ["", "ada evil", "-oProxyCommand=evil", 'a"', "a\nProxyCommand evil", "a b c", "%d"]
)
def test_what_is_the_name_of_no_user_is_not_written(folder, user):
    with pytest.raises(CommandFailed, match="never gives"):
        ssh_entries.write_entry(folder, "rabaska-cats-1", user, ["true"])

    assert not (folder.parent / ssh_entries.CONFIG).exists()


def test_nobody_else_may_write_to_what_ssh_includes(folder):
    before = os.umask(0o002)
    try:
        config = ssh_entries.write_entry(folder, "rabaska-cats-1", "ada", ["true"])
    finally:
        os.umask(before)

    assert stat.S_IMODE(config.stat().st_mode) == 0o600
