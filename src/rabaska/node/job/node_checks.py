"""Checks on the node: was the environment made, and is the internet reachable."""

import os
import socket
import threading
import time
from typing import Mapping, Optional

from .. import files
from ..record.events import say
from ..record.run_folder import RunFolder
from . import job_folder
from .this_job import Work

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
    folder = job_folder.given(environment)
    if not folder:
        return
    try:
        job_folder.remove(folder)
    except OSError as problem:
        say("{} could not be removed: {}".format(folder, problem))


_PATIENCE = 10.0  # seconds; a firewall that swallows everything never answers


def try_once(work: Work) -> Optional[threading.Thread]:
    """Find out beside the program, unless it is known or nobody wants to know."""
    known = work.run.nodes
    if not work.plan.tries or os.path.exists(known):
        return None

    def find_out() -> None:
        found = {"internet": reaches(work.plan.tries), "host": socket.gethostname()}
        try:
            files.write_json(known, dict(found, time=time.time()))
        except OSError:
            pass  # the next job tries again

    thread = threading.Thread(target=find_out, name="outside", daemon=True)
    thread.start()
    return thread


def reaches(address: str) -> bool:
    """Whether anybody answers there, directly or through the proxy that the site names."""
    import http.client  # here, because they take longer to import than all of the agent
    import urllib.error
    import urllib.request

    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=_PATIENCE)
    except urllib.error.HTTPError:
        return True  # a refusal is an answer
    except (OSError, ValueError, http.client.HTTPException):
        return False
    return True
