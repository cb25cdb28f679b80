"""The word `wheels`: makes sure, before a job is submitted, that its environment can be built.

What pip chose is written to `<digest>.txt`, wheels that the site lacks are collected into the one
file `<digest>.tar`, and `<digest>.json` says so last, so that it is all done once.
"""

import json
import os
import shutil
import sys
import tarfile
from typing import Any, Dict, List, NamedTuple

from .. import files, partial_folder
from . import pip_queries, wheel_contents
from .pip_queries import PipAnswer, PipPackage, Python

NOT_FOUND = 3  # exit code: some packages are nowhere; standard output says which
NEEDS_PIP = 4  # there is no pip, or no way to bring one into an environment: it must be sent
FACTS = "--facts"  # only what Python is there, and whether it needs pip
VENV, VIRTUALENV, BY_HAND = "venv", "virtualenv", "by hand"  # what makes the environment


class WheelRequest(NamedTuple):
    """What the laptop asks for, as JSON on standard input."""

    envs: str  # the folder where environments are kept
    digest: str
    python: str
    requirements: str
    wheelhouse: List[str]
    online: bool  # whether wheels may be fetched from the internet

    @property
    def archive(self) -> str:
        return self.path("tar")

    @property
    def pip(self) -> str:
        """A wheel of pip, where it was sent."""
        return self.path("pip")

    def path(self, kind: str) -> str:
        return os.path.join(self.envs, "{}.{}".format(self.digest, kind))


def main(argv: List[str]) -> int:
    request = WheelRequest(**json.load(sys.stdin))
    request = request._replace(wheelhouse=[_expanded(place) for place in request.wheelhouse])
    os.makedirs(request.envs, exist_ok=True)
    record = files.read_json(request.path("json"))
    if record is not None and FACTS not in argv:
        return _print(record)
    try:
        python = pip_queries.describe(request.python, request.pip)
    except pip_queries.NoPython as problem:
        sys.stderr.write("{}\n".format(problem))
        return 1
    if needs_pip(request, python) or FACTS in argv:
        _print(_facts(request, python))
        return NEEDS_PIP if needs_pip(request, python) else 0
    # Collecting takes minutes, and login nodes end what takes long: the next one cleans up.
    partial_folder.sweep(request.envs)
    workshop = partial_folder.begin(request.envs, request.digest)
    try:
        return find(request, python, workshop.path)
    finally:
        partial_folder.abandon(workshop)


def needs_pip(request: WheelRequest, python: Python) -> bool:
    lacks = not python.pip or _maker(python) == BY_HAND
    return lacks and not os.path.exists(request.pip)


def find(request: WheelRequest, python: Python, workshop: str) -> int:
    """In the site's wheelhouse, else together with what was sent, else on the internet."""
    places = list(request.wheelhouse)
    answer = pip_queries.resolve(python, request.requirements, places)
    if answer.packages is not None:
        return settle(request, python, answer.packages, "the site")
    if os.path.exists(request.archive):
        places.append(_unpacked(request.archive, workshop))
        answer = pip_queries.resolve(python, request.requirements, places)
        if answer.packages is not None:
            return settle(request, python, answer.packages, "this computer")
        os.unlink(request.archive)  # what was sent once does not help any more
    errors = answer.errors
    if request.online:
        collected = collect(request, python, workshop)
        if collected.packages is not None:
            return settle(request, python, collected.packages, "the internet")
        errors = collected.errors
    return report_missing(request, python, places, errors)


def collect(request: WheelRequest, python: Python, workshop: str) -> PipAnswer:
    """Wheels for what the site lacks, from the internet into the archive.

    First only the projects of which the site has no wheel at all: its own builds are made for
    its processors. Where that does not fit together, everything.
    """
    if pip_queries.is_hashed(request.requirements):
        return _collect_locked(request, python, workshop)
    everything = pip_queries.resolve(python, request.requirements, request.wheelhouse, online=True)
    if everything.packages is None:
        return everything
    offered = pip_queries.offered(request.wheelhouse)
    lacking = [
        package
        for package in everything.packages
        if pip_queries.normalised(package.name) not in offered
    ]
    pins = "\n".join(package.pin for package in lacking)
    answer = PipAnswer(None)
    for number, (text, options) in enumerate(
        [(pins, ["--no-deps"]), (request.requirements, [])]
        if pip_queries.can_report(python)
        else [(request.requirements, [])]
    ):
        wheels = os.path.join(workshop, "collected-{}".format(number))
        answer = _collect(request, python, text, options, wheels)
        if answer.packages is not None:
            _pack(wheels, wheels + ".tar")
            os.replace(wheels + ".tar", request.archive)
            break
    return answer


def _collect_locked(request: WheelRequest, python: Python, workshop: str) -> PipAnswer:
    """Just what a lock names, checked against its hashes by pip."""
    wheels = os.path.join(workshop, "locked")
    # What comes as source was checked as such; the wheel that is built of it has another hash.
    free = request._replace(
        requirements=pip_queries.without_hashes(request.requirements), wheelhouse=[]
    )
    answer = _collect(free, python, request.requirements, ["--no-deps"], wheels)
    if answer.packages is not None:
        _pack(wheels, wheels + ".tar")
        os.replace(wheels + ".tar", request.archive)
    return answer


def _collect(
    request: WheelRequest, python: Python, text: str, options: List[str], wheels: str
) -> PipAnswer:
    os.mkdir(wheels)
    file = wheels + ".txt"
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
    # `wheel`, not `download`: what comes as source is built here, where there is a compiler.
    words = ["wheel", "--quiet", "--wheel-dir", wheels] + options + ["--requirement", file]
    code, errors = pip_queries.run(
        python, words + pip_queries.sources(request.wheelhouse, online=True)
    )
    if code != 0:
        return PipAnswer(None, errors)
    return pip_queries.resolve(python, request.requirements, request.wheelhouse + [wheels])


def settle(request: WheelRequest, python: Python, packages: List[PipPackage], source: str) -> int:
    """Write down what was found, the record last."""
    packages = sorted(packages, key=lambda package: package.name.lower())
    checked = pip_queries.is_hashed(request.requirements)
    lines = [_locked_pin(package) if checked else package.pin for package in packages]
    files.write_whole(request.path("txt"), "".join(line + "\n" for line in lines))
    record = _facts(request, python)
    modules, unread = wheel_contents.modules_inside(packages)
    archive = os.path.exists(request.archive) and source != "the site"
    # Wheels that were sent lie on the node's disk beside what they become.
    beside = os.path.getsize(request.archive) if archive else 0
    record.update(
        source=source,
        modules=modules,
        unread=unread,
        packages=[package.pin for package in packages],
        files=wheel_contents.files_inside(packages),
        archive=archive,
        room=wheel_contents.bytes_inside(packages) + beside,
    )
    files.write_json(request.path("json"), record)
    return _print(record)


def _locked_pin(package: PipPackage) -> str:
    """The package with the hash of the very file that was found, so that the job checks it too."""
    return "{} --hash=sha256:{}".format(package.pin, files.sha256(package.file))


def report_missing(request: WheelRequest, python: Python, places: List[str], errors: str) -> int:
    answer = _facts(request, python)
    answer.update(missing=pip_queries.unfindable(python, request.requirements, places), said=errors)
    answer.update(offered=pip_queries.offered(request.wheelhouse))
    _print(answer)
    return NOT_FOUND


def _facts(request: WheelRequest, python: Python) -> Dict[str, Any]:
    return {
        "digest": request.digest,
        "python": python.version,
        "machine": python.machine,
        "libc": python.libc,
        "maker": _maker(python),
    }


def _maker(python: Python) -> str:
    if _has_virtualenv(python):
        return VIRTUALENV
    return VENV if python.venv else BY_HAND


def _has_virtualenv(python: Python) -> bool:
    """Only one that belongs to the same Python: another would make another's environment."""
    program = shutil.which("virtualenv")
    return program is not None and os.path.dirname(program) == python.folder


def _pack(folder: str, archive: str) -> None:
    """Into one file, since shared storage counts files."""
    with tarfile.open(archive, "w") as tar:
        for name in sorted(os.listdir(folder)):
            tar.add(os.path.join(folder, name), name)


def _unpacked(archive: str, workshop: str) -> str:
    folder = os.path.join(workshop, "sent")
    with tarfile.open(archive) as tar:
        for entry in tar.getmembers():
            # Only plain files beside each other, whoever made the archive.
            plain = entry.name == os.path.basename(entry.name) and entry.name not in (".", "..")
            if entry.isfile() and plain:
                tar.extract(entry, folder)
    return folder


def _expanded(path: str) -> str:
    return os.path.expanduser(os.path.expandvars(path))


def _print(answer: Dict[str, Any]) -> int:
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
    return 0
