"""What quota commands print, and what it leaves."""

from hypothesis import given
from hypothesis import strategies as st

from rabaska.node.data.free_space import Room, free_here, read_quota

# `quota -w -p` of quota 4.06 prints a heading; `lfs quota -q` prints the row alone.
QUOTA = """\
Disk quotas for user alice (uid 23170):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
      /dev/sda1     400    1000    2000       0      12       0     100       0
"""
LFS_LONG_NAME = """\
/lustre07/scratch
                 1234567* 1000000 2000000 6d23h 5 0 0 -
"""


def test_the_hard_limit_counts_and_zero_is_no_limit():
    assert list(read_quota("quota", QUOTA)) == [
        Room("quota", "bytes", 1600 * 1024),
        Room("quota", "files", 88),
    ]


def test_a_row_that_was_broken_after_a_long_name_is_read_like_any_other():
    assert list(read_quota("quota", LFS_LONG_NAME)) == [
        Room("quota", "bytes", (2_000_000 - 1_234_567) * 1024)
    ]


def test_what_is_over_its_limit_leaves_nothing_and_never_less():
    over = "/lustre 3000* 1000 2000 - 5 0 0 -"

    assert list(read_quota("quota", over)) == [Room("quota", "bytes", 0)]


@given(st.text())
def test_words_that_are_no_quota_are_no_limit_and_no_error(text):
    assert all(room.free >= 0 for room in read_quota("quota", text))


def test_a_folder_that_does_not_exist_yet_has_the_room_of_the_one_above(tmp_path):
    assert [room.unit for room in free_here(str(tmp_path / "a" / "b"))][:2] == ["bytes", "files"]
