"""Packs to a real login node and results back: resumed, proven, never half there."""

import os
import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from rabaska.domain.clusters import Cluster
from rabaska.errors import NoSpace
from rabaska.journeys.station import Station
from rabaska.packing.bundle import bundle
from rabaska.remote.connection import Connection
from rabaska.remote.place import Parcel
from rabaska.remote.ssh import Ssh
from tests.lab.site import Storage

pytestmark = pytest.mark.real

MB = 2**20


@pytest.fixture
def make_station(tmp_path, make_voyager):
    """The station of a lab, with a store of its own."""

    def make(running, **differences):
        someone = make_voyager(running)
        folder = someone.sockets / f"rabaska-{os.getuid()}"
        folder.mkdir(mode=0o700)
        place = Ssh(someone.connection)
        return Station(
            cluster=Cluster("lab", "the lab", "slurm", host="lab", **differences),
            place=place,
            store=someone.store,
            python="python3",
            program=bundle(tmp_path / "node"),
        )

    return make


@pytest.fixture
def station(lab, make_station):
    return make_station(lab)


@pytest.fixture
def there(lab, station):
    """The store as the test sees it."""
    return lab.path(station.store)


def folder_of(path, sizes):
    path.mkdir()
    for number, size in enumerate(sizes):
        (path / f"shard-{number:05d}.tar").write_bytes(random.Random(number).randbytes(size))
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_a_folder_arrives_whole_and_the_second_time_nothing_is_sent(station, there, tmp_path):
    pack = folder_of(tmp_path / "pack", [3 * MB, 10, 0])
    told = []

    parcel = Parcel(pack, f"{station.store}/packs/pack-1")
    station.place.deliver([parcel], station, lambda *moved: told.append(moved))
    first, told[:] = list(told), []
    station.place.deliver([parcel], station, lambda *moved: told.append(moved))

    assert contents(there / "packs/pack-1") == contents(pack)
    assert first[-1] == (3 * MB + 10, 3 * MB + 10)
    assert told == []
    assert os.listdir(there / "packs") == ["pack-1"]
