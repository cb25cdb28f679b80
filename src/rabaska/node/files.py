"""Files that survive a kill: a reader finds all of a file or none of it."""

import errno
import hashlib
import itertools
import json
import os
import sys
from typing import Any, BinaryIO, Callable, Dict, Iterator, Optional, Union

PARTIAL = ".partial"

Json = Dict[str, Any]

_numbers = itertools.count()
_UTF_8 = sys.getfilesystemencoding().lower().replace("-", "") == "utf8"


def native(name: str) -> str:
    """A name that came as JSON, as this Python spells it.

    Python 3.6 where the locale is C could otherwise not open what has an accent.
    """
    return os.fsdecode(name.encode("utf-8", "surrogateescape"))


def native_value(value: Any) -> Any:
    """`value` of JSON, every text in it as this Python spells it."""
    return _respelled(value, native)


def _respelled(value: Any, spell: Callable[[str], str]) -> Any:
    """`value` of JSON, with every text in it spelled so."""
    if isinstance(value, str):
        return spell(value)
    if isinstance(value, list):
        return [_respelled(one, spell) for one in value]
    if isinstance(value, dict):
        return {spell(name): _respelled(one, spell) for name, one in value.items()}
    return value


def portable(name: str) -> str:
    """A name as every Python understands it: UTF-8, and single bytes only where it is none.

    Python in a job whose locale is C knows the letter é as two bytes that are no text.
    """
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def to_json(value: Json, indent: Optional[int] = None) -> str:
    text = json.dumps(value, indent=indent, sort_keys=True)
    if "\\ud" not in text:  # as almost always: no name in it is anything but text
        return text
    return json.dumps(_respelled(value, _portable), indent=indent, sort_keys=True)


def _portable(text: str) -> str:
    try:
        return portable(text)
    except UnicodeEncodeError:
        return text  # half a character, which is no byte of a name


def from_json(text: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply")
    # Where names are UTF-8, as nearly everywhere, they are spelled as JSON has them.
    return value if _UTF_8 else _respelled(value, _native)


def _native(text: str) -> str:
    try:
        return native(text)
    except UnicodeEncodeError:
        return text


def is_still_there(path: str) -> bool:
    """Whether there is such a thing; if so, it counts as new: `clean` takes only what is old."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    except PermissionError:
        return True  # somebody else's, who cleans it
    return True


def is_open_at(descriptor: int, path: str) -> bool:
    """Whether `path` is still what was opened: a lock on what was removed keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def sync_folder(path: str) -> None:
    """Make renames and new names inside `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        # Some network file systems refuse to sync a folder; their renames are synchronous.
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Make what was written to `path` durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(path: str) -> None:
    """Make all that was written where `path` lies durable: there may be a million files."""
    try:
        import ctypes

        syncfs = ctypes.CDLL(None).syncfs
    except (ImportError, OSError, AttributeError):
        os.sync()  # on every disk, and for everybody
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        syncfs(descriptor)
    finally:
        os.close(descriptor)


def create(path: str) -> BinaryIO:
    """A new file to write to: what lies there, such as a link that others left, is removed.

    Where a group may write to a folder, a link under the name of a partial file would lead what
    we write into any file of ours.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        descriptor = os.open(path, flags, 0o666)
    return open(descriptor, "wb")


def partial_name(path: str) -> str:
    """A name beside `path` to write to first; no other thread or process has the same."""
    return "{}.{}-{}{}".format(path, os.getpid(), next(_numbers), PARTIAL)


def write_whole(path: str, content: Union[str, bytes]) -> None:
    """Write `content` to `path` so that it is there whole, durably, or not at all."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    partial = partial_name(path)
    try:
        with create(partial) as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except BaseException:
        remove_if_there(partial)
        raise
    sync_folder(os.path.dirname(path) or ".")


def write_program(path: str, content: Union[str, bytes]) -> None:
    """A small program of our own, there whole or not at all; it is made again if it is lost."""
    partial = partial_name(path)
    with create(partial) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)
    os.chmod(partial, 0o700)
    os.replace(partial, path)


def make_inside(folder: str) -> None:
    """Make a folder in one that is there: what was deleted meanwhile does not come back."""
    try:
        os.mkdir(folder)
    except FileExistsError:
        pass


def write_json(path: str, value: Json) -> None:
    write_whole(path, to_json(value, indent=1) + "\n")


def read_json(path: str) -> Optional[Json]:
    """The object in `path`, or None when there is no such file."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = from_json(stream.read())
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    return value if isinstance(value, dict) else None


def append_line(path: str, value: Json) -> None:
    """Append `value` as one JSON line, durably, healing the half line a killed writer left."""
    line = (to_json(value) + "\n").encode("utf-8")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        if end and os.pread(descriptor, 1, end - 1) != b"\n":
            line = b"\n" + line
        write_all(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """A disk that fills up takes a part, and refuses only the next."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_lines(path: str) -> Iterator[Json]:
    """Every whole JSON line of `path`; what a killed writer left half written is passed over."""
    try:
        stream = open(path, "rb")
    except FileNotFoundError:
        return
    with stream:
        for line in stream:
            try:
                value = from_json(line.decode("utf-8"))
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def remove_if_there(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def sha256(path: str) -> str:
    """The digest of a file's content."""
    digest, room = hashlib.sha256(), memoryview(bytearray(2**18))
    with open(path, "rb", buffering=0) as stream:
        while True:
            size = stream.readinto(room)
            if not size:
                return digest.hexdigest()
            digest.update(room[:size])
