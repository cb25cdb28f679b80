"""Where sockets of connections are kept: a folder of this user alone."""

import os

import pytest

from rabaska.errors import Unreachable
from rabaska.remote.ssh_connection import private_socket_folder

NAME = f"rabaska-{os.getuid()}"


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_it_is_made_and_closed_to_others(tmp_path):
    assert private_socket_folder() == f"{tmp_path}/run/{NAME}"
    assert oct(os.stat(private_socket_folder()).st_mode & 0o777) == "0o700"


def test_another_is_taken_where_others_may_write_to_it(tmp_path):
    (tmp_path / "run" / NAME).mkdir()
    (tmp_path / "run" / NAME).chmod(0o777)

    assert private_socket_folder() == f"{tmp_path}/home/.{NAME}"


def test_another_is_taken_where_somebody_laid_a_link(tmp_path):
    (tmp_path / "run" / NAME).symlink_to(tmp_path)

    assert private_socket_folder() == f"{tmp_path}/home/.{NAME}"


def test_where_there_is_none_it_says_whose_fault_that_is(tmp_path):
    for folder in (tmp_path / "run" / NAME, tmp_path / "home" / f".{NAME}"):
        folder.touch()

    with pytest.raises(Unreachable) as refused:
        private_socket_folder()

    assert f"{NAME} is not a folder" in refused.value.why
