"""What every scheduler module must keep to, whatever commands stand behind it.

A scheduler passes by three lines in its own test file:

    class TestSlurm(SchedulerContract):
        scheduler = Slurm()
        printed = Printed(submitted="...", job="123", status="...", states={"123_1": RUNNING, ...})
"""

import os
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

import pytest
from damage import TEXTS_PER_SEED, damaged, garbled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rabaska.domain.jobs import JobId, JobSpec, JobState, JobStatus, Resources, TrialAnswer
from rabaska.schedulers.protocol import Scheduler

PLAIN = JobSpec(
    name="digits-7f3a",
    resources=Resources(walltime=timedelta(hours=3)),
    folder="/store/runs/digits-7f3a/logs",
)
DEMANDING = replace(
    PLAIN,
    name='Zoë\'s "first" run; rm -rf $HOME `id`\nsecond line',
    resources=Resources(
        walltime=timedelta(days=10, seconds=7), gpus=2, gpu_model="a100", cores=8, memory=64 * 10**9
    ),
    folder="/store/a folder/with 50% 'quotes'",
    jobs=4,
    warn_before=timedelta(minutes=10),
    account="def-someone",
    queue="gpu",
    features=("bigmem",),
    mail="someone@example.org",
)
# Lines that log-in nodes print around every answer.
NOISE = (
    "Welcome to the cluster! Maintenance on 2026-12-24.\n",
    "bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\n",
    "\n",
    "\x1b[1m*** 1234 jobs running ***\x1b[0m\r\n",
)
# What cancel commands say when the job may well be alive.
CANNOT_CANCEL = (
    "scancel: error: Kill job error on job id 12: Access/permission denied",
    "scancel: error: slurm_kill_job2: Unable to contact slurm controller (connect failure)",
    "qdel: Unauthorized Request 12.pbshost",
    "qdel: cannot connect to server pbshost (errno=111) Connection refused",
    "ERROR:  client timed out after 30 seconds (hostname:port=mg1:42559)",
    "error: commlib error: got select error (Connection refused)",
    "bash: line 1: qdel: command not found",
    "exit code 127",
)
# Each scheduler runs the same methods as a class of its own.
for_every_class = settings(suppress_health_check=[HealthCheck.differing_executors])
# `make parsers` asks for a hundred thousand texts of each scheduler.
TEXTS = int(os.environ.get("PARSER_TEXTS", "1000"))
many_texts = settings(
    for_every_class, max_examples=max(1, TEXTS // TEXTS_PER_SEED), deadline=None, database=None
)


@dataclass(frozen=True)
class Printed:
    """What the real commands printed, kept as it was."""

    submitted: str
    job: str  # the id in `submitted`
    status: str
    states: Mapping[str, JobState]  # every job in `status`
    refusals: tuple[str, ...] = field(default=())  # what submit prints when it refuses
    history: str = ""
    ended: Mapping[str, JobState] = field(default_factory=dict)  # every job in `history`
    gone: tuple[str, ...] = ()  # what cancel says of jobs that are over or forgotten
    # What is said of a job that is only shown, and what is to be understood.
    shown: Mapping[str, TrialAnswer] = field(default_factory=dict)


class SchedulerContract:
    scheduler: ClassVar[Scheduler]
    printed: ClassVar[Printed]

    @pytest.mark.parametrize("spec", [PLAIN, DEMANDING], ids=["plain", "demanding"])
    def test_directives_are_comment_lines_that_a_shell_passes_over(self, spec: JobSpec) -> None:
        lines = self.scheduler.directives(spec)

        assert all(line.startswith("#") and line.splitlines() == [line] for line in lines)
        script = "\n".join(["#!/bin/bash", *lines, "echo reached"])
        ran = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
        assert ran.stdout == "reached\n"

    def test_directives_depend_on_nothing_but_the_spec(self) -> None:
        assert self.scheduler.directives(DEMANDING) == self.scheduler.directives(DEMANDING)

    def test_a_longer_walltime_is_asked_for_differently(self) -> None:
        longer = replace(PLAIN, resources=Resources(walltime=timedelta(hours=4)))

        assert self.scheduler.directives(longer) != self.scheduler.directives(PLAIN)

    def test_a_plain_job_is_fully_met(self) -> None:
        assert self.scheduler.unmet(PLAIN) == []

    def test_what_cannot_be_met_is_said_in_sentences(self) -> None:
        for sentence in self.scheduler.unmet(DEMANDING):
            assert len(sentence.split()) >= 3
            assert "\n" not in sentence

    def test_what_it_says_it_cannot_do_it_says_is_unmet(self) -> None:
        able = self.scheduler.capabilities
        asks = {
            "mail": replace(PLAIN, mail="someone@example.org"),
            "features": replace(PLAIN, features=("bigmem",)),
            "accounts": replace(PLAIN, account="def-someone"),
        }

        for capability, spec in asks.items():
            assert bool(self.scheduler.unmet(spec)) != getattr(able, capability), capability

    def test_a_script_with_a_strange_name_stays_one_word(self) -> None:
        script = "/store/a folder/-it's.sh"

        command = self.scheduler.submit_command(script, PLAIN)

        assert script in command
        assert shlex.split(shlex.join(command)) == command

    @pytest.mark.parametrize("before", NOISE)
    @pytest.mark.parametrize("after", NOISE)
    def test_the_job_id_is_found_among_noise(self, before: str, after: str) -> None:
        output = before + self.printed.submitted + after

        assert self.scheduler.read_job_id(output) == JobId(self.printed.job)

    @pytest.mark.parametrize("text", ["", *NOISE])
    def test_noise_alone_holds_no_job_id(self, text: str) -> None:
        assert self.scheduler.read_job_id(text) is None

    def test_a_refusal_holds_no_job_id(self) -> None:
        for refusal in self.printed.refusals:
            assert self.scheduler.read_job_id(refusal) is None

    def test_every_job_asked_about_is_in_the_command(self) -> None:
        jobs = [JobId("12"), JobId("345")]

        for command in (self.scheduler.status_command(jobs), self.scheduler.cancel_command(jobs)):
            words = re.split(r"[^\d\[\]]+", " ".join(command))
            assert {"12", "345"} <= {word.strip("[]") for word in words}

    def test_a_job_that_is_no_more_is_told_from_one_that_cannot_be_cancelled(self) -> None:
        able = self.scheduler.capabilities

        assert self.printed.gone
        assert all(able.is_gone(text) for text in self.printed.gone)
        assert not any(able.is_gone(text) for text in CANNOT_CANCEL)

    def test_a_job_that_is_only_shown_tells_its_start_or_its_refusal(self) -> None:
        for before in NOISE:
            assert self.scheduler.read_prospect(before) == TrialAnswer()
            for text, understood in self.printed.shown.items():
                assert self.scheduler.read_prospect(before + text) == understood

    @given(st.text())
    @for_every_class
    def test_no_text_about_a_job_that_is_shown_or_cancelled_stops_anything(self, text: str) -> None:
        assert isinstance(self.scheduler.read_prospect(text), TrialAnswer)
        assert self.scheduler.capabilities.is_gone(text) in (True, False)

    def test_showing_a_job_never_submits_it(self) -> None:
        shown = self.scheduler.prospect_command(DEMANDING)

        assert bool(shown) == bool(self.printed.shown)
        assert not shown or shown != self.scheduler.submit_command("job.sh", DEMANDING)[:-1]

    def test_recorded_states_are_read(self) -> None:
        found = self.scheduler.read_status(self.printed.status)

        assert {job: status.state for job, status in found.items()} == dict(self.printed.states)

    def test_what_a_job_carries_is_told_where_it_can_be_asked_for(self) -> None:
        found = self.scheduler.read_status(self.printed.status).values()

        asked = self.scheduler.carried_command(JobId("12"))
        assert bool(asked) == any(status.carries for status in found)
        assert not asked or "12" in asked

    def test_noise_changes_no_state(self) -> None:
        noisy = "".join(NOISE) + self.printed.status + "".join(NOISE)

        assert self.scheduler.read_status(noisy) == self.scheduler.read_status(self.printed.status)

    def test_nothing_printed_is_nothing_known(self) -> None:
        assert self.scheduler.read_status("") == {}

    @for_every_class
    @given(data=st.data())
    def test_a_status_cut_short_never_ends_a_job_that_had_not_ended(self, data: st.DataObject):
        text = self.printed.status
        cut = text[: data.draw(st.integers(0, len(text)))]

        for job, status in self.scheduler.read_status(cut).items():
            assert self.printed.states.get(job) == status.state

    @for_every_class
    @given(text=st.text())
    def test_no_text_whatever_makes_a_reader_fail(self, text: str) -> None:
        assert all(
            isinstance(status, JobStatus) for status in self.scheduler.read_status(text).values()
        )
        job = self.scheduler.read_job_id(text)
        assert job is None or job.native in text

    def test_recorded_endings_are_read(self) -> None:
        found = self.scheduler.read_history(self.printed.history)

        assert {job: status.state for job, status in found.items()} == dict(self.printed.ended)

    @many_texts
    @given(seed=st.integers(0, 2**63))
    def test_no_damage_gives_a_job_a_state_that_it_has_not(self, seed: int) -> None:
        whole = self.scheduler.read_status(self.printed.status)
        for text in damaged(self.printed.status, NOISE, seed):
            for job, status in self.scheduler.read_status(text).items():
                assert self.printed.states.get(job) == status.state, text
                assert status.carries in ((), whole[job].carries), text
        for text in damaged(self.printed.history, NOISE, seed):
            for job, status in self.scheduler.read_history(text).items():
                assert self.printed.ended.get(job) == status.state, text

    @many_texts
    @given(seed=st.integers(0, 2**63))
    def test_garbled_text_makes_no_reader_fail(self, seed: int) -> None:
        for text in garbled(self.printed.status, seed):
            self.scheduler.read_status(text)
        for text in garbled(self.printed.history, seed):
            self.scheduler.read_history(text)
        for text in garbled(self.printed.submitted, seed):
            job = self.scheduler.read_job_id(text)
            assert job is None or job.native in text

    @pytest.mark.parametrize("terminal", [True, False])
    def test_commands_for_people_hold_the_command_whole(self, terminal: bool) -> None:
        script = "/store/a folder/enter.sh"

        alone = self.scheduler.interactive_command(PLAIN, script, terminal=terminal)
        beside = self.scheduler.beside_command("12", ["bash", script], terminal=terminal)

        told = [" ".join(alone), " ".join(beside)]
        assert all("enter.sh" in text or "batch job" in text for text in told)

    def test_inside_a_job_its_number_is_a_shell_expression(self) -> None:
        assert "$" in self.scheduler.in_job().job_id
