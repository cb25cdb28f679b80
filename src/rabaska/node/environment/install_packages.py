"""The word `install`: pip's own command, with a line for each package that it has installed.

`install FOLDER -- pip install … -r PINS`. pip is silent for minutes while it unpacks large wheels;
the job's output says how far it is, from where `status` and `logs` have it.
"""

import os
import subprocess
import sys
from glob import glob
from typing import Callable, List, Set

from . import pip_queries

_LOOK = 0.5  # seconds
_OTHER_NODES = ("SLURM_NODEID", "RABASKA_NODE")  # not "0": the first node speaks for all


def main(argv: List[str]) -> int:
    if len(argv) < 3 or argv[1] != "--":
        sys.stderr.write("usage: install FOLDER -- COMMAND…\n")
        return 2
    folder, words = argv[0], argv[2:]
    total = len(pip_queries.lines(_pins(words)))
    speaks = all(os.environ.get(name, "0") == "0" for name in _OTHER_NODES)
    return watched(words, folder, total, _say if speaks else lambda _: None)


def watched(words: List[str], folder: str, total: int, say: Callable[[str], None]) -> int:
    """Run `words`, and say which packages have arrived in `folder`; its exit code."""
    known = installed(folder)
    before = len(known)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    except OSError as problem:
        sys.stderr.write("{}: {}\n".format(words[0], problem.strerror))
        return 127
    say("installing packages, {} in all".format(total))
    while True:
        try:
            code = process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            code = None
        new = installed(folder) - known
        if new:
            known |= new
            done = min(len(known) - before, total)
            say("installed {}, {} of {} packages".format(", ".join(sorted(new)), done, total))
        if code is not None:
            return code if code >= 0 else 128 - code


def installed(folder: str) -> Set[str]:
    """The packages of an environment, by the record that pip writes last for each."""
    places = glob(os.path.join(glob_free(folder), "lib*", "python*", "site-packages"))
    found = set()
    for place in places:
        for record in glob(os.path.join(glob_free(place), "*.dist-info", "RECORD")):
            found.add(os.path.basename(os.path.dirname(record)).partition("-")[0])
    return found


def glob_free(path: str) -> str:
    """`path`, whose own letters mean nothing to `glob`."""
    return "".join("[{}]".format(one) if one in "*?[" else one for one in path)


def _pins(words: List[str]) -> str:
    place = words.index("-r") + 1 if "-r" in words else len(words)
    try:
        with open(words[place], encoding="utf-8") as stream:
            return stream.read()
    except (OSError, IndexError):
        return ""


def _say(text: str) -> None:
    try:
        sys.stderr.write("rabaska: {}\n".format(text))
        sys.stderr.flush()
    except OSError:
        pass  # the output may lie on a disk that is full
