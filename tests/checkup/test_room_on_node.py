"""An environment is compared with the node's own disk, before a job waits for it."""

import json
from dataclasses import replace

import pytest
from remedies import apply
from tests.environments.small_wheels import make_wheel

from rabaska.checkup.check_resolved import Resolved, checks
from rabaska.checkup.subject import read_subject
from rabaska.domain.clusters import NodeDisk
from rabaska.node.environment.pip_queries import PipPackage
from rabaska.node.environment.wheel_contents import bytes_inside
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load
from rabaska.sites.site_facts import disks

MB = 10**6


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text("import canoe\n")
    (tmp_path / "requirements.txt").write_text("canoe\n")
    (tmp_path / "rabaska.toml").write_text(
        'command = "python train.py"\n[environment]\nrequirements = "requirements.txt"\n'
        '[cluster.mila]\nqueue = "long"\n'
    )
    return tmp_path


def subject(folder, **seen):
    cluster = replace(load_cluster("mila"), disks=seen, storage=())
    own = [replace(each, local=0) for each in cluster.partitions]
    return read_subject(load(folder, cluster="mila"), replace(cluster, partitions=tuple(own)))


def found(read, room):
    return [
        each
        for each in checks(read, Resolved(["canoe==1.0"], ["canoe"], room=room))
        if each.id == "environment.room"
    ]


def test_a_disk_that_is_too_small_is_named_with_its_size_and_what_is_needed(folder):
    read = subject(folder, long=NodeDisk(512 * MB, "/lscratch", "node1"))

    (told,) = found(read, 900 * MB)

    assert told.serious
    assert told.what == "the environment needs at least 900 MB on the node's own disk"
    assert told.why == "/lscratch on node1 has 512 MB in all, as an earlier job saw"
    assert '`build = "once"` under [cluster.mila.environment]' in told.fix


def test_the_remedy_removes_it(folder):
    seen = {"long": NodeDisk(512 * MB, "/lscratch", "node1")}
    (told,) = found(subject(folder, **seen), 900 * MB)

    assert apply(told.fix, folder)

    assert found(subject(folder, **seen), 900 * MB) == []


def test_what_only_nearly_fills_the_disk_is_a_note(folder):
    (told,) = found(subject(folder, long=NodeDisk(10**9, "/lscratch", "node1")), 950 * MB)

    assert not told.serious


def test_nothing_is_said_of_a_disk_that_nobody_saw_or_of_another_queues(folder):
    assert found(subject(folder), 900 * MB) == []
    assert found(subject(folder, main=NodeDisk(512 * MB, "/l", "node2")), 900 * MB) == []


def test_a_larger_queue_is_named(folder):
    read = subject(folder, long=NodeDisk(MB, "/l", "n1"), main=NodeDisk(10**12, "/l", "n2"))

    assert "a larger disk (main)" in found(read, 900 * MB)[0].fix


def test_the_room_of_wheels_is_read_from_their_headers(tmp_path):
    wheel = make_wheel(tmp_path, "canoe")

    size = bytes_inside([PipPackage("canoe", "1.0", str(wheel)), PipPackage("else", "2", "")])

    assert 300 < size < 1000


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"long": 3}', '{"long": {"size": -1, "path": "/l", "host": "n"}}']
)
def test_what_no_job_of_ours_wrote_is_no_disk(text):
    assert disks(text) == {}


def test_what_a_job_wrote_is_read():
    told = {"long": {"size": 5, "path": "/lscratch", "host": "node1"}}

    assert disks(json.dumps(told)) == {"long": NodeDisk(5, "/lscratch", "node1")}
