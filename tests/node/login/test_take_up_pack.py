"""A pack that another program brought: complete and proven, or it stays where it arrived."""

import shutil

import pytest

from rabaska.node.login.take_up_pack import take_up
from rabaska.packing.make_pack import PackOptions, pack


@pytest.fixture
def arrived(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.txt").write_text("1" * 5000)
    return pack(tmp_path / "data", tmp_path / "arriving", PackOptions("cats")).folder


def taken(arrived, name=""):
    return take_up(
        str(arrived.parent), str(arrived.parent.parent / "packs"), name or arrived.name
    )  # fmt: skip


def test_a_complete_pack_gets_its_place_once(arrived):
    assert taken(arrived)["state"] == "taken"
    assert taken(arrived)["state"] == "there"
    assert not arrived.exists()


def test_it_replaces_one_that_lost_a_part(arrived):
    old = arrived.parent.parent / "packs" / arrived.name
    shutil.copytree(arrived, old)
    (old / "shard-00000.tar").unlink()

    assert taken(arrived)["state"] == "taken"
    assert taken(arrived)["state"] == "there"
    assert [path.name for path in old.parent.iterdir()] == [old.name]


def test_what_is_not_there_or_not_complete_is_waited_for(arrived):
    assert taken(arrived, "dogs-123")["state"] == "absent"
    (arrived / "shard-00000.tar").write_bytes(b"half")

    told = taken(arrived)

    assert told["state"] == "on its way"
    assert told["have"] > 4


def test_damaged_bytes_and_another_pack_of_that_name_are_not_taken(arrived):
    shard = arrived / "shard-00000.tar"
    content = bytearray(shard.read_bytes())
    content[600] ^= 1
    shard.write_bytes(content)

    assert taken(arrived)["state"] == "damaged"
    content[600] ^= 1
    shard.write_bytes(content)
    other = arrived.rename(arrived.with_name("cats-000000000000"))
    told = taken(other)
    assert told["state"] == "damaged"
    assert arrived.name in told["problems"][0]
