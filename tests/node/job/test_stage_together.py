"""Nodes that read a pack together: each its share, whoever is lost, and no stranger."""

import json
import random
import shutil
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from rabaska.node.data import blocks, pack_format, stage
from rabaska.node.job import node_group, pass_blocks
from rabaska.node.job.stage_together import FirstMeeting, Meeting, _Met, other_meeting
from rabaska.packing.make_pack import PackOptions, pack

NODES = 3
KEY = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """As much as is worth it, in two shards: some blocks for each node."""
    folder = tmp_path_factory.mktemp("source")
    chance = random.Random(1)
    for number in range(32):
        path = folder / f"class_{number % 4}" / f"{number}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chance.randbytes(2_000_000))
    return folder


@pytest.fixture(scope="module")
def packed(source, tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("store")
    return pack(source, store, PackOptions("it", shard_size=33_000_000)).folder


def only_share(packed: Path, folder: Path, place: int, nodes: int) -> Path:
    """The pack as one node sees it: what others shall read is not there for it."""
    shutil.copytree(packed, folder)
    manifest = pack_format.load_manifest(str(packed))
    for number, share in enumerate(pass_blocks._shares(manifest, nodes)):
        for block in share if number != place else []:
            name = pack_format.INDEX if block.shard < 0 else manifest.shards[block.shard].name
            with (folder / name).open("r+b") as stream:
                stream.seek(block.number * pack_format.BLOCK)
                stream.write(bytes(block.size))
    return folder


class Nodes:
    """Threads in place of nodes, which meet over the real network of this computer."""

    def __init__(self, folder: Path) -> None:
        (folder / "key").write_text(json.dumps({"key": KEY}))
        self.first = FirstMeeting("localhost", "127.0.0.1", KEY, str(folder / "key"), NODES - 1)
        self._folder = folder
        self.staged: dict[int, object] = {}

    def stage(self, packs: dict[int, Path], mode: str) -> dict[int, object]:
        """Each node's staged folder, or what went wrong."""
        self.first.is_over = lambda: False
        work = [threading.Thread(target=self._first, args=(packs[0], mode))]
        for place in range(1, NODES):
            work.append(threading.Thread(target=self._other, args=(packs, place, mode)))
        for thread in work:
            thread.start()
        for thread in work:
            thread.join(60)
        return self.staged

    def _first(self, pack: Path, mode: str) -> None:
        self._stage(pack, 0, mode, self.first)
        self.first.finish()
        self.first.close()

    def _other(self, packs: dict[int, Path], order: int, mode: str) -> None:
        with other_meeting(self.first.words) as meeting:
            assert meeting is not None
            manifest = pack_format.load_manifest(str(packs[0]))
            meeting.together(0, manifest)  # they come: only now it is known who is who
            place = meeting._met.sharing._place
            self._stage(packs[place], place, mode, meeting)

    def _stage(self, pack: Path, place: int, mode: str, meeting: Meeting) -> None:
        manifest = pack_format.load_manifest(str(pack))
        try:
            target = str(self._folder / f"node{place}")
            path = stage.stage(str(pack), target, mode, None, meeting.together(0, manifest))
            self.staged[place] = Path(path)
        except (OSError, pack_format.BadPack) as problem:
            self.staged[place] = problem


@pytest.fixture
def nodes(tmp_path) -> Nodes:
    return Nodes(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("mode", [stage.SHARDS, stage.FILES])
def test_each_node_reads_its_share_and_gets_the_rest_from_the_others(
    source, packed, nodes, tmp_path, mode
):
    packs = {
        place: only_share(packed, tmp_path / f"storage{place}", place, NODES)
        for place in range(NODES)
    }

    staged = nodes.stage(packs, mode)

    for place in range(NODES):
        found = contents(staged[place])
        if mode == stage.FILES:
            assert found == contents(source)
        else:
            assert found.pop("proven") == bytes([1]) * 2
            assert found == contents(packed)
        assert sorted(path.name for path in staged[place].parent.iterdir()) == [staged[place].name]


def test_what_a_lost_node_should_have_read_is_read_by_the_others(packed, nodes, monkeypatch):
    """One node comes, says where it serves, and is gone."""
    lost = node_group.OtherNode("localhost", int(nodes.first.words[1]), KEY)
    with closing(node_group.open_listener("127.0.0.1")) as serving:
        coming = threading.Thread(target=lambda: (lost.join(serving), lost.close()))
        coming.start()
        with nodes.first._first._changed:
            nodes.first._first._changed.wait_for(lambda: nodes.first._first._came, 10)
    work = [
        threading.Thread(target=nodes._first, args=(packed, stage.SHARDS)),
        threading.Thread(
            target=nodes._other, args=(dict.fromkeys(range(NODES), packed), 2, stage.SHARDS)
        ),
    ]

    for thread in work:
        thread.start()
    for thread in work:
        thread.join(60)
    coming.join(10)

    assert all(isinstance(path, Path) for path in nodes.staged.values()), nodes.staged
    assert sorted(nodes.staged) == [0, 2]


def test_a_block_that_arrives_damaged_is_read_from_the_storage(packed, nodes, monkeypatch):
    """Nobody trusts what another node sends."""
    send = pass_blocks._send

    def harm(connection, source, offset, size):
        send(connection, source, max(0, offset - 1), size)

    monkeypatch.setattr(pass_blocks, "_send", harm)

    staged = nodes.stage(dict.fromkeys(range(NODES), packed), stage.SHARDS)

    for place in range(NODES):
        found = contents(staged[place])
        del found["proven"]
        assert found == contents(packed)


def test_whoever_does_not_know_the_key_gets_nothing(packed, nodes):
    port = int(nodes.first.words[1])
    for target in (port, nodes.first._serving.getsockname()[1]):
        with socket.create_connection(("localhost", target), 10) as connection:
            connection.settimeout(10)
            connection.sendall(bytes(16))
            said = node_group.exactly(connection, 48)
            connection.sendall(bytes(32))

            assert connection.recv(100) == b""

        assert KEY.encode() not in said
        with (
            socket.create_connection(("localhost", target), 10) as connection,
            pytest.raises(node_group.Stranger),
        ):
            node_group.prove_to(connection, "another")
    nodes.first.close()


def test_small_data_is_staged_alone(tmp_path):
    (tmp_path / "few").mkdir()
    (tmp_path / "few" / "a").write_bytes(b"cat")
    folder = pack(tmp_path / "few", tmp_path / "packs", PackOptions("few")).folder

    def never() -> _Met:
        raise AssertionError("they met")

    assert Meeting(never).together(0, pack_format.load_manifest(str(folder))) is None


def test_a_node_that_cannot_come_stages_alone(packed, capsys):
    def fail() -> _Met:
        raise ConnectionRefusedError("nobody listens")

    assert Meeting(fail).together(0, pack_format.load_manifest(str(packed))) is None

    assert "this node stages alone: nobody listens" in capsys.readouterr().out


def test_a_node_that_comes_when_the_first_is_done_stages_alone(packed, tmp_path, capsys):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "1.txt").write_text("1")
    small = pack(tmp_path / "one", tmp_path / "store", PackOptions("small")).folder
    gone = ["localhost", "1", str(tmp_path / "meeting-gone")]

    with other_meeting(gone) as meeting:
        alone = [meeting.together(0, pack_format.load_manifest(str(it))) for it in (small, packed)]

    assert alone == [None, None]
    assert capsys.readouterr().out.count("this node stages alone") == 1


def test_every_block_is_read_by_one_node(packed):
    manifest = pack_format.load_manifest(str(packed))
    whole = blocks.blocks_of(manifest, [0, 1])

    for count in (1, 2, 3, 100):
        shares = pass_blocks._shares(manifest, count)
        assert len(shares) == count
        found = sorted(block for share in shares for block in share)
        assert found == sorted([*whole, blocks.Block(-1, 0, manifest.index_size)])


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_nothing_listens_at_every_address(host):
    if not host:
        with pytest.raises(ValueError, match="no address"):
            node_group.open_listener(host)
        return
    with closing(node_group.open_listener(host)) as listener:
        assert listener.getsockname()[0] == host
