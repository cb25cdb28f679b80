"""Trees of every kind, made on disk and compared."""

import os
import stat
from pathlib import Path

from hypothesis import strategies as st

# A name is any bytes but the two that no file system allows; most are readable.
_letters = st.sampled_from(
    [b"a", b"b", b"cat", b"-", b" ", b"'", b'"', b"\n", b"\xc3\xa9", b"\xff", b"\\", b".", b"*"]
)
names = (
    st.one_of(
        st.lists(_letters, min_size=1, max_size=5).map(b"".join),
        st.integers(90, 255).map(lambda length: b"n" * length),
    )
    .filter(lambda name: name not in (b".", b".."))
)  # fmt: skip
contents = st.one_of(
    st.just(b""), st.binary(max_size=40), st.integers(500, 1600).map(lambda size: b"\x7f" * size)
)
times = st.one_of(st.integers(0, 2 * 10**18), st.sampled_from([-(10**15) - 1, 8**11 * 10**9]))


class Link(bytes):
    """Where a link points: to no name that a tree can have, or it could lead back to itself."""


links = st.sampled_from([b".", b"nowhere", b"down/and/down", b"\xfe"]).map(Link)
file_modes = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o400])
folder_modes = st.sampled_from([0o755, 0o700, 0o750, 0o555])

# name -> (content, mode, time) for a file, (Link, …) for a link, ({...}, …) for a folder
things = st.tuples(st.one_of(contents, contents, links), file_modes, times)
trees = st.recursive(
    st.dictionaries(names, things, max_size=4),
    lambda inside: st.dictionaries(
        names, st.one_of(things, st.tuples(inside, folder_modes, times)), max_size=4
    ),
    max_leaves=8,
)


def holds_a_file(tree) -> bool:
    return any(
        holds_a_file(content) if isinstance(content, dict) else not isinstance(content, Link)
        for content, _, _ in tree.values()
    )


def make(tree, folder: bytes, *, backwards: bool = False) -> None:
    """Write `tree`; backwards, so that folders list their entries in another order."""
    os.makedirs(folder, exist_ok=True)
    items = sorted(tree.items(), reverse=backwards)
    for name, (content, mode, time) in items:
        path = os.path.join(folder, name)
        if isinstance(content, Link):
            os.symlink(content, path)
        elif isinstance(content, dict):
            make(content, path, backwards=backwards)
        else:
            with open(path, "wb") as stream:
                stream.write(content)
        if not isinstance(content, Link):
            os.chmod(path, mode)
        os.utime(path, ns=(time, time), follow_symlinks=False)


def described(folder):
    """Everything below `folder` that a pack promises to keep."""
    root = os.fsencode(folder)
    found = {}
    for parent, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            content, runs = None, False
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = Path(os.fsdecode(path)).read_bytes()
                runs = bool(status.st_mode & stat.S_IXUSR)
            found[os.path.relpath(path, root)] = (stat.S_IFMT(status.st_mode), runs, content)
    return found
