"""`prepare-data`: data that is on this cluster, or that is downloaded to it, made ready for jobs.

Reads a request as JSON from its input. Prints one JSON object a line: how far it is, and at the end
what became of it.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional

from .. import files, partial_folder
from ..data import list_folder, pack_folder, pack_format, unpack_archive
from ..data.download import CannotDownload, download, file_name, shown
from ..data.list_folder import CannotPack, Limits, TooLarge

DOWNLOADS = "downloads"  # a folder of the store
_MADE = ".made-there"  # a folder of <store>/packs: of which folder each pack was made
_EVERY = 0.5  # seconds between two words on how far it is
_LAST_LINES = 20  # of a command that failed


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
    again: bool = False  # whether a pack that was made before is compared with its folder
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
    request = Request(**json.load(sys.stdin) if not argv else json.loads(argv[0]))
    try:
        ready = prepare(request, Teller())
    except (CannotPack, CannotDownload) as problem:
        _say({"problem": {"what": problem.what, "why": problem.why, "hint": problem.hint}})
        return 0 if not argv else 1
    except OSError as problem:
        _say({"problem": {"what": "data {} could not be prepared".format(request.name),
                          "why": str(problem), "hint": ""}})  # fmt: skip
        return 0 if not argv else 1
    _say({"ready": dict(ready._asdict())})
    return 0


class Teller:
    """Says now and then how far a piece of work is."""

    def __init__(self) -> None:
        self._last = 0.0

    def moved(self, what: str, done: int, total: int) -> None:
        if time.monotonic() - self._last >= _EVERY:
            self._last = time.monotonic()
            _say({"moved": [what, done, total]})


def _say(value: Dict[str, Any]) -> None:
    sys.stdout.write(files.to_json(value) + "\n")
    sys.stdout.flush()


def prepare(request: Request, teller: Teller) -> Ready:
    if request.path:
        return _packed(request, request.path, teller) if request.pack else Ready(request.path)
    made = _made_before(request)
    if made is not None:
        return made
    folder, sha256 = _downloaded(request, teller)
    if not request.pack:
        return Ready(path=folder, new=True, sha256=sha256)
    whole = request._replace(most_files=None, most_bytes=None)  # it is here because of us
    ready = _packed(whole, folder, teller)._replace(sha256=sha256)
    _remember(request, _key(request), {"pack": ready.pack})
    partial_folder.remove_tree(folder)  # the pack has all of it
    return ready


def _key(request: Request) -> str:
    """Of what is downloaded: another address, digest or command is another thing."""
    told = [request.url, request.sha256, request.fetch, request.unpack]
    return hashlib.sha256(json.dumps(told).encode("utf-8")).hexdigest()[:12]


def _made_before(request: Request) -> Optional[Ready]:
    """What an earlier request downloaded, if it is still there."""
    if request.pack:
        known = _known(request, _key(request))
        manifest = _manifest(request, known.get("pack", ""))
        return _ready(manifest, new=False) if manifest else None
    folder = _folder(request)
    return Ready(path=folder) if files.is_still_there(folder) else None


def _folder(request: Request) -> str:
    name = "{}-{}".format(request.name, _key(request))
    return os.path.join(request.store, DOWNLOADS, name)


def _downloaded(request: Request, teller: Teller) -> Any:
    """The folder with what was downloaded, and its digest where it is one file."""
    target = _folder(request)
    if os.path.isdir(target):  # an earlier attempt came so far
        return target, ""
    work = target + files.PARTIAL
    os.makedirs(work, exist_ok=True)
    lock = os.open(work, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # who came second waits, and finds it there
        except OSError:
            pass  # a file system without locks
        if os.path.isdir(target):
            return target, ""
        sha256 = _fill(request, work, teller)
        os.rename(os.path.join(work, "content"), target)
        partial_folder.remove_tree(work)
    finally:
        os.close(lock)
    return target, sha256


def _fill(request: Request, work: str, teller: Teller) -> str:
    content = os.path.join(work, "content")
    if request.fetch:
        os.makedirs(content, exist_ok=True)
        _run(request, content)
        return ""
    teller_of = "downloading {}".format(request.name)
    path = os.path.join(work, file_name(request.url))
    arrived = download(
        request.url, path, request.sha256, lambda done, total: teller.moved(teller_of, done, total)
    )
    if os.path.isdir(content):
        partial_folder.remove_tree(content)  # half unpacked
    os.mkdir(content)
    if request.unpack and unpack_archive.is_archive(path):
        _unpack(path, content, shown(request.url))
    else:
        os.rename(path, os.path.join(content, os.path.basename(path)))
    return arrived.sha256


def _unpack(archive: str, folder: str, called: str) -> None:
    try:
        unpack_archive.unpack(archive, folder)
    except unpack_archive.BadArchive as problem:
        raise CannotPack(
            "{} cannot be unpacked".format(called),
            str(problem),
            "with `unpack = false` the program is given the archive itself",
        )


def _run(request: Request, folder: str) -> None:
    """Run the command of `fetch` in `folder`, where it leaves what it downloads."""
    done = subprocess.run(
        ["bash", "-c", request.fetch],
        cwd=folder,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = done.stdout.decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
    if done.returncode != 0:
        raise CannotDownload(
            "the `fetch` command of data {} failed".format(request.name),
            "\n".join(said) or "exit code {}".format(done.returncode),
            "it ran in {}; what it left there is kept for the next try".format(folder),
        )
    if not os.listdir(folder):
        raise CannotDownload(
            "the `fetch` command of data {} left no files".format(request.name),
            "\n".join(said),
            "it must write into the folder in which it is started",
        )


def _packed(request: Request, source: str, teller: Teller) -> Ready:
    """A pack of `source`: one that was made of it before, or a new one."""
    key = _source_key(request, source)
    known, version = _known(request, key), _version(source)
    if not request.again and known.get("version") == version:
        manifest = _manifest(request, known.get("pack", ""))
        if manifest:
            return _ready(manifest, new=False)
    try:
        manifest = _pack(request, source, teller)
    except TooLarge as seen:
        return Ready(files=seen.files, bytes=seen.bytes, too_large=True)
    _remember(request, key, {"version": version, "pack": manifest.identity, "path": source})
    return _ready(manifest, new=True)


def _pack(request: Request, source: str, teller: Teller) -> pack_format.Manifest:
    packs, what = _packs(request), "packing {}".format(request.name)
    limits = Limits(request.most_files, request.most_bytes)
    if not (request.unpack and unpack_archive.is_archive(source)):
        tree = list_folder.list_folder(source, follow_links=request.follow_links, limits=limits)
        return pack_folder.pack_folder(
            source, tree, packs, request.name, lambda done, total: teller.moved(what, done, total)
        )
    if os.path.getsize(source) > (limits.bytes or os.path.getsize(source)):
        raise TooLarge(1, os.path.getsize(source))
    os.makedirs(packs, exist_ok=True)
    unpacked = partial_folder.begin(packs, "unpacked-" + request.name)
    try:
        _unpack(source, unpacked.path, source)
        tree = list_folder.list_folder(unpacked.path)
        return pack_folder.pack_folder(
            unpacked.path, tree, packs, request.name,
            lambda done, total: teller.moved(what, done, total),
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
