"""Make the table of packages: which modules each installs, and which packages it brings along.

    python docs/import_names.py --index ADDRESS --names FILE > src/rabaska/knowledge/packages.tsv

`ADDRESS` is that of a package index with a JSON interface (`ADDRESS/pypi/NAME/json`). `FILE` has
the names of projects, one a line, the most popular first; what they require is added. Of each
project the newest release is read: its list of files from the end of a wheel, by a request for
that part only, and the packages that it requires. Older releases are asked for what they required.
"""

import argparse
import io
import json
import re
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urljoin

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_TAIL = 65_536  # bytes at the end of a wheel; its list of files is there
_LARGEST_LIST = 8_000_000
_LARGEST_SDIST = 3_000_000
_WORTH_A_SIZE = 20_000_000  # bytes; smaller wheels take no time
_OLDER = 4  # releases of each project that are asked as well
_LONGEST = 150  # letters of the names that come with extras
_AT_ONCE = 16
_JOB = {
    "platform_system": "Linux", "sys_platform": "linux", "os_name": "posix",
    "platform_machine": "x86_64", "implementation_name": "cpython",
    "platform_python_implementation": "CPython", "python_version": "3.11",
    "python_full_version": "3.11.9",
}  # fmt: skip
_FOR_DEVELOPERS = re.compile(
    r"dev|test|doc|lint|qual|typ|check|bench|example|notebook|ci|build|format|tutorial|deploy"
)
# Folders that projects install by mistake: who imports these means their own.
_NOBODYS = {
    "test", "tests", "testing", "doc", "docs", "example", "examples", "script", "scripts", "src",
    "bench", "benchmark", "benchmarks", "tools", "utils", "build", "dist", "data", "config",
    "samples", "tutorials", "assets", "common", "notebooks", "resources", "lib", "core", "models",
    "model", "train", "dataset", "helpers", "main", "app", "setup", "conftest", "util", "misc",
    "demo", "typings", "stubs", "share", "bin", "include", "etc", "nn", "layers", "losses",
}  # fmt: skip


@dataclass
class Distribution:
    name: str
    modules: list[str] = field(default_factory=list)
    requires: list[str] = field(default_factory=list)  # of the newest release
    formerly: list[str] = field(default_factory=list)  # of older ones only
    extras: dict[str, list[str]] = field(default_factory=dict)
    size: int = 0
    version: str = ""


class Index:
    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._host = self._address.partition("://")[2].partition("/")[0]
        self._own = threading.local()

    def project(self, name: str, version: str = "") -> dict[str, Any]:
        path = f"{name}/{version}" if version else name
        found: dict[str, Any] = json.loads(self._read(f"{self._address}/pypi/{path}/json"))
        return found

    def part(self, name: str, url: str, first: int, size: int) -> bytes:
        return self._read(self._full(name, url), {"Range": f"bytes={first}-{size - 1}"})

    def file(self, name: str, url: str) -> bytes:
        return self._read(self._full(name, url))

    def _full(self, name: str, url: str) -> str:
        return urljoin(f"{self._address}/simple/{name}/", url)

    def _read(self, address: str, headers: dict[str, str] | None = None) -> bytes:
        """Over a connection that each thread keeps open."""
        path = "/" + address.split("/", 3)[3]
        for _ in range(3):
            connection = getattr(self._own, "connection", None)
            if connection is None:
                connection = self._own.connection = HTTPSConnection(self._host, timeout=60)
            try:
                connection.request("GET", path, headers=headers or {})
                answer = connection.getresponse()
                content: bytes = answer.read()
                if answer.status in (200, 206):
                    return content
                raise ValueError(f"{path}: {answer.status}")
            except (OSError, HTTPException):
                self._own.connection = None
        raise ValueError(f"{path}: no answer")


class _Tail(io.RawIOBase):
    """The end of a file, with the places it has in the file."""

    def __init__(self, content: bytes, size: int) -> None:
        self._content, self._size, self._at = content, size, 0

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        self._at = place + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        first = self._at - (self._size - len(self._content))
        if first < 0:
            raise ValueError("not in the part that was read")
        last = len(self._content) if count < 0 else first + count
        self._at += len(self._content[first:last])
        return self._content[first:last]


def read_distribution(name: str, index: Index) -> Distribution | None:
    """What the index says of a project; None where it has none."""
    try:
        described = index.project(name)
    except (OSError, ValueError):
        return None
    found = Distribution(name, version=described["info"]["version"])
    newest = described["info"].get("requires_dist") or []
    found.requires = _needed(newest)
    found.extras = _extras(newest)
    for wheel in _older(described):
        try:
            metadata = index.file(name, f"{wheel['url']}.metadata").decode("utf-8", "replace")
        except ValueError:
            continue
        older = re.findall(r"^Requires-Dist: *(.+)$", metadata, re.MULTILINE)
        found.formerly += [required.partition("[")[0] for required in _needed(older)]
    try:
        found.modules, found.size, sdist = _modules(name, described["urls"], index)
        found.requires = sorted({*found.requires, *sdist})
    except (OSError, ValueError, zipfile.BadZipFile, tarfile.TarError) as problem:
        sys.stderr.write(f"{name}: {problem}\n")
    return found


def _needed(requires: list[str]) -> list[str]:
    """What is always installed along; an extra that is asked for as `name[extra]`."""
    names = set()
    for requirement in _parsed(requires):
        marker = requirement.marker
        if marker is None or marker.evaluate({**_JOB, "extra": ""}):
            name = canonicalize_name(requirement.name)
            extras = ",".join(sorted(requirement.extras))
            names.add(f"{name}[{extras}]" if extras else name)
    return sorted(names)


def _extras(requires: list[str]) -> dict[str, list[str]]:
    extras: dict[str, list[str]] = {}
    for requirement in _parsed(requires):
        for extra in re.findall(
            r"""extra\s*==\s*["']([^"']+)["']""", str(requirement.marker or "")
        ):
            if requirement.marker and requirement.marker.evaluate({**_JOB, "extra": extra}):
                extras.setdefault(extra, []).append(canonicalize_name(requirement.name))
    return extras


def _parsed(requires: list[str]) -> Iterator[Requirement]:
    for text in requires:
        try:
            yield Requirement(text)
        except InvalidRequirement:
            continue


def _older(described: dict[str, Any]) -> list[dict[str, Any]]:
    """A wheel of each of some releases, spread over the years."""
    releases = []
    for text, files in described["releases"].items():
        wheels = [file for file in files if file["filename"].endswith(".whl")]
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        linux = [file for file in wheels if re.search(r"linux|-any", file["filename"])]
        if wheels and not version.is_prerelease and text != described["info"]["version"]:
            releases.append((version, (linux or wheels)[0]))
    releases.sort(key=lambda release: release[0], reverse=True)
    step = max(1, len(releases) // _OLDER)
    return [wheel for _, wheel in releases[::step][:_OLDER]]


def _modules(
    name: str, files: list[dict[str, Any]], index: Index
) -> tuple[list[str], int, list[str]]:
    """Its modules, the size of a wheel, and what a source archive says that it requires."""
    wheels = [file for file in files if file["filename"].endswith(".whl")]
    linux = [file for file in wheels if re.search(r"linux.*x86_64|-any\.whl", file["filename"])]
    if wheels:
        wheel = min(linux or wheels, key=lambda file: (_is_odd(file["filename"]), file["size"]))
        size = wheel["size"] if linux else 0
        return top_modules(_listed(name, wheel, index)), size, []
    for file in files:
        if file["filename"].endswith(".tar.gz") and file["size"] < _LARGEST_SDIST:
            modules, requires = _of_sdist(index.file(name, file["url"]))
            return modules, 0, requires
    return [], 0, []


def _is_odd(file: str) -> bool:
    return bool(re.search(r"-cp3\d+t-|-pp3|musllinux", file))


def _listed(name: str, wheel: dict[str, Any], index: Index) -> list[str]:
    size, length = wheel["size"], _TAIL
    while True:
        first = max(0, size - length)
        content = index.part(name, wheel["url"], first, size)
        try:
            return zipfile.ZipFile(_Tail(content, size)).namelist()  # type: ignore[arg-type]
        except ValueError:
            length *= 8
            if first == 0 or length > _LARGEST_LIST:
                raise


def _of_sdist(content: bytes) -> tuple[list[str], list[str]]:
    modules: list[str] = []
    requires: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for entry in archive:
            if re.search(r"\.egg-info/(top_level|requires)\.txt$", entry.name):
                stream = archive.extractfile(entry)
                text = stream.read().decode("utf-8", "replace") if stream else ""
                if entry.name.endswith("requires.txt"):
                    requires = _needed(text.partition("[")[0].splitlines())
                else:
                    modules = sorted(word for word in text.split() if _is_public(word))
    return modules, requires


def top_modules(names: list[str]) -> list[str]:
    """The names to import: `cv2`, `google.cloud.storage`, `six`."""
    paths = [re.sub(r"^[^/]+\.data/(purelib|platlib)/", "", name).split("/") for name in names]
    code = [path for path in paths if re.search(r"\.(py|so|pyd|pyi)$", path[-1])]
    code = [path for path in code if not path[0].endswith((".dist-info", ".data", ".egg-info"))]
    packages = {tuple(path[:-1]) for path in code if path[-1].startswith("__init__.")}
    modules = set()
    for path in code:
        depth = next((n for n in range(1, len(path)) if tuple(path[:n]) in packages), len(path))
        # Loose files in a folder without __init__.py are many: the folder stands for them.
        loose = depth == len(path) > 1
        own = path[:-1] if loose else [*path[: depth - 1], path[depth - 1].partition(".")[0]]
        own = own[:3]
        if all(_is_public(word) for word in own):
            modules.add(".".join(own))
    own_tops = {name for name in modules if "." not in name}
    return sorted(name for name in modules if name.split(".")[0] not in own_tops or "." not in name)


def _is_public(word: str) -> bool:
    return word.isidentifier() and not word.startswith("_") and word not in _NOBODYS


def gather(names: list[str], index: Index) -> list[Distribution]:
    """The named projects and all that they require, in that order."""
    known: dict[str, Distribution] = {}
    asked: set[str] = set()
    wanted = [canonicalize_name(name) for name in names]
    with ThreadPoolExecutor(_AT_ONCE) as crew:
        while wanted:
            asked |= {*wanted}
            for found in crew.map(lambda name: read_distribution(name, index), wanted):
                if found:
                    known[found.name] = found
                    if len(known) % 200 == 0:
                        sys.stderr.write(f"{len(known)} projects\n")
            wanted = sorted({name for each in known.values() for name in _all(each, known)} - asked)
    for each in known.values():
        each.requires = sorted({*_all(each, known)} & {*known})
        each.formerly = sorted({*each.formerly} & {*known} - {*each.requires, each.name})
    return [*known.values()]


def _all(each: Distribution, known: dict[str, Distribution]) -> Iterator[str]:
    """What it requires, with the extras that it asks for."""
    for required in each.requires:
        name, _, extras = required.rstrip("]").partition("[")
        yield name
        for extra in filter(None, extras.split(",")):
            yield from known[name].extras.get(extra, []) if name in known else ()


def lines(found: list[Distribution]) -> Iterator[str]:
    for each in found:
        modules = [] if each.modules == [each.name.replace("-", "_")] else each.modules
        shown = [*modules[:12], *(["…"] if len(modules) > 12 else [])]
        shown = shown if each.modules else ["-"]
        size = str(each.size // 10**6) if each.size >= _WORTH_A_SIZE else ""
        extras = {
            name
            for extra, names in each.extras.items()
            if not _FOR_DEVELOPERS.search(extra.lower())
            for name in names
        }
        cells = [each.name, each.version, " ".join(shown), " ".join(each.requires)]
        more = " ".join(sorted(extras - {*each.requires, each.name}))
        cells += [" ".join(each.formerly), more if len(more) <= _LONGEST else "…"]
        yield "\t".join([*cells, size]).rstrip("\t")


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--index", required=True)
    words.add_argument("--names", required=True)
    options = words.parse_args()
    with open(options.names, encoding="utf-8") as stream:  # noqa: PTH123
        names = [line.strip() for line in stream if line.strip()]
    for line in lines(gather(names, Index(options.index))):
        print(line)  # noqa: T201


if __name__ == "__main__":
    main()
