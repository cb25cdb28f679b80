"""What a login node offers is not always to be believed."""

import json
from pathlib import Path

import pytest

from rabaska.errors import CommandFailed, NotWritable
from rabaska.remote.arriving_files import ARRIVING
from rabaska.remote.fetch_record import alone_in
from rabaska.remote.login_node import Ssh
from rabaska.remote.place import Outcome
from rabaska.remote.ssh_connection import Connection
from rabaska.remote.this_computer import Here


class Offers:
    """A node side that offers whatever it is told to."""

    node = ("python3", "node.pyz")

    def __init__(self, *paths, link=None):
        self.lines = [
            json.dumps({"path": path, "size": 1, "mtime_ns": 1, "link": link}) for path in paths
        ]

    def run(self, script, *, feed=b""):
        return Outcome(exit_code=0, output="\n".join(self.lines), errors="")


def test_names_that_lead_out_of_the_folder_are_not_asked_for(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))

    came = place.bring("/results", tmp_path / "home", Offers("../evil", "/etc/evil", "a/../../b"))

    assert came.files == 0
    assert list(tmp_path.rglob("*evil*")) == []


def test_links_that_lead_out_of_the_folder_are_refused_and_named(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))

    came = place.bring("/results", tmp_path / "home", Offers("a", "b/c", link="../../id_rsa"))
    inside = place.bring("/results", tmp_path / "home", Offers("b/c", link="../last.pt"))

    assert came.refused == ("a -> ../../id_rsa", "b/c -> ../../id_rsa")
    assert (came.files, inside.files) == (0, 1)
    assert (tmp_path / "home/b/c").readlink() == Path("../last.pt")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))
    (tmp_path / "home").touch()

    with pytest.raises(NotWritable, match="home cannot be written to"):
        place.bring("/results", tmp_path / "home", Offers("a", link="b"))


def test_nothing_is_brought_through_a_link_in_the_folder(tmp_path):
    """A link that stays inside makes another one, of a deeper name, lead out."""
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))
    place.bring("/results", tmp_path / "home", Offers("here", link="."))

    with pytest.raises(CommandFailed, match="nothing was fetched"):
        place.bring("/results", tmp_path / "home", Offers("here/key", link="../id_rsa"))

    assert not (tmp_path / "home/key").is_symlink()


@pytest.mark.parametrize(
    "line",
    ["{", "{}", '{"path": 5}', {"path": ""}, {"path": "a\0b"}, {"path": "\ud800"}, {"size": -1},
     {"size": "1"}, {"mtime_ns": 1e300}, {"mtime_ns": 2**80}, {"link": ""}, {"problem": 5}],
    ids=repr,
)  # fmt: skip
def test_a_list_that_is_none_is_refused(tmp_path, line):
    place, offers = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path))), Offers("a")
    told = {"path": "a", "size": 1, "mtime_ns": 1, "link": None}
    offers.lines = [line if isinstance(line, str) else json.dumps({**told, **line})]

    with pytest.raises(CommandFailed, match="the cluster gave an answer"):
        place.bring("/results", tmp_path / "home", offers)


def test_what_a_later_version_says_of_a_file_is_passed_over(tmp_path):
    place, offers = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path))), Offers()
    told = {"path": "b/c", "size": 1, "mtime_ns": 1, "link": "../last.pt", "owner": "me"}
    offers.lines = ["Welcome", json.dumps(told)]

    assert place.bring("/results", tmp_path / "home", offers).files == 1


def test_what_is_noted_here_is_not_replaced_from_there(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))

    came = place.bring("/results", tmp_path / "home", Offers(".fetched.json", ".", link="x"))

    assert came.files == 0


def test_bytes_gather_in_no_folder_that_somebody_else_prepared(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ARRIVING).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CommandFailed, match="is not your folder"):
        place.bring("/results", tmp_path / "home", Offers("a", link="b"))

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_two_fetches_at_once_do_not_write_the_same_files(tmp_path):
    """One would truncate what the other is writing, and has proven as it came."""
    place, home = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path))), tmp_path / "home"
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "b").touch()

    with alone_in(home):
        with pytest.raises(CommandFailed, match="another fetch"):
            place.bring("/results", home, Offers("a", link="b"))
        with pytest.raises(CommandFailed, match="another fetch"):
            Here().bring(str(tmp_path / "there"), home)
    later = place.bring("/results", home, Offers("a", link="b"))

    assert later.files == 1
    assert Here().bring(str(tmp_path / "there"), home).files == 1
