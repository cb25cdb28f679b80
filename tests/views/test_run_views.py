"""A run's view: what is printed and what `--json` gives are the same words."""

import json
import re
from dataclasses import replace

import pytest

from rabaska.cli.render_status import COLOURS, many_runs, one_run, run_json
from rabaska.domain.runs import (
    Checkpoint,
    Extension,
    Job,
    RunForecast,
    RunState,
    RunStatus,
    Speed,
    Staged,
)
from rabaska.views import runs
from rabaska.views.run_table import TABLE_HEADINGS
from rabaska.views.runs import TONES, after_cancel, run_view

BEGAN = 1_700_000_000.0
JOBS = (
    Job(1, "7_1", "n1", began=BEGAN, ended=BEGAN + 60, how="time limit", signal=15),
    Job(
        2, "7_2", "n2", began=BEGAN + 70, how="crashed", exit_code=3, first_step=6, last_step=12,
        steps_redone=4, resumed_from="output/step-5.pt", reason="it ran out of memory",
    ),
)  # fmt: skip
RUN = RunStatus(
    "cats-7f3a", "campus", RunState.FAILED, reason="the program failed", hint="read its log",
    jobs_requested=5, jobs=JOBS, data=(Staged("cats", 1_200_000_000, "in memory", 3.2),),
    checkpoint=Checkpoint("output/step-5.pt", 4000, BEGAN), metrics={"loss": 0.5, "bad": None},
    speed=Speed(BEGAN, 12, 1, 0.25, 0.5, 80.0), not_watched="python -E", left_running=1,
    not_kept=("a.txt", "b.txt"), extended=Extension(1, "it takes 6 jobs"),
    tail="10%\r100%\nKilled", explanations=(("there was no memory left", "request more"),),
    problems=("ended.json is damaged",), now=BEGAN + 100,
)  # fmt: skip
STUCK = replace(
    RUN, state=RunState.RUNNING, forecast=RunForecast(
        "epoch", 2.5, 40.0, 720.0, 8.0, 5, BEGAN, "no epoch fits", "save more", 2, 3
    ),
)  # fmt: skip
HEADINGS = (*TABLE_HEADINGS, *runs.JOB_HEADINGS, *runs.ADVICE_HEADINGS, runs.LOG_HEADING)
OF_THE_LAYOUT = {"on", "hint"}


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text))


def strings_in(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings_in(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings_in(item)]
    return [str(value)]


@pytest.mark.parametrize("run", [RUN, STUCK])
def test_every_word_of_a_printed_status_is_in_the_json(run):
    view = run_view(run)
    told = json.loads(json.dumps(run_json(run)))["view"]
    words = words_of(" ".join([*strings_in(told), *HEADINGS])) | OF_THE_LAYOUT

    for line in (*one_run(view, colours=False), *many_runs([run], BEGAN, colours=False)):
        assert words_of(line) <= words, line


@pytest.mark.parametrize("run", [RUN, STUCK])
def test_every_string_of_the_view_is_printed(run):
    printed = "\n".join(one_run(run_view(run), colours=False))
    view = run_json(run)["view"]

    for part in ("name", "cluster", "state", "reason", "hint", "jobs", "log", "advice"):
        assert all(text in printed for text in strings_in(view[part])), part
    for remark in view["remarks"]:
        assert remark["label"] in printed
        assert remark["text"] in printed
        assert remark["hint"] in printed


def test_the_json_of_a_run_keeps_its_facts_beside_the_view():
    told = run_json(RUN)

    assert told["state"] == "failed"
    assert told["jobs"][1]["steps_redone"] == 4
    assert told["view"]["jobs"][1]["repeated"] == "4"


def test_each_state_has_a_tone_and_each_tone_a_colour():
    assert set(TONES) == set(RunState)
    assert set(TONES.values()) == set(COLOURS)


def test_the_time_line_has_when_and_how_each_job_began_and_ended():
    line = run_view(RUN).timeline

    assert [(event.job, event.event) for event in line] == [
        (1, "began"), (1, "ended"), (2, "began"), (2, "ended"),
    ]  # fmt: skip
    assert line[1].at == BEGAN + 60
    assert line[1].text == "job 1 ended: time limit (signal 15)"
    assert line[2].text == "job 2 began, resumed from output/step-5.pt"


def test_a_job_that_may_or_may_not_have_resumed_is_shown_as_such():
    view = run_view(replace(RUN, jobs=(Job(2, checkpoint_found="step-5.pt"),)))

    assert view.jobs[0].started_from == "unknown"
    assert view.timeline[0].text == "job 2 began, with step-5.pt in its folder"


@pytest.mark.parametrize(("state", "text"), [
    (RunState.FINISHED, "cats-7f3a is already finished"),
    (RunState.STOPPING, "cats-7f3a is stopping; `rabaska resume cats-7f3a` continues it"),
])  # fmt: skip
def test_what_cancel_reports(state, text):
    assert str(after_cancel(replace(RUN, state=state))[0]) == text
