"""The word `conda`: a conda environment solved, built and packed into one file, on a login node.

It is done once for each content: `<digest>.tar` is the environment, and `<digest>.json` says so
last. Nothing is left in the home folder, where packages would go by themselves.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .. import files, partial_folder
from . import relocation

NO_CONDA = 5  # exit code: there is no micromamba, mamba or conda
TOOLS = ("micromamba", "mamba", "conda")

_EXPLICIT = "@EXPLICIT"
_PLATFORMS = {"x86_64": "linux-64", "aarch64": "linux-aarch64", "ppc64le": "linux-ppc64le"}
_LAST_LINES = 12


class CondaRequest(NamedTuple):
    """What the laptop asks for, as JSON on standard input."""

    envs: str  # the folder where environments are kept
    digest: str
    file: str  # the name of the user's file: its end tells conda the format
    text: str
    variables: Dict[str, str]  # of the user, such as CONDA_OVERRIDE_CUDA

    def path(self, kind: str) -> str:
        return os.path.join(self.envs, "{}.{}".format(self.digest, kind))


def main(argv: List[str]) -> int:
    request = CondaRequest(**json.load(sys.stdin))
    os.makedirs(request.envs, exist_ok=True)
    record = files.read_json(request.path("json"))
    if record is None:
        tool = find_tool()
        if not tool:
            return NO_CONDA
        partial_folder.sweep(request.envs)
        workshop = partial_folder.begin(request.envs, request.digest)
        try:
            record = build(request, tool, workshop.path)
        finally:
            partial_folder.abandon(workshop)
    if record is None:
        return 1
    sys.stdout.write(json.dumps(record, sort_keys=True) + "\n")
    return 0


def find_tool() -> str:
    """The quickest that is there; a shell with conda names its own in a variable."""
    for name in TOOLS:
        found = shutil.which(name)
        if found:
            return found
    for variable in ("MAMBA_EXE", "CONDA_EXE"):
        path = os.environ.get(variable, "")
        if os.access(path, os.X_OK):
            return path
    return ""


def build(request: CondaRequest, tool: str, workshop: str) -> Optional[Dict[str, Any]]:
    """The record of the environment; None, and why on standard error, where it cannot be made."""
    prefix = relocation.long_path(workshop)
    file = os.path.join(workshop, os.path.basename(request.file))
    text, by_pip = as_given(request.file, request.text, tool)
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(text)
    sys.stderr.write("{} creates the environment\n".format(os.path.basename(tool)))
    environment = variables(request, workshop)
    if not _run(create_words(tool, prefix, file, text), environment):
        return None
    python = os.path.join(prefix, "bin", "python")
    if not os.path.exists(python):
        sys.stderr.write("{} names no python\n".format(request.file))
        return None
    if by_pip and not _run([python, "-m", "pip", "install", "--no-deps"] + by_pip, environment):
        return None
    count = relocation.pack(prefix, os.path.join(workshop, "packed.tar"))
    os.replace(os.path.join(workshop, "packed.tar"), request.path("tar"))
    record = {
        "digest": request.digest,
        "files": count,
        "archive": True,
        "relocate": True,
        "tool": os.path.basename(tool),
        "size": os.path.getsize(request.path("tar")),
        "room": os.path.getsize(request.path("tar")),
    }
    files.write_json(request.path("json"), record)
    return record


def create_words(tool: str, prefix: str, file: str, text: str) -> List[str]:
    words = ["--prefix", prefix, "--file", file]
    name = os.path.basename(tool)
    if name.startswith("micromamba") or _EXPLICIT in text:
        return [tool, "create", "--yes"] + words
    # `conda env create` asks nothing, and has `--yes` only since 24.
    return [tool, "env", "create"] + words


def variables(request: CondaRequest, workshop: str) -> Dict[str, str]:
    own = dict(os.environ, **request.variables)
    own.update(
        CONDA_PKGS_DIRS=os.path.join(workshop, "packages"),
        CONDA_ALWAYS_YES="true",
        PYTHONNOUSERSITE="1",
        PIP_USER="0",
        PIP_CACHE_DIR=os.path.join(workshop, "pip"),
    )
    own.setdefault("MAMBA_ROOT_PREFIX", os.path.join(workshop, "root"))
    return own


def as_given(name: str, text: str, tool: str) -> Tuple[str, List[str]]:
    """The text that `tool` understands, and what pip adds to it.

    Only micromamba reads a conda-lock.yml; the others get its list of addresses.
    """
    is_lock = re.search(r"conda-lock\.ya?ml$", name) is not None
    if not is_lock or os.path.basename(tool).startswith("micromamba"):
        return text, []
    wanted = _PLATFORMS.get(platform.machine(), "linux-64")
    locked = [entry for entry in locked_packages(text) if entry.get("platform") == wanted]
    conda, by_pip = [_EXPLICIT], []
    for entry in locked:
        if entry.get("manager") == "pip":
            by_pip.append("{}#sha256={}".format(entry["url"], entry.get("sha256", "")))
        else:
            conda.append("{}#{}".format(entry["url"], entry.get("md5", "")).rstrip("#"))
    return "\n".join(conda) + "\n", by_pip


def locked_packages(text: str) -> List[Dict[str, str]]:
    """The packages of a conda-lock.yml, as its writer lays them out: one key a line."""
    packages = []  # type: List[Dict[str, str]]
    for line in text.partition("\npackage:")[2].splitlines():
        found = re.match(r"(- |  )(?:  )?(\w+):\s*['\"]?([^'\"\s]*)['\"]?\s*$", line)
        if found is None:
            continue
        if found.group(1) == "- ":
            packages.append({})
        if packages and found.group(3):
            packages[-1].setdefault(found.group(2), found.group(3))
    return packages


def _run(words: List[str], environment: Dict[str, str]) -> bool:
    """Whether it worked; what it said last is on standard error where it did not."""
    done = subprocess.run(
        words,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )
    if done.returncode != 0:
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        said = [line for line in lines if line.strip()][-_LAST_LINES:]
        sys.stderr.write("\n".join(said or ["exit code {}".format(done.returncode)]) + "\n")
    return done.returncode == 0
