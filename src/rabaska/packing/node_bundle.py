"""The node side as one file: a zipapp named by its digest, so that a job keeps what it was sent."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from rabaska.node import files

_PACKAGES = ("node", "training")
_INTERPRETER = b"#!/usr/bin/env python3\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date a zip can hold
_PACKAGE = '"""The part of rabaska that travels: `node` and `training`."""\n'
_MAIN = """\
import sys

from rabaska.node.__main__ import main

sys.exit(main())
"""


def bundle(folder: Path) -> Path:
    """Write the node side to `<folder>/<digest>.pyz`, unless it is there, and return its path."""
    content = _zipapp()
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.pyz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        files.write_whole(str(path), content)
    return path


def _zipapp() -> bytes:
    """The bytes of the zipapp: sorted, dated 1980, the same for the same sources."""
    content = io.BytesIO()
    content.write(_INTERPRETER)
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(_members()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return content.getvalue()


def _members() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", _MAIN.encode()
    yield "rabaska/__init__.py", _PACKAGE.encode()
    installed = resources.files("rabaska")
    for package in _PACKAGES:
        yield from _sources(installed / package, f"rabaska/{package}")


def _sources(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """Every file below `folder` but compiled code, which belongs to this computer's Python."""
    for entry in folder.iterdir():
        if entry.is_dir():
            if entry.name != "__pycache__":
                yield from _sources(entry, f"{name}/{entry.name}")
        elif not entry.name.endswith((".pyc", ".pyo")):
            yield f"{name}/{entry.name}", entry.read_bytes()
