"""A pack that several nodes need, read from shared storage once: each node reads its share of the
blocks, and passes it on to the others.

A block belongs to the node whose turn it is in the list of blocks, which is the same everywhere.
Each is compared with its checksum where it arrives. What a node that was lost should have passed on
is read from the storage by whoever misses it.
"""

import hashlib
import os
import queue
import socket
import struct
import threading
from typing import Callable, Dict, Iterator, List, Optional, Set, Tuple

from .. import partial_folder
from ..data import blocks, pack_format, stage
from ..data.blocks import Block
from ..data.pack_format import INDEX, Manifest
from . import node_group
from .node_group import Address

_REQUEST = struct.Struct(">IiI")  # dataset, shard, number of the block
_DATA, _WAIT, _NONE = b"D", b"W", b"N"
_BEAT = 1.0  # seconds between signs of life of a node that has not read a block yet
_SILENCE = 30.0  # seconds after which a node is lost
_AT_ONCE = 4  # nodes that we take blocks from at the same time
_READERS = 8  # streams from the storage
_ROOM = 2**18  # bytes that stay in the processor's cache between receiving, summing and writing
_WORTH = 32 * 2**20  # bytes from which on it is worth meeting


class _Arriving:
    """The blocks of one dataset, as they come to this node."""

    def __init__(self, folder: str, manifest: Manifest) -> None:
        self.manifest = manifest
        self.names = [shard.name for shard in manifest.shards] + [INDEX]
        self.files = [os.open(os.path.join(folder, name), os.O_RDWR) for name in self.names]
        self.here: Set[Block] = set()
        self.lost: Set[Block] = set()
        self.changed = threading.Condition()

    def mark(self, block: Block, *, good: bool) -> None:
        with self.changed:
            (self.here if good else self.lost).add(block)
            self.changed.notify_all()

    def close(self) -> None:
        for descriptor in self.files:
            os.close(descriptor)


class Sharing:
    """What this node passes on, and takes from the others."""

    def __init__(
        self,
        serving: socket.socket,
        key: str,
        place: int,
        count: int,
        addresses: Callable[[], List[Optional[Address]]],
    ) -> None:
        self._serving, self._key = serving, key
        self._place, self._count = place, count
        self._addresses = addresses  # waits until they are known
        self._known: Optional[List[Optional[Address]]] = None
        self._asking = threading.Lock()
        self._arriving: Dict[int, Optional[_Arriving]] = {}
        self._changed = threading.Condition()
        self._folders = []  # type: List[partial_folder.PartialFolder]
        node_group.listen(serving, key, self._serve)

    def _refuse(self, number: int) -> None:
        """This node passes on nothing of a dataset."""
        with self._changed:
            self._arriving[number] = None
            self._changed.notify_all()

    def together(self, number: int, manifest: Manifest) -> stage.Together:
        """How dataset `number` of the run is staged."""
        return stage.Together(
            lambda pack, target, _: self._bring(number, pack, target, manifest),
            self._folders.append,
            lambda: self._refuse(number),
        )

    def _bring(
        self, number: int, pack_folder: str, target: str, manifest: Manifest
    ) -> Iterator[Tuple[int, int]]:
        """Fill the files of `target`, which are as long as they shall be; bytes, as they come."""
        arriving = _Arriving(target, manifest)
        with self._changed:
            self._arriving[number] = arriving
            self._changed.notify_all()
        shares = _shares(manifest, self._count)
        done = queue.Queue()  # type: queue.Queue[object]
        copying = _Copying(pack_folder, target, arriving, done)
        copying.read(shares[self._place])
        others = queue.Queue()  # type: queue.Queue[int]
        for step in range(1, self._count):
            others.put((self._place + step) % self._count)  # each begins with another
        for _ in range(min(_AT_ONCE, self._count - 1)):
            work = (others, number, shares, copying)
            threading.Thread(target=self._take_all, args=work, daemon=True).start()
        left = sum(map(len, shares))
        try:
            while left:
                told = done.get()
                if isinstance(told, BaseException):
                    raise told
                left -= 1
                yield 0, int(told)  # type: ignore[call-overload]
        finally:
            copying.stop()

    def close(self) -> None:
        node_group.stop_listening(self._serving)
        while self._folders:
            partial_folder.abandon(self._folders.pop())
        while self._arriving:
            arriving = self._arriving.popitem()[1]
            if arriving is not None:
                arriving.close()

    def _take_all(
        self,
        others: "queue.Queue[int]",
        number: int,
        shares: List[List[Block]],
        copying: "_Copying",
    ) -> None:
        while True:
            try:
                place = others.get_nowait()
            except queue.Empty:
                return
            left = list(shares[place])
            try:
                self._take(place, number, left, copying)
            except (OSError, ValueError):
                copying.read(left)  # the node is lost, or what it passes on is not what was packed

    def _take(self, place: int, number: int, left: List[Block], copying: "_Copying") -> None:
        """Take blocks from another node, as long as it gives them; those that came are not left."""
        address = self._address(place)
        if address is None:
            raise OSError("it did not come")
        if not left:
            return
        with socket.create_connection(address, node_group._ANSWER) as connection:
            node_group.prove_to(connection, self._key)
            connection.settimeout(_SILENCE)
            while left:
                connection.sendall(_REQUEST.pack(number, left[0].shard, left[0].number))
                answer = node_group.exactly(connection, 1)
                while answer == _WAIT:
                    answer = node_group.exactly(connection, 1)
                if answer != _DATA:
                    raise OSError("it does not have it")
                copying.receive(connection, left[0])
                left.pop(0)

    def _address(self, place: int) -> Optional[Address]:
        with self._asking:
            if self._known is None:
                try:
                    self._known = self._addresses()
                except (OSError, ValueError, KeyError, TypeError):  # the first node is lost
                    self._known = [None] * self._count
            return self._known[place]

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        while True:
            number, shard, place = _REQUEST.unpack(node_group.exactly(connection, _REQUEST.size))
            found = self._block(connection, number, shard, place)
            if found is None:
                connection.sendall(_NONE)
                continue
            connection.sendall(_DATA)
            _send(connection, *found)

    def _block(
        self, connection: socket.socket, number: int, shard: int, place: int
    ) -> Optional[Tuple[int, int, int]]:
        """Where it lies, once it is here; None when it never will be."""
        with self._changed:
            while number not in self._arriving:
                if not self._changed.wait(_BEAT):
                    connection.sendall(_WAIT)
            arriving = self._arriving[number]
        if arriving is None:
            return None
        block = _named(arriving.manifest, shard, place)
        with arriving.changed:
            while block not in arriving.here:
                if block in arriving.lost:
                    return None
                if not arriving.changed.wait(_BEAT):
                    connection.sendall(_WAIT)
        return arriving.files[shard], block.number * pack_format.BLOCK, block.size


class _Copying:
    """Blocks on their way into the files of this node."""

    def __init__(
        self, pack_folder: str, target: str, arriving: _Arriving, done: "queue.Queue[object]"
    ) -> None:
        self._pack, self._target, self._arriving, self._done = pack_folder, target, arriving, done
        self._waiting = queue.Queue()  # type: queue.Queue[Optional[Block]]
        for _ in range(_READERS):
            threading.Thread(target=self._read_all, daemon=True).start()

    def read(self, some: List[Block]) -> None:
        """Read these from the storage."""
        for block in some:
            self._waiting.put(block)

    def stop(self) -> None:
        for _ in range(_READERS):
            self._waiting.put(None)

    def receive(self, connection: socket.socket, block: Block) -> None:
        """A block that another node sends; ValueError if it is not what was packed."""
        crc, digest, offset = 0, hashlib.sha256(), block.number * pack_format.BLOCK
        end, target = offset + block.size, self._arriving.files[block.shard]
        room = memoryview(bytearray(min(_ROOM, block.size)))
        while offset < end:
            count = connection.recv_into(room[: end - offset])
            if not count:
                raise OSError("the connection ended")
            if block.shard < 0:
                digest.update(room[:count])
            else:
                crc = blocks.crc32(room[:count], crc)
            blocks.write_at(target, room[:count], offset)
            offset += count
        manifest = self._arriving.manifest
        if block.shard < 0:
            good = digest.hexdigest() == manifest.index_sha256
        else:
            good = crc == manifest.shards[block.shard].crcs[block.number]
        if not good:
            raise ValueError("{} is not what was packed".format(block))
        self._finish(block)

    def _read_all(self) -> None:
        while True:
            block = self._waiting.get()
            if block is None:
                return
            try:
                if block.shard < 0:
                    stage.copy_index(self._pack, self._target, self._arriving.manifest)
                else:
                    blocks.copy_block(self._pack, self._target, self._arriving.manifest, block)
                self._finish(block)
            except BaseException as problem:  # it is raised by who waits for all of them
                self._arriving.mark(block, good=False)
                self._done.put(problem)

    def _finish(self, block: Block) -> None:
        self._arriving.mark(block, good=True)
        self._done.put(block.size)


def is_worth(manifest: Manifest) -> bool:
    """Whether a pack is so large that nodes should read it together; all of them find the same."""
    return sum(shard.size for shard in manifest.shards) + manifest.index_size >= _WORTH


def _shares(manifest: Manifest, nodes: int) -> List[List[Block]]:
    """Which blocks each node reads; the index is one, of the shard that comes before the first."""
    everything = [Block(-1, 0, manifest.index_size)]
    everything += blocks.blocks_of(manifest, list(range(len(manifest.shards))))
    return [everything[place::nodes] for place in range(nodes)]


def _named(manifest: Manifest, shard: int, number: int) -> Block:
    if shard == -1:
        return Block(-1, 0, manifest.index_size)
    if not 0 <= shard < len(manifest.shards):
        raise ValueError("no such shard")
    size = manifest.shards[shard].size - number * pack_format.BLOCK
    if size <= 0:
        raise ValueError("no such block")
    return Block(shard, number, min(pack_format.BLOCK, size))


def _send(connection: socket.socket, source: int, offset: int, size: int) -> None:
    while size:
        sent = os.sendfile(connection.fileno(), source, offset, size)
        if not sent:
            raise OSError("the file was cut short")
        offset, size = offset + sent, size - sent
