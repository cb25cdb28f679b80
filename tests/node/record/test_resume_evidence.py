"""Whether a job went on from its checkpoint, from where it began to count."""

import os

import pytest
from made_runs import PLAN, begin_job, end_job, make_run, print_log

from rabaska.node.login import run_report
from rabaska.node.record import chain_rule, jobs, plan, resume_evidence, step_tracks
from rabaska.node.record.plan import Growth

GIVEN = ["python3", "train.py", "--resume", "{checkpoint}"]
SAVED = {"path": "output/last.npz", "size": 1, "mtime_ns": 1}


def printed(first, last, line="epoch {} loss 0.5\n", step=1):
    return "".join(line.format(number) for number in range(first, last + 1, step))


@pytest.fixture
def judge(tmp_path):
    """`judge([log of job 1, log of job 2, …])`: how the last of them began."""

    def judge(logs, how=chain_rule.TIME_LIMIT, saved_at=None, **changes):
        asked = PLAN._replace(**changes)
        run = make_run(tmp_path, **changes)
        for number, text in enumerate(logs, 1):
            job = begin_job(run)
            begun = jobs.read_begun(run, job)
            if number > 1:
                saved = dict(SAVED, mtime_ns=number)
                begun = begun._replace(checkpoint_seen=saved, epoch=saved_at)
            jobs.write_begun(run, begun)
            print_log(run, job, text)
            own = step_tracks.of_job(run, job, asked.progress, asked.patterns)
            judged = resume_evidence.judge(run, job, asked, own, how)
            end_job(run, job, tracks=step_tracks.to_json(own), resumption=dict(judged._asdict()))
        return judged

    return judge


STAGES = "Step 1: preparing data\nStep 2: building model\nStep 3: training\n"
ITERATION = "iteration {} loss 0.5\n"
EVALUATED = "step 0 | val loss 10.9\n"

CONTINUES = {
    "epochs": [printed(1, 6), printed(7, 12)],
    "an epoch that was not saved is made again": [printed(1, 6), printed(4, 9)],
    "steps": [printed(0, 90, "step {} loss 1\n", 10), printed(50, 90, "step {} loss 1\n", 10)],
    "steps that begin again in each epoch": [
        "epoch 0 step 10\nepoch 0 step 20\nepoch 1 step 10\n", "epoch 1 step 10\nepoch 1 step 20\n",
    ],
    "the same epoch, further on": [
        "Epoch 0\nstep 10\nstep 20\nstep 30\n", "Epoch 0\nstep 30\nstep 40\n",
    ],
    "its options are printed first": [
        "Namespace(epoch=90)\n" + printed(1, 4), "Namespace(epoch=90)\n" + printed(5, 7),
    ],
    "stages are numbered before it trains": [
        STAGES + printed(20, 140, ITERATION, 20), STAGES + printed(160, 260, ITERATION, 20),
    ],
    "the first line after the stages": [
        STAGES + printed(20, 140, ITERATION, 20), STAGES + "iteration 160\n",
    ],
    "it evaluates first, as step 0": [
        EVALUATED + printed(100, 900, "step {} | loss 3\n", 100),
        EVALUATED + printed(1000, 1200, "step {} | loss 3\n", 100),
    ],
    "it warms up": [
        "Warm-up iteration 1\n" + printed(100, 400, ITERATION, 100),
        "Warm-up iteration 1\n" + printed(500, 700, ITERATION, 100),
    ],
    "it prints its settings": [
        "model: resnet\nepoch: 0\n" + printed(1, 5), "model: resnet\nepoch: 0\n" + printed(6, 9),
    ],
    "it prints its settings as JSON": [
        '{"epoch": 0, "lr": 1}\n' + printed(1, 5), '{"epoch": 0, "lr": 1}\n{"epoch": 6}\n',
    ],
    "a third job that evaluates first": [
        EVALUATED + printed(100, 300, "step {} | loss 3\n", 100),
        EVALUATED + printed(400, 600, "step {} | loss 3\n", 100),
        EVALUATED + printed(700, 900, "step {} | loss 3\n", 100),
    ],
    "one fold of several in each job": ["training fold 0\n" + printed(0, 5)] + [
        f"Fold {fold}/5\n" + printed(0, 5) for fold in (1, 2)
    ],
    "one trial of several in each job": [
        "".join(f"trial: {trial} epoch {epoch} loss 1\n" for epoch in range(5)) for trial in (1, 2)
    ],
    "it says where it takes up its work": [printed(0, 5), "resuming at epoch 0?\n" + printed(6, 9)],
}  # fmt: skip
UNKNOWN = {
    "nothing is printed": ["", ""],
    "steps that begin again in each epoch, of which none is told": [
        "step 10\nstep 20\nstep 10\nstep 20\n", "step 10\nstep 20\n",
    ],
    "saved before the first line that is printed": ["step 100 loss 1\n", "step 100 loss 1\n"],
    "stages and no more, because it was ended": [STAGES + printed(20, 140, ITERATION, 20), STAGES],
    "an evaluation and no more": [EVALUATED + printed(100, 900, ITERATION, 100), EVALUATED],
    "settings and one line": ["epoch: 0\nepoch 1 loss 1\n", "epoch: 0\nepoch 2 loss 1\n"],
    "settings and one line, in the third job": [
        "epoch: 0\n", "epoch: 0\nepoch 1 loss 1\n", "epoch: 0\nepoch 2 loss 1\n",
    ],
}  # fmt: skip
OVER = {
    "stages, and what comes after them": [
        STAGES + printed(20, 140, ITERATION, 20), STAGES + printed(20, 100, ITERATION, 20),
    ],
    "it evaluates first": [
        EVALUATED + printed(100, 900, ITERATION, 100),
        EVALUATED + printed(100, 1200, ITERATION, 100),
    ],
    "by the clock": [
        "".join(ITERATION.format(n) for n in (1, 14, 27, 41, 55, 68, 83)),
        "".join(ITERATION.format(n) for n in (1, 15, 26, 42, 53, 69, 80, 95)),
    ],
    "on a faster node": [
        "".join(ITERATION.format(n) for n in (1, 14, 27, 41, 55, 68, 83, 96, 110)),
        "".join(ITERATION.format(n) for n in (1, 45, 88, 130, 174)),
    ],
    "epochs": [printed(1, 6), printed(1, 7)],
    "epochs of the same fold": ["fold 1\n" + printed(1, 6), "fold 1\n" + printed(1, 7)],
    "after the same stages": [
        "stage 1: data\nstage 2: train\n" + printed(1, 6),
        "stage 1: data\nstage 2: train\n" + printed(1, 7),
    ],
    "batches of an epoch": [
        printed(0, 9, "Epoch: [0][{}/500]\n"), printed(0, 5, "Epoch: [0][{}/500]\n"),
    ],
    "without the word": [printed(0, 3, "[{}/25][0/4] Loss_D: 1\n"), "[0/25][0/4] Loss_D: 1\n"],
    "twice at the only line of a job": [printed(1, 1), printed(1, 1), printed(1, 1)],
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUES)
def test_a_job_that_goes_on_is_seen_to(judge, name):
    assert judge(CONTINUES[name], command=GIVEN).state == resume_evidence.CONTINUED


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_cannot_be_known_is_not_claimed(judge, name):
    assert judge(UNKNOWN[name], command=GIVEN).state == resume_evidence.UNKNOWN


@pytest.mark.parametrize("name", OVER)
def test_a_job_that_starts_over_is_seen_to(judge, name):
    judged = judge(OVER[name], command=GIVEN)

    assert judged.state == resume_evidence.STARTED_OVER
    assert "was given output/last.npz and started over at" in judged.why
    assert judged.hint


def test_one_thing_that_goes_on_outranks_another_that_begins_again(tmp_path):
    run, asked = make_run(tmp_path, command=GIVEN), PLAN._replace(command=GIVEN)
    for first in (1, 4):
        job = begin_job(run)
        seen = SAVED if job > 1 else None
        jobs.write_begun(run, jobs.read_begun(run, job)._replace(checkpoint_seen=seen))
        early = [float(first), first + 1.0, first + 2.0]
        again = step_tracks.Track("step", [1.0], [3.0], 3, early=[1.0, 2.0, 3.0])
        on = step_tracks.Track("epoch as watched", early[:1], early[-1:], 3, early=early)
        judged = resume_evidence.judge(run, job, asked, [again, on], chain_rule.TIME_LIMIT)
        end_job(run, job, tracks=step_tracks.to_json([again, on]))

    assert judged.state == resume_evidence.CONTINUED


def test_mixed_evidence_lets_the_chain_go_on_with_a_warning(judge):
    judged = judge(UNKNOWN["stages and no more, because it was ended"], command=GIVEN)

    assert "not clear" in judged.why
    assert judged.hint


STUDY = "[I] Trial {} finished with value: 0.5\n"
NO_PROOF = {
    "nothing is printed": ["", ""],
    "trials of a study in a database": [printed(0, 14, STUDY), printed(15, 29, STUDY)],
    "a stage, and then what nobody can compare": ["Step 1: load\n", "Step 1: load\nTrial 15\n"],
    "a stage, after numbers that went on": [printed(1, 6), "epoch 1 of the warm-up\n"],
}


@pytest.mark.parametrize("name", NO_PROOF)
def test_what_the_source_shows_never_proves_that_a_job_started_over(judge, tmp_path, name):
    judged = judge(NO_PROOF[name], resumes=plan.NOT)

    assert judged.state == resume_evidence.UNKNOWN
    assert "not clear" in judged.why
    assert judged.hint
    told = run_report.report(str(tmp_path / "runs/digits-7f3a"))
    assert told["jobs"][1]["beginning_not_known"] == judged.why
    assert told["verdict"]["decision"] == chain_rule.GO_ON


@pytest.mark.parametrize("name", OVER)
def test_what_is_counted_again_proves_it_where_nothing_gives_the_checkpoint(judge, name):
    assert judge(OVER[name], resumes=plan.NOT).state == resume_evidence.STARTED_OVER


BEFORE_IT_BEGAN = (
    chain_rule.DAMAGED_DATA,
    chain_rule.STAGING_FAILED,
    chain_rule.NO_TIME_LEFT,
    chain_rule.KILLED,
)


@pytest.mark.parametrize(
    "how", [*BEFORE_IT_BEGAN, chain_rule.CRASHED, chain_rule.LOST, chain_rule.RUNNING]
)
@pytest.mark.parametrize("resumes", [plan.NOT, plan.WEIGHTS])
@pytest.mark.parametrize("text", ["", "\nrabaska: data.tar could not be read\n"])
def test_a_job_that_ended_before_it_began_did_not_start_over(judge, how, resumes, text):
    assert judge(["", text], how, resumes=resumes) == resume_evidence.NOTHING


def test_a_job_that_was_given_damaged_data_did_not_start_over_whatever_it_printed(judge):
    logs = OVER["epochs"]

    assert judge(logs, chain_rule.DAMAGED_DATA, command=GIVEN) == resume_evidence.NOTHING


def test_a_killed_job_that_printed_something_else_is_warned_of_by_its_source(judge):
    judged = judge(["", "hello\n"], chain_rule.KILLED, resumes=plan.NOT)

    assert judged.state == resume_evidence.UNKNOWN
    assert judged.why


def test_a_program_that_finds_its_checkpoint_itself_is_believed_when_its_steps_go_on(judge):
    assert judge(CONTINUES["epochs"], resumes=plan.NOT).state == resume_evidence.CONTINUED


def test_a_program_that_takes_the_weights_only_is_told_so_where_nothing_is_printed(judge):
    judged = judge(["", ""], command=GIVEN, resumes=plan.WEIGHTS)

    assert judged.state == resume_evidence.UNKNOWN
    assert "only the weights" in judged.why


def test_a_rehearsal_judges_for_itself(judge):
    cut = plan.PlannedInterruption(plan.KILL, 1, 2, 1.0)

    assert judge(OVER["epochs"], command=GIVEN, cuts=[cut]).state == resume_evidence.UNKNOWN


USAGE = "usage: fit.py [--trainer CONFIG]\nerror: unrecognized arguments: --ckpt_path "
REFUSED = USAGE + "/kept/000/output/checkpoints/epoch=7-step=800.ckpt\n"
NO_TRAINING = {
    "a path in the error of its options": REFUSED,
    "a path that is loaded": "reading logs/epoch=7-step=800.ckpt\n",
    "one number, and an error": "epoch 7\nTraceback (most recent call last):\nValueError: no\n",
}


@pytest.mark.parametrize("name", NO_TRAINING)
def test_a_job_that_crashed_before_any_step_did_not_start_over(judge, name):
    logs = [printed(7, 9), NO_TRAINING[name], NO_TRAINING[name]]

    judged = judge(logs, chain_rule.CRASHED, command=GIVEN, resumes=plan.FULL)

    assert judged == resume_evidence.NOTHING


# Epochs that were over when the checkpoint was saved, as far as is known; what job 1 and 2 print.
SAVED_ITS_OWN_EPOCH = {
    "the first epoch is made again": (1.0, [printed(0, 1), printed(0, 2)]),
    "counted from one": (2.0, [printed(1, 2), printed(1, 3)]),
    "the best was the first": (1.0, [printed(0, 4), printed(0, 5)]),
    "not known when it was saved": (None, [printed(0, 1), printed(0, 2)]),
}


@pytest.mark.parametrize("name", SAVED_ITS_OWN_EPOCH)
def test_a_program_that_saves_the_epoch_it_just_made_begins_with_it_again(judge, name):
    epoch, logs = SAVED_ITS_OWN_EPOCH[name]

    judged = judge(logs, command=GIVEN, resumes=plan.FULL, saved_at=epoch)

    assert judged.state == resume_evidence.UNKNOWN
    assert "not clear" in judged.why


@pytest.mark.parametrize(("epoch", "resumes"), [(2.0, plan.FULL), (1.0, plan.WEIGHTS)])
def test_it_has_started_over_where_the_run_had_got_beyond_that_epoch(judge, epoch, resumes):
    judged = judge([printed(0, 2), printed(0, 3)], command=GIVEN, resumes=resumes, saved_at=epoch)

    assert judged.state == resume_evidence.STARTED_OVER


def test_it_has_started_over_where_it_begins_with_that_epoch_in_each_job(judge):
    logs = [printed(0, 1), printed(0, 1), printed(0, 1)]

    judged = judge(logs, command=GIVEN, resumes=plan.FULL, saved_at=1.0)

    assert judged.state == resume_evidence.STARTED_OVER


@pytest.fixture
def tables(tmp_path):
    """`tables(text of job 1, what job 2 makes of it)`: the track of each."""

    def tables(first, second):
        run = make_run(tmp_path)
        found = []
        for text in (first, second):
            job = begin_job(run)
            step_tracks.remember(run, job, step_tracks.look(run.carried(job), ["*.pt"]))
            with open(os.path.join(run.output(job), "log.csv"), "w") as stream:
                stream.write(text)
            found.append(step_tracks.of_job(run, job, "", ["*.pt"]))
        return found

    return tables


def test_rows_that_are_added_tell_where_a_job_began(tables):
    first, second = tables("loss,epoch\n1,0\n1,1\n", "loss,epoch\n1,0\n1,1\n1,2\n1,3\n")

    assert [track.first for track in first] == [[0.0]]
    assert [track.first for track in second] == [[2.0]]


def test_a_table_that_is_written_anew_tells_nothing(tables):
    _, second = tables("loss,epoch\n0.5,0\n0.4,1\n", "loss,epoch\n0.6,0\n0.5,1\n0.4,2\n")

    assert second == []


def test_where_the_source_could_not_be_read_a_second_job_is_tried_and_then_more(tmp_path):
    asked = PLAN._replace(command=GIVEN, resumes=plan.UNREAD, jobs=1, growth=Growth(None))

    assert chain_rule.limit(asked, []) == chain_rule.TRIED
    assert chain_rule.limit(asked, [], shown=True) == chain_rule.USUAL
    for known in (plan.NOT, plan.WEIGHTS):
        assert chain_rule.limit(asked._replace(resumes=known), []) == 1
    for known in (plan.FULL, plan.ITSELF, plan.VARIABLE):
        assert chain_rule.limit(asked._replace(resumes=known), []) == chain_rule.USUAL


def test_the_one_number_of_a_name_that_never_changes_counts_nothing(tmp_path):
    saved = tmp_path / "output" / "resnet50.json"
    saved.parent.mkdir()
    saved.write_text("first")
    before = step_tracks.look(str(tmp_path), ["*.json"])
    saved.write_text("second, longer")

    assert list(step_tracks._of_names(str(tmp_path), ["*.json"], before)) == []


def test_stages_before_the_training_are_no_steps_that_were_made_again(judge, tmp_path):
    judge(CONTINUES["stages are numbered before it trains"], command=GIVEN)

    told = run_report.report(str(tmp_path / "runs/digits-7f3a"))["jobs"][1]

    assert (told["first_step"], told["last_step"], told["steps_redone"]) == (160, 260, 0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"command": GIVEN, "resumes": plan.FULL}, "continues"),
        ({"resumes": plan.ITSELF}, "continues"),
        ({"resumes": plan.VARIABLE}, "continues"),
        ({"resumes": plan.NOT}, "would start over: its program does not"),
        ({"command": GIVEN, "resumes": plan.WEIGHTS}, "would start over: its program loads only"),
        ({"resumes": plan.UNREAD}, "may start over: nothing shows"),
        ({}, "may start over: nothing shows"),
    ],
)
def test_what_resume_does_is_said_as_far_as_it_is_known(tmp_path, changes, says):
    run = make_run(tmp_path, **changes)
    end_job(run, begin_job(run))

    told = resume_evidence.verdict_on(run, PLAN._replace(**changes))

    assert told.decision == chain_rule.GO_ON
    assert says in (told.hint or "`rabaska resume` continues")
    assert ("--walltime" in told.hint) == ("start over" in says)


def test_jobs_that_were_seen_to_go_on_outweigh_the_source(judge, tmp_path):
    judge(CONTINUES["epochs"], resumes=plan.NOT)
    run = run_report.RunFolder(str(tmp_path / "runs" / "digits-7f3a"))

    assert resume_evidence.begins_again(run, PLAN._replace(resumes=plan.NOT)) == chain_rule.GOES_ON


def test_what_ended_for_another_reason_need_not_have_more_time():
    lost = chain_rule.Job(1, chain_rule.LOST, progressed=True)

    told = chain_rule.verdict([lost], again=chain_rule.Again("it loads nothing"))

    assert told.hint == "`rabaska resume` would start over: it loads nothing"
