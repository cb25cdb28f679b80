"""`python` where there is only `python3`, and the reverse: a word that everything on PATH finds.

Not only the command: scripts that it starts, and processes on other nodes, say `python` too. The
words lie in the run folder, last on PATH, so that any Python of that name goes first.
"""

import os
import shlex
import shutil
import sys
from typing import Dict, List, Mapping

from ..record.runfolder import RunFolder

_NAMES = ("python", "python3")
_WORD = """\
#!/bin/sh
exec {} "$@"
"""


def missing(environment: Mapping[str, str]) -> Dict[str, str]:
    """What stands in for each name that PATH does not have; nothing where it has both."""
    path = environment.get("PATH", os.defpath)
    there = [name for name in _NAMES if shutil.which(name, path=path)]
    # By its name: other nodes may have it elsewhere.
    stand_in = there[0] if there else sys.executable
    return {name: stand_in for name in _NAMES if name not in there}


def provide(environment: Dict[str, str], run: RunFolder) -> Dict[str, str]:
    """`environment` with a PATH that has both names."""
    lacking = missing(environment)
    if not lacking:
        return environment
    folder = os.path.join(run.path, "bin")
    try:
        os.makedirs(folder, exist_ok=True)
        for name, stand_in in lacking.items():
            _write(os.path.join(folder, name), _WORD.format(shlex.quote(stand_in)))
    except OSError:
        return environment  # a full disk; then the command itself says what is missing
    path = environment.get("PATH", os.defpath)
    return dict(environment, PATH=os.pathsep.join([path, folder]))


def told(words: List[str], environment: Mapping[str, str]) -> str:
    """What to say where a command uses a name that `environment` lacks; else nothing."""
    for name, stand_in in sorted(missing(environment).items()):
        if name in words:
            where = shutil.which(stand_in, path=environment.get("PATH", os.defpath)) or stand_in
            return "there is no `{}` here, so `{}` runs {}".format(name, name, where)
    return ""


def _write(path: str, text: str) -> None:
    """Jobs of one run may begin at the same time."""
    partial = "{}.{}.partial".format(path, os.getpid())
    with open(partial, "w") as stream:
        stream.write(text)
    os.chmod(partial, 0o700)
    os.replace(partial, path)
