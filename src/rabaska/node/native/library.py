"""The library for this computer, loaded; an ImportError where that cannot be."""

import ctypes
import os
import platform
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_uint32, c_uint64, c_void_p
from typing import Any

from .. import files, own_program, private_files

SWITCH = "RABASKA_NATIVE"


class Pack(ctypes.Structure):
    """Where samples come from: `Pack` of reading.c."""

    _fields_ = [
        ("index", c_void_p),
        ("index_size", c_int64),
        ("files", c_int64),
        ("shards", c_void_p),
        ("shard_count", c_int64),
        ("proven", c_void_p),
        ("proven_count", c_int64),
        ("compared", c_void_p),
        ("compared_count", c_int64),
    ]


class Request(ctypes.Structure):
    """Which files come into a shard, and what it still takes: `request` of shards.c."""

    _fields_ = [
        ("names", c_void_p),
        ("ends", c_void_p),
        ("start", c_uint64),
        ("count", c_int64),
        ("begun", c_int64),
        ("room", c_int64),
        ("large", c_int64),
        ("flags", c_int64),
    ]


class Outcome(ctypes.Structure):
    """What became of them: `outcome` of shards.c."""

    _fields_ = [
        ("error", c_int64),
        ("broken", c_int64),
        ("bytes", c_int64),
        ("newest", c_int64),
    ]


def file_name() -> str:
    return "librabaska-{}-{}.so".format(sys.platform, platform.machine())


def _load() -> Any:
    if os.environ.get(SWITCH) == "0" or sys.implementation.name != "cpython":
        raise ImportError("it is switched off, or this Python has objects of another form")
    name = file_name()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    try:
        if not os.path.isfile(own_program.own_path()):
            return _declared(ctypes.CDLL(path))
        content = __loader__.get_data(path)  # type: ignore[name-defined]
        return _declared(_from_program(content, name))
    except (OSError, AttributeError) as problem:
        raise ImportError(str(problem))


def _from_program(content: bytes, name: str) -> Any:
    """The library that travels inside of our program; it is loaded from a copy beside it."""
    path = "{}.{}".format(own_program.program_path(), name)
    try:
        if not _holds(path, content):
            files.write_program(path, content)
        return ctypes.CDLL(path)
    except OSError:  # the store is read-only here, or holds no programs
        import tempfile  # takes long to import

        folder = private_files.new_folder(tempfile.gettempdir())
        path = os.path.join(folder, name)
        try:
            files.write_program(path, content)
            return ctypes.CDLL(path)
        finally:
            files.remove_if_there(path)
            os.rmdir(folder)


def _holds(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as stream:
            return stream.read() == content
    except FileNotFoundError:
        return False


def _declared(loaded: Any) -> Any:
    """`loaded`, knowing the types of what it takes and gives."""
    pack = POINTER(Pack)
    for name, result, arguments in (
        ("crc32", c_uint32, [c_uint32, c_void_p, c_uint64]),
        ("joined_crc32", c_uint32, [c_uint32, c_uint32, c_uint64]),
        ("tree_begin", None, [c_void_p]),
        ("tree_add", None, [c_void_p, c_void_p, c_uint64]),
        ("tree_end", None, [c_void_p, c_void_p, c_uint64, c_void_p]),
        ("shard_size", c_uint64, []),
        ("shard_begin", None, [c_void_p, c_int]),
        ("shard_add", c_int, [c_void_p, c_void_p, c_void_p, c_uint64]),
        ("shard_end", c_int, [c_void_p, c_void_p, c_void_p]),
        (
            "shard_take",
            c_int64,
            [c_void_p, c_void_p, POINTER(Request), c_void_p, c_void_p, c_void_p, POINTER(Outcome)],
        ),
        ("folder", c_void_p, [c_char_p, POINTER(c_uint64), POINTER(c_uint64)]),
        ("walk_begin", c_void_p, [c_char_p]),
        (
            "walk_next",
            c_int,
            [c_void_p, c_void_p, c_uint64] + [c_void_p] * 2 + [c_int64, c_void_p, c_void_p],
        ),
        ("walk_end", None, [c_void_p]),
        ("below", c_int64, [c_void_p, c_int64, c_uint32, c_void_p, c_int64]),
        ("stats", c_int64, [c_void_p, c_void_p, c_uint64, c_int64, c_int, c_void_p, c_void_p]),
        ("names", None, [c_void_p, c_char_p, c_uint64, c_void_p, c_void_p, c_void_p]),
        (
            "take",
            c_int64,
            [c_char_p, c_int64, c_int, c_int64, c_void_p, c_int64]
            + [c_void_p, c_void_p, POINTER(c_int64)],
        ),
        ("records", None, [c_int64] + [c_void_p] * 4 + [c_uint64] * 3 + [c_void_p]),
        (
            "unpack",
            c_int64,
            [c_void_p, c_int64, c_int64, c_int64, c_int64, c_int64, c_uint32]
            + [c_void_p, c_uint64, c_uint64, c_int],
        ),
        ("places", c_int64, [pack, c_void_p, c_int64, c_int64, c_void_p, c_void_p]),
        ("samples", c_int, [pack, c_void_p, c_int64, c_void_p, c_int64]),
    ):
        function = getattr(loaded, "rabaska_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(loaded, name, function)
    return loaded


library = _load()
