"""The embedded cluster keeps the contract, and both of its sides understand each other."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
from contract import DEMANDING, PLAIN, Printed, SchedulerContract
from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.jobs import JobId, JobSpec, JobState, Resources
from rabaska.errors import SettingsError
from rabaska.node.here.directives import output_path, read
from rabaska.node.here.elements import Element, line_of
from rabaska.schedulers import SCHEDULERS, named
from rabaska.schedulers.local import Local
from rabaska.schedulers.protocol import Scheduler

LOCAL: Scheduler = Local(program=("python3", "/store/node/abc.pyz"), queue="/store/a queue")

STATUS = """\
here|12_1|DONE|0||1794773865.226|1794773866.342|cats-7f3a|.
here|12_2|FAILED|3|exit code 3|1794773866.343|1794773867.454|cats-7f3a|.
here|12_3|TIMEOUT|143|it took longer than 5 s|1794773867.455|1794773872.500|cats-7f3a|.
here|12_4|CANCELLED||before it began||1794773872.600|cats-7f3a|.
here|13_1|STOPPING||it was asked to stop|1794773872.700||cats-7f3a|.
here|14_1|RUNNING|||1794773872.700||cats-7f3a|.
here|14_2|QUEUED||waits for the one before|||cats-7f3a|.
here|15_1|LOST||its keeper was killed, or the computer restarted|1794773872.700||cats-7f3a|.
here|15_2|NEVER_RAN||its keeper was killed, or the computer restarted|||cats-7f3a|.
here|16|UNKNOWN||its job.json cannot be read|||cats-7f3a|.
"""


class TestLocal(SchedulerContract):
    scheduler = LOCAL
    printed = Printed(
        submitted="here job 12\n",
        job="12",
        status=STATUS,
        states={
            "12_1": JobState.DONE,
            "12_2": JobState.FAILED,
            "12_3": JobState.TIMEOUT,
            "12_4": JobState.CANCELLED,
            "13_1": JobState.STOPPING,
            "14_1": JobState.RUNNING,
            "14_2": JobState.QUEUED,
            "15_1": JobState.LOST,
            "15_2": JobState.NEVER_RAN,
            "16": JobState.UNKNOWN,
        },
        refusals=("here: the job asks for 2 GPU(s), and this computer has none\n",),
        gone=("here: there is no job 7",),
    )


def test_what_is_asked_for_arrives_on_the_other_side():
    script = "\n".join(["#!/bin/bash", *LOCAL.directives(DEMANDING), "exec true"])

    asked = read(script)

    assert asked.name == 'Zoë\'s "first" run; rm -rf $HOME `id` second line'
    assert asked.time == 10 * 86400 + 7
    assert (asked.elements, asked.gpus) == (4, 2)
    assert output_path(asked.output, "3_1") == "/store/a folder/with 50% 'quotes'/scheduler-3_1.out"


printable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), min_size=1)


@given(
    name=printable,
    folder=printable,
    seconds=st.integers(1, 10**9),
    jobs=st.integers(1, 10**4),
)
def test_every_spec_survives_the_way_through_the_script(name, folder, seconds, jobs):
    spec = JobSpec(name, Resources(timedelta(seconds=seconds)), f"/{folder}", jobs)

    asked = read("\n".join(LOCAL.directives(spec)))

    assert asked.name == (" ".join(name.split()) or "job")
    assert (asked.time, asked.elements) == (seconds, jobs)
    assert output_path(asked.output, "1_1") == f"/{folder}/scheduler-1_1.out"


@given(
    state=st.from_regex(r"[A-Z_]{1,20}", fullmatch=True),
    code=st.none() | st.integers(0, 255),
    reason=st.text(),
    started=st.none() | st.floats(0, 1e11),
    name=st.text(),
    noise=st.lists(st.text()),
)
def test_every_line_of_status_survives_noise(state, code, reason, started, name, noise):
    line = line_of(Element("7_2", state, code, reason, started, job_name=name))

    found = LOCAL.read_status("\n".join(["", *noise, "", line, *noise]))

    assert found["7_2"].spelled == state
    assert found["7_2"].exit_code == code
    assert found["7_2"].reason == reason
    assert found["7_2"].carries == ((name,) if name else ())


@given(state=st.from_regex(r"[A-Z_]{1,20}", fullmatch=True))
def test_an_unheard_of_state_is_unknown_and_not_over(state):
    known = {"QUEUED", "RUNNING", "STOPPING", "DONE", "FAILED", "TIMEOUT", "CANCELLED", "LOST",
             "NEVER_RAN"}  # fmt: skip

    status = LOCAL.read_status(f"here|7_2|{state}||||||.")["7_2"]

    assert (status.state is JobState.UNKNOWN) == (state not in known)
    assert status.spelled == state


@given(st.integers(0, len(STATUS)))
def test_a_line_cut_short_is_not_read(length):
    whole = STATUS[:length].count("|.")

    assert len(LOCAL.read_status(STATUS[:length])) == whole


def test_several_nodes_cannot_be_had():
    spec = JobSpec("x", Resources(timedelta(hours=1), nodes=2), "/logs")

    assert LOCAL.unmet(spec) == ["this computer is one node, and the job asks for 2"]


def test_native_options_are_passed_on():
    spec = JobSpec("x", PLAIN.resources, "/logs", native=("--grace=45",))

    assert read("\n".join(LOCAL.directives(spec))).grace == 45


def test_schedulers_are_found_by_name():
    assert named("local", program=("python3", "x.pyz"), queue="/q") == Local(
        ("python3", "x.pyz"), "/q"
    )


def test_an_unknown_scheduler_offers_the_nearest_one():
    with pytest.raises(SettingsError) as refused:
        named("locl", program=(), queue="")

    assert "did you mean 'local'?" in str(refused.value)
    assert all(name in str(refused.value) for name in SCHEDULERS)


def test_a_job_goes_through_the_real_commands(tmp_path: Path):
    words = "import sys; from rabaska.node.here.commands import main; sys.exit(main(sys.argv[2:]))"
    scheduler = Local((sys.executable, "-c", words), str(tmp_path / "queue"))
    spec = JobSpec("x", Resources(timedelta(seconds=30)), str(tmp_path / "logs"), jobs=2)
    script = tmp_path / "-a 'script'.sh"
    script.write_text("\n".join([*scheduler.directives(spec), f"echo {scheduler.in_job().job_id}"]))

    def run(command: list[str]) -> str:
        return subprocess.run(
            command, cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=True
        ).stdout

    job = scheduler.read_job_id(run(scheduler.submit_command(script.name, spec)))
    assert job == JobId("1")
    states: list[JobState] = []
    while not states or not all(state.over for state in states):
        found = scheduler.read_status(run(scheduler.status_command([job])))
        states = [found[element].state for element in ("1_1", "1_2")]
        time.sleep(0.1)

    assert states == [JobState.DONE, JobState.DONE]
    assert (tmp_path / "logs" / "scheduler-1_1.out").read_text() == "1_1\n"
    assert run(scheduler.cancel_command([job])) == ""
