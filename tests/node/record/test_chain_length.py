"""How many jobs a run may have, and how many were submitted for it."""

import os

import pytest
from agents import make_run

from rabaska.node import files
from rabaska.node.record import chain_rule, jobs, plan, submissions
from rabaska.node.record.plan import Growth

ANYWHERE = [{"job": 1, "pid": 7, "steps": 3, "anywhere": True}]
WITH = ["python", "train.py", "--resume={checkpoint}"]


@pytest.fixture
def asked(tmp_path):
    """`asked(jobs=3)`: a plan that was written and read again."""
    made = []

    def asked(**changes):
        made.append(make_run(tmp_path / str(len(made)), {}, **changes))
        return plan.load(made[-1])

    return asked


def test_who_said_how_many_gets_as_many(asked):
    assert chain_rule.limit(asked(jobs=3, growth=Growth(3), command=WITH), []) == 3
    assert chain_rule.limit(asked(jobs=3, growth=Growth(9)), []) == 9


def test_who_said_nothing_gets_more_if_that_can_help(asked):
    nothing_said = {"jobs": 1, "growth": Growth(None)}

    assert chain_rule.limit(asked(**nothing_said), []) == 1
    for known in ({"command": WITH}, {"resume": ["--resume"]}):
        assert chain_rule.limit(asked(**nothing_said, **known), []) == chain_rule.USUAL
    assert chain_rule.limit(asked(**nothing_said), ANYWHERE) == chain_rule.USUAL


def test_a_run_that_was_submitted_before_there_was_growth_does_not_grow(tmp_path):
    run = make_run(tmp_path, {}, jobs=2, command=WITH)
    value = files.read_json(run.plan)
    del value["growth"]
    files.write_json(run.plan, value)

    assert chain_rule.hindrance(plan.load(run), [], 2) == "the limit is 2 jobs"


def test_jobs_are_counted_over_submissions_resumptions_and_jobs_started_again(tmp_path):
    run = make_run(tmp_path, {})

    def submitted(**line):
        mark = str(len(list(files.read_lines(run.submissions))))
        files.append_line(
            run.submissions, {"submission": mark, "exit_code": 0, "said": "12\n", **line}
        )
        return submissions.jobs_there(run)

    assert submitted(jobs=3, after_job=0) == 3
    assert submitted(after="12", after_job=1) == 4
    assert submitted(after="13", exit_code=1, after_job=1) == 4
    assert submitted(jobs=2, after_job=4, resume=True) == 6
    for number, job in ((5, "20_1"), (6, "20_1"), (7, "20_2")):
        os.makedirs(run.job(number))
        jobs.write_begun(run, jobs.Begun(number, job, "node", "boot", 1, None, 1.0))
    assert submissions.jobs_there(run) == 7
