"""A file from an address: resumed where it stopped, and used only if it is what was promised."""

import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, NamedTuple, Optional

from .. import files
from ..version import __version__

_PIECE = 2**18
_TRIES = 5  # in a row without a byte
_PAUSE = 1.0  # seconds before the second try; then twice as long each time
_PATIENCE = 60.0  # seconds without a byte

Progress = Callable[[int, int], None]  # bytes so far, and of how many; 0: not known


class CannotDownload(Exception):
    def __init__(self, what: str, why: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.hint = what, why, hint


class Downloaded(NamedTuple):
    path: str
    size: int
    sha256: str


def shown(url: str) -> str:
    """The address without what may be a secret: a user, a password, a query."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    port = ":{}".format(parts.port) if parts.port else ""
    return urllib.parse.urlunsplit((parts.scheme, host + port, parts.path, "", ""))


def file_name(url: str) -> str:
    """What a file from this address is called."""
    name = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rstrip("/").rpartition("/")[2]
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
    return safe.lstrip(".") or "download"


def download(url: str, path: str, sha256: str, progress: Progress) -> Downloaded:
    """Bring what is at `url` to `path`, where it appears whole and proven, or not at all.

    What is there came from the same address before, with the same digest.
    """
    if os.path.isfile(path):
        return Downloaded(path, os.path.getsize(path), files.sha256(path))
    partial, note = path + files.PARTIAL, path + ".from.json"
    pause, failures = _PAUSE, 0
    while True:
        before = _size(partial)
        try:
            _fetch(url, partial, note, progress)
            break
        except (OSError, http.client.HTTPException, ValueError) as problem:
            refused = isinstance(problem, urllib.error.HTTPError) and problem.code < 500
            refused = refused or isinstance(problem, (ValueError, http.client.InvalidURL))
            failures = 0 if _size(partial) > before else failures + 1
            if refused or failures >= _TRIES:
                raise _cannot(url, problem)
        time.sleep(pause)
        pause = _PAUSE if not failures else pause * 2
    found = files.sha256(partial)
    if sha256 and found != sha256:
        files.remove_if_there(partial)
        files.remove_if_there(note)
        raise CannotDownload(
            "{} is not what `sha256` promises".format(shown(url)),
            "it has sha256 {}, and rabaska.toml says {}".format(found, sha256),
            "download it yourself and compare; if the new file is right, write its digest",
        )
    files.sync_file(partial)
    os.replace(partial, path)
    files.remove_if_there(note)
    return Downloaded(path, os.path.getsize(path), found)


def _fetch(url: str, partial: str, note: str, progress: Progress) -> None:
    """Bring the rest of a file; OSError when the connection broke before its end."""
    have, known = _size(partial), _known(note)
    asked = urllib.request.Request(_spelled(url), headers={"User-Agent": "rabaska/" + __version__})
    if have and known.get("mark") and known.get("url") == url:
        asked.add_header("Range", "bytes={}-".format(have))
        # Only if it is still the same file: else the server sends all of the new one.
        asked.add_header("If-Range", known["mark"])
    try:
        answer = urllib.request.urlopen(asked, timeout=_PATIENCE)
    except urllib.error.HTTPError as problem:
        problem.close()
        # Nothing is missing, or what is here is longer than the file.
        if problem.code == 416 and have == known.get("total"):
            return
        if problem.code == 416:
            files.remove_if_there(partial)
            raise OSError("the server's file is shorter than what came before")
        raise
    with answer:
        begun = _begin_of(answer)
        if begun not in (0, have):
            files.remove_if_there(partial)
            raise OSError("the server sent another part of the file than it was asked for")
        if begun and _mark(answer.headers) != known.get("mark"):  # it does not know `If-Range`
            files.remove_if_there(partial)
            raise OSError("the server's file changed since a part of it came")
        length = answer.headers.get("Content-Length")
        total = begun + int(length) if length and length.isdigit() else None
        if not begun:
            files.remove_if_there(partial)  # else the note would be that of another file
        _note(note, url, answer.headers, total)
        _receive(answer, partial, begun, total, progress)


def _spelled(url: str) -> str:
    """The address in ASCII, as it is sent: an `é` in it becomes `%C3%A9`."""
    return urllib.parse.quote(url, safe="%/:=&?~#+!$,;'@()*[]")


def _begin_of(answer: Any) -> int:
    """Where in the file an answer begins."""
    place = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    return int(place.group(1)) if place and answer.getcode() == 206 else 0


def _receive(
    answer: Any, partial: str, begun: int, total: Optional[int], progress: Progress
) -> None:
    done = begun
    with open(partial, "r+b" if begun else "wb") as stream:
        stream.seek(begun)
        stream.truncate()
        for piece in iter(lambda: answer.read(_PIECE), b""):
            stream.write(piece)
            done += len(piece)
            progress(done, total or 0)
        stream.flush()
    if total is not None and done != total:
        raise OSError("the connection ended after {} of {} bytes".format(done, total))


def _note(note: str, url: str, headers: Any, total: Optional[int]) -> None:
    files.write_json(note, {"url": url, "mark": _mark(headers), "total": total})


def _mark(headers: Any) -> str:
    """What shows that it is still the same file when it is asked for again."""
    tag = str(headers.get("ETag", ""))
    return ("" if tag.startswith("W/") else tag) or str(headers.get("Last-Modified", ""))


def _known(note: str) -> Dict[str, Any]:
    try:
        return files.read_json(note) or {}
    except ValueError:
        return {}


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _cannot(url: str, problem: Exception) -> CannotDownload:
    if isinstance(problem, urllib.error.HTTPError):
        why = "the server answered {} {}".format(problem.code, problem.reason)
        hint = "check `url` under [data] in rabaska.toml"
        if problem.code in (401, 403):
            hint = "it wants you to log in: `fetch` runs a command that can, such as `kaggle`"
        return CannotDownload("{} cannot be downloaded".format(shown(url)), why, hint)
    reason = getattr(problem, "reason", problem)
    return CannotDownload(
        "{} cannot be downloaded".format(shown(url)),
        str(reason),
        "what arrived is kept: the same command continues; where this computer reaches no "
        'internet, write `downloads = "nowhere"` under [reach] in the cluster\'s profile',
    )
