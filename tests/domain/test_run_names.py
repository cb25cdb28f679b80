"""Run names fit every file system and scheduler."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rabaska.domain.runs import Job, RunState, RunStatus, new_name


@given(st.text())
def test_a_run_is_named_in_plain_letters_whatever_the_project_is_called(project):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*-[0-9a-f]{4}", new_name(project))


def test_accents_are_kept_as_their_letters():
    assert new_name("Réseau d'été").startswith("reseau-d-ete-")


def test_the_verdict_is_the_programs_own_exit_code():
    failed = RunStatus("r", "here", RunState.FAILED, jobs=(Job(1, how="crashed", exit_code=3),))
    killed = RunStatus("r", "here", RunState.FAILED, jobs=(Job(1, how="killed", signal=9),))

    assert (failed.verdict, killed.verdict) == (3, 137)
    assert RunStatus("r", "here", RunState.FINISHED).verdict == 0
    assert RunStatus("r", "here", RunState.CANCELLED).verdict == 10


def test_the_verdict_on_damaged_data_is_that_of_a_damaged_pack():
    stopped = Job(1, how="damaged data", signal=15)

    assert RunStatus("r", "here", RunState.FAILED, jobs=(stopped,)).verdict == 5
