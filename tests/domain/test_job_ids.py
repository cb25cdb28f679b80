"""Ids of jobs: as clusters print them, compared without their servers, and several as one."""

import pytest

from rabaska.domain.jobs import JobId, together


@pytest.mark.parametrize(
    ("native", "key"),
    [
        ("67.pbshost", "67"),
        ("15[2].pbs.example.org", "15[2]"),
        ("15[].pbshost", "15[]"),
        ("12_3", "12_3"),
        ("4761849", "4761849"),
        ("Moab.123", "Moab.123"),
    ],
)
def test_the_name_of_a_server_is_no_part_of_what_tells_jobs_apart(native, key):
    assert JobId(native).key == key


def test_jobs_submitted_one_by_one_have_one_id_to_the_run():
    chain = together([JobId("71.hades"), JobId("72.hades")])

    assert chain == JobId("71.hades 72.hades")
    assert chain.each == (JobId("71.hades"), JobId("72.hades"))
    assert [chain.holds(key) for key in ("71", "72", "73", "7", "712")] == [
        True, True, False, False, False,
    ]  # fmt: skip


def test_an_array_holds_its_elements_and_no_others():
    array = JobId("12")

    assert array.holds("12_1")
    assert not array.holds("120_1")
    assert not array.holds("1")
