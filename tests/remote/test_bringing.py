"""What a login node offers is not always to be believed."""

import json
from pathlib import Path

from rabaska.remote.connection import Connection
from rabaska.remote.place import Outcome
from rabaska.remote.ssh import Ssh


class Offers:
    """A node side that offers whatever it is told to."""

    node = ("python3", "node.pyz")

    def __init__(self, *paths):
        self.lines = [
            json.dumps({"path": path, "size": 1, "mtime_ns": 1, "link": None}) for path in paths
        ]

    def run(self, script, *, feed=b""):
        return Outcome(exit_code=0, output="\n".join(self.lines), errors="")


def test_names_that_lead_out_of_the_folder_are_not_asked_for(tmp_path):
    place = Ssh(Connection("no-such-host.invalid", sockets=Path(tmp_path)))

    came = place.bring("/results", tmp_path / "home", Offers("../evil", "/etc/evil", "a/../../b"))

    assert came == 0
    assert list(tmp_path.rglob("*evil*")) == []
