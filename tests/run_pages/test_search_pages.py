"""Searches in the browser and in a report: charts, the table, and the way to a trial's run."""

import re
import shutil

import pytest
from tests.node.made_runs import begin_job, make_run
from tests.run_pages.made_search import make_search

from rabaska.pages import report_file
from rabaska.steps.shown_searches import ShownSearches
from rabaska.views.search_report import search_report, search_report_json

LINKS = re.compile(r'<a href="(/trial/cats-7f3a/\d+)" tabindex="-1"><path class="trial [^"]*"')


@pytest.fixture
def search(desk):
    return make_search(desk.home, desk.folder / "store")


def test_a_search_has_every_chart_and_a_row_for_each_trial(desk, search):
    browser = desk.opens()

    assert "/search/cats-7f3a" in browser.get("/searches").text
    page = browser.get("/part/search/cats-7f3a").text

    for kind in ("parallel", "history", "curves", "importance"):
        assert page.count(f'class="chart {kind}"') == 1
    assert page.count('class="chart slice"') == 4
    assert len(re.findall(r'<tr data-trial="\d+">', page)) == 60
    assert len(LINKS.findall(page)) == 60 + 58  # parallel coordinates, and curves that there are
    assert "60 of 60 trials done" in page
    assert "rabaska run --trial" in page
    assert "stopped early" in page


def test_what_the_browser_has_is_not_sent_again(desk, search):
    browser = desk.opens()
    first = browser.get("/part/search/cats-7f3a")

    again = browser.get("/part/search/cats-7f3a", headers={"x-known": first.headers["x-version"]})

    assert (again.status_code, again.text) == (204, "")


def test_a_trial_leads_to_its_run_which_is_in_no_list(desk, search):
    run = make_run(desk.folder / "store", "cats-7f3a-t5")
    begin_job(run)
    desk.tells(run, "val_accuracy", [0.1, 0.2])
    browser = desk.opens()

    landed = browser.get("/trial/cats-7f3a/5")
    desk.asks()

    assert str(landed.url).endswith("/run/cats-7f3a-t5")
    assert "val_accuracy" in browser.get("/part/run/cats-7f3a-t5/charts").text
    assert "cats-7f3a-t5" not in browser.get("/part/runs").text
    assert browser.get("/trial/cats-7f3a/6").status_code == 409  # removed, and it says so
    assert "has no folder" in browser.get("/trial/cats-7f3a/6").text
    assert browser.get("/trial/cats-7f3a/999").status_code == 409
    assert browser.get("/trial/nobody/1").status_code == 404


def test_a_search_whose_cluster_is_cut_off_is_shown_as_last_seen(desk, search):
    desk.opens().get("/part/search/cats-7f3a")

    desk.is_cut = True
    page = desk.opens().get("/part/search/cats-7f3a").text  # also after a new start

    assert "As last seen" in page
    assert "away does not answer" in page
    assert 'class="chart parallel"' in page


def test_a_search_that_was_never_heard_of_says_why(desk, search):
    desk.is_cut = True
    browser = desk.opens()

    assert "asking away" in browser.get("/search/cats-7f3a").text
    assert "does not answer" in browser.get("/part/search/cats-7f3a").text
    assert browser.get("/search/nobody").status_code == 404


def test_a_search_that_was_deleted_says_so(desk, search):
    browser = desk.opens()
    browser.get("/part/search/cats-7f3a")
    shutil.rmtree(search.path)

    page = desk.opens().get("/part/search/cats-7f3a").text

    assert "not on away any more" in page


def test_names_and_values_of_a_search_are_shown_and_never_interpreted(desk):
    evil = "<script>alert(1)</script>"
    record = make_search(desk.home, desk.folder / "store", trials=12)
    with open(f"{record.path}/study.json") as file:
        text = file.read().replace("optimizer", evil.replace('"', ""))
    with open(f"{record.path}/study.json", "w") as file:
        file.write(text)

    page = desk.opens().get("/part/search/cats-7f3a").text

    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_report_on_a_search_needs_nothing_else_and_has_all_of_it(desk, search):
    seen = ShownSearches(desk.home).seen(search)
    report = search_report(seen)

    page = report_file.html([], [report])
    text = report_file.markdown([], [report])
    value = search_report_json(report)

    assert not re.search(r"<script|https?://|<a href=\"/", page)
    assert page.count("<svg") == 4 + 4
    assert "| lr | 9" in text  # nearly all that matters
    assert next(iter(value["importance"])) == "lr"
    assert len(value["trials"]) == 60
    assert value["history"][-1][1] == value["best"]["value"]
