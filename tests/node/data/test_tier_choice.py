"""Where a pack goes on its node."""

import pytest
from tests.disks import small_disk

from rabaska.node.data.free_space import free_memory
from rabaska.node.data.tier_choice import DISK, MEMORY, NodeTier, choose, kind_of, tiers_here

GB = 10**9


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        (NodeTier("", "", 2 * GB, 1000), MEMORY),
        (NodeTier("", "", 2 * GB, 200_000), DISK),  # too many files for the memory's file system
        (NodeTier("", "", 20 * GB), DISK),
        (NodeTier("", "", 2000 * GB), None),
    ],
)
def test_the_first_tier_with_room_is_chosen(wanted, kind):
    tiers = [NodeTier(MEMORY, "/dev/shm", 5 * GB, 100_000), NodeTier(DISK, "/tmp", 100 * GB)]

    found = choose(wanted, tiers)

    assert (found and found.kind) == kind


def test_a_folder_in_memory_may_take_a_part_of_the_memory_that_is_left(tmp_path):
    found = tiers_here("/dev/shm", str(tmp_path))

    assert [tier.folder for tier in found] == ["/dev/shm", str(tmp_path)]
    assert found[0].bytes <= free_memory() / 3


def test_a_folder_that_is_not_there_is_no_tier(tmp_path):
    found = tiers_here(str(tmp_path / "no such folder"), str(tmp_path))

    assert [tier.folder for tier in found] == [str(tmp_path)]


def test_a_disk_that_lies_in_memory_is_called_so(tmp_path):
    with small_disk(tmp_path, "1m"):
        kind = kind_of(str(tmp_path / "below"))
        found = tiers_here("", str(tmp_path))

    assert kind == MEMORY
    assert [tier.kind for tier in found] == [MEMORY]
    assert found[0].bytes < 2**20
