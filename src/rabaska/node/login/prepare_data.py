"""`prepare-data`: data that is on this cluster, or that is downloaded to it, made ready for jobs.

Reads a request as JSON from its input, which nobody else sees: addresses may be signed. Prints one
JSON object a line: how far it is, and at the end what became of it.
"""

import hashlib
import json
import os
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional

from .. import files, partial_folder
from ..data import downloaded_folder, list_folder, pack_folder, pack_format, unpack_archive
from ..data.download import CannotDownload
from ..data.list_folder import CannotPack, Limits, TooLarge
from ..data.verify import verify

IN_JOB = "--in-job"
REQUEST = "RABASKA_REQUEST"  # the variable of a job; everybody could read an argument
DOWNLOADS = "downloads"  # a folder of the store
_MADE = ".made-there"  # a folder of <store>/packs: of which folder each pack was made


class Request(NamedTuple):
    store: str
    name: str
    path: str = ""  # what is there already
    url: str = ""
    sha256: str = ""
    fetch: str = ""
    unpack: bool = True
    pack: bool = False  # whether a pack is wanted; else the folder itself
    follow_links: bool = False
    again: bool = False  # whether a pack that was made before is compared with its folder, and read
    most_files: Optional[int] = None  # that may be packed here
    most_bytes: Optional[int] = None


class Ready(NamedTuple):
    path: str = ""  # of the folder, if there is no pack
    pack: str = ""
    files: int = 0
    bytes: int = 0
    shards: int = 0
    new: bool = False  # whether it was made, or downloaded, just now
    sha256: str = ""  # of what was downloaded
    too_large: bool = False  # for packing here: then `files` and `bytes` were seen


def main(argv: List[str]) -> int:
    """The request is the input, and the answer for a program; or a variable, in a job."""
    in_job = argv == [IN_JOB]
    teller = LogTeller() if in_job else Teller()
    request = Request(**(json.loads(os.environ[REQUEST]) if in_job else json.load(sys.stdin)))
    try:
        teller.ready(prepare(request, teller))
    except (CannotPack, CannotDownload) as problem:
        return teller.failed(problem.what, problem.why, problem.hint)
    except OSError as problem:
        what = "data {} could not be prepared".format(request.name)
        return teller.failed(what, str(problem), "")
    return 0


class Teller:
    """Says now and then how far a piece of work is."""

    every = 0.5  # seconds

    def __init__(self) -> None:
        self._last = time.monotonic()

    def moved(self, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= self.every:
            self._last = time.monotonic()
            self.came_to(what, done, total)

    def came_to(self, what: str, done: int, total: int) -> None:
        _say({"moved": [what, done, total]})

    def ready(self, ready: Ready) -> None:
        _say({"ready": dict(ready._asdict())})

    def failed(self, what: str, why: str, hint: str) -> int:
        _say({"problem": {"what": what, "why": why, "hint": hint}})
        return 0


class LogTeller(Teller):
    """The same for people."""

    every = 30.0

    def came_to(self, what: str, done: int, total: int) -> None:
        print("{}: {:.0f} of {:.0f} MB".format(what, done / 1e6, total / 1e6), flush=True)

    def ready(self, ready: Ready) -> None:
        print(
            "packed as {}: {} files, {:.1f} MB".format(ready.pack, ready.files, ready.bytes / 1e6)
        )

    def failed(self, what: str, why: str, hint: str) -> int:
        print("\n".join(text for text in (what, why, hint) if text))
        return 1


def _say(value: Dict[str, Any]) -> None:
    try:
        sys.stdout.write(files.to_json(value) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody listens any more. It is no failure of the download, which would be tried again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1)


def prepare(request: Request, teller: Teller) -> Ready:
    if request.path:
        return _packed(request, request.path, teller) if request.pack else Ready(request.path)
    made = _made_before(request)
    if made is not None and not (request.pack and request.again):
        return made
    what = "downloading {}".format(request.name)

    def moved(done: int, total: int) -> None:
        teller.moved(what, done, total)

    if request.pack:
        return _downloaded_pack(request, moved, teller)
    folder, sha256 = downloaded_folder.bring(_source(request), _folder(request), moved)
    return Ready(path=folder, new=True, sha256=sha256)


def _downloaded_pack(request: Request, moved: downloaded_folder.Moved, teller: Teller) -> Ready:
    """A pack of what is downloaded; a folder that programs read in place is left to them."""
    source, folder = _source(request), _folder(request)
    # However large it is: it is here because of us.
    whole = request._replace(most_files=None, most_bytes=None)
    with downloaded_folder.workshop(folder) as work:
        made = _made_before(request)  # perhaps by whom we waited for
        damaged = _damaged(request, source.key, teller)
        if made is not None and not damaged:
            return made
        content, sha256 = folder, ""
        if not os.path.isdir(folder):
            content, sha256 = downloaded_folder.fill(source, work, moved)
        manifest = _pack(whole, content, teller, damaged)
        _remember(request, source.key, {"pack": manifest.identity})
        downloaded_folder.discard(work)  # the pack has all of it
    return _ready(manifest, new=True)._replace(sha256=sha256)


def _damaged(request: Request, key: str, teller: Teller) -> str:
    """The pack that was made before, if somebody doubts it and it is damaged."""
    identity = _known(request, key).get("pack", "") if request.again and request.pack else ""
    folder = os.path.join(_packs(request), identity)
    if not identity or not files.is_still_there(folder):
        return ""
    manifest = _manifest(request, identity)
    if manifest and manifest.bytes > (request.most_bytes or manifest.bytes):
        return ""  # a job reads it
    what = "reading {}".format(identity)
    problems = verify(folder, lambda done, total: teller.moved(what, done, total))
    return identity if problems else ""


def _source(request: Request) -> downloaded_folder.Source:
    return downloaded_folder.Source(request.url, request.sha256, request.fetch, request.unpack)


def _made_before(request: Request) -> Optional[Ready]:
    """What an earlier request downloaded, if it is still there."""
    if request.pack:
        known = _known(request, _source(request).key)
        manifest = _manifest(request, known.get("pack", ""))
        return _ready(manifest, new=False) if manifest else None
    folder = _folder(request)
    return Ready(path=folder) if files.is_still_there(folder) else None


def _folder(request: Request) -> str:
    name = "{}-{}".format(request.name, _source(request).key)
    return os.path.join(request.store, DOWNLOADS, name)


def _packed(request: Request, source: str, teller: Teller) -> Ready:
    """A pack of `source`: one that was made of it before, or a new one."""
    key = _source_key(request, source)
    known, version = _known(request, key), _version(source)
    if not request.again and known.get("version") == version:
        manifest = _manifest(request, known.get("pack", ""))
        if manifest:
            return _ready(manifest, new=False)
    try:
        manifest = _pack(request, source, teller, _damaged(request, key, teller))
    except TooLarge as seen:
        return Ready(files=seen.files, bytes=seen.bytes, too_large=True)
    _remember(request, key, {"version": version, "pack": manifest.identity, "path": source})
    return _ready(manifest, new=True)


def _pack(request: Request, source: str, teller: Teller, damaged: str) -> pack_format.Manifest:
    packs, what = _packs(request), "packing {}".format(request.name)
    limits = Limits(request.most_files, request.most_bytes)
    if not (request.unpack and unpack_archive.is_archive(source)):
        tree = list_folder.list_folder(source, follow_links=request.follow_links, limits=limits)
        return pack_folder.pack_folder(
            source, tree, packs, request.name,
            lambda done, total: teller.moved(what, done, total), damaged,
        )  # fmt: skip
    if os.path.getsize(source) > (limits.bytes or os.path.getsize(source)):
        raise TooLarge(1, os.path.getsize(source))
    os.makedirs(packs, exist_ok=True)
    unpacked = partial_folder.begin(packs, "unpacked-" + request.name)
    try:
        downloaded_folder.unpack(source, unpacked.path, source)
        tree = list_folder.list_folder(unpacked.path)
        return pack_folder.pack_folder(
            unpacked.path, tree, packs, request.name,
            lambda done, total: teller.moved(what, done, total), damaged,
        )  # fmt: skip
    finally:
        partial_folder.abandon(unpacked)


def _packs(request: Request) -> str:
    return os.path.join(request.store, "packs")


def _manifest(request: Request, identity: str) -> Optional[pack_format.Manifest]:
    """Of a pack that is there complete; it counts as used just now."""
    from ..data.pack_proof import open_manifest

    folder = os.path.join(_packs(request), identity)
    if not identity or not files.is_still_there(folder):
        return None
    try:
        return open_manifest(folder)
    except (pack_format.BadPack, OSError):
        return None


def _ready(manifest: pack_format.Manifest, *, new: bool) -> Ready:
    return Ready(
        pack=manifest.identity,
        files=manifest.files,
        bytes=manifest.bytes,
        shards=len(manifest.shards),
        new=new,
    )


def _source_key(request: Request, source: str) -> str:
    told = [pack_format.FORMAT, source, request.name, request.follow_links, request.unpack]
    return hashlib.sha256(json.dumps(told).encode("utf-8")).hexdigest()[:32]


def _version(source: str) -> List[int]:
    """Times and sizes at the top of a folder: to look at all of it may take an hour.

    `again` in a request is for a change further down.
    """
    seen = [os.stat(source)]
    if os.path.isdir(source):
        seen += [
            entry.stat(follow_symlinks=False)
            for entry in sorted(os.scandir(source), key=lambda one: one.name)
        ]
    facts = json.dumps([[one.st_size, one.st_mtime_ns] for one in seen])
    return [len(seen), int(hashlib.sha256(facts.encode("ascii")).hexdigest()[:12], 16)]


def _known(request: Request, key: str) -> Dict[str, Any]:
    try:
        return files.read_json(_note(request, key)) or {}
    except ValueError:
        return {}


def _remember(request: Request, key: str, value: Dict[str, Any]) -> None:
    os.makedirs(os.path.join(_packs(request), _MADE), exist_ok=True)
    files.write_json(_note(request, key), value)


def _note(request: Request, key: str) -> str:
    return os.path.join(_packs(request), _MADE, key + ".json")
