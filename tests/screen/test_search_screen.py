"""A search in the terminal: its charts fit any size, and Enter leads to the run of a trial."""

import asyncio
import math

import pytest
from tests.screen.watched_runs import SmallWatch, seen
from tests.views.test_search_charts import search, trials

from rabaska.domain.search import Trial
from rabaska.records.search_index import SearchRecord
from rabaska.screen.app import WatchApp
from rabaska.screen.search_lines import chart_lines, chart_names
from rabaska.steps.shown_searches import SeenSearch
from rabaska.views.plot import Look
from rabaska.views.search_charts import search_charts

RECORD = SearchRecord("x", "campus", "/store/searches/x", "", 1.0)


def lines_of(charts, name, width=80, height=12, **look):
    drawn = chart_lines(charts, name, width=width, height=height, look=Look(**look))
    return [line.plain for line in drawn]


def test_every_chart_has_its_name_and_its_numbers():
    charts = search_charts(search(trials(60)))

    text = {name: "\n".join(lines_of(charts, name)) for name in chart_names(charts)}

    assert all(name in drawn for name, drawn in text.items())
    assert "lr log" in text["parallel coordinates"]
    assert "60 trials that ended" in text["best so far"]
    assert "10 reports" in text["curves of the trials"]
    assert "lr ██████" in text["importance"]
    assert "1e-05" in text["acc over lr"]
    assert "adam" in text["acc over optimizer"]


@pytest.mark.parametrize("width", [1, 5, 20, 80, 200])
@pytest.mark.parametrize("height", [0, 1, 2, 5, 24])
def test_charts_fit_whatever_the_size_of_the_terminal(width, height):
    for found in (
        trials(40),
        (),
        (Trial(1, "x-t1", {"lr": 0.1}, "running"),),
        (Trial(1, "x-t1", {"[b]": "[/]\x1b[2J"}, "finished", math.nan, ended=1.0),),
    ):
        charts = search_charts(search(found))
        for name in chart_names(charts):
            for plain in (True, False):
                drawn = chart_lines(
                    charts, name, width=width, height=height, look=Look(ascii=plain)
                )
                assert len(drawn) <= height
                assert all(line.cell_len <= width for line in drawn), name
                assert "\x1b" not in "".join(line.plain for line in drawn)


class SmallSearches:
    """One search, and the run that each of its trials is."""

    def __init__(self, status):
        self._status = status

    def records(self):
        return [RECORD]

    def seen(self, record):
        return SeenSearch(record, self._status, 1.0)

    def run_of(self, record, number):
        return seen(name=f"x-t{number}").record


class AddingWatch(SmallWatch):
    def add(self, record):
        added = seen(name=record.name)
        self.runs.append(added)
        return added


def test_searches_are_opened_from_the_list_and_a_trial_leads_to_its_run():
    found = search(trials(30))
    shown = []

    async def drive():
        app = WatchApp(AddingWatch(seen()), searches=SmallSearches(found))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("s")
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.pause()
            shown.append(_text(app))
            await pilot.press("right")
            await pilot.pause()
            shown.append(_text(app))
            await pilot.resize_terminal(20, 5)
            await pilot.resize_terminal(80, 24)
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            shown.append(type(app.screen).__name__)
            shown.append(app.screen.chosen().record.name)
            await pilot.press("q", "q")
            await pilot.pause()
            shown.append(type(app.screen).__name__)

    asyncio.run(drive())

    assert "parallel coordinates" in shown[0]
    assert "best so far" in shown[1]
    assert shown[2:] == ["RunPage", f"x-t{found.best.number}", "ListPage"]


def _text(app):
    from textual.widgets import Static

    return str(app.screen.query_one(".charts", Static).render())
