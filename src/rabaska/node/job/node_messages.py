"""What `on-nodes` and its helpers say to each other: frames of a kind and some bytes.

Both prove that they know a key which is in a file of their user's, and neither says it: ports of a
node are open to its other users, on both sides.
"""

import hashlib
import hmac
import socket
import struct
from typing import List, NamedTuple, Optional

# From a helper.
HELLO = b"H"  # {"place", "nonce", "proof"}: who it is
OUTPUT = b"O"  # bytes that a process printed
RESULT = b"R"  # {"code", "why"}: how a process ended
# From `on-nodes`.
WORK = b"W"  # its proof: the work may begin
INPUT = b"I"  # bytes for the standard input of every process
NO_MORE = b"E"  # the input is over

_HEAD = struct.Struct(">cI")
_LONGEST = 64 * 1024 * 1024  # bytes of a frame
LONGEST_HELLO = 512  # bytes that somebody may say who has proven nothing yet
_PIECE = 64 * 1024


def proof(key: str, who: bytes, nonce: str) -> str:
    """What only somebody who knows the key can say, of a helper's nonce."""
    said = HELLO + WORK + who + nonce.encode("ascii")
    return hmac.new(key.encode("ascii"), said, hashlib.sha256).hexdigest()


def is_proof(said: object, key: str, who: bytes, nonce: str) -> bool:
    return hmac.compare_digest(str(said), proof(key, who, nonce))


class Frame(NamedTuple):
    kind: bytes
    content: bytes


class HelperConnection:
    """One connection, read without waiting."""

    def __init__(self, connection: socket.socket, longest: int = _LONGEST) -> None:
        self.connection = connection
        self._longest = longest  # bytes of a frame
        self._read = b""

    def trust(self) -> None:
        """Whoever is at the other end is one of ours."""
        self._longest = _LONGEST

    def fileno(self) -> int:
        return self.connection.fileno()

    def send(self, kind: bytes, content: bytes = b"") -> None:
        self.connection.sendall(_HEAD.pack(kind, len(content)) + content)

    def received(self) -> Optional[List[Frame]]:
        """The frames that came since, once something is there to read; None at the end."""
        try:
            piece = self.connection.recv(_PIECE)
        except OSError:
            return None
        if not piece:
            return None
        self._read += piece
        return self._frames()

    def _frames(self) -> Optional[List[Frame]]:
        found = []  # type: List[Frame]
        while len(self._read) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._read)
            if length > self._longest:
                return None  # nobody of ours
            end = _HEAD.size + length
            if len(self._read) < end:
                break
            found.append(Frame(kind, self._read[_HEAD.size : end]))
            self._read = self._read[end:]
        return found

    def end(self) -> None:
        """Say no more, and leave when the other side does.

        Closing with input still unread would reset the connection, and what was said last with it.
        """
        self.connection.shutdown(socket.SHUT_WR)
        while self.connection.recv(_PIECE):
            pass

    def close(self) -> None:
        self.connection.close()
