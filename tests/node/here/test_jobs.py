"""What a job gets, what it may ask for, and how its end is told."""

import os
import signal
import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_queue import WORDS, until

from rabaska.node.here.directives import Refused, Requested, output_path, read


def test_a_job_knows_its_number_its_end_and_its_keeper(here):
    here.submit("echo $RABASKA_JOB_ID $RABASKA_JOB_ENDS $RABASKA_KEEPER $PPID > told", "--time=100")
    before = time.time()

    here.wait()

    job, ends, keeper, parent = here.lines("told")[0].split()
    assert job == "1_1"
    assert before + 90 < float(ends) < before + 130
    assert keeper == parent


def test_without_a_time_limit_no_end_is_announced(here):
    here.variables["RABASKA_JOB_ENDS"] = "12"
    here.submit("echo [$RABASKA_JOB_ENDS] > told")

    here.wait()

    assert here.lines("told") == ["[]"]


def test_each_element_has_a_private_local_folder_that_is_removed(here):
    here.submit(
        'stat -c %a "$RABASKA_LOCAL" >> told; basename "$RABASKA_LOCAL" >> told;'
        'cd "$RABASKA_LOCAL"; mkdir -p a/b; touch a/b/c; chmod 500 a/b a .; exit 3',
        "--elements=2",
    )

    here.wait()

    mode, first, _, second = here.lines("told")
    assert mode == "700"
    assert first != second
    assert here.local_folders() == []


def test_output_can_be_read_while_the_job_runs(here):
    here.submit("echo hello; echo there >&2; sleep 60", "--output='logs of 50%%/job-%j.out'")
    path = here.folder / "logs of 50%" / "job-1_1.out"

    until(lambda: path.exists() and path.read_text() == "hello\nthere\n")

    assert here.state(1) == "RUNNING"


def test_a_job_outlives_the_terminal_it_was_submitted_from(here):
    script = here.script("until [ -e go ]; do sleep 0.1; done; echo done > told")
    terminal = subprocess.Popen(
        ["bash", "-c", '"$@"; sleep 60', "bash", *WORDS, "submit", "--queue", here.queue, script],
        cwd=here.folder,
        env=here.variables,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert terminal.stdout is not None
    with terminal.stdout:
        assert terminal.stdout.readline() == b"here job 1\n"

    os.killpg(terminal.pid, signal.SIGHUP)
    os.killpg(terminal.pid, signal.SIGKILL)
    terminal.wait()
    (here.folder / "go").touch()
    here.wait()

    assert here.lines("told") == ["done"]
    assert here.state(1) == "DONE"


def test_a_job_holds_no_descriptor_of_the_one_who_submitted_it(here):
    reader, writer = os.pipe()
    script = here.script("sleep 60")
    subprocess.run(
        [*WORDS, "submit", "--queue", here.queue, script],
        cwd=here.folder,
        env=here.variables,
        pass_fds=[writer],
        stdout=subprocess.PIPE,
        check=True,
    )

    os.close(writer)

    assert os.read(reader, 1) == b""  # the end of the pipe: nobody else holds it open
    os.close(reader)
    assert here.state(1) in ("QUEUED", "RUNNING")


def test_a_job_keeps_the_script_it_was_submitted_with(here):
    here.submit("sleep 0.5")
    script = here.script("echo old > told")
    here.run("submit", script)

    script.write_text("#!/bin/bash\necho new > told\n")
    here.wait()

    assert here.lines("told") == ["old"]


def test_names_with_spaces_and_quotes_are_kept(here):
    here.submit("true", """--name="Zoë's \\"first\\" run" """)

    here.wait()

    assert '"name": "Zo\\u00eb\'s \\"first\\" run"' in (
        here.queue / "jobs" / "1" / "job.json"
    ).read_text(encoding="utf-8")


def test_a_job_that_is_not_over_may_be_given_more_to_do(here):
    job = here.submit("echo $RABASKA_JOB_ID >> ran; until [ -e gate ]; do sleep 0.05; done")
    until(lambda: here.lines("ran"))

    said = [here.run("more", "--mark", mark, job) for mark in ("a", "a", "b")]
    waiting = here.states(job)
    (here.folder / "gate").touch()
    here.wait()
    late = here.run("more", "--mark", "c", job)

    assert {done.stdout for done in said} == {f"here job {job}\n"}
    assert list(waiting.values()) == ["RUNNING", "QUEUED", "QUEUED"]
    assert here.lines("ran") == [f"{job}_1", f"{job}_2", f"{job}_3"]
    assert set(here.states(job).values()) == {"DONE"}
    assert (late.returncode, late.stderr) == (
        1,
        f"here: job {job} has ended; nothing can follow it\n",
    )


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("exit 0", ["DONE", "0", ""]),
        ("exit 3", ["FAILED", "3", "exit code 3"]),
        ("kill -SEGV $$", ["FAILED", "139", "killed by SIGSEGV"]),
        ("no-such-command", ["FAILED", "127", "exit code 127"]),
    ],
)
def test_how_a_script_ended_is_told(here, text, end):
    here.submit(text)

    here.wait()

    assert here.status(1)["1_1"][:3] == end


def test_a_job_whose_folder_vanished_says_so(here):
    folder = here.folder / "soon gone"
    folder.mkdir()
    script = here.script("true")
    here.submit("until [ -e go ]; do sleep 0.1; done")
    subprocess.run(
        [*WORDS, "submit", "--queue", here.queue, script],
        cwd=folder,
        env=here.variables,
        stdout=subprocess.PIPE,
        check=True,
    )

    folder.rmdir()
    (here.folder / "go").touch()
    here.wait()

    state, _, reason = here.status(2)["2_1"][:3]
    assert state == "FAILED"
    assert "could not be started" in reason
    assert "soon gone" in reason
    assert here.local_folders() == []


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--tme=60", "did you mean --time=?"),
        ("--time=soon", "--time cannot be 'soon'"),
        ("--time=-1", "--time cannot be '-1'"),
        ("--time=nan", "--time cannot be 'nan'"),
        ("--elements=0", "--elements cannot be '0'"),
        ("--name='half", "No closing quotation"),
        ("60", "'60' is not an option"),
    ],
)
def test_a_bad_directive_is_refused_with_its_line(here, options, complaint):
    refused = here.run("submit", here.script("true", options))

    assert refused.returncode == 1
    assert "line 2 of the script" in refused.stderr
    assert complaint in refused.stderr


def test_a_script_that_is_not_there_is_refused(here):
    refused = here.run("submit", here.folder / "nothing.sh")

    assert refused.returncode == 1
    assert "nothing.sh" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_queue_must_be_named(here):
    refused = subprocess.run(
        [*WORDS, "status"], env=here.variables, stderr=subprocess.PIPE, text=True, check=False
    )

    assert refused.returncode == 1
    assert "RABASKA_QUEUE" in refused.stderr


@pytest.mark.parametrize("slots", ["0", "many", "-1"])
def test_a_senseless_number_of_slots_is_refused(here, slots):
    here.variables["RABASKA_SLOTS"] = slots

    refused = here.run("submit", here.script("true"))

    assert refused.returncode == 1
    assert slots in refused.stderr


def test_one_bad_number_does_not_hide_the_other_jobs(here):
    here.submit("true")
    here.wait()

    shown = here.run("status", "nonsense", "99", "1", "1_7", "--", "-3")

    assert shown.returncode == 0
    assert shown.stdout.startswith("here|1_1|DONE|0|")
    assert len(shown.stdout.splitlines()) == 1
    assert "no job nonsense" in shown.stderr
    assert "no job 99" in shown.stderr


def test_accents_do_not_stop_status_in_a_computer_without_a_language(here):
    here.variables.update({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"})
    here.submit("until [ -e go ]; do sleep 0.1; done")
    here.submit("true", "--output=été/job.out")
    (here.folder / "été").rmdir()
    (here.folder / "go").touch()
    here.wait()

    shown = here.status()

    assert shown["1_1"][0] == "DONE"
    assert shown["2_1"][0] == "FAILED"


def test_directives_end_where_the_commands_begin():
    asked = read("#!/bin/bash\n\n# a remark\n#HERE --elements=2\necho\n#HERE --elements=9\n")

    assert asked == Requested(elements=2)


@given(st.text())
def test_any_script_is_read_or_refused_in_plain_words(text):
    try:
        asked = read(text)
    except Refused as refusal:
        said = str(refusal)
    else:
        said = f"line of {asked.elements}"

    assert "line" in said


@given(st.text(alphabet="%ja/ "), st.from_regex(r"[1-9]_[1-9]", fullmatch=True))
def test_an_escaped_output_path_comes_back_unchanged(path, element):
    assert output_path(path.replace("%", "%%") + "%j", element) == path + element
