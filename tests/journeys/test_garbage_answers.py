"""Answers that our own program would never give end a command with a reason, not a traceback."""

import json
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.checkup import check_data_places
from rabaska.cli import render_status
from rabaska.domain.clusters import Cluster
from rabaska.errors import CommandFailed, RabaskaError
from rabaska.journeys.data_advice import _tiers
from rabaska.journeys.globus import _take_up
from rabaska.node.login import push_protocol
from rabaska.node.login.run_report import report as real_report
from rabaska.records.home import Home
from rabaska.records.run_index import RunRecord
from rabaska.remote.place import Outcome
from rabaska.remote.push_over_ssh import open_push
from rabaska.remote.ssh_calls import END, find_end
from rabaska.schedulers import local, slurm_queues
from rabaska.sites import comparison, questions, site_facts
from rabaska.sites.questions import SiteAnswer
from rabaska.steps import query_status as asking
from rabaska.steps import store
from rabaska.steps.connect import ConnectedCluster
from rabaska.steps.read_plan import read_plan
from rabaska.steps.status_report import report
from rabaska.views.runs import run_view

RECORD = RunRecord("tiny-1", "campus", "/store/runs/tiny-1", "", 0.0, id="c" * 32)
QUEUE = {"exit_code": 0, "said": "slurm|JOBID|STATE|REASON|.\n", "complained": "", "asked": []}
LAST = {"queue": QUEUE, "history": None, "now": 1.7e9}
REPORT = {
    "run": "tiny-1", "id": "c" * 32, "path": RECORD.path, "about": {}, "problems": [], "mark": None,
    "walltime": 60, "jobs_requested": 2, "submissions": [], "jobs": [{"job": 1, "begun": 1.0}],
    "metrics": {"loss": float("nan")}, "tail": "", "data": [], "done": False, "stop": False,
    "forecast": {"unit": "step", "done": 1.0, "total": 5.0, "seconds_each": 1.0, "per_job": 2.0,
                 "jobs": 3, "finishes": 1.7e9},
    "checkpoint": {"path": "a.pt", "size": 1, "written": 1.0},
}  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda each: (
        st.lists(each, max_size=2) | st.dictionaries(st.text(max_size=5), each, max_size=2)
    ),
    max_leaves=5,
)


class Says:
    """A cluster that answers everything with one text."""

    def __init__(self, text):
        self.text = text

    def run(self, script, *, feed=b"", again=""):
        return Outcome(exit_code=0, output=self.text, errors="")


def station(text):
    return ConnectedCluster(
        Cluster("campus", "", "slurm"), Says(text), "/store", "python3", Path("n.pyz")
    )


def stands(tmp_path, *lines):
    there = station(
        "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    )
    answer = asking._ask(there, [RECORD], Home(tmp_path))
    (found,) = asking.standing([RECORD], answer, there, explained=True).values()
    return list(render_status.one_run(run_view(found), colours=False))


def test_a_report_is_shown(tmp_path):
    assert "last reported: loss nan" in stands(tmp_path, REPORT, LAST)
    not_finite = {**REPORT, "metrics": {"loss": None}}
    assert "last reported: loss nan" in stands(tmp_path, not_finite, LAST)


@pytest.mark.parametrize(
    "lines",
    [
        ["{"], [REPORT, '{"queue": 5}'], [REPORT, {"queue": 5, "path": "x"}], [LAST],
        [REPORT, {**LAST, "now": "x"}], [REPORT, {**LAST, "now": 1e300}],
        [REPORT, {"queue": QUEUE}],
        [{"path": RECORD.path, "mark": "x"}, LAST], [{"path": 5}, LAST],
        [{**REPORT, "about": 5}, LAST], [{"run": "x", "path": RECORD.path}, LAST],
        [{**REPORT, "walltime": 1e300}, LAST], [{**REPORT, "jobs": [{}]}, LAST],
        [{**REPORT, "submissions": [{"exit_code": 0, "said": 5}]}, LAST],
        [{**REPORT, "submitting": {"time": "x"}}, LAST],
    ],
    ids=range(15),
)  # fmt: skip
def test_a_survey_that_is_none_is_refused(tmp_path, lines):
    with pytest.raises(CommandFailed, match="campus gave an answer") as refused:
        stands(tmp_path, *lines)

    assert refused.value.why
    assert refused.value.hint


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(sorted(REPORT)), JSON, st.sampled_from(sorted(LAST)), st.none() | JSON)
def test_no_survey_ends_in_a_traceback(tmp_path, name, value, key, other):
    last = LAST if other is None else {**LAST, key: other}
    with suppress(RabaskaError):
        stands(tmp_path, {**REPORT, name: value}, last)


def test_what_a_run_can_do_without_is_left_out_and_named(tmp_path):
    forecast = {**REPORT["forecast"], "finishes": 1e300}

    shown = stands(tmp_path, {**REPORT, "forecast": forecast}, LAST)

    assert any(line.startswith("note: its forecast: `finishes` is not") for line in shown)


def test_a_report_of_our_own_passes(tmp_path):
    told = {**real_report(str(tmp_path / "nothing")), "mark": None, "submitting": None}

    assert report(told)["problems"] == ["there is no such folder"]


@pytest.mark.parametrize(
    "plan", ["", "[]", "{", {"run": "../x", "code": "a", "datasets": []},
             {"run": "tiny-1", "code": "../../x", "datasets": []},
             {"run": "tiny-1", "code": "a", "datasets": [{"pack": "../.."}]}],
    ids=str,
)  # fmt: skip
def test_a_plan_that_leads_elsewhere_is_damaged(plan):
    text = plan if isinstance(plan, str) else json.dumps({"format": 1, **plan})

    with pytest.raises(CommandFailed, match="the plan of tiny-1 is damaged"):
        read_plan(RECORD, station(text))


@given(JSON | st.dictionaries(st.text(max_size=5), JSON, max_size=2))
def test_no_measurement_ends_in_a_traceback(value):
    with suppress(CommandFailed):
        _tiers(station(json.dumps(value)))


@given(st.sampled_from(["missing", "room", "rsync"]), JSON)
def test_no_answer_to_a_push_ends_in_a_traceback(name, value):
    answer = {"missing": {}, "room": {}, "rsync": False, name: value}
    line = f"{push_protocol.ANSWER}{json.dumps(answer)}\n".encode()
    far = SimpleNamespace(output=iter([line]), write=lambda _: None, host="campus")
    shell = SimpleNamespace(started=lambda _: nullcontext(far))
    node = SimpleNamespace(guarded=str, quickly=lambda *_: "")
    with suppress(RabaskaError), open_push([], shell, node):
        pass


LONG = "1" * 5000  # digits: Python refuses to make a number of so many
KEPT = "rabaska-kept 0 700 ada/ada/store\n"
SLURM = Cluster("campus", "", "slurm")


@pytest.mark.parametrize(
    "read",
    [
        lambda: find_end(f"hello\n{END} {LONG}\n".encode()),
        lambda: questions.answers(f"@@asked who\nme\n@@exit {LONG}\n"),
        lambda: list(store._dangers(f"rabaska-user {LONG} ada\n{KEPT}", shared=False)),
        lambda: store._said(f"rabaska-kept {LONG} 700 ada/ada/store\n", "kept"),
        lambda: comparison._python("python3", SiteAnswer(0, f"Python 3.{LONG}")),
        lambda: site_facts._numbers(f"3.{LONG}"),
        lambda: list(slurm_queues.how_gpus_are_requested(SLURM, f"slurm 22.{LONG}")),
        lambda: check_data_places.read_answers(SimpleNamespace(datasets=[]), f"near\t{LONG}\t/x"),
        lambda: local.Local(("n",), "q").read_status(f"here|1|ended|{LONG}||1|2|a|.\n"),
    ],
    ids=range(9),
)
def test_no_number_is_too_long_for_us(read):
    with suppress(RabaskaError):
        read()


@pytest.mark.parametrize("state", ["started", "there or so", ""])
def test_a_pack_that_arrives_is_in_a_state_that_we_know(state):
    told = json.dumps({"state": state, "have": 0, "problems": []})

    with pytest.raises(CommandFailed, match="campus gave an answer"):
        _take_up(SimpleNamespace(identity="cats-1"), station(told))
