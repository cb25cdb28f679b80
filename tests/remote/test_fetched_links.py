"""Symbolic links among the results, as they come over ssh."""

from typing import Any

from rabaska.remote.arriving_files import Offered
from rabaska.remote.fetch_over_ssh import _arrivals
from rabaska.remote.fetch_record import read_record


def test_what_was_changed_here_is_kept_when_a_newer_link_takes_its_place(tmp_path):
    nothing: Any = None  # links come with the list: nobody is asked
    mine = tmp_path / "last.txt"
    mine.write_text("as it came")
    record = read_record(tmp_path)
    record.note("last.txt", 10, mine.stat().st_mtime_ns)
    mine.write_text("mine, changed")
    link = Offered("last.txt", 9, mine.stat().st_mtime_ns + 1, link="epoch.txt")

    list(_arrivals("there", [link], record, nothing, nothing, nothing))

    assert mine.is_symlink()
    assert (tmp_path / "last.txt.here").read_text() == "mine, changed"
    assert record.result().aside == ("last.txt.here",)
