"""Reports: what was run, how it went, how to run it again, in a file that needs nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.run_pages.made_history import BEGAN, COMMIT, PLAN, STATUS, curve, history

from rabaska.pages import report_file
from rabaska.pages.axes import axis_for, said
from rabaska.pages.drawings import chart_svg
from rabaska.pages.visible_text import with_code
from rabaska.views.report import Chart, run_report
from rabaska.views.run_cost import run_cost
from rabaska.views.time_line import time_line


class Elements(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, its text."""

    def __init__(self, page):
        super().__init__()
        self.found, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data

    def tags(self):
        return {tag for tag, _ in self.found}


def test_the_page_says_what_was_run_how_it_went_and_how_to_run_it_again():
    page = Elements(report_file.html([run_report(history())]))

    for words in (
        COMMIT, "with changes", "python train.py --data {data} --lr 0.1", "96b548c135d5",
        "module load cuda", "campus (slurm)", "n1, n2", "the program failed", "Killed",
        "rabaska rerun cats-7f3a", "#!/bin/bash", "TOKEN", "GPU-hours",
    ):  # fmt: skip
        assert words in page.text, words
    assert len([tag for tag, _ in page.found if tag == "svg"]) == 4  # time line, loss, lr, power


def test_the_page_needs_nothing_else_and_runs_nothing():
    page = Elements(report_file.html([run_report(history())]))
    addresses = [
        value
        for _, attributes in page.found
        for name, value in attributes.items()
        if name in ("src", "href", "action", "data") and not (value or "").startswith("#")
    ]

    assert addresses == []
    assert page.tags() & {"script", "link", "iframe", "img", "object", "form"} == set()


def test_several_runs_are_compared():
    other = history(
        "dogs-1234",
        plan=PLAN._replace(command=["python", "train.py", "--lr", "0.2"]),
        curves={"train/loss": curve("train/loss", [3.0, 2.0])},
    )

    page = report_file.html([run_report(history()), run_report(other)])

    compared = page[page.index("The runs compared") : page.index("<article")]
    assert "--lr 0.2" in compared
    assert compared.count("<svg") == 1
    assert "module load cuda" not in compared  # it is the same


def test_an_old_report_says_how_old_it_is_and_why():
    page = report_file.html([run_report(history(trouble="campus does not answer"))])

    assert "As last seen 2023-11-1" in page
    assert "campus does not answer" in page


def test_a_run_without_anything_has_a_page_too():
    nothing = history(status=replace(STATUS, jobs=()), plan=None, script="", curves={}, vitals={})

    assert "No curves" in report_file.html([run_report(nothing)])
    assert report_file.markdown([run_report(nothing)]).startswith("# cats-7f3a: failed\n")
    assert report_file.as_json([run_report(nothing)])[0]["charts"] == []


def test_what_was_wasted_is_what_was_repeated_and_what_was_not_saved():
    cost = run_cost(STATUS, history().vitals)

    assert cost.seconds == 200
    assert cost.gpu_hours == pytest.approx(200 / 3600 * 4)
    assert cost.repeated == pytest.approx(40)  # 50 of 100 steps, in 80 s
    assert cost.lost == pytest.approx(30)  # after the checkpoint
    assert cost.waited == 60 + 30
    assert cost.energy == pytest.approx(0.01)  # 360 W for 100 s


def test_stretches_of_a_job_fill_its_time_and_a_lost_job_ends_before_the_next():
    lost = replace(STATUS.jobs[0], ended=None, how="lost")

    first, second = time_line(replace(STATUS, jobs=(lost, STATUS.jobs[1])))

    assert [one.kind for one in first.stretches] == [
        "queue", "staging", "loading", "computing", "other"
    ]  # fmt: skip
    assert first.end == BEGAN + 130
    assert second.stretches[-1].end == BEGAN + 230
    for bar in (first, second):
        ends = [one.end for one in bar.stretches]
        assert ends[:-1] == [one.start for one in bar.stretches][1:]


def test_a_curve_is_broken_where_it_is_no_number_and_keeps_its_peaks():
    values = [1.0] * 100_000
    values[50_000] = 1000.0
    broken = Chart("loss", (("loss", curve("loss", [1.0, float("nan"), float("inf"), 2.0])),))
    peak = Chart("loss", (("loss", curve("loss", values)),))

    assert re.search(r'd="M[^L]*M[^L]*"', chart_svg(broken))
    assert re.search(r"L[\d.]+ 2\d\.\d", chart_svg(peak))  # near the top
    assert len(chart_svg(peak)) < 40_000


def test_a_single_point_is_drawn_as_a_dot():
    drawn = chart_svg(Chart("accuracy", (("a run", curve("accuracy", [0.9])),)))

    assert re.search(r'class="line c0 alone" d="M[\d.]+ [\d.]+h0"', drawn)


def test_marks_of_an_axis_are_round_numbers():
    assert axis_for([0.0, 4000.0], 100).marks() == [0, 1000, 2000, 3000, 4000]
    assert axis_for([1e-5, 1.0], 100, may_be_log=True).marks() == [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1]
    assert [said(value) for value in (0.25, 12_000, 2.5e9, 1e-5, 4000)] == [
        "0.25", "12k", "2.5G", "1e-05", "4000"
    ]  # fmt: skip


def test_markdown_takes_nothing_for_markup():
    odd = history(status=replace(STATUS, note="a | b `c` <img src=x> *d*", reason="[x](http://y)"))

    text = report_file.markdown([run_report(odd)])

    assert r"a \| b \`c\` \<img src=x\> \*d\*" in text
    assert r"\[x\](http://y)" in text


def test_what_a_node_measured_that_never_changed_is_a_sentence_and_no_chart():
    vitals = {
        "n1": {
            "processes": curve("processes", [2.0] * 9, "processes", steps=False),
            "bytes read": curve("bytes read", [1.0, 2.0], "bytes/s", steps=False),
        }
    }

    report = run_report(history(vitals=vitals))

    assert report.constant == (("processes", "2"),)
    assert [chart.title for chart in report.vitals] == ["bytes read per second"]
    assert "all the time: processes 2" in report_file.html([report])


def test_what_stands_between_backquotes_is_code_and_nothing_else_is_markup():
    assert with_code("type `a <b>` or <i>") == "type <code>a &lt;b&gt;</code> or &lt;i&gt;"
