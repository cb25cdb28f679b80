"""How fast a pack of one large shard is pushed over ssh, beside `rsync -a` of the same tar.

A push ends when the pack is on the disk; `rsync -a` leaves that to the system. Each turn begins
with nothing left to write, or one contender would wait for what the other left behind.
"""

import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import medians
from rows import Row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the lab is among the tests

from tests.lab import Lab

from rabaska.domain.clusters import Cluster
from rabaska.node.data import pack_format
from rabaska.packing.node_bundle import bundle
from rabaska.remote.login_node import Ssh
from rabaska.remote.place import Parcel, quoted
from rabaska.remote.ssh_connection import Connection
from rabaska.steps.connect import ConnectedCluster

NAME = "push"
OURS = "rabaska"
SHARE = 0.9  # of the rate of rsync


def run(quick: bool) -> list[Row]:
    size = (128 if quick else 1024) << 20
    with tempfile.TemporaryDirectory() as scratch, Lab() as lab:
        folder = Path(scratch)
        tar = _tar(folder, size)
        station = _station(folder, lab)
        try:
            cost = medians(
                {
                    OURS: lambda: _pushed(tar, station),
                    "rsync -a": lambda: _rsynced(tar, station),
                    "rsync -a --fsync": lambda: _rsynced(tar, station, "--fsync"),
                },
                repeats=3 if quick else 5,
            )
        finally:
            station.place.connection.close()
    return [
        _row(size, cost, "rsync -a", at_least=SHARE),
        _row(size, cost, "rsync -a --fsync"),
    ]


def _row(size: int, cost: dict[str, float], peer: str, at_least: float | None = None) -> Row:
    return Row(
        work=f"push {size >> 20} MiB over ssh",
        peer=f"{peer} of the same tar",
        ours=size / cost[OURS] / 1e6,
        theirs=size / cost[peer] / 1e6,
        ratio=cost[peer] / cost[OURS],
        at_least=at_least,
        unit="MB/s",
    )


def _tar(folder: Path, size: int) -> Path:
    path = folder / "pack" / "shard-00000.tar"
    path.parent.mkdir()
    with path.open("wb") as stream:
        for number in range(size >> 20):
            stream.write(random.Random(number).randbytes(1 << 20))
    return path


def _station(folder: Path, lab: Lab) -> ConnectedCluster:
    connection = Connection("lab", ("-F", str(lab.ssh_config)))
    return ConnectedCluster(
        cluster=Cluster("lab", "the lab", "slurm", host="lab"),
        place=Ssh(connection),
        store=f"{lab.shared}/rabaska",
        python="python3",
        program=bundle(folder / "node"),
    )


def _pushed(tar: Path, station: ConnectedCluster) -> float:
    """Seconds until the pack is there, proven and under its final name."""
    target = f"{station.store}/packs/pack"
    # A pack's digests are in its manifest, so they are not part of a push.
    parcel = Parcel(tar.parent, target, {tar.name: _sha256(tar)})
    os.sync()
    began = time.monotonic()
    station.place.deliver([parcel], station)
    took = time.monotonic() - began
    _expect_success(station, f"ls {quoted([f'{target}/{tar.name}'])} && rm -r {quoted([target])}")
    return took


_known: dict[Path, str] = {}


def _sha256(tar: Path) -> str:
    if tar not in _known:
        _known[tar] = pack_format.sha256_of(str(tar))
    return _known[tar]


def _rsynced(tar: Path, station: ConnectedCluster, *more: str) -> float:
    connection = station.place.connection
    connection.open()
    folder = f"{station.store}/rsynced"
    _expect_success(station, f"mkdir -p {quoted([folder])}")
    shell = shlex.join(connection.shell())
    command = ["rsync", "-a", *more, "-e", shell, str(tar), f"lab:{folder}/"]
    os.sync()
    began = time.monotonic()
    subprocess.run(command, check=True)
    took = time.monotonic() - began
    _expect_success(station, f"rm -r {quoted([folder])}")
    return took


def _expect_success(station: ConnectedCluster, script: str) -> None:
    outcome = station.place.run(script)
    if outcome.exit_code != 0:
        raise RuntimeError(outcome.complaint)
