"""Checks on the node: was the environment made, and is the internet reachable."""

import os
import shutil
import socket
import tempfile
import threading
import time
from typing import Mapping, Optional

from .. import files
from ..data import free_space
from ..record.events import say
from ..record.plan import Plan
from ..record.run_folder import RunFolder
from . import full_disk, job_folder
from .full_disk import FullDisk
from .this_job import Work

FAILED = "RABASKA_SETUP_FAILED"  # set by the script to the step that failed

_LAST_WORDS = 4000  # bytes of what the script printed


class SetupFailed(OSError):
    """The environment of the job could not be made, so its program cannot start."""


class NoRoom(SetupFailed):
    """So, because it did not fit on the node's disk."""

    def __init__(self, full: FullDisk) -> None:
        super().__init__(full.said)
        self.remedy = full.remedy


def check(
    environment: Mapping[str, str],
    run: RunFolder,
    job: int,
    job_id: str,
    plan: Optional[Plan] = None,
) -> None:
    """Raise SetupFailed when the script said so; its last words go into the job's log."""
    failed = environment.get(FAILED)
    if not failed:
        return
    said = last_words(os.path.join(run.logs, "scheduler-{}.out".format(job_id)))
    with open(run.log(job), "ab") as log:
        log.write(said)
    errors = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
    full = [line.strip() for line in errors if full_disk.PATTERN.search(line)]
    local = environment.get(job_folder.FOLDER) or tempfile.gettempdir()
    if full and plan is not None:
        raise NoRoom(full_disk.of_environment(plan, full[-1], full_disk.Disks(run.path, local)))
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


def note_disk(work: Work) -> None:
    """Keep how large the node's own disk is: the laptop compares environments with it.

    Of the nodes of a queue the largest counts.
    """
    folder = job_folder.given(os.environ) or work.this_job.local
    if not folder or work.plan.origin.scheduler == "local":
        return
    queue = work.plan.request.queue
    try:
        size = shutil.disk_usage(free_space.nearest(folder)).total
        known = files.read_json(work.run.disks) or {}
        if known.get(queue, {}).get("size", 0) < size:
            known[queue] = {
                "size": size,
                "path": full_disk.disk_of(folder),
                "host": socket.gethostname(),
            }
            files.write_json(work.run.disks, known)
    except (OSError, ValueError, AttributeError, TypeError):
        pass  # whoever wrote something else there; no job fails for it


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
