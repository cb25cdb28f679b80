"""The far end of a push, run as the login node runs it."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

from rabaska.node.login import push_protocol, receive_push, write_received
from rabaska.packing.node_bundle import bundle


def converse(*said, path=None):
    """Say words and bytes to the node side and return its exit code and its answers."""
    done = subprocess.run(
        [sys.executable, "-m", "rabaska.node", "receive"],
        input=b"".join(said),
        capture_output=True,
        check=False,
        env={**os.environ, "PATH": f"{path}:{os.environ['PATH']}"} if path else None,
    )
    lines = done.stdout.decode("ascii").splitlines()
    return done.returncode, [json.loads(line.partition(push_protocol.ANSWER)[2]) for line in lines]


def ask(question, path=None):
    """What is missing, from a sender that hangs up then."""
    _, (answer,) = converse(push_protocol.word(question), path=path)
    return answer


def send(order, feed=b""):
    """The exit code of a whole conversation, and its last answer."""
    code, answers = converse(push_protocol.word(order), push_protocol.word(order), feed)
    return code, answers[-1]


def order_for(target, content, comes=None):
    digest = hashlib.sha256(content).hexdigest()
    comes = len(content) if comes is None else comes
    return [{"target": str(target), "files": [["shard", len(content), digest, comes]]}]


def fake(folder, name, script):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_what_is_missing_is_told_for_all_parcels_in_one_answer(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "shard").write_bytes(b"0123456789")
    (tmp_path / "half.partial").mkdir()
    (tmp_path / "half.partial" / "shard").write_bytes(b"123")
    parcels = [
        {"target": str(tmp_path / name), "files": [["shard", 10]]}
        for name in ("there", "half", "absent")
    ]

    answer = ask(parcels)

    assert answer["missing"] == {str(tmp_path / "half"): [3], str(tmp_path / "absent"): [0]}
    assert (answer["room"]["bytes"], answer["room"]["short"]) == (17, [])


def test_what_is_there_already_counts_as_new_so_that_nobody_cleans_it_away(tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    (there / "shard").write_bytes(b"0123456789")
    os.utime(there, (1000, 1000))

    ask([{"target": str(there), "files": [["shard", 10]]}])

    assert there.stat().st_mtime > 1000


def test_the_program_counts_as_new_too_also_when_its_compiled_copy_is_asked(tmp_path):
    program = bundle(tmp_path)
    use = "import sys; sys.path.insert(0, sys.argv[1]); from rabaska.node{0}; {1}"
    ready = use.format(" import own_program", "own_program.write_compiled_copy()")
    subprocess.run([sys.executable, "-Ic", ready, program], check=True)
    os.utime(program, (1000, 1000))

    ask = use.format(".login import receive_push", "receive_push.missing([])")
    subprocess.run([sys.executable, "-Ic", ask, f"{program}.compiled"], check=True)

    assert program.stat().st_mtime > 1000


def test_bytes_are_added_to_what_is_there_and_the_whole_is_proven(tmp_path):
    target, content = tmp_path / "pack", os.urandom(3_000_000)
    ask(order_for(target, content))
    (tmp_path / "pack.partial" / "shard").write_bytes(content[:1_234_567])

    code, answer = send(order_for(target, content, len(content) - 1_234_567), content[1_234_567:])

    assert (code, answer) == (0, {"damaged": {}})
    assert (target / "shard").read_bytes() == content
    assert os.listdir(tmp_path) == ["pack"]


def test_a_sender_that_stops_leaves_what_came_and_no_final_name(tmp_path):
    target, content = tmp_path / "pack", os.urandom(3_000_000)
    ask(order_for(target, content))

    code, _ = send(order_for(target, content), content[:2_500_000])

    arrived = (tmp_path / "pack.partial" / "shard").read_bytes()
    assert code == receive_push.CUT
    assert not target.exists()
    assert content.startswith(arrived)
    assert len(arrived) >= 2_000_000


def test_a_file_that_is_not_what_it_should_be_is_named_and_removed(tmp_path):
    target, content = tmp_path / "pack", b"as it should be"
    ask(order_for(target, content))

    code, answer = send(order_for(target, content), b"as it shouldn't")

    assert (code, answer) == (0, {"damaged": {str(target): ["shard"]}})
    assert not target.exists()
    assert os.listdir(tmp_path / "pack.partial") == []


def test_a_partial_longer_than_the_file_is_cut_to_its_size(tmp_path):
    target, content = tmp_path / "pack", b"short"
    ask(order_for(target, content))
    (tmp_path / "pack.partial" / "shard").write_bytes(b"short and then some")

    code, answer = send(order_for(target, content, comes=0))

    assert (code, answer) == (0, {"damaged": {}})
    assert (target / "shard").read_bytes() == content


@pytest.mark.parametrize("left", [None, b"first ha"])
def test_what_a_site_deleted_of_a_parcel_is_missing_and_the_rest_is_not(tmp_path, left):
    target, kept, lost = tmp_path / "pack", b"kept", b"first half, second half"
    target.mkdir()
    (target / "kept").write_bytes(kept)
    if left is not None:
        (target / "lost").write_bytes(left)
    there = len(left or b"")
    order = [{"target": str(target), "files": [
        ["kept", len(kept), hashlib.sha256(kept).hexdigest(), 0],
        ["lost", len(lost), hashlib.sha256(lost).hexdigest(), len(lost) - there],
    ]}]  # fmt: skip

    missing = ask(order)["missing"]
    code, answer = send(order, lost[there:])

    assert missing == {str(target): [len(kept), there]}
    assert (code, answer) == (0, {"damaged": {}})
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {
        "kept": kept, "lost": lost,
    }  # fmt: skip
    assert os.listdir(tmp_path) == ["pack"]


def test_what_is_left_of_a_parcel_goes_when_somebody_sends_it_anew(tmp_path):
    target, content = tmp_path / "pack", b"content"
    target.mkdir()
    (tmp_path / "pack.partial").mkdir()
    (tmp_path / "pack.partial" / "shard").write_bytes(content[:3])

    missing = ask(order_for(target, content))["missing"]
    code, _ = send(order_for(target, content, comes=len(content) - 3), content[3:])

    assert missing == {str(target): [3]}
    assert code == 0
    assert (target / "shard").read_bytes() == content


def test_a_parcel_in_doubt_is_proven_again_and_what_is_damaged_named(tmp_path):
    target, content = tmp_path / "pack", b"as it should be"
    target.mkdir()
    (target / "shard").write_bytes(b"as it shouldn't")
    doubted = [{**each, "doubted": True} for each in order_for(target, content, comes=0)]

    before = ask(order_for(target, content))["missing"]
    missing = ask(doubted)["missing"]
    code, answer = send(doubted)

    assert before == {}
    assert missing == {str(target): [len(content)]}
    assert (code, answer) == (0, {"damaged": {str(target): ["shard"]}})
    assert not target.exists()


def test_a_parcel_that_somebody_else_completed_is_asked_after_again(tmp_path):
    target, content = tmp_path / "pack", b"content"
    target.mkdir()
    (target / "shard").write_bytes(content)

    code, _ = send(order_for(target, content), content)

    assert code == receive_push.CUT
    assert ask(order_for(target, content))["missing"] == {}


def test_accents_survive_a_login_node_that_speaks_ascii(tmp_path, monkeypatch):
    for name, value in (("LC_ALL", "C"), ("PYTHONCOERCECLOCALE", "0"), ("PYTHONUTF8", "0")):
        monkeypatch.setenv(name, value)
    target, content = tmp_path / "josé" / "pack", b"content"

    answer = ask(order_for(target, content))
    send(order_for(target, content), content)

    assert answer["missing"] == {str(target): [0]}
    assert (target / "shard").read_bytes() == content


@pytest.mark.parametrize(("size", "stripes"), [(10, "1"), (1 << 30, "4")])
def test_large_files_are_spread_over_the_servers_of_lustre(tmp_path, size, stripes):
    tools = tmp_path / "tools"
    fake(tools, "stat", "echo lustre")
    fake(tools, "lfs", f'[ "$1" = setstripe ] && echo "$@" >> {tmp_path}/called')
    parcel = {"target": str(tmp_path / "packs" / "pack"), "files": [["shard", size]]}

    answer = ask([parcel], path=tools)

    called = (tmp_path / "called").read_text()
    assert called == f"setstripe -c {stripes} {tmp_path}/packs/pack.partial\n"
    assert answer["room"]["stripes"] == int(stripes)


def test_the_stripes_that_are_told_are_those_that_lustre_has(tmp_path):
    """A site may forbid users to set them; a stand-in for `lfs` does."""
    tools = tmp_path / "tools"
    fake(tools, "stat", "echo lustre")
    fake(tools, "lfs", 'case "$1" in getstripe) echo 1;; *) exit 1;; esac')
    parcel = {"target": str(tmp_path / "packs" / "pack"), "files": [["shard", 1 << 30]]}

    assert ask([parcel], path=tools)["room"]["stripes"] == 1


def test_elsewhere_no_stripes_are_set(tmp_path):
    tools = tmp_path / "tools"
    fake(tools, "lfs", f"touch {tmp_path}/called")

    ask([{"target": str(tmp_path / "pack"), "files": [["shard", 10]]}], path=tools)

    assert (tmp_path / "pack.partial").is_dir()
    assert not (tmp_path / "called").exists()


def test_a_quota_is_a_limit_like_a_disk(tmp_path):
    tools = tmp_path / "tools"
    fake(tools, "stat", "echo lustre")
    fake(tools, "lfs", 'echo "/lustre 990* 900 1000 6d 20 0 0 -"')
    parcel = {"target": str(tmp_path / "packs" / "pack"), "files": [["shard", 20_000]]}

    answer = ask([parcel], path=tools)

    short = {"limit": "quota (lfs)", "unit": "bytes", "free": 10_240}
    assert answer["room"]["short"] == [short, short]  # the user's and the group's
    assert not (tmp_path / "packs").exists()


def test_a_quota_command_that_fails_is_no_limit(tmp_path):
    tools = tmp_path / "tools"
    fake(tools, "quota", "echo 'quota: cannot find mount point'; exit 1")

    answer = ask([{"target": str(tmp_path / "pack"), "files": [["shard", 10]]}], path=tools)

    assert answer["room"]["short"] == []


def test_what_comes_compressed_is_inflated_before_it_is_proven(tmp_path):
    content = b"a line of text\n" * 200_000
    chunks = [
        content[at : at + write_received.CHUNK]
        for at in range(0, len(content), write_received.CHUNK)
    ]
    order = order_for(tmp_path / "pack", content)
    order[0]["squeezed"] = True
    feed = b"".join(map(write_received.compressed, chunks))
    ask(order_for(tmp_path / "pack", content))

    assert send(order, feed) == (0, {"damaged": {}})
    assert (tmp_path / "pack" / "shard").read_bytes() == content
    assert len(feed) < len(content) / 10


@pytest.mark.parametrize("feed", [b"\x05\0\0\0wrong", b"\x08\0\0\0x\x9c\x03\0\0\0\0\x01", b"\xff"])
def test_compressed_bytes_that_are_damaged_are_a_cut(tmp_path, feed):
    order = order_for(tmp_path / "pack", b"content")
    order[0]["squeezed"] = True
    ask(order_for(tmp_path / "pack", b"content"))

    assert send(order, feed)[0] == receive_push.CUT
    assert not (tmp_path / "pack").exists()
