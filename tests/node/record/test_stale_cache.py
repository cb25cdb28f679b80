"""Who holds a run, where each node remembers for a while what it saw of the storage."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import stale_mounts
from agents import make_run

from rabaska.node.record import jobs, lease
from rabaska.node.record.run_folder import RunFolder

pytestmark = pytest.mark.slow

REMEMBERS = 60.0  # seconds, as NFS does for folders (nfs(5), acdirmax)
TTL = 3.0


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stale_mounts.compiled(tmp_path_factory.mktemp("fuse"))


@pytest.fixture
def nodes(tmp_path: Path, program: Path) -> Iterator[tuple[RunFolder, RunFolder]]:
    """One run, as two nodes see it."""
    run = make_run(tmp_path / "store", {})
    inside = os.path.relpath(run.path, tmp_path / "store")
    with (
        stale_mounts.mounted(program, tmp_path / "store", tmp_path / "a", REMEMBERS) as here,
        stale_mounts.mounted(program, tmp_path / "store", tmp_path / "b", REMEMBERS) as there,
    ):
        yield RunFolder(str(here / inside)), RunFolder(str(there / inside))


def look_around(run: RunFolder) -> None:
    """As a program and its agent do all the time, so that the node remembers it."""
    for _ in range(2):  # a second look shows whether the first is remembered
        run.holder()
        os.listdir(run.output(1))
        os.path.exists(run.stop)


def test_a_holder_whose_node_remembers_the_past_learns_that_it_was_superseded(
    nodes: tuple[RunFolder, RunFolder],
) -> None:
    here, there = nodes
    stale = lease.claim(here, 0, "1", TTL)
    assert stale is not None
    look_around(here)

    successor = lease.claim(there, 1, "2", TTL)
    assert successor is not None
    remembered = here.holder(), os.path.isdir(here.carried(1))
    began = time.monotonic()
    while not stale.lost():
        time.sleep(0.02)

    stale.end()
    successor.end()
    assert remembered == (1, True)  # else the mount forgets, and nothing is shown
    assert time.monotonic() - began < TTL
    assert stale.superseded
    assert successor.lost() == ""


def test_of_contenders_on_two_nodes_that_remember_the_past_one_claims(
    nodes: tuple[RunFolder, RunFolder],
) -> None:
    for node in nodes:
        node.holder()
        os.path.isdir(node.carried(0))
    barrier = threading.Barrier(2)
    won: list[lease.Lease] = []

    def contend(node: RunFolder) -> None:
        barrier.wait()
        holding = lease.claim(node, 0, "", TTL)
        if holding is not None:
            won.append(holding)

    contenders = [threading.Thread(target=contend, args=(node,)) for node in nodes]
    for contender in contenders:
        contender.start()
    for contender in contenders:
        contender.join()

    for holding in won:
        holding.end()
    assert [holding.job for holding in won] == [1]


def test_a_contender_that_remembers_an_older_holder_takes_nothing_over(
    nodes: tuple[RunFolder, RunFolder],
) -> None:
    here, there = nodes
    first = lease.claim(here, 0, "1", TTL)
    assert first is not None
    first.end()
    look_around(there)
    second = lease.claim(here, 1, "2", TTL)
    assert second is not None

    assert there.holder() == 1  # as it was
    assert lease.claim(there, 1, "3", TTL) is None

    second.renew()
    second.end()
    assert second.lost() == ""
    assert jobs.read_begun(here, 2) is not None
