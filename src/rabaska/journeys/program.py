"""Our node side on this computer: bundled when its sources changed, found again when not."""

import os
from pathlib import Path
from typing import Any

import rabaska
from rabaska.node import files


def node_program(folder: Path) -> Path:
    """The bundle in `folder`; it is made only when a source is not what it was."""
    note, sources = folder / "newest.json", _fingerprint()
    known = _known(note)
    program = folder / str(known.get("name", ""))
    if known.get("sources") == sources and program.is_file():
        return program
    from rabaska.packing.bundle import bundle

    program = bundle(folder)
    files.write_json(str(note), {"sources": sources, "name": program.name})
    return program


def _known(note: Path) -> dict[str, Any]:
    try:
        value = files.read_json(str(note))
    except (OSError, ValueError):
        return {}
    return value or {}


def _fingerprint() -> list[list[str | int]]:
    """Names, sizes and times of all that goes into the bundle: ninety looks, no reading."""
    package = Path(rabaska.__file__).parent
    seen = [_look(str(package / "packing" / "bundle.py"))]
    for source in ("node", "training"):
        for parent, folders, names in os.walk(package / source):
            folders[:] = [folder for folder in folders if folder != "__pycache__"]
            seen += [_look(f"{parent}/{name}") for name in names]
    return sorted(seen)


def _look(path: str) -> list[str | int]:
    found = os.stat(path)  # noqa: PTH116 - twice as fast as a Path, and there are ninety
    return [path, found.st_size, found.st_mtime_ns]
