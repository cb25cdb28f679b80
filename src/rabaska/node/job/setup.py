"""What the job script did before the agent: whether its environment was made, and what is left."""

import os
from typing import Mapping

from ..record.events import say
from ..record.runfolder import RunFolder
from . import space

FAILED = "RABASKA_SETUP_FAILED"  # set by the script to the step that failed

_LAST_WORDS = 4000  # bytes of what the script printed


class SetupFailed(OSError):
    """The environment of the job could not be made, so its program cannot start."""


def check(environment: Mapping[str, str], run: RunFolder, job: int, job_id: str) -> None:
    """Raise SetupFailed when the script said so; its last words go into the job's log."""
    failed = environment.get(FAILED)
    if not failed:
        return
    said = last_words(os.path.join(run.logs, "scheduler-{}.out".format(job_id)))
    with open(run.log(job), "ab") as log:
        log.write(said)
    errors = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    raise SetupFailed("{}: {}".format(failed, errors[-1].strip()) if errors else failed)


def last_words(path: str) -> bytes:
    """The end of what the script printed, without what we said ourselves."""
    try:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LAST_WORDS))
            lines = stream.read().splitlines(True)
    except OSError:
        return b""
    return b"".join(line for line in lines if not line.startswith(b"rabaska: "))


def clean(environment: Mapping[str, str]) -> None:
    """Remove the environment; sites without a space for each job would keep it for ever."""
    folder = space.given(environment)
    if not folder:
        return
    try:
        space.remove(folder)
    except OSError as problem:
        say("{} could not be removed: {}".format(folder, problem))
