"""Jobs that save again and again, and get no further."""

import pytest
from made_runs import PLAN, begin_job, make_run, print_log

from rabaska.node.record import chain_rule, jobs, metrics, resume_evidence, standstill, step_tracks

SAVED = {"path": "output/last.npz", "size": 1, "mtime_ns": 1}
LONG = 900.0  # seconds, of a job


def steps(first, last, line="step {} loss 0.5\n"):
    return "".join(line.format(number) for number in range(first, last + 1, 10))


@pytest.fixture
def chained(tmp_path):
    """`chained(how, log of job 1, log of job 2, …)`: what is shown of the last, and the run."""

    def chained(how, *logs, saved=None, stepped=0):
        run, still = make_run(tmp_path), ""
        for number, text in enumerate(logs, 1):
            job = begin_job(run)
            begun = jobs.read_begun(run, job)
            before = dict(SAVED, mtime_ns=number - 1) if number > 1 else None
            jobs.write_begun(run, begun._replace(checkpoint_seen=before))
            print_log(run, job, text)
            if stepped and number == len(logs):
                metrics.append(run, job, steps=stepped, pid=1)
            own = step_tracks.of_job(run, job, "", PLAN.patterns)
            now = jobs.Ended(
                job, "12", how, "", 1, None, begun.begun + LONG,
                dict(SAVED, mtime_ns=number, path=saved or SAVED["path"]), True,
                tracks=step_tracks.to_json(own),
            )  # fmt: skip
            still = standstill.shown(run, job, "", own, now)
            jobs.write_ended(run, now._replace(standstill=still or None))
        return still, run

    return chained


@pytest.mark.parametrize("again", ["", "step 500\n", "loading\n"])
def test_a_link_that_crashes_where_the_last_one_did_got_no_further(chained, again):
    still, _ = chained(chain_rule.CRASHED, steps(10, 500), again)

    assert still == "job 2 did not get beyond step 500"


@pytest.mark.parametrize("how", [chain_rule.TIME_LIMIT, chain_rule.ASKED_TO_GO_ON])
def test_a_link_that_prints_nothing_in_all_of_its_time_got_no_further(chained, how):
    still, _ = chained(how, steps(10, 500), "")

    assert still == "job 2 did not get beyond step 500"


def test_three_such_links_in_a_row_end_the_chain(chained):
    _, run = chained(chain_rule.TIME_LIMIT, steps(10, 500), "", "")
    goes_on = resume_evidence.verdict_on(run, PLAN)
    begin_job(run)
    jobs.write_begun(run, jobs.read_begun(run, 4)._replace(checkpoint_seen=SAVED))
    jobs.write_ended(run, jobs.read_ended(run, 3)._replace(job=4))
    ends = resume_evidence.verdict_on(run, PLAN)

    assert goes_on.decision == chain_rule.GO_ON
    assert ends.decision == chain_rule.GIVE_UP
    assert "3 jobs in a row made no progress" in ends.reason
    assert "did not get beyond step 500" in ends.reason


@pytest.mark.parametrize("how", [chain_rule.CRASHED, chain_rule.TIME_LIMIT])
@pytest.mark.parametrize(
    "logs",
    [
        [steps(10, 500), steps(510, 600)],
        [steps(10, 400), steps(410, 500) + steps(10, 90)],  # counted anew in each epoch
        ["epoch 0 step 10\nepoch 0 step 20\n", "epoch 0 step 30\nepoch 0 step 40\n"],
        ["loading\n", ""],
    ],
    ids=["steps", "steps of an epoch", "the same epoch", "nothing printed"],
)
def test_a_link_that_may_have_got_further_is_not_said_to_stand_still(chained, how, logs):
    assert chained(how, *logs)[0] == ""


def test_a_program_that_prints_seldom_is_not_said_to_stand_still(chained):
    assert chained(chain_rule.TIME_LIMIT, "epoch 0\nepoch 1\n", "")[0] == ""


@pytest.mark.parametrize("how", [chain_rule.CRASHED, chain_rule.TIME_LIMIT])
def test_steps_that_were_watched_are_progress(chained, how):
    assert chained(how, steps(10, 500), "", stepped=7)[0] == ""


def test_a_checkpoint_of_another_step_is_progress(chained):
    assert chained(chain_rule.CRASHED, steps(10, 500), "", saved="output/ckpt-600.npz")[0] == ""


@pytest.mark.parametrize("how", [chain_rule.KILLED, chain_rule.FINISHED])
def test_who_was_ended_by_others_is_not_said_to_stand_still(chained, how):
    assert chained(how, steps(10, 500), "")[0] == ""
