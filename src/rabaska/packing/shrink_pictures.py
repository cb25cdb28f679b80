"""Pictures that are packed smaller than they are: shrunk once, in a copy, if the user asks for it.

Only JPEG is shrunk. Other formats often hold labels, whose values may not be mixed. Orientation and
colour profile stay as they are written in the file; the originals are not touched.
"""

import hashlib
import importlib.util
import io
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rabaska.domain.amounts import say_count, say_size
from rabaska.errors import DatasetError
from rabaska.node import files, partial_folder
from rabaska.node.data import pack_format
from rabaska.node.data.worker_pool import WorkerLost, share
from rabaska.packing.dataset_sources import pack_origin
from rabaska.packing.listing import unreadable
from rabaska.packing.make_pack import Pack, PackOptions, Progress, pack
from rabaska.packing.pack_cache import complete_manifest
from rabaska.packing.refusals import refuse_secrets, refuse_unfit, space_needed

_QUALITY = 90
_JPEG = (".jpg", ".jpeg")
_OTHER = (".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm")
_AT_ONCE = 64  # pictures of one task


@dataclass(frozen=True)
class Shrunk:
    """What became of the pictures."""

    pictures: int = 0  # JPEG files
    shrunk: int = 0
    bytes_before: int = 0  # of those that were shrunk
    bytes_after: int = 0
    broken: int = 0  # that could not be read, and are packed as they are
    first_broken: str = ""
    other: int = 0  # of other formats, packed as they are

    def __add__(self, more: "Shrunk") -> "Shrunk":
        return Shrunk(
            self.pictures + more.pictures,
            self.shrunk + more.shrunk,
            self.bytes_before + more.bytes_before,
            self.bytes_after + more.bytes_after,
            self.broken + more.broken,
            min(filter(None, (self.first_broken, more.first_broken)), default=""),
            self.other + more.other,
        )

    def lines(self, side: int) -> list[str]:
        """What a person is told."""
        pictures = say_count(self.pictures, "JPEG picture")
        told = [f"{self.shrunk:,} of {pictures} shrunk to at most {side} pixels"]
        if self.shrunk:
            told[0] += f": {say_size(self.bytes_before)} became {say_size(self.bytes_after)}"
        if self.other:
            told.append(f"{say_count(self.other, 'picture')} of other formats left as they are")
        return told

    @property
    def warning(self) -> str:
        if not self.broken:
            return ""
        count = say_count(self.broken, "picture")
        return f"{count} cannot be read and left as they are, such as {self.first_broken}"


def pack_shrunk(
    sources: Sequence[Path], store: Path, options: PackOptions, side: int
) -> tuple[Pack, Shrunk | None]:
    """Pack data with no JPEG picture larger than `side`; and what was done, if it was now.

    With 0 as the side, whatever it is is packed as it is.
    """
    if not side:
        return pack_origin(sources, store, options), None
    paths = [source.absolute() for source in sources]
    for path in paths:
        refuse_secrets(str(path))
        refuse_unfit(path, store)
    if importlib.util.find_spec("PIL") is None:
        raise DatasetError(
            f"the pictures of dataset {options.name} cannot be shrunk",
            why="that needs Pillow, which is not installed with rabaska",
            hint="`pip install pillow` in rabaska's environment, or remove `images` from [data]",
        )
    with space_needed(store, f"pack {options.name}"):
        store.mkdir(parents=True, exist_ok=True)
        note = _note(paths, store, options, side)
        listed = [(path, _listed(path)) for path in paths]
        version = _version(listed)
        before = _recall(note, version, store)
        if before is not None:
            return before, None
        folder = partial_folder.begin(str(store), f"shrunk-{options.name}")
        try:
            done = _copy(listed, Path(folder.path), options, side)
            # Links of ours lead to what was not shrunk, so links are followed.
            known_as = "\n".join(map(str, (*paths, f"max {side}")))
            packed = pack(
                Path(folder.path), store, replace(options, follow_links=True, known_as=known_as)
            )
        except WorkerLost as problem:
            raise DatasetError(
                f"shrinking the pictures of {options.name} was interrupted", why=str(problem)
            ) from problem
        finally:
            partial_folder.abandon(folder)
        if _version([(path, _listed(path)) for path in paths]) != version:
            raise DatasetError(
                f"dataset {options.name} changed while it was packed", hint="run the command again"
            )
        note.parent.mkdir(exist_ok=True)
        files.write_json(str(note), {"version": version, "pack": packed.identity})
        return packed, done


def _listed(source: Path) -> list[tuple[str, os.stat_result]]:
    """Every file below a folder, by its path in it; links are followed."""
    found = []
    for folder, _, names in os.walk(source, onerror=_raise, followlinks=True):
        for name in names:
            path = os.path.join(folder, name)
            try:
                found.append((os.path.relpath(path, source), os.stat(path)))
            except OSError as problem:
                raise unreadable(path, problem) from problem
    return sorted(found, key=lambda one: one[0])


def _raise(problem: OSError) -> None:
    raise unreadable(str(problem.filename), problem) from problem


Listed = Sequence[tuple[Path, list[tuple[str, os.stat_result]]]]


def _version(listed: Listed) -> str:
    """Another one as soon as any file is another."""
    digest = hashlib.sha256()
    for source, found in listed:
        for name, status in found:
            fact = (str(source), name, status.st_size, status.st_mtime_ns, status.st_ino)
            digest.update(repr(fact).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _note(paths: Sequence[Path], store: Path, options: PackOptions, side: int) -> Path:
    fact = [pack_format.FORMAT, list(map(str, paths)), options.name, options.shard_size]
    text = json.dumps([*fact, "shrunk", side, _QUALITY])
    return store / ".listings" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _recall(note: Path, version: str, store: Path) -> Pack | None:
    """The pack made of the same files, if it is still there."""
    try:
        record = files.read_json(str(note)) or {}
    except ValueError:
        return None
    manifest = complete_manifest(store / str(record.get("pack")))
    if record.get("version") != version or manifest is None:
        return None
    count, folder = len(manifest.shards), store / manifest.identity
    return Pack(
        manifest.identity, folder, manifest.files, manifest.bytes, count, reused=True, new=False
    )


def _copy(listed: Listed, target: Path, options: PackOptions, side: int) -> Shrunk:
    """Make `target` what shall be packed: small pictures, and links to everything else."""
    tasks: list[tuple[Path, list[str]]] = []
    several = len(listed) > 1
    for source, found in listed:
        below = target / source.name if several else target
        for folder in sorted({os.path.dirname(name) for name, _ in found}):
            (below / folder).mkdir(parents=True, exist_ok=True)
        names = [name for name, _ in found]
        tasks += [(source, names[at : at + _AT_ONCE]) for at in range(0, len(names), _AT_ONCE)]
    total = sum(len(found) for _, found in listed)
    size = sum(status.st_size for _, found in listed for _, status in found)
    done, count, begun = Shrunk(), 0, time.monotonic()

    def work(task: tuple[Path, list[str]]) -> Iterator[tuple[int, Shrunk]]:
        source, names = task
        below = target / source.name if several else target
        each = (_place(source / name, below / name, side) for name in names)
        yield len(names), sum(each, Shrunk())

    for some, result in share(work, tasks, options.workers):
        count, done = count + some, done + result
        if time.monotonic() > begun + 0.1:
            options.progress(Progress(count, size * count // total, total, size))
    return done


def _place(original: Path, target: Path, side: int) -> Shrunk:
    kind = original.suffix.lower()
    if kind not in _JPEG:
        target.symlink_to(original)
        return Shrunk(other=int(kind in _OTHER))
    try:
        content = original.read_bytes()
    except OSError as problem:
        raise unreadable(str(original), problem) from problem
    try:
        small = shrunk(content, side)
    except (OSError, ValueError, SyntaxError, ArithmeticError):  # as Pillow says it, in its ways
        target.symlink_to(original)
        return Shrunk(pictures=1, broken=1, first_broken=str(original))
    if small is None:
        target.symlink_to(original)
        return Shrunk(pictures=1)
    target.write_bytes(small)
    return Shrunk(1, 1, len(content), len(small))


def shrunk(content: bytes, side: int) -> bytes | None:
    """A JPEG picture with no side longer than that; None for one that is small enough."""
    from PIL import Image

    with Image.open(io.BytesIO(content), formats=("JPEG",)) as picture:
        if max(picture.size) <= side:
            return None
        kept: dict[str, Any] = {
            name: picture.info[name] for name in ("exif", "icc_profile") if picture.info.get(name)
        }
        picture.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
        made = io.BytesIO()
        picture.save(made, "JPEG", quality=_QUALITY, **kept)
        return made.getvalue()
