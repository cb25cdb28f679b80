"""Small files that are written many at a time."""

import os

from rabaska.node.data import write_files


def test_only_its_own_files_are_closed_in_whatever_order_they_were_opened():
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(6)]
    another = opened[3]
    # A thread that reads ahead closed the first when two were open, and opened the fourth.
    mixed = [opened[1], opened[2], opened[0], opened[4], opened[5]]

    write_files._close(mixed)

    os.fstat(another)
    assert [number for number in mixed if _is_open(number)] == []
    os.close(another)


def _is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
