"""Runs that finished long ago are named by `clean`, with the command that deletes them."""

from rabaska.domain.stored_items import StoredItem, StoreReport, old_runs
from rabaska.journeys.clean import Cleaning
from rabaska.views.storage import clean_view

DAY = 86400.0
KEPT = [
    StoredItem("runs", "old-1", 10**6, 9, 0.0),
    StoredItem("runs", "old-2", 10**6, 9, 0.0),
    StoredItem("runs", "unfinished", 10**6, 9, 0.0),
    StoredItem("runs", "new", 10**6, 9, 50 * DAY),
    StoredItem("runs", "half.partial", 10**6, 9, 0.0),
    StoredItem("packs", "digits-1", 10**6, 9, 0.0),
]


def test_only_runs_that_finished_more_than_a_month_ago_are_old():
    found = old_runs(KEPT, [StoreReport("unfinished", "text")], now=60 * DAY)

    assert [item.name for item in found] == ["old-1", "old-2"]


def test_they_are_offered_with_their_size_and_the_command():
    old = old_runs(KEPT, [StoreReport("unfinished", "text")], now=60 * DAY)

    offered = clean_view(Cleaning("campus", (), old_runs=old), preview=True).old_runs

    assert "2 runs finished more than 30 days ago, 2.0 MB" in offered
    assert "`rabaska delete --on campus old-1 old-2`" in offered
